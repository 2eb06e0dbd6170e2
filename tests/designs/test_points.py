"""Contracts of all designs, and of all that have points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import designs
from fixtures.designs._factors import factors, own, stock_levels
from fixtures.terms import BadInput
from fixtures.tweaks.derive import derived
from tests.designs.profiles import sysctls

if TYPE_CHECKING:
    from fixtures.designs import Factor, Laid

NAMES = [name for name in designs.names() if name != "matrix"]
STATIC = [name for name in NAMES if hasattr(designs.load(name), "points")]


@pytest.mark.parametrize("name", NAMES)
def test_a_design_says_what_it_is_and_is_of_one_kind(name: str) -> None:
    module = designs.load(name)
    assert re.fullmatch(r"[a-z][^.\n]{20,120}", module.DESCRIPTION)
    assert sum(hasattr(module, kind) for kind in ("points", "WITHIN", "TURNS")) == 1


def lay(name: str, varied: Sequence[Factor], profile_keys: Sequence[str]) -> Laid:
    laid: Laid = designs.load(name).points(sysctls(*profile_keys), varied)
    return laid


@pytest.mark.parametrize("name", STATIC)
@given(st.integers(2, 6), st.integers(1, 3))
def test_points_have_distinct_names_and_levels_and_exclude_stock(
    name: str, count: int, most_levels: int
) -> None:
    """Each has a level of every factor; one that changes all is the tweak set, by its own name."""
    names = [f"vm.k{n}" for n in range(count)]
    annotations = (
        {f"levels.deeptweak/{names[0]}": ", ".join(str(7 + n) for n in range(most_levels - 1))}
        if most_levels > 1
        else None
    )
    profile = sysctls(*names, annotations=annotations)
    varied = factors(profile)
    try:
        laid: Laid = designs.load(name).points(profile, varied)
    except BadInput as refusal:
        assert name == "factorial", refusal  # noqa: PT017 too many combinations
        return
    assert len({point.name for point in laid.points}) == len(laid.points)
    assert len({tuple(point.levels.values()) for point in laid.points}) == len(laid.points)
    for point in laid.points:
        assert [
            level in factor.levels
            for factor, level in zip(varied, point.levels.values(), strict=True)
        ] == [True] * count
        assert list(point.levels) == names
        assert dict(point.levels) != stock_levels(varied)
        assert (point.name == "p") == (dict(point.levels) == own(varied))
        assert re.fullmatch(r"p(\.[a-z0-9._-]+)?", point.name)
        made = derived(profile, point.levels, point.name)
        assert {t.key: t.value for t in made.tweaks} == {
            key: level for key, level in point.levels.items() if level is not None
        }


@pytest.mark.parametrize("name", STATIC)
def test_a_design_says_which_settings_lean_on_each_other(name: str) -> None:
    names = ["vm.dirty_ratio", "vm.dirty_background_ratio"]
    assert any(
        "depend on each other" in line for line in lay(name, factors(sysctls(*names)), names).said
    )


def test_an_ablation_has_the_whole_all_but_each_and_each_alone() -> None:
    """2 k + 1 points for k settings."""
    names = ["vm.a", "vm.b_c", "vm.d"]
    laid = lay("ablation", factors(sysctls(*names)), names)
    assert {
        point.name: [level == "1" for level in point.levels.values()] for point in laid.points
    } == {
        "p": [True, True, True],
        "p.no-vm.a": [False, True, True],
        "p.no-vm.b_c": [True, False, True],
        "p.no-vm.d": [True, True, False],
        "p.only-vm.a": [True, False, False],
        "p.only-vm.b_c": [False, True, False],
        "p.only-vm.d": [False, False, True],
    }


def test_a_factorial_is_every_combination_in_standard_order() -> None:
    """The first factor changes fastest (Jain 1991, ch.

    17), its levels in the order of the annotation; the first run is stock.
    """
    profile = sysctls("vm.a", "vm.b", annotations={"levels.deeptweak/vm.a": "7, 8"})
    laid: Laid = designs.load("factorial").points(profile, factors(profile))
    assert {point.name: tuple(point.levels.values()) for point in laid.points} == {
        "p.p02": ("7", None),
        "p.p03": ("8", None),
        "p.p04": ("1", None),
        "p.p05": (None, "1"),
        "p.p06": ("7", "1"),
        "p.p07": ("8", "1"),
        "p": ("1", "1"),
    }


def test_a_factorial_beyond_64_combinations_is_refused() -> None:
    names = [f"vm.k{n}" for n in range(7)]
    with pytest.raises(
        BadInput,
        match=r"the 7 settings of p have 128 combinations .* Use fewer settings, or "
        r"--design=fractional$",
    ):
        lay("factorial", factors(sysctls(*names)), names)
    profile = sysctls(
        "vm.a",
        "vm.b",
        annotations={"levels.deeptweak/vm.a": ", ".join(str(n) for n in range(2, 33))},
    )
    with pytest.raises(
        BadInput,
        match=r"have 66 combinations \(33 x 2\), but 64 are the maximum\. Use fewer levels, fewer "
        r"settings, or",
    ):
        designs.load("factorial").points(profile, factors(profile))
    assert len(lay("factorial", factors(sysctls(*names[:6])), names[:6]).points) == 63
