"""Check fractions by their runs alone: orthogonality, aliases, and that all is reported."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.designs import Laid, fractional
from fixtures.designs._factors import LETTERS, factors
from fixtures.designs.fractional import smallest
from fixtures.terms import BadInput
from tests.designs.profiles import sysctls

if TYPE_CHECKING:
    from numpy.typing import NDArray


def laid(module: ModuleType, count: int, **options: Any) -> tuple[Laid, NDArray[np.int64]]:
    """A design of `count` settings, and its runs as signs: shape (runs, settings), stock first."""
    names = [f"vm.k{n:02d}" for n in range(count)]
    profile = sysctls(*names)
    found: Laid = module.points(profile, factors(profile), **options)
    rows = [[1 if level else -1 for level in point.levels.values()] for point in found.points]
    return found, np.array([[-1] * count, *rows])


def mixed(signs: NDArray[np.int64], one: Sequence[int], other: Sequence[int]) -> float:
    """Return the correlation of two effects' columns: 0 if estimated apart, ±1 if identical."""
    return float(
        np.mean(np.prod(signs[:, list(one)], axis=1) * np.prod(signs[:, list(other)], axis=1))
    )


def effects(count: int, *sizes: int) -> list[tuple[int, ...]]:
    return [effect for size in sizes for effect in itertools.combinations(range(count), size)]


def resolution_of(signs: NDArray[np.int64]) -> int | None:
    """Return the length of the shortest constant product of columns, up to seven letters."""
    count = signs.shape[1]
    for size in range(1, min(count, 7) + 1):
        if any(abs(mixed(signs, effect, ())) == 1 for effect in effects(count, size)):
            return size
    return None


def places(word: str) -> tuple[int, ...]:
    return tuple(LETTERS.index(letter) for letter in word.lstrip("-"))


# -- fractional


@pytest.mark.parametrize("asked", [3, 4, 5])
@pytest.mark.parametrize("count", range(2, 17))
def test_a_fraction_is_orthogonal_with_the_requested_resolution(count: int, asked: int) -> None:
    """Main effects are apart from each other and from the mean: X'X is diagonal.

    The resolution is recomputed from the runs.
    """
    if asked == 5 and count > 8:
        with pytest.raises(
            BadInput,
            match=rf"p has {count} settings; resolution 5 needs more than 64 runs\. Use "
            r"--resolution=4, or",
        ):
            laid(fractional, count, resolution=5)
        return
    found, signs = laid(fractional, count, resolution=asked)
    runs = len(signs)
    assert runs == found.notes["runs"] <= 64
    assert runs & (runs - 1) == 0
    assert np.array_equal(signs.T @ signs, runs * np.eye(count))
    assert np.array_equal(signs.sum(axis=0), np.zeros(count))
    assert len(np.unique(signs, axis=0)) == runs
    resolution = resolution_of(signs)
    if resolution is None:
        assert runs == 2**count
        assert "resolution" not in found.notes
    else:
        assert found.notes["resolution"] == resolution >= asked


def test_the_default_is_resolution_four_in_the_fewest_runs() -> None:
    """As in docs/designs.md and the module: 8 runs for 4 settings, 16 up to 8, 32 up to 16."""
    runs = {
        count: 1 << fraction.base
        for count in range(2, 17)
        if (fraction := smallest(count, fractional.RESOLUTION))
    }
    assert runs == {2: 4, 3: 8, 4: 8} | dict.fromkeys(range(5, 9), 16) | dict.fromkeys(
        range(9, 17), 32
    )
    with pytest.raises(
        BadInput, match=r"p has 17 settings, but 16 are the maximum: split the manifest"
    ):
        laid(fractional, 17)


