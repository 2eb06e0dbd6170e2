"""The words of answers: who is slower, faster, the same; what nobody can tell, and what is not comparable. Claims come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from analysis.answer import Word
from analysis.wording import probability
from control.t_test import ALPHA

from .estimates import SAME

if TYPE_CHECKING:
    from .estimates import Ratio

Row = TypeVar("Row")
SLOWER, FASTER = Word("slower", "bad"), Word("faster", "good")
SAME_TIME, CANT_TELL, NOT_COMPARABLE = Word("same", "good"), Word("can't tell", "open"), Word("not comparable", "quiet")
CLAIMS = (SLOWER, FASTER, SAME_TIME)


def verdict(value: Ratio | None) -> Word:
    """Whether what takes so many times as long is slower or faster, in the words of `compare`."""
    if value is None:
        return NOT_COMPARABLE
    if value.p_adjusted is None or value.p_adjusted >= ALPHA:
        return CANT_TELL
    return SLOWER if value.value > 1 else FASTER


def _rank(word: Word | None) -> float:
    """Where a word stands: claims, words of a study's own, what nobody can tell, nothing at all."""
    ranks = {claim.text: at for at, claim in enumerate((*CLAIMS, CANT_TELL, NOT_COMPARABLE))}
    return len(ranks) if word is None else ranks.get(word.text, len(CLAIMS) - 0.5)


def claims_first(rows: Iterable[Row], word: Callable[[Row], Word | None]) -> list[Row]:
    return sorted(rows, key=lambda row: _rank(word(row)))


def claimed(verdicts: Iterable[tuple[Word, str]], than: str = "") -> str:
    """Who is what, claims first: `Slower than stock: a, b. Can't tell: c.`"""
    groups: dict[str, list[str]] = {}
    for word, name in sorted(verdicts, key=lambda verdict: _rank(verdict[0])):
        groups.setdefault(f"{word.text} than {than}" if than and word in CLAIMS[:2] else word.text, []).append(name)
    comma = "; " if any(", " in name for names in groups.values() for name in names) else ", "
    return " ".join(f"{word[0].upper()}{word[1:]}: {comma.join(names)}." for word, names in groups.items())


def leading(lines: Sequence[str]) -> list[str]:
    """The first of what answers a question, three lines at most, and how many more there are."""
    return [*lines[:3]] if len(lines) <= 3 else [*lines[:2], f"And {len(lines) - 2} more, below."]


def faster(times: Ratio | None, name: str) -> str:
    """Write how much sooner something is than what has a name: `faster than it, +12.0 % [+8.1, +16.0], p 0.001`."""
    if times is None:
        return f"before {name}; no ratio: no run has both, or one takes no time"
    p = times.p if times.p_adjusted is None else times.p_adjusted
    if p is None:
        return f"before {name} by {'the very same share in every run' if times.why == SAME else 'too few runs for an interval'}"
    value, low, high = (100 * end for end in times.gain)
    gain = f"{value:+.1f} % [{low:+.1f}, {high:+.1f}], p {probability(p)}"
    return f"faster than {name}, {gain}" if value > 0 and p < ALPHA else f"can't tell it from {name} ({gain})"
