"""A session with settings of the workload's process: asked for, before and in force, judged."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from analysis.compare import compare
from analysis.load import load
from tests.sessions import HOUSE, Place

pytestmark = pytest.mark.usefixtures("kernel_unchanged")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With one variable of its own."""
    return Place(tmp_path, environment={"INHERITED": "1"})


def test_process_settings_are_measured_saved_and_judged(place: Place) -> None:
    """No root is needed.

    A set that nothing can be changed by is as stock; one that cannot be had is skipped with the
    reason.
    """
    own = place.manifest(
        "own", variables="MALLOC_ARENA_MAX=1\nINHERITED=1", process="Nice=19\nLimitNOFILE=512"
    )
    there = place.manifest("there", variables="INHERITED=1")
    absent = place.manifest("absent", process="CPUAffinity=9999")
    done = place.run(
        f"--tweaks={own},{there},{absent}", "--blocks=3", "--steps=4", "--benchmark-save=one"
    )
    assert done.code == 2, done.out  # a set that was asked for by name was not measured
    saved = place.saved()
    jsonschema.validate(saved, json.loads((HOUSE / "data" / "run.schema.json").read_text()))
    tweak = next(
        b["extra_info"]["tweak"]
        for b in saved["benchmarks"]
        if b["extra_info"]["tweakset"] == "own"
    )
    assert (
        tweak["requested"]
        == tweak["observed"]
        == {"MALLOC_ARENA_MAX": "1", "INHERITED": "1", "Nice": "19", "LimitNOFILE": "512"}
    )
    assert (tweak["before"]["MALLOC_ARENA_MAX"], tweak["before"]["INHERITED"]) == (None, "1")
    assert tweak["restored"] == {}  # it went with the process
    assert tweak["already_in_force"] == ["INHERITED"]
    assert saved["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}
    (reason,) = {c["reason"] for c in saved["deeptweak"]["cells"] if c["tweakset"] == "absent"}
    assert reason.startswith("CPUAffinity=9999: ")
    found = {one.tweakset: one for one in compare(load(place.files()[-1]))}
    assert (found["own"].pairs, found["own"].untouched, found["there"].untouched) == (
        3,
        False,
        True,
    )
