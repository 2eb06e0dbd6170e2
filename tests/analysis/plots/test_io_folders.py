"""What pictures of DLIO's folders say of them: rows in an order that a reader can follow, a heading once, what is left out in a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.plots.io_shared import notes_of, parts_of
from analysis.plots.scene import Scene
from analysis.studies.io.dlio_folder import runs_of
from analysis.studies.io.responses import judge
from tests.dlio_like import Made, folder

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

LOADS = (1.0, *[0.02] * 79)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Readers in the order of a shuffled design, a shuffle between them, and a run of one step in 0.3 s whose rate DLIO gives below 0."""
    where = tmp_path / "unet3d_h100"
    for at, threads in enumerate((16, 1, 8)):
        asked = (f"++workload.reader.read_threads={threads}",)
        folder(where / f"2_read_threads_{threads}", Made(1000 * at, loads=LOADS, reader={"read_threads": threads}, overrides=asked))
    asked = ("++workload.reader.file_shuffle=random",)
    folder(where / "2_file_shuffle_random", Made(1500, loads=LOADS, reader={"read_threads": 4, "file_shuffle": "random"}, overrides=asked))
    folder(where / "2", Made(5000, loads=(0.1,)))
    refused: list[str] = []
    made = Scene((), io=tuple(judge(run) for run in runs_of(where, refused)))
    assert not refused
    return made


def test_levels_of_a_parameter_stand_together_in_their_order(scene: Scene) -> None:
    (part,) = parts_of(scene)
    names = [one.name for one in part.configurations]
    readers = [at for at, name in enumerate(names) if name.startswith("read_threads")]
    assert [names[at] for at in readers] == ["read_threads 1", "read_threads 8", "read_threads 16"]
    assert readers == list(range(readers[0], readers[0] + 3))


def test_runs_without_any_figure_are_counted_by_what_they_are(scene: Scene, snapshot: SnapshotAssertion) -> None:
    assert notes_of(scene, parts_of(scene)) == snapshot
