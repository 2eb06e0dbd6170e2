"""Workload variants, to a saved run on a fake machine: crossed, resumed, by file, on nodes."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from analysis.load import load
from fixtures import design_file
from tests.sessions import HOUSE, Done, Place
from tests.spread.fleet import FLEET, FLEET_HALT
from tests.test_session import SCHEMA

pytestmark = [pytest.mark.slow]
ON_FLEET = ("-p", "tests.spread.plugin", "--target=fleet", "--tweaks=stock", "--benchmark-save=one")
SHORT = ("--steps=3", "--blocks=2")
SLOW, SLOWER = "idle:wait_s=0.003", "idle:wait_s=0.006"
# 12 files of 4 KiB in 6 steps: what matters here is the way, not the speed.
TINY = (
    "io_train:format=raw:read_threads=0:batch_size=2:num_files_train=12:record_length_bytes=4096"
    ":record_length_bytes_stdev=0:computation_time=0.001"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A machine in a folder."""
    environment = {
        FLEET: str(tmp_path / "fleet"),
        FLEET_HALT: str(tmp_path / "halt"),
        "PYTHONPATH": str(HOUSE),
    }
    return Place(tmp_path, environment=environment)


def crossed(place: Place, *more: str) -> Done:
    return place.run(*ON_FLEET, *SHORT, "--vary=wait_s=0.003,0.006", *more)


def test_variants_are_saved_by_name_with_all_their_parameters(place: Place) -> None:
    """Each does what its name says: twice the wait, at least so long a step.

    What it told beside its steps is read back.
    """
    done = crossed(place)
    assert done.code == 0, done.out
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    assert {
        name: one["params"]["wait_s"] for name, one in saved["deeptweak"]["workloads"].items()
    } == {SLOW: 0.003, SLOWER: 0.006}
    assert {cell["workload"] for cell in saved["deeptweak"]["cells"]} == {SLOW, SLOWER}
    ids = sorted(one["name"] for one in saved["benchmarks"])
    assert ids[:2] == [
        f"bench_step_time[{SLOW}-stock-again-b1]",
        f"bench_step_time[{SLOW}-stock-again-b2]",
    ]
    assert len(ids) == 8
    cells = load(place.files()[-1]).cells
    assert [
        cell.metrics["step_time_p10_s"] >= float(cell.workload.partition("=")[2]) for cell in cells
    ] == [True] * 8
    assert [list(cell.report) for cell in cells] == [["overslept"]] * 8


def test_a_design_file_holds_variants_and_is_marked(place: Place) -> None:
    design = place.folder / "design.csv"
    assert crossed(place, f"--design-file={design}").code == 0
    assert {row.workload for row in design_file.read(design).rows} == {SLOW, SLOWER}
    assert {row.run for row in design_file.read(design).rows} == {"Y"}
    lines = [line for line in design.read_text().splitlines(keepends=True) if SLOWER not in line]
    design.write_text("".join(lines).replace(",Y,", ",N,"))
    done = place.run(*ON_FLEET, "--steps=3", f"--design-file={design}", workload=SLOW)
    assert done.code == 0, done.out
    assert set(place.saved()["deeptweak"]["workloads"]) == {SLOW}


def test_a_workload_gets_its_data_set_and_its_report_is_read(
    place: Place,
) -> None:
    """Cold and warm, one data set for both, below the results; a second run finds it there."""
    done = place.run(*ON_FLEET, "--blocks=1", "--vary=cache=cold,warm", workload=TINY)
    assert done.code == 0, done.out
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    (folder,) = (path for path in (place.storage / "datasets").iterdir() if path.is_dir())
    cells = load(place.files()[-1]).cells
    assert len(cells) == 4
    assert (
        len(
            [
                line
                for line in done.lines("[")
                if " samples/s, 0 % cached before; in force: " in line
            ]
        )
        == 2
    )
    assert done.lines("What was read, and which factor mattered: python -m analysis io ")[
        0
    ].endswith(place.files()[-1].name)
    for cell in cells:
        (told,), (epoch,) = cell.report["io"], cell.report["epochs"]
        assert told["dataset"]["folder"] == folder.name  # type: ignore[index]
        assert len(epoch["load_s"]) == told["steps_per_epoch"] == 6  # type: ignore[arg-type]
    made = folder.stat().st_ino
    assert (
        place.run(
            *ON_FLEET, "--blocks=1", "--tweaks=stock", f"--io-data={folder.parent}", workload=TINY
        ).code
        == 0
    )
    assert folder.stat().st_ino == made
