"""The words of answers: who is slower, faster, the same; what nobody can tell, and what is not comparable. Claims come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from analysis.answer import Word
from analysis.wording import probability
from control.t_test import ALPHA

if TYPE_CHECKING:
    from analysis.terms import Effect

    from .estimates import Ratio

Row = TypeVar("Row")
SLOWER, FASTER = Word("slower", "bad"), Word("faster", "good")
SAME_TIME, CANT_TELL, NOT_COMPARABLE = Word("same", "good"), Word("can't tell", "open"), Word("not comparable", "quiet")
CLAIMS = (SLOWER, FASTER, SAME_TIME)


def verdict(value: Ratio | None, p: float | None) -> Word:
    """Whether what takes so many times as long is slower or faster, in the words of `compare`; `p` is the adjusted one."""
    if value is None:
        return NOT_COMPARABLE
    return CANT_TELL if p is None or p >= ALPHA else SLOWER if value.value > 1 else FASTER


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


def faster(effect: Effect | None, unknown: str, name: str, p: float | None = None) -> str:
    """Write a gain over something named: `faster than it, +12.0 % [+8.1, +16.0], p 0.001`; `unknown` is why there is none.

    `p` is the adjusted one, where there are several gains.
    """
    if effect is None:
        return f"before {name} {unknown}"
    p = effect.p if p is None else p
    gain = f"{100 * effect.gain:+.1f} % [{100 * effect.low:+.1f}, {100 * effect.high:+.1f}], p {probability(p)}"
    return f"faster than {name}, {gain}" if effect.gain > 0 and p < ALPHA else f"can't tell it from {name} ({gain})"
