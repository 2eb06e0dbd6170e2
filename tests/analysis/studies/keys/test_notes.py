"""What a design of the run side says of itself is what the read side finds in its points: across the wall, with no code in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from analysis.studies.keys.effects import of_table
from analysis.studies.keys.terms import DesignFactor, EffectRow, Effects, Observed
from fixtures.designs import Factor as Varied
from fixtures.designs import Laid, Options, fractional, screening
from fixtures.terms import TweakSet

Points = Callable[[TweakSet, Sequence[Varied], Options], Laid]
METRIC = "throughput_samples_per_s"


def analysed(design: str, laid: Laid, keys: int) -> Effects:
    """Points and notes as a saved run has them, with made-up responses."""
    levels = {"stock": tuple("as found" for _ in range(keys))}
    letters = laid.notes["letters"]
    for point in laid.points:
        levels[point.name] = tuple("as found" if value is None else value for value in point.levels.values())
    factors = tuple(DesignFactor(name, letter, ("as found", "1")) for letter, name in letters.items())
    rows = tuple(
        EffectRow(name, point, str(block), 100 + 7 * block + at % 5 + block * at % 3)
        for block in (1, 2)
        for at, (name, point) in enumerate(levels.items())
    )
    notes = json.loads(json.dumps(laid.notes))
    (found,) = of_table(Observed("s", "w", "p", design, METRIC, "higher", "log", 0.03, factors, levels, rows, (), notes))
    return found


@pytest.mark.parametrize(
    ("design", "points", "options"),
    [
        ("fractional", fractional.points, Options()),
        ("fractional", fractional.points, Options(resolution=3)),
        ("screening", screening.points, Options()),
    ],
    ids=["IV", "III", "screening"],
)
def test_notes_and_points_agree(design: str, points: Points, options: Options) -> None:
    """Letters, generators with their signs, aliases, resolution: for every number of keys."""
    for keys in range(3, 13):
        factors = [Varied("p", f"vm.key{at}", "sysctl", (None, "1")) for at in range(keys)]
        laid = points(TweakSet("p"), factors, options)
        found = analysed(design, laid, keys)
        assert not [note for note in found.notes if "believed" in note]
        assert found.resolution == laid.notes.get("resolution")
        assert {term.label for term in found.terms if term.means == "main"} == {factor.name for factor in factors}
        assert found.orthogonal
