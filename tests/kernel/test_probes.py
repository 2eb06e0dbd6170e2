"""Rights of this process: capabilities and kernel settings in fake trees; real trials."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.kernel import probes
from fixtures.monitors.catalogue import nvidia

HOUSE = Path(__file__).parents[2]
ALL, NONE = "000001ffffffffff", "0000000000000000"
# root as Docker has it by default: neither SYS_ADMIN, SYS_PTRACE nor PERFMON
CONTAINER = "00000000a80425fb"


def machine(root: Path, capabilities: str, **files: str) -> Path:
    """A /proc with these effective capabilities and `paranoid`, `scope` and `params` files."""
    paths = {
        "paranoid": "proc/sys/kernel/perf_event_paranoid",
        "scope": "proc/sys/kernel/yama/ptrace_scope",
        "params": "proc/driver/nvidia/params",
    }
    written = {
        "proc/self/status": f"Name:\tx\nCapEff:\t{capabilities}",
        **{paths[key]: text for key, text in files.items()},
    }
    for path, text in written.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("capabilities", "any_of", "may"),
    [
        (ALL, ["SYS_ADMIN"], True),
        (CONTAINER, ["SYS_ADMIN", "NET_ADMIN"], False),
        (f"{1 << 24:016x}", ["SYS_RESOURCE"], True),  # its bit in capability.h
        (f"{1 << 23:016x}", ["SYS_RESOURCE"], False),
    ],
)
def test_a_capability_is_had_or_named(
    tmp_path: Path, capabilities: str, any_of: list[str], *, may: bool
) -> None:
    why = probes.capability(*any_of, root=machine(tmp_path, capabilities))
    assert (why is None) == may
    assert may or all(f"CAP_{name}" in str(why) for name in any_of)


@pytest.mark.parametrize(
    ("user", "remedy"), [(0, "grant it (in a container: --cap-add)"), (1, "run as root")]
)
def test_root_is_not_told_to_run_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, remedy: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    why = probes.capability("SYS_RESOURCE", root=machine(tmp_path, NONE))
    assert why == f"this process lacks CAP_SYS_RESOURCE; {remedy}"


def test_a_file_is_opened_and_not_changed(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch(mode=0o600)
    assert probes.write(there) is None
    assert probes.write(tmp_path / "missing") == "this kernel has no such setting"
    assert there.stat().st_size == 0


def test_a_file_whose_mode_says_more_than_the_kernel_lets_one_do(tmp_path: Path) -> None:
    """A running program stands for a debugfs file under lockdown: mode writable, open refused."""
    busy = tmp_path / "busy"
    shutil.copy("/bin/sleep", busy)
    with subprocess.Popen([busy, "60"]) as running:
        assert os.access(busy, os.W_OK)
        assert probes.write(busy) == "this kernel does not allow writing it now (Text file busy)"
        running.kill()


@pytest.mark.needs("root", "namespaces")
def test_a_setting_refuses_its_own_text_without_the_capability() -> None:
    """kernel.numa_balancing can be opened by root without CAP_SYS_ADMIN, and not written."""
    check = (
        "from fixtures.kernel.tunables import Tunables; "
        "print(Tunables().refusal('/proc/sys/kernel/numa_balancing'))"
    )
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", check]
    if not Path("/proc/sys/kernel/numa_balancing").exists():
        pytest.skip("this kernel has no such setting")
    before = Path("/proc/sys/kernel/numa_balancing").read_text()
    done = subprocess.run(bare, cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(
        "the kernel does not let this process write it, even its current value (Operation not "
        "permitted"
    ), done.stderr
    assert Path("/proc/sys/kernel/numa_balancing").read_text() == before


def test_a_folder_may_have_to_be_made(tmp_path: Path) -> None:
    assert probes.make(tmp_path / "some" / "depth") is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert str(probes.make(tmp_path / "file" / "below")).startswith(
        f"{tmp_path / 'file'} cannot be written"
    )


@pytest.mark.parametrize("kind", ["mount", "net", "pid", "user"])
def test_a_namespace_is_tried_in_a_child(kind: probes.Namespace) -> None:
    before = {one: one.readlink() for one in Path("/proc/self/ns").iterdir()}
    tried = subprocess.run(
        ["unshare", f"--{kind}", "--fork", "true"], capture_output=True, check=False
    )
    assert (probes.namespace(kind) is None) == (tried.returncode == 0)
    assert {one: one.readlink() for one in before} == before


@pytest.mark.parametrize(
    ("capabilities", "paranoid", "highest", "may"),
    [
        (ALL, "4", 1, True),
        (NONE, "2", 2, True),
        (NONE, "2", 1, False),
        (NONE, "-1", 1, True),
        (CONTAINER, "2", 1, False),
        (f"{1 << 38:016x}", "4", 1, True),
    ],
)
def test_perf_is_for_whom_the_kernel_lets(
    tmp_path: Path,
    capabilities: str,
    paranoid: str,
    highest: int,
    may: bool,  # noqa: FBT001 a column
) -> None:
    why = probes.perf_events(highest, "count", machine(tmp_path, capabilities, paranoid=paranoid))
    assert (why is None) == may
    if why is not None:
        assert why.startswith(
            f"kernel.perf_event_paranoid is {paranoid}, so an ordinary user may not count, and "
            "this process lacks CAP_PERFMON or CAP_SYS_ADMIN; "
        )
        assert why.endswith(f", or `sysctl kernel.perf_event_paranoid={highest}`")


@pytest.mark.parametrize(
    ("capabilities", "scope", "reason"),
    [
        (NONE, None, None),
        (NONE, "1", "ptrace_scope is 1, and this process lacks CAP_SYS_PTRACE; "),
        (CONTAINER, "1", "ptrace_scope is 1, and this process lacks CAP_SYS_PTRACE; "),
        (ALL, "1", None),
        (ALL, "2", None),
        (ALL, "3", "no process may"),
    ],
)
def test_memory_is_read_by_whom_yama_lets(
    tmp_path: Path, capabilities: str, scope: str | None, reason: str | None
) -> None:
    """A monitor is no ancestor of the workload, so 1 forbids it: children only.

    Without Yama the classic rule holds: one's own.
    """
    why = probes.ptrace(machine(tmp_path, capabilities, **({"scope": scope} if scope else {})))
    assert (why is None) == (reason is None)
    assert reason is None or reason in (why or "")


@pytest.mark.parametrize(
    ("capabilities", "params", "reason"),
    [
        (ALL, None, None),
        (NONE, "Mobile: 4294967295\nRmProfilingAdminOnly: 0", None),
        (
            NONE,
            "Mobile: 4294967295\nRmProfilingAdminOnly: 1",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (CONTAINER, "RmProfilingAdminOnly: 1", "lacks CAP_SYS_ADMIN or CAP_PERFMON"),
        (NONE, None, "it is unknown"),
    ],
)
def test_gpu_counters_are_for_administrators_unless_open_to_all(
    tmp_path: Path, capabilities: str, params: str | None, reason: str | None
) -> None:
    why = nvidia.no_counters(
        machine(tmp_path, capabilities, **({"params": params} if params else {}))
    )
    assert (why is None) == (reason is None)
    assert reason is None or reason in (why or "")