# Numbers of words of three, four, … letters of the fractions of least aberration. Source: Box,
# Hunter & Hunter (2005), table 6.22; Wu & Hamada, Experiments (2009), tables 5A.2 and 5A.3.
LEAST_ABERRATION = {
    (5, 3, 8): {3: 2, 4: 1},
    (6, 3, 8): {3: 4, 4: 3},
    (7, 3, 8): {3: 7, 4: 7, 7: 1},
    (5, 4, 16): {5: 1},
    (6, 4, 16): {4: 3},
    (7, 4, 16): {4: 7},
    (8, 4, 16): {4: 14, 8: 1},
    (9, 4, 32): {4: 6, 5: 8, 8: 1},
    (10, 4, 32): {4: 10, 5: 16, 8: 5},
    (11, 4, 32): {4: 25, 6: 27, 8: 10, 10: 1},
    (9, 3, 16): {3: 4, 4: 14, 5: 8, 7: 4, 8: 1},
    (8, 5, 64): {5: 2, 6: 1},
}


@pytest.mark.parametrize(("case", "words"), LEAST_ABERRATION.items(), ids=str)
def test_the_fraction_of_a_size_has_the_least_aberration(
    case: tuple[int, int, int], words: dict[int, int]
) -> None:
    count, resolution, runs = case
    found = smallest(count, resolution)
    assert found is not None
    assert (1 << found.base, Counter(map(len, found.words()))) == (runs, Counter(words))


@given(st.integers(2, 12), st.sampled_from([3, 4, 5]))
def test_every_alias_is_said_and_every_alias_said_is_one(count: int, asked: int) -> None:
    """Recompute aliases and signs from the runs, among main effects and two-way interactions."""
    if asked == 5 and count > 8:
        return
    found, signs = laid(fractional, count, resolution=asked)
    said = {
        (places(effect), places(other)): -1 if other.startswith("-") else 1
        for effect, others in found.notes["aliases"].items()
        for other in others
    }
    both = effects(count, 1, 2)
    true = {
        (one, other): share
        for one in both
        for other in both
        if one != other and (share := mixed(signs, one, other))
    }
    assert {pair: sign for pair, sign in said.items() if len(pair[1]) <= 2} == true
    for (effect, other), sign in said.items():
        assert mixed(signs, effect, other) == sign
        assert len(other) <= 2 or (len(effect), len(other)) == (1, 3)


@given(st.integers(3, 14), st.sampled_from([3, 4]))
def test_generators_and_the_defining_relation_make_the_runs(count: int, asked: int) -> None:
    """A factor's column is its generator's product; each word of the relation is always +1."""
    found, signs = laid(fractional, count, resolution=asked)
    generators = found.notes["generators"]
    assert 2 ** (count - len(generators)) == len(signs)
    for letter, word in generators.items():
        assert mixed(signs, places(letter), places(word)) == (-1 if word.startswith("-") else 1)
    for word in found.notes.get("defining_relation", "I").split(" = ")[1:]:
        assert word == "…" or mixed(signs, places(word), ()) == (-1 if word.startswith("-") else 1)
    assert list(found.notes["letters"].items()) == [
        (LETTERS[n], f"vm.k{n:02d}") for n in range(count)
    ]


def test_seven_factors_in_eight_runs_use_textbook_generators() -> None:
    """2^(7-4): D = AB, E = AC, F = BC, G = ABC (Jain 1991, ex.

    19.1), the first three turned round so that stock is a run of it.
    """
    found, signs = laid(fractional, 7, resolution=3)
    assert found.notes["generators"] == {"D": "-AB", "E": "-AC", "F": "-BC", "G": "ABC"}
    # Standard order: A changes fastest, then B, then C.
    assert signs[:, :3].tolist() == [[a, b, c] for c in (-1, 1) for b in (-1, 1) for a in (-1, 1)]


@pytest.mark.parametrize("count", [5, 9])
def test_a_fraction_without_the_whole_set_says_so(count: int) -> None:
    """A word of odd length is -1 in stock and +1 in the whole set: no fraction can hold both."""
    found, signs = laid(fractional, count)
    assert [1] * count not in signs.tolist()
    assert "  these runs do not include p as a whole" in found.said
    found, signs = laid(fractional, 8)
    assert signs[-1].tolist() == [1] * 8
    assert found.points[-1].name == "p"
    assert not any("not among" in line for line in found.said)
