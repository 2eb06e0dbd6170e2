"""Pictures of I/O runs: drawn from runs with known truth, and left out without I/O reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import fitting, io_processes, pictures
from analysis.plots.scene import Scene, scene_of
from analysis.studies.io import answers
from analysis.studies.io import pictures as io
from analysis.studies.io.figures import judge
from analysis.studies.io.study import study
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said
from tests.made_io import MadeIo, io_runs, saved_io
from tests.synthetic import saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.studies.io.terms import IoRun

NAMES = [name for name, one in pictures().items() if "io" in getattr(one, "REPORTS", ())]
FORMATS = {"raw": 0.0, "npz": -0.5, "png": -1.2}
COLD = {"raw": -0.6, "npz": -0.2, "png": 0.0}


def gain(levels: Mapping[str, object], tweakset: str) -> float:
    """Decoding costs png its speed, a cold cache and a small read-ahead cost raw its."""
    name, cold = str(levels.get("format", "raw")), levels.get("cache") == "cold"
    scaled = 0.7 * math.log(int(str(levels.get("processes", 1))))
    return (
        scaled
        + FORMATS[name]
        + cold * (COLD[name] - 0.15 * (tweakset.startswith("block") and name == "raw"))
    )


MADE = MadeIo(
    factors={"format": tuple(FORMATS), "cache": ("cold", "warm"), "processes": (1, 2, 4)},
    tweaksets=("stock", "stock-again", "block-readahead-128"),
    gain=gain,
    blocks=4,
    block_sd=0.03,
)


def scene_of_runs(runs: Sequence[IoRun], origin: str = "made.json") -> Scene:
    return Scene((), io=[study(origin, list(map(judge, runs)))])


def scene_with(made: MadeIo) -> Scene:
    return scene_of_runs(io_runs(made))


@pytest.fixture(scope="module")
def scene() -> Scene:
    """As a session saves it and the reader reads it."""
    return scene_of([from_json(saved_io(MADE), "made.json")])


@pytest.fixture(scope="module")
def drawings(scene: Scene) -> dict[str, Figure]:
    return {name: pictures()[name].draw(scene) for name in NAMES}


def test_pictures_come_only_with_a_run_that_reported_its_input(
    scene: Scene, drawings: dict[str, Figure]
) -> None:
    """One needs more than a run: several numbers of processes."""
    other = from_json(saved_run(), "other.json")
    assert set(NAMES) == {"io_processes", "io_bottleneck"}
    assert {name: faults(figure) for name, figure in drawings.items()} == {
        name: [] for name in NAMES
    }
    assert set(NAMES) <= fitting(scene.runs).keys()
    assert not set(NAMES) & fitting([other]).keys()
    for name in NAMES:
        assert "input" in refusal(pictures()[name], scene_of([other]))
    assert "several numbers of processes" in refusal(io_processes, scene_with(MadeIo()))


def test_of_a_refused_utilisation_nothing_is_drawn() -> None:
    """Ten steps are too few: a note and no mark, since any place would be a value."""
    several = io_processes.draw(scene_with(replace(MADE, steps=10, factors={"processes": (1, 2)})))
    assert all(
        not points(line)
        for one in several.axes
        for line in lines_of(one, "o")
        if line.get_markerfacecolor() == "white"
    )
    assert "A refused figure has no mark" in said(several).replace("\n", " ")


def test_shares_of_an_epoch_add_up_and_are_those_of_the_clock() -> None:
    made = replace(
        MADE,
        factors={"cache": ("warm",), "processes": (2,)},
        tweaksets=("stock",),
        first=lambda _levels: 0.5,
    )
    runs = io_runs(made)
    shares = io.shares_of(runs)
    assert sum(one or 0.0 for one in shares.values()) == pytest.approx(100)
    total_s = sum(epoch.duration_s for run in runs for epoch in run.epochs)
    assert shares["compute"] == pytest.approx(
        100 * sum(sum(epoch.compute_s) for run in runs for epoch in run.epochs) / total_s
    )
    assert shares["first"] == pytest.approx(
        100 * sum(epoch.load_s[0] for run in runs for epoch in run.epochs) / total_s
    )
    assert shares["barrier"] == pytest.approx(
        100 * sum(sum(epoch.barrier_s or ()) for run in runs for epoch in run.epochs) / total_s
    )


def test_over_processes_configurations_have_rows_on_one_scale(drawings: dict[str, Figure]) -> None:
    axes = drawings["io_processes"].axes
    assert len(axes) == 2 * 6
    assert {one.get_ylim()[1] for one in axes[::2]} == {104.0}
    assert len({one.get_ylim() for one in axes[1::2]}) == 1
    assert [list(one.get_xticks()) for one in axes[:2]] == [[1, 2, 4]] * 2
    whole = next(line for line in lines_of(axes[1], "o") if len(points(line)) == 3)
    throughputs = [y for _, y in points(whole)]
    assert throughputs == sorted(throughputs)


def test_the_untouched_machine_and_its_copy_are_one_block_value() -> None:
    """So the pictures show the means that table and sentences give."""
    made = replace(
        MADE,
        factors={"cache": ("cold", "warm")},
        gain=lambda _levels, tweakset: 0.2 * (tweakset == "stock-again"),
        blocks=4,
    )
    (part,) = io.parts_of(scene_with(made))
    for one in part.rows:
        values = [judge(run).value("samples_per_s_whole") or math.nan for run in one.runs]
        assert len(values) == 8
        assert one.responses["samples_per_s_whole"].n == 4
        assert one.responses["samples_per_s_whole"].value == pytest.approx(
            math.exp(math.fsum(map(math.log, values)) / 8)
        )


def test_folders_of_dlio_are_one_study_and_drawn_into_files(tmp_path: Path) -> None:
    """DLIO has no blocks, and each folder is an origin."""
    made = replace(
        MADE,
        factors={"format": ("raw", "png"), "processes": (1, 2)},
        blocks=1,
        tweaksets=("stock",),
    )
    runs = [
        replace(run, origin=f"results/{at}", block=None) for at, run in enumerate(io_runs(made))
    ]
    scene = scene_of_runs(runs, "results")
    drawn = answers.pictures(scene.io, tmp_path)
    files = {name for name, outcome in drawn.items() if not outcome.startswith("not drawn: ")}
    assert files == {"io_processes", "io_bottleneck"}
    assert all((tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in files)
    text = said(io_processes.draw(scene))
    assert "4 runs of torch" in text
    assert "ran once" in text
