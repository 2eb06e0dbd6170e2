"""Quotas: what the kernel is asked for, what it answers, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.kernel import cgroups
from fixtures.process import proc
from fixtures.terms import Refused
from tests.waiting import doomed, until

HOUSE = Path(__file__).parents[2]
REAL = cgroups.place()


def fake(root: Path, own: str, mounts: str, **files: str) -> Path:
    """A machine whose /proc says so; `files` are below its cgroup mount, `__` for a slash."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    (root / "proc/self/mounts").write_text(mounts)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
V1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n"


def test_version_1_is_found_by_its_cpu_controller(tmp_path: Path) -> None:
    own = "2:memory:/a\n1:cpu,cpuacct:/box\n"
    root = fake(
        tmp_path, own, V1, **{"cpu__box__cpu.cfs_quota_us": "-1", "cpu__cpu.cfs_quota_us": "-1"}
    )
    assert cgroups.place(root) == cgroups.CgroupRoot(root / "sys/fs/cgroup/cpu/box", 1)


def test_version_2_must_give_the_controller_on(tmp_path: Path) -> None:
    root = fake(tmp_path / "has", "0::/box\n", V2, **{"box__cgroup.subtree_control": "cpu memory"})
    assert cgroups.place(root) == cgroups.CgroupRoot(root / "sys/fs/cgroup/box", 2)
    lacks = fake(tmp_path / "lacks", "0::/box\n", V2, **{"box__cgroup.subtree_control": "memory"})
    assert "does not pass the cpu controller" in str(cgroups.place(lacks))


@given(st.floats(0.001, 64))
def test_a_quota_is_as_requested_within_the_kernels_minimum(cores: float) -> None:
    """To a thousandth of a core from a hundredth of one on; 1 ms is the least."""
    quota_us, period_us = cgroups.quota(cores)
    assert quota_us >= 1000
    assert quota_us / period_us == pytest.approx(max(cores, 0.01), abs=1e-3)


def test_only_groups_of_runs_that_are_no_more_are_tidied(tmp_path: Path) -> None:
    """A living process is this one; one of its number that started at another time was another.

    Others' groups are not looked at.
    """
    root = fake(
        tmp_path,
        "1:cpu:/\n",
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n",
        **{"cpu__cpu.cfs_quota_us": "-1"},
    )
    (root / f"proc/{os.getpid()}").mkdir()
    (root / f"proc/{os.getpid()}/stat").write_text(Path("/proc/self/stat").read_text())
    pid, began = os.getpid(), proc.started(os.getpid())
    assert began is not None
    cpu = root / "sys/fs/cgroup/cpu"
    for name in (
        f"deeptweak-power-{pid}-{began}-0",
        f"deeptweak-power-{pid}-{began + 1}-0",
        "deeptweak-power-4194305-7-1",
        "others",
    ):
        (cpu / name).mkdir()
    gone = ("deeptweak-power-4194305-7-1", f"deeptweak-power-{pid}-{began + 1}-0")
    assert sorted(cgroups.tidy(root)) == sorted(f"{cpu}/{name}: removed" for name in gone)
    assert {path.name for path in cpu.iterdir() if path.is_dir()} == {
        f"deeptweak-power-{pid}-{began}-0",
        "others",
    }


def test_the_groups_of_a_zombie_run_are_removed(
    tmp_path: Path,
) -> None:
    root = fake(
        tmp_path,
        "1:cpu:/\n",
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n",
        **{"cpu__cpu.cfs_quota_us": "-1"},
    )
    (root / "proc/77").mkdir()
    group = root / "sys/fs/cgroup/cpu/deeptweak-power-77-1234-0"
    group.mkdir()
    for state, left in (("S", True), ("Z", False)):
        (root / "proc/77/stat").write_text(
            f"77 (python (x) Z) {state} {' '.join('0' * 18)} 1234 0 0\n"
        )
        cgroups.tidy(root)
        assert group.exists() == left


@pytest.mark.needs("cgroups")
def test_a_process_is_held_to_its_quota_and_the_group_removed() -> None:
    assert not isinstance(REAL, str)
    with cgroups.Groups({"cpu": REAL}, "power") as groups:
        with subprocess.Popen(["sleep", "600"]) as one:
            assert groups.hold(0, one.pid, 0.25) == 0.25
            (group,) = REAL.folder.glob(f"deeptweak-power-{os.getpid()}-*")
            assert (group / "cgroup.procs").read_text().split() == [f"{one.pid}"]
            assert groups.hold(0, one.pid, 0.05) == 0.05
            assert groups.hold(0, one.pid, 1.5) == 1.5
            one.kill()
        with pytest.raises(Refused, match="refuses a limit"):
            groups.hold(1, one.pid, 0.25)
    assert not list(REAL.folder.glob(f"deeptweak-power-{os.getpid()}-*"))


@pytest.mark.needs("cgroups")
def test_a_run_whose_keeper_is_killed_removes_its_groups_itself() -> None:
    assert not isinstance(REAL, str)
    with (
        cgroups.Groups({"cpu": REAL}, "power") as groups,
        subprocess.Popen(["sleep", "600"]) as one,
    ):
        groups.hold(0, one.pid, 0.25)
        keeper = vars(groups)["_keeper"]
        keeper.kill()
        keeper.wait()
        one.kill()
    assert not list(REAL.folder.glob(f"deeptweak-power-{os.getpid()}-*"))


@pytest.mark.needs("cgroups")
def test_a_run_that_is_killed_leaves_no_group() -> None:
    assert not isinstance(REAL, str)
    script = (
        "import subprocess, time; from fixtures.kernel import cgroups\n"
        "with cgroups.Groups({'cpu': cgroups.place()}, 'power') as groups:\n"
        "    one = subprocess.Popen(['sleep', '600']); groups.hold(0, one.pid, 0.5); "
        "print(one.pid, flush=True); time.sleep(600)"
    )
    with doomed(script) as (run, one):
        assert list(REAL.folder.glob(f"deeptweak-power-{run}-*"))
        os.kill(one, signal.SIGKILL)
    until(lambda: not list(REAL.folder.glob(f"deeptweak-power-{run}-*")))
