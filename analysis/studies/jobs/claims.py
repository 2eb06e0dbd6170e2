"""The words of answers: slower, faster, same, can't tell, not comparable. Claims come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from analysis.answer import Column, Columns, Word
from analysis.contrasts import SAME, Scale, contrasts
from analysis.wording import probability
from control.t_test import ALPHA

from .estimates import figure

if TYPE_CHECKING:
    import pandas as pd

    from .records import Stream

Row = TypeVar("Row")
Contrast = Any  # a row of `contrasts`, as `rows_of` has it
SLOWER, FASTER = Word("slower", "bad"), Word("faster", "good")
SAME_TIME, CANT_TELL, NOT_COMPARABLE = (
    Word("same", "good"),
    Word("can't tell", "open"),
    Word("not comparable", "quiet"),
)
CLAIMS = (SLOWER, FASTER, SAME_TIME)


def rows_of(frame: pd.DataFrame) -> list[Contrast]:
    """Return the rows of a frame as named tuples; missing values are None."""
    values = frame.astype(object)
    return [*values.where(values.notna(), None).itertuples(index=False, name="Row")]


def contrasts_of(
    rows: Sequence[Mapping[str, object]],
    arm: str,
    baseline: object,
    metrics: Mapping[str, Scale],
    **columns: Any,
) -> list[Contrast]:
    """Compare rows by `contrasts`; return none if the baseline is missing, or is all there is."""
    import pandas as pd

    levels = {row[arm] for row in rows}
    if baseline not in levels or len(levels) < 2:
        return []
    return [
        row
        for row in rows_of(contrasts(pd.DataFrame([*rows]), arm, baseline, metrics, **columns))
        if row.n
    ]


def verdict(
    contrast: Contrast | None, above: Word = SLOWER, below: Word = FASTER, none: float = 1.0
) -> Word:
    """Return the side of `none` on which a contrast is shown to lie: slower or faster for times."""
    if contrast is None or contrast.value is None:
        return NOT_COMPARABLE
    if contrast.p_adjusted is None or contrast.p_adjusted >= ALPHA:
        return CANT_TELL
    return above if contrast.value > none else below


def column(
    head: str, name: str = "", write: Callable[[Any], str] = str, of: str = "", **look: Any
) -> tuple[Column, Callable[[Any], object]]:
    """Make a column from the rows' attribute of that name, or from the attribute `of`."""
    return Column(head, name, write, **look), attrgetter(of or name or head)


def ratio_columns(head: str, word: Callable[[Any], Word | None], name: str = "") -> Columns:
    """Make the columns of a ratio of times: verdict, ratio with interval, and p.

    `name` is the rows' attribute with the contrast, unless they are contrasts.
    """

    def contrast(row: Any) -> Contrast | None:
        of_row = getattr(row, name) if name else row
        return of_row if of_row is not None and of_row.value is not None else None

    return [
        (Column(head, "verdict", left=True), word),
        (Column("times as long\n[95 %]", name or "ratio", figure), contrast),
        (
            Column("p\nHolm", "p_adjusted", probability),
            lambda row: getattr(contrast(row), "p_adjusted", None),
        ),
    ]


def _rank(word: Word | None) -> float:
    ranks = {claim.text: at for at, claim in enumerate((*CLAIMS, CANT_TELL, NOT_COMPARABLE))}
    return len(ranks) if word is None else ranks.get(word.text, len(CLAIMS) - 0.5)


def claims_first(rows: Iterable[Row], word: Callable[[Row], Word | None]) -> list[Row]:
    return sorted(rows, key=lambda row: _rank(word(row)))


def claimed(verdicts: Iterable[tuple[Word, str]], than: str = "") -> str:
    """List names by verdict, claims first, as in `Slower than stock: a, b. Can't tell: c`."""
    groups: dict[str, list[str]] = {}
    for word, name in sorted(verdicts, key=lambda verdict: _rank(verdict[0])):
        groups.setdefault(
            f"{word.text} than {than}" if than and word in CLAIMS[:2] else word.text, []
        ).append(name)
    comma = "; " if any(", " in name for names in groups.values() for name in names) else ", "
    return " ".join(
        f"{word[0].upper()}{word[1:]}: {comma.join(names)}." for word, names in groups.items()
    )


def leading(lines: Sequence[str]) -> list[str]:
    """Return up to three lines of an answer, or the first two and the number of others."""
    return [*lines[:3]] if len(lines) <= 3 else [*lines[:2], f"And {len(lines) - 2} more, below."]


def faster(times: Contrast | None, name: str) -> str:
    """Write a comparison with `name`: `faster than it, +12.0 % [+8.1, +16.0], p 0.001`."""
    if times is None or times.value is None:
        return f"next is {name}; no ratio: no run has both, or one takes no time"
    if times.p_adjusted is None:
        why = "the same ratio in every run" if times.missing == SAME else "too few runs"
        return f"next is {name}; no interval: {why}"
    value, low, high = (100 * (1 / end - 1) for end in (times.value, times.high, times.low))
    gain = f"{value:+.1f} % [{low:+.1f}, {high:+.1f}], p {probability(times.p_adjusted)}"
    return f"{'' if verdict(times) is FASTER else 'not shown to be '}faster than {name}, {gain}"


def called(row: Mapping[str, object], alike: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the parameters in which a row differs: `jobs 40`, `checkpoints every 5 s`."""
    names = dict.fromkeys(name for other in alike for name in other)
    differing = [name for name in names if len({str(other.get(name)) for other in alike}) > 1]
    return [_phrase(name, row[name]) for name in differing if row.get(name) is not None]


def _phrase(name: str, value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"checkpoints every {text} s" if name == "checkpoint_s" else f"{name} {text}"


def apart(rows: Sequence[Mapping[str, object]], names: Sequence[str] = ()) -> list[str]:
    """Name rows by the parameters that distinguish rows of one name; unique names stay."""
    names = names or [""] * len(rows)
    result = []
    for name, row in zip(names, rows, strict=True):
        alike = [other for its, other in zip(names, rows, strict=True) if its == name]
        result.append(", ".join(filter(None, (name, *called(row, alike)))))
    return result


def names_of(streams: Iterable[Stream]) -> dict[str, str]:
    """Name groups of streams by their differing parameters, or fully if still ambiguous."""
    first = {stream.group: dict(stream.condition_without()) for stream in streams}
    names = apart([*first.values()])
    return dict(
        zip(first, names if all(names) and len(set(names)) == len(names) else first, strict=True)
    )
