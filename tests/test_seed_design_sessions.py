"""The DLIO study's design file from command line to saved run, on a fake machine: rows are run, marked, gone on with, and refused."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from fixtures import design_file
from tests.sessions import HOUSE, Done, Place
from tests.spread.fleet import FLEET, FLEET_HALT
from tests.test_design_sessions import interrupted

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch")]
# 12 files of 4 KiB in 6 steps; a row's sizes would be scaled, so all of it is given for all rows.
TINY = {
    "num_files_train": "12", "record_length_bytes": "4096", "record_length_bytes_stdev": "0", "computation_time": "0.001",
    "batch_size": "2", "cache": "as_found",
}  # fmt: skip
VARY = (("read_threads", ("0",)), *((key, (value,)) for key, value in TINY.items()))
DESIGN = (
    "model,epochs,processes,overrides,run\r\n"
    "# baselines\r\n"
    "unet3d_h100_custom,1,1,,N\r\n"
    "unet3d_h100_custom,2,1,,N\r\n"
    "# done long ago, and one that DLIO would run as a baseline\r\n"
    "unet3d_h100_custom,1,1,++workload.dataset.format=npy,Y\r\n"
    "unet3d_h100_custom,1,1,++workload.dataset.fromat=npy,N\r\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A machine in a folder, and the design file in it."""
    environment = {FLEET: str(tmp_path / "fleet"), FLEET_HALT: str(tmp_path / "halt"), "PYTHONPATH": str(HOUSE)}
    (tmp_path / "design.csv").write_bytes(DESIGN.encode())
    return Place(tmp_path, environment=environment)


class OfFile(Place):
    """A session whose workloads are the rows of a file: none is named beside it."""

    def command(self, *options: str, workload: str = "") -> list[str]:
        """As a user would call it."""
        del workload
        return [word for word in super().command(*options) if not word.startswith("--workloads")]


@pytest.fixture
def of_file(place: Place) -> Place:
    return OfFile(place.folder, environment=place.environment)


def asked(place: Place, *more: str) -> list[str]:
    vary = [f"--vary={key}={value}" for key, (value,) in VARY]
    design = f"--design-file={place.folder}/design.csv"
    return ["-p", "tests.spread.plugin", "--target=fleet", "--blocks=2", "--benchmark-save=one", design, *vary, *more]


def letters(place: Place) -> str:
    return "".join(row.run for row in design_file.read(place.folder / "design.csv", VARY).rows)


def test_rows_are_run_in_blocks_and_marked_and_the_one_that_cannot_be_ends_with_2(of_file: Place) -> None:
    """Two rows, two blocks, stock and its copy: 8 cells. The row that is done is left alone."""
    done: Done = of_file.run(*asked(of_file))
    assert done.code == 2, done.out
    (told,) = done.lines("NOT MEASURED: ")
    assert "design.csv, line 7: workload.dataset.fromat: no such key; did you mean workload.dataset.format" in told
    cells = of_file.saved()["deeptweak"]["cells"]
    assert {(cell["workload"].partition(":read")[0], cell["outcome"]) for cell in cells} == {
        ("io_train", "measured"), ("io_train:epochs=2", "measured")
    }  # fmt: skip
    assert len(cells) == 8
    lines = (of_file.folder / "design.csv").read_text().splitlines()
    assert lines[:6] == [
        "model,epochs,processes,overrides,run,reason",
        "# baselines",
        "unet3d_h100_custom,1,1,,Y,",
        "unet3d_h100_custom,2,1,,Y,",
        "# done long ago, and one that DLIO would run as a baseline",
        "unet3d_h100_custom,1,1,++workload.dataset.format=npy,Y,",
    ]
    assert lines[6].startswith("unet3d_h100_custom,1,1,++workload.dataset.fromat=npy,F,")


def test_a_run_that_was_stopped_goes_on_and_a_row_is_done_with_its_last_cell(of_file: Place) -> None:
    path = of_file.folder / "design.csv"
    path.write_text("".join(DESIGN.splitlines(keepends=True)[:4]))
    interrupted(of_file, asked(of_file), signal.SIGKILL, after=3)
    assert letters(of_file) == "NN"  # a block of each is left
    before = of_file.finished()
    done = of_file.run(*asked(of_file, "--resume"))
    assert done.code == 0, done.out
    assert letters(of_file) == "YY"
    saved = of_file.saved()
    assert len(saved["deeptweak"]["cells"]) == 8
    kept = {one["extra_info"]["id"]: one["extra_info"]["started_utc"] for one in saved["benchmarks"]}
    assert {name: kept[name] for name in before} == {name: record["started_utc"] for name, record in before.items()}


def test_a_plan_says_what_is_not_run_and_marks_nothing(of_file: Place) -> None:
    done = of_file.run(*asked(of_file, "--plan"))
    assert done.code == 0, done.out
    assert "design.csv, line 7 is not run: workload.dataset.fromat: no such key" in " ".join(done.out.split())
    assert done.lines("8 cells in this order")
    assert (of_file.folder / "design.csv").read_bytes() == DESIGN.encode()


def test_when_all_is_done_nothing_is_run(of_file: Place) -> None:
    (of_file.folder / "design.csv").write_text(DESIGN.replace(",N\r", ",Y\r"), newline="")
    done = of_file.run(*asked(of_file))
    assert done.code == 2
    assert done.lines("nothing is left to run, 3 of its 4 rows are marked Y")
    assert "Traceback" not in done.out


def test_a_workload_beside_the_file_is_refused(place: Place) -> None:
    done = place.run(*asked(place))
    assert done.code == 2
    assert done.lines("--workloads=idle: the rows of")
