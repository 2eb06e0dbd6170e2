"""What a design's notes claim of it, held against its own points: the points are believed.

Notes are written in letters: `E` is `-ABC` where E is on just where the product of A, B and C is not. They come out of a file that
anybody may have edited, so nothing in them is taken to be there, or to be text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .coding import column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .coding import Floats
    from .terms import Effects


def contradictions(one: Effects) -> Iterator[str]:
    """Say where the saved notes are not what the points give."""
    seen, notes = one.observed, one.observed.design_notes
    if any(len(factor.levels) != 2 for factor in seen.factors):
        return
    claimed = notes.get("resolution")
    if claimed is not None and claimed != one.resolution:
        points = "full resolution" if one.resolution is None else f"resolution {one.resolution}"
        yield f"the run's notes say resolution {claimed}; its points have {points}: the points are believed."
    lows = [factor.levels[0] for factor in seen.factors]
    coded = np.array([[-1.0 if a == b else 1.0 for a, b in zip(levels, lows, strict=True)] for levels in seen.points.values()])
    of = {factor.letter: at for at, factor in enumerate(seen.factors)}
    wrong = [f"{name} = {word}" for name, word in _claims(notes) if not _holds(name, word, of, coded)]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        yield f"the run's notes say {', '.join(wrong[:3])}{more}, which its points do not: the points are believed."


def _claims(notes: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Every pair of words that are said to be one column."""
    generators, aliases = notes.get("generators"), notes.get("aliases")
    if isinstance(generators, dict):
        yield from ((str(name), str(word)) for name, word in generators.items())
    if isinstance(aliases, dict):
        for name, others in aliases.items():
            yield from ((str(name), str(word)) for word in (others if isinstance(others, list | tuple) else [others]))


def _holds(name: str, word: str, of: Mapping[str, int], coded: Floats) -> bool:
    """Whether two words are the same at every point, signs included; a letter that is no factor's makes it false."""
    sides = []
    for text in (name, word):
        letters = text.lstrip("-")
        if not letters or any(letter not in of for letter in letters):
            return False
        sides.append((-1 if text.startswith("-") else 1) * column(coded, tuple(of[letter] for letter in letters)))
    return bool((sides[0] == sides[1]).all())
