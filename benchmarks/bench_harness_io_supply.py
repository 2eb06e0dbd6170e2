"""Does the loader of io_train keep up with fio?

What it emulates is only as good as what it could supply: with no computation it must read raw files at 0.9 of the rate of fio or more,
cold and warm, side by side: the same files, the same size of a read, as many readers as fio has jobs, in blocks of random order. The
samples are cut to the model's length as unet3d's are, so that of most of what is read nothing is kept, by either. Beside it, and without
a limit: a loader that hands on every byte, which fio never does.
Run alone: `pytest benchmarks/bench_harness_io_supply.py`; needs fio, and 8 GB of disk and of memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.kernel import lock
from fixtures.kernel.state_dirs import state_dir
from fixtures.process.child import Child, ask
from fixtures.studies.io import dataset, pagecache
from fixtures.studies.io.dataset import Spec
from fixtures.targets._process import run
from fixtures.terms import Order
from fixtures.workloads import case, provide

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

MIN_RATIO = 0.9
BLOCKS = 10
SEED = 20261122
READERS = 2
BATCH = 7  # unet3d's
FILES = 448
RECORD_BYTES = 16 << 20
KEPT_BYTES = 240_000  # the part that unet3d keeps: 2 MiB of 147 MB
TRANSFER_BYTES = 1 << 20
VARIANT = case(
    "io_train",
    format="raw",
    read_threads=READERS,
    batch_size=BATCH,
    file_shuffle="off",
    sample_shuffle="off",
    transfer_size=TRANSFER_BYTES,
    num_files_train=FILES,
    record_length_bytes=RECORD_BYTES,
    record_length_bytes_stdev=0,
    computation_time=0,
)
ARMS = {"fio": None, "loader": KEPT_BYTES, "loader_whole_samples": 0}

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio (apt-get install fio)")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The data set: its folder, its files, and a folder with a link to each, named `<job>.<number>` as fio counts its own."""

    data: Path
    files: tuple[Path, ...]
    links: Path


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    """Write it once, while no other run measures; it is removed at the end."""
    with lock.machine_held(state_dir()), tempfile.TemporaryDirectory(prefix="io-supply-") as name:
        data, links = Path(name) / "datasets", Path(name) / "links"
        if not pagecache.device_of(Path(name)):
            pytest.skip(f"{name} lies on no block device: nothing can be evicted there; set TMPDIR")
        provide([VARIANT], data, print)
        spec = Spec.of(VARIANT.params)
        files = dataset.check(data / spec.folder_name, spec).files
        links.mkdir()
        for number, file in enumerate(files):
            # Job j reads what reader j reads: every READERS-th batch.
            batch, place = divmod(number, BATCH)
            (links / f"{batch % READERS}.{batch // READERS * BATCH + place}").symlink_to(file)
        yield Prepared(data, files, links)


@pytest.mark.parametrize("cache", ["warm", "cold"])
def bench_supply(benchmark: BenchmarkFixture, rounds: Callable[[list[float]], None], prepared: Prepared, cache: str) -> None:
    """Bytes a second of each, block by block; the ratio is the geometric mean over blocks, with its 95 % t-interval."""
    draw = random.Random(f"{SEED} {cache}")
    measured: list[dict[str, Any]] = []
    for block in range(BLOCKS):
        order = draw.sample(list(ARMS), len(ARMS))
        rates = {arm: by_fio(prepared, cache) if (kept := ARMS[arm]) is None else by_loader(prepared, cache, kept) for arm in order}
        measured.append({"block": block, "order": order, **rates})
    ratios = {arm: interval([m[arm]["bytes_per_s"] / m["fio"]["bytes_per_s"] for m in measured]) for arm in ARMS if arm != "fio"}
    benchmark.extra_info.update(
        fio=ask("fio", "--version").out.strip(),
        cache=cache,
        seed=SEED,
        data_set={"files": FILES, "bytes": FILES * RECORD_BYTES, **pagecache.device_of(prepared.data)},
        workload=case(VARIANT, cache=cache, record_length_bytes_resize=KEPT_BYTES).id,
        min_ratio=MIN_RATIO,
        ratio_to_fio=ratios,
        blocks=measured,
    )
    rounds([m["loader"]["seconds"] for m in measured])
    assert ratios["loader"]["ratio"] >= MIN_RATIO, ratios


