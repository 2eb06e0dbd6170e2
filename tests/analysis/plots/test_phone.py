"""What leads a report, drawn on a sheet for a phone: one column, names over their rows, nothing cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.load import load
from analysis.plots import fitting
from analysis.plots.scene import scene_of
from analysis.plots.style import NARROW
from tests.analysis.plots.reading import faults, said

RUNS = Path(__file__).parents[3] / "data" / "runs"
LEADS = {
    "turns_2026-11-25_amd-epyc-2cpu": "forest",
    "io_patterns_2026-11-22_amd-epyc-2cpu": "io_format_cache",
    "cluster-poisoning_2026-11-22_amd-epyc-2cpu": "jobs_poisoning",
    "power-cap_2026-11-22_amd-epyc-2cpu": "power_forest",
    "monitoring-cnn_2026-11-22_amd-epyc-2cpu": "overhead_forest",
}


@pytest.mark.parametrize(("run", "name"), LEADS.items())
def test_all_of_it_stands_on_a_narrow_sheet(run: str, name: str) -> None:
    scene = scene_of([load(RUNS / f"{run}.json")])
    picture = fitting(scene.runs)[name]
    narrow = picture.draw(scene, NARROW)
    assert faults(narrow, NARROW) == []
    words = set(said(picture.draw(scene)).split())
    assert len(words - set(said(narrow).split())) <= 0.1 * len(words), "a name may be broken elsewhere"
