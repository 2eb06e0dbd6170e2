"""The design of a saved run: which settings made which tweak set, read strictly; older files know the matrix alone."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from analysis.load import from_json, load
from analysis.terms import Factor, Point, Unreadable
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

JSON = dict[str, Any]
DATA = Path(__file__).parents[3] / "data"
ARMS = ("sysctls", "sysctls.no-vm.swappiness", "sysctls.only-vm.swappiness")
DESIGN: JSON = {
    "kind": "ablation",
    "factors": [
        {"tweakset": "sysctls", "name": "vm.swappiness", "kind": "sysctl", "levels": [None, "1", "10"]},
        {"tweakset": "sysctls", "name": "script:warm", "kind": "script", "levels": [None, "run"]},
    ],
    "points": {
        "sysctls": {"tweakset": "sysctls", "levels": {"vm.swappiness": "10", "script:warm": "run"}},
        "sysctls.no-vm.swappiness": {"tweakset": "sysctls", "levels": {"vm.swappiness": None, "script:warm": "run"}},
        "sysctls.only-vm.swappiness": {"tweakset": "sysctls", "levels": {"vm.swappiness": "10", "script:warm": None}},
    },
    "notes": {"sysctls": {"letters": {"A": "vm.swappiness", "B": "script:warm"}}},
    "conclusion": {"text": "vm.swappiness it was.", "done": True, "odds": 20},
}


def run_with(**changes: object) -> JSON:
    run: JSON = copy.deepcopy(saved_run(Made(arms=(STOCK, AGAIN, *(Arm(name) for name in ARMS)))))
    run["deeptweak"]["design"] |= copy.deepcopy(DESIGN) | changes
    return run


def test_a_design_is_read_as_it_was_written() -> None:
    written = run_with()
    jsonschema.Draft202012Validator(json.loads((DATA / "run.schema.json").read_text(encoding="utf-8"))).validate(written)
    design = from_json(written, "here").design
    assert (design.kind, design.seed) == ("ablation", written["deeptweak"]["design"]["seed"])
    assert design.factors == (
        Factor("sysctls", "vm.swappiness", "sysctl", (None, "1", "10")),
        Factor("sysctls", "script:warm", "script", (None, "run")),
    )
    assert design.points["sysctls.no-vm.swappiness"] == Point("sysctls", {"vm.swappiness": None, "script:warm": "run"})
    assert design.notes == DESIGN["notes"]
    assert design.conclusion == DESIGN["conclusion"]


@pytest.mark.parametrize("path", sorted((DATA / "runs").glob("2026-11-21*.json")), ids=lambda path: path.name)
def test_a_run_of_an_older_version_is_a_matrix(path: Path) -> None:
    design = load(path).design
    assert (design.kind, design.factors, design.points, design.notes, design.conclusion) == ("matrix", (), {}, {}, {})


FACTOR, POINT = DESIGN["factors"][0], DESIGN["points"]["sysctls"]
REFUSED: dict[str, JSON] = {
    "a factor of nobody": {"factors": [FACTOR | {"tweakset": "other"}], "points": {}},
    "a factor twice": {"factors": [FACTOR, FACTOR], "points": {}},
    "an unknown kind": {"factors": [FACTOR | {"kind": "magic"}]},
    "a factor that is never as found": {"factors": [FACTOR | {"levels": ["1", "10"]}]},
    "a factor that is not varied": {"factors": [FACTOR | {"levels": [None]}]},
    "a level twice": {"factors": [FACTOR | {"levels": [None, "1", "1"]}]},
    "a level that is a number": {"factors": [FACTOR | {"levels": [None, 10]}]},
    "levels in words": {"factors": [FACTOR | {"levels": "1, 10"}]},
    "a point of no tweak set": {"points": {"other": POINT}},
    "a point of no profile": {"points": {"sysctls": POINT | {"tweakset": "stock"}}},
    "a point without a level": {"points": {"sysctls": POINT | {"levels": {"vm.swappiness": "10"}}}},
    "a level that no factor has": {"points": {"sysctls": POINT | {"levels": {"vm.swappiness": "7", "script:warm": None}}}},
    "a level that is an object": {"points": {"sysctls": POINT | {"levels": {"vm.swappiness": [], "script:warm": None}}}},
    "notes on nobody": {"notes": {"other": {}}},
    "notes in words": {"notes": {"sysctls": "I = ABC"}},
    "a kind that is no text": {"kind": 3},
    "a conclusion without words": {"conclusion": {"done": True}},
    "a conclusion that may be done": {"conclusion": {"text": "?", "done": "maybe"}},
}


def test_refusals(snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, changes in REFUSED.items():
        with pytest.raises(Unreadable) as refused:
            from_json(run_with(**changes), "here")
        messages[name] = str(refused.value)
        assert "\n" not in messages[name]
    assert messages == snapshot