def by_loader(prepared: Prepared, cache: str, kept_bytes: int) -> dict[str, float]:
    """From when the readers are up, on average, until the last batch is there; `whole_…` is with their start and with their end.

    To start its jobs is no part of fio's figure either.
    """
    known = case(VARIANT, cache=cache, record_length_bytes_resize=kept_bytes)
    steps = known.params["steps"]
    with tempfile.TemporaryDirectory(dir=prepared.data.parent) as scratch:
        done = run(Order(known, steps, 0, seed=1, scratch=Path(scratch), data=prepared.data), on_start=_prefer)
    assert done.error is None, (done.error, done.last_lines)
    epoch: Any = done.report["epochs"][0]
    seconds = sum(sum(epoch[column]) for column in ("load_s", "compute_s", "barrier_s")) - statistics.mean(epoch["readers_up_s"])
    size = FILES * RECORD_BYTES
    whole_s = epoch["end_monotonic_s"] - epoch["start_monotonic_s"]
    return {
        "bytes": size,
        "seconds": round(seconds, 6),
        "bytes_per_s": round(size / seconds),
        "whole_bytes_per_s": round(size / whole_s),
        "read_bytes": epoch["read_bytes"],
        "resident_before": epoch["resident_before"],
    }


def by_fio(prepared: Prepared, cache: str) -> dict[str, float]:
    """As many jobs as readers, each its own files one after the other, synchronous reads of the same size."""
    result = pagecache.ensure_state(cache, prepared.files)
    options = {
        "name": "supply",
        "directory": prepared.links,
        "filename_format": "$jobnum.$filenum",
        "numjobs": READERS,
        # Its processes would each begin a session, and leave the precedence that is given to this one behind.
        "thread": 1,
        "nrfiles": FILES // READERS,
        "openfiles": 1,
        "file_service_type": "sequential",
        "filesize": RECORD_BYTES,
        "rw": "read",
        "bs": TRANSFER_BYTES,
        "ioengine": "psync",
        "iodepth": 1,
        # The state of the cache is ours, and readers give the kernel no hint either.
        "invalidate": 0,
        "fadvise_hint": 0,
        "output-format": "json",
    }
    command = ["fio", "--readonly", "--group_reporting", *(f"--{key}={value}" for key, value in options.items())]
    with Child(command, stdout=PIPE) as fio:
        _prefer(fio.pid)
        text = fio.communicate()[0].decode()
    assert fio.returncode == 0, text
    job = json.loads(text[text.index("{") :])["jobs"][0]["read"]
    assert job["io_bytes"] == FILES * RECORD_BYTES
    seconds = job["runtime"] / 1000
    return {
        "bytes": job["io_bytes"],
        "seconds": seconds,
        "bytes_per_s": round(job["io_bytes"] / seconds),
        "resident_before": round(result.resident, 6),
    }


def _prefer(pid: int) -> None:
    """Before all else that runs on this machine, both alike; only root may, and without it nothing else should run."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, -20)
        # Where the kernel groups by session, that alone would only count within its own.
        Path(f"/proc/{pid}/autogroup").write_text("-20")


def interval(ratios: Sequence[float]) -> dict[str, float]:
    """Geometric mean and its 95 % interval, Student's on the logarithms."""
    import numpy as np
    from scipy import stats

    logs = np.log(ratios)
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    low, middle, high = (round(float(np.exp(logs.mean() + off)), 4) for off in (-half, 0.0, half))
    return {"ratio": middle, "low": low, "high": high}
