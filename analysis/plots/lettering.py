"""Lettering: how wide a text is, and names made to fit where they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis.plain import one_line

from .style import TEXT
from .vector import extent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Fits = Callable[[str], bool]

LONGEST = 200  # letters of a name: nothing on a page has room for more
BREAKS = "-_./ "  # a name is broken after these


def width_in(text: str, points: float = TEXT, weight: str = "normal") -> float:
    """Answer how wide a line of text is, in inches."""
    # A renderer that rounds each letter to whole pixels needs a little more.
    return 1.03 * extent(text, points, weight)[0] / 72


def room_for(names: Iterable[str], most_in: float, points: float = TEXT) -> float:
    """Answer how wide a column of names must be, in inches, with room to what stands beside it; `most_in` at most."""
    return min(most_in, max((width_in(one_line(name, LONGEST), points) for name in names), default=0.0) + 0.18)


def wrapped(text: str, room_in: float, points: float = TEXT) -> list[str]:
    """Break a text into lines that fit; a word longer than a line is broken too."""
    fits: Fits = lambda line: width_in(line, points) <= room_in  # noqa: E731  # a name for what is asked three times
    lines = [""]
    for word in one_line(text, 50 * LONGEST).split():
        for piece in _pieces(word, fits):
            longer = f"{lines[-1]} {piece}".strip()
            if fits(longer):
                lines[-1] = longer
            else:
                lines.append(piece)
    return [line for line in lines if line]


def fitted(names: Iterable[str], room_in: float, points: float = TEXT, lines: int = 2, weight: str = "normal") -> dict[str, str]:
    """Fit names into some lines of a column: broken at a hyphen, dot or underscore, else shortened in the middle; never two alike."""
    shown: dict[str, str] = {}
    fits: Fits = lambda line: width_in(line, points, weight) <= room_in  # noqa: E731  # as above
    for name in dict.fromkeys(names):
        text = _folded(one_line(name, LONGEST), fits, lines)
        # What is left of two names may be the same: then the place in the list tells them apart.
        shown[name] = text if text not in shown.values() else _folded(f"{len(shown) + 1}. {one_line(name, LONGEST)}", fits, lines)
    return shown


def _pieces(word: str, fits: Fits) -> Iterator[str]:
    while word and not fits(word):
        at = max(1, _most(word, fits))
        yield word[:at]
        word = word[at:]
    yield word


def _most(text: str, fits: Fits) -> int:
    """Answer how many letters of the beginning fit."""
    return next((at for at in range(min(len(text), LONGEST), 0, -1) if fits(text[:at])), 0)


def _folded(name: str, fits: Fits, lines: int) -> str:
    folded = [""]
    for part in re.findall(rf"[^{re.escape(BREAKS)}]*[{re.escape(BREAKS)}]|[^{re.escape(BREAKS)}]+", name):
        if folded[-1] and not fits(folded[-1] + part):
            folded.append(part)
        else:
            folded[-1] += part
    if len(folded) <= lines and all(map(fits, folded)):
        return "\n".join(folded)
    if lines == 1:
        return next((short for keep in range(len(name), 0, -1) if fits(short := _middle_out(name, keep))), "…")
    most = max(1, _most(name, fits))
    most = next((at for at in range(most, most // 2, -1) if name[at - 1] in BREAKS), most)
    return f"{name[:most]}\n{_folded(name[most:], fits, lines - 1)}"


def _middle_out(name: str, keep: int) -> str:
    return name if keep >= len(name) else f"{name[: (keep + 1) // 2]}…{name[len(name) - keep // 2 :]}"
