"""An early end of io_train is reported in a line, and no process is left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures import workloads
from fixtures.process import proc
from fixtures.studies.io import pagecache
from tests.unlocked import without_locked_memory
from tests.waiting import alive, until
from tests.workloads.made import small

pytestmark = pytest.mark.needs("torch")

ROOT = Path(__file__).parents[2]


def started(
    varied: str, data: Path, scratch: Path, preparation: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """The process of a variant, after its first step."""
    known = small(varied)
    workloads.provide([known], data, lambda _: None)
    options = [
        f"--steps={known.params['steps']}",
        "--warmup=0",
        "--seed=1",
        f"--scratch={scratch}",
        f"--data={data}",
    ]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fixtures.workloads.io_train",
            *options,
            f"--params={json.dumps(known.params)}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        preexec_fn=preparation,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "step":
            return process
    raise AssertionError(f"{known.id} ended before its first step")


@pytest.mark.parametrize(
    ("varied", "depth", "says"),
    [
        (
            "processes=1:read_threads=1",
            1,
            "Rank 0, epoch 1, step {step}: reader process {victim} was killed (Killed)",
        ),
        (
            "processes=2:read_threads=1",
            2,
            "Rank 1, epoch 1, step {step}: reader process {victim} was killed (Killed)",
        ),
        ("processes=2:read_threads=0", 1, "Rank 1 (process {victim}) was killed by SIGKILL"),
    ],
    ids=["reader", "reader of another rank", "rank"],
)
def test_whoever_is_killed_ends_the_cell_and_is_named(
    varied: str, depth: int, says: str, data: Path, tmp_path: Path
) -> None:
    """In one line, in the step that runs, and no process is left.

    Readers are children of their rank, the ranks of the first.
    """
    with started(f"{varied}:computation_time=0.5:cache=as_found", data, tmp_path) as process:
        own, everybody = proc.children(process.pid), proc.descendants(process.pid)
        (victim,) = own if depth == 1 else everybody - own
        os.kill(victim, signal.SIGKILL)
        steps, why = rest(process)
    assert why.startswith(says.format(victim=victim, step=2 + steps))
    assert "\n" not in why
    until(lambda: not any(map(alive, everybody)))


def test_a_file_that_goes_away_ends_the_cell_and_is_named(tmp_path: Path) -> None:
    with started(
        "read_threads=1:computation_time=0.05:file_shuffle=off:sample_shuffle=off:cache=as_found",
        tmp_path,
        tmp_path,
    ) as process:
        (last,) = tmp_path.glob("*/train/img_47_of_48.raw")
        last.unlink()
        _, why = rest(process)
    assert re.fullmatch(
        rf"Rank 0, epoch 1, step \d+: reader 0: FileNotFoundError: .* '{last}'\.", why
    )


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_a_page_cache_that_changes_in_an_epoch_ends_the_cell(
    cache: str, data: Path, tmp_path: Path
) -> None:
    """From the first step on: most of 50 MB come from where they should not.

    What was proven before the epoch is worth nothing then.

    Warm files are held in memory, though not locked there: copies that are on the disk only take
    their places.
    """
    varied = f"read_threads=1:computation_time=0.1:cache={cache}"
    workloads.provide([small(varied)], data, lambda _: None)
    files = sorted(data.glob("raw-*/train/*.raw"))
    copies = [Path(shutil.copy(file, tmp_path)) for file in files]
    pagecache.evict(copies)
    with started(varied, data, tmp_path, without_locked_memory) as process:
        if cache == "warm":
            for copy, file in zip(copies, files, strict=True):
                copy.replace(file)
        else:
            pagecache.warm(files)
        _, why = rest(process)
    assert re.match(
        rf"cache={cache}: epoch 1 read 50\.3 MB of the data set, and \d+\.\d MB came from storage",
        why,
    )


def rest(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Return the steps done since, and the reason of the end."""
    assert process.stdout is not None
    *before, last = (json.loads(line) for line in process.stdout)
    assert process.wait() == 1
    assert last["event"] == "refused"
    return sum(event["event"] == "step" for event in before), last["why"]


def test_all_die_with_the_first_rank(data: Path, tmp_path: Path) -> None:
    with started(
        "processes=2:read_threads=1:computation_time=0.5:cache=as_found", data, tmp_path
    ) as process:
        everybody = proc.descendants(process.pid)
        assert len(everybody) == 3
        process.kill()
    until(lambda: not any(map(alive, everybody)))
