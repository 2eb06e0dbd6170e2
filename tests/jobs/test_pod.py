"""A replica as a container's program: its lines while at work, and its last word at any end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fixtures.studies.jobs import kinds, pod

HOUSE = Path(__file__).parents[2]
PROGRAM = (
    "import sys; from pathlib import Path; from fixtures.studies.jobs import pod; "
    "sys.exit(pod.main(*sys.argv[2:], termination=Path(sys.argv[1])))"
)


def started(tmp_path: Path, **given: Any) -> subprocess.Popen[str]:
    kind, params = given.pop("kind", "sleep"), kinds.complete("sleep", given.pop("params", {}))
    asked = {
        "folder": str(tmp_path / "jobs" / "0"),
        "job": 0,
        "attempt": 1,
        "seed": 0,
        "replicas": 1,
        "params": params,
    }
    asked |= {"work": 0.2, "from_work": 0.0, "checkpoint_s": 0.0, **given}
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        str(tmp_path / "said"),
        str(kind),
        json.dumps(asked),
        "0",
    ]
    return subprocess.Popen(
        command, cwd=HOUSE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def last_word(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "said").read_text())


def test_checkpoints_are_numbered_lines_and_the_end_comes_last(tmp_path: Path) -> None:
    """0.2 s of work in parts of 0.05 s have three checkpoints; at the end, the folder is gone."""
    process = started(tmp_path, checkpoint_s=0.05)
    out, _ = process.communicate()
    assert process.returncode == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["told"] for line in lines] == [1, 2, 3]
    assert [line["checkpoint"] for line in lines] == pytest.approx([0.05, 0.1, 0.15])
    said = last_word(tmp_path)
    assert (said["done_work"], said["checkpoints"], said["reason"], said["result"]) == (
        0.2,
        3,
        "",
        None,
    )
    assert said["ran_s"] >= 0.2
    assert said["cpu_s"] > 0
    assert said["max_rss_mib"] > 0
    assert not (tmp_path / "jobs" / "0").exists()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"params": {"fails_at": 0.5}}, "failed at 0.1 of 0.2, as its class requires"),
        ({"kind": "nosuch"}, "Unknown kind of job 'nosuch'"),
        ({"from_work": 0.1}, "FileNotFoundError: "),
    ],
)
def test_why_it_fails_is_its_last_word(
    tmp_path: Path, given: dict[str, object], reason: str
) -> None:
    process = started(tmp_path, **given)
    _, err = process.communicate()
    assert process.returncode == 1
    assert last_word(tmp_path)["reason"].startswith(reason)
    assert "Traceback" in err


def test_told_to_end_it_ends_at_once_and_says_how_far_it_was(tmp_path: Path) -> None:
    process = started(tmp_path, work=1000.0, checkpoint_s=0.05)
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == pod.EXIT_SIGTERM
    said = last_word(tmp_path)
    assert said["reason"] == "terminated (SIGTERM)"
    assert said["done_work"] >= first["checkpoint"]
    assert (tmp_path / "jobs" / "0" / "checkpoint").exists()


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        ("cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 1500000\n", 1.5),
        ("cpu,cpuacct/cpu.stat", "nr_throttled 2\nthrottled_time 2500000000\n", 2.5),
        ("cpu/cpu.stat", "nr_throttled 2\n", None),
    ],
)
def test_throttled_time_is_read_from_both_cgroup_versions(
    tmp_path: Path, name: str, text: str, seconds: float | None
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert pod.throttled_s(tmp_path) == seconds
