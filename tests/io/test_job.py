"""Check jobs before a start, ranks' own samples, and checkpoints: whole, on the disk, then gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io import job, parameters
from fixtures.studies.io.job import Sharding
from fixtures.studies.io.torch_engine import CheckpointFile
from fixtures.terms import BadInput


@given(st.integers(1, 500), st.integers(1, 5), st.data())
def test_the_steps_of_all_epochs_are_those_asked_for(
    each: int, epochs: int, data: st.DataObject
) -> None:
    wanted = data.draw(st.integers(1, each * epochs))
    steps = job.steps_of_epochs(each, epochs, wanted)
    assert sum(steps) == wanted
    assert set(steps[:-1]) <= {each}
    assert 0 < steps[-1] <= each


@pytest.mark.parametrize(
    ("each", "epochs", "wanted", "says"),
    [
        (0, 1, 1, "fewer samples than one batch per rank"),
        (10, 1, 11, r"11 steps requested, but only 10 exist \(1 epoch of 10 steps\)"),
        (10, 3, 31, r"31 steps requested, but only 30 exist \(3 epochs of 10 steps\)"),
    ],
)
def test_steps_that_are_not_there_are_refused(
    each: int, epochs: int, wanted: int, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        job.steps_of_epochs(each, epochs, wanted)


LARGE = {
    "format": "raw", "processes": "2", "read_threads": "4", "batch_size": "7",
    "record_length_bytes": "1e6", "record_length_bytes_stdev": "0",
    "record_length_bytes_resize": "0",
}  # fmt: skip


def test_batches_beyond_free_memory_are_refused_before_writing(
    tmp_path: Path,
) -> None:
    """2 ranks x 4 readers x (2 + 1) batches x 7 samples x 1 MB = 168 MB, of 167 MB."""
    params = parameters.complete(LARGE)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 999999999 kB\nMemAvailable: 163086 kB\n")
    assert (
        "the batches of 2 ranks, ready or being read, take 0.168 GB, but only 0.167 GB of memory"
        in str(job.unavailable_reason(params, tmp_path))
    )
    (tmp_path / "proc/meminfo").write_text("MemTotal: 999999999 kB\nMemAvailable: 164063 kB\n")
    assert job.unavailable_reason(params, tmp_path) is None


@pytest.mark.parametrize(
    ("files", "says"),
    [("25000", None), ("25001", "25001 steps per epoch exceed the limit of 25000")],
)
def test_more_steps_than_one_report_can_tell_are_refused(
    files: str, says: str | None, tmp_path: Path
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 99999999 kB\n")
    found = job.unavailable_reason(
        parameters.complete({"num_files_train": files, "batch_size": "1"}), tmp_path
    )
    assert found is None if says is None else says in str(found)


SHUFFLES = st.sampled_from(["off", "seed", "random"])


@st.composite
def shardings(draw: st.DrawFn) -> Sharding:
    """Any with at least one step."""
    processes, batch = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    per_file = draw(st.integers(1, 7))
    least = -(-processes * batch // per_file)
    return Sharding(
        draw(st.integers(least, least + 40)),
        per_file,
        processes,
        batch,
        draw(SHUFFLES),
        draw(SHUFFLES),
    )


@given(shardings(), st.integers(1, 5), st.integers(0, 2**31), st.integers(0, 2**60))
def test_the_ranks_together_read_each_sample_at_most_once(
    sharding: Sharding, epoch: int, seed: int, drawn: int
) -> None:
    orders = [job.order(sharding, rank, epoch, seed, drawn) for rank in range(sharding.processes)]
    total = sharding.files * sharding.samples_per_file
    assert {len(order) for order in orders} == {
        total // sharding.batch_size // sharding.processes * sharding.batch_size
    }
    read = [sample for order in orders for sample in order]
    assert len(set(read)) == len(read)
    assert set(read) <= set(range(total))


def sharding(file_shuffle: str, sample_shuffle: str) -> Sharding:
    return Sharding(20, 5, 2, 5, file_shuffle, sample_shuffle)


def test_files_are_shuffled_whole_and_samples_within_the_rank() -> None:
    by_file = job.order(sharding("seed", "off"), 0, 1, 7, 8)
    assert list(by_file) != [*range(50)]
    assert all(sample % 5 == place % 5 for place, sample in enumerate(by_file))
    by_sample = job.order(sharding("off", "seed"), 0, 1, 7, 8)
    assert list(by_sample) != [*range(50)]
    assert sorted(by_sample) == [*range(50)]


@pytest.mark.parametrize("size", [1, 1_000_000, (16 << 20) + 1])
def test_a_checkpoint_takes_the_place_of_the_last(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    checkpoint = CheckpointFile(tmp_path, size, seed=1)
    for epoch in (1, 2):
        told = checkpoint.save(epoch, 7)
        (file,) = tmp_path.iterdir()
        assert (told["epoch"], told["step"], told["bytes"], file.stat().st_size) == (
            epoch,
            7,
            size,
            size,
        )
    assert synced == [str(file.with_suffix(".unfinished")), str(tmp_path)] * 2
    checkpoint.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("files", "samples"), [("seed", "off"), ("off", "seed"), ("seed", "seed")])
def test_a_seed_gives_each_epoch_an_order_and_always_the_same(files: str, samples: str) -> None:
    one = job.order(sharding(files, samples), 0, 1, seed=7, drawn=8)
    assert one == job.order(sharding(files, samples), 0, 1, seed=7, drawn=9)
    assert one != job.order(sharding(files, samples), 0, 2, seed=7, drawn=8)
    assert one != job.order(sharding(files, samples), 0, 1, seed=8, drawn=8)
