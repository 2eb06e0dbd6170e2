"""Who may watch whom: capabilities and the kernel's settings, in trees that stand for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.monitors import _nvidia, _rights

if TYPE_CHECKING:
    from pathlib import Path

ALL, NONE = "000001ffffffffff", "0000000000000000"
CONTAINER = "00000000a80425fb"  # root as Docker has it by default: neither SYS_ADMIN, SYS_PTRACE nor PERFMON


def machine(root: Path, capabilities: str, **files: str) -> Path:
    """A /proc with these effective capabilities; `paranoid`, `scope` and `params` are the files that matter."""
    paths = {
        "paranoid": "proc/sys/kernel/perf_event_paranoid",
        "scope": "proc/sys/kernel/yama/ptrace_scope",
        "params": "proc/driver/nvidia/params",
    }
    written = {"proc/self/status": f"Name:\tx\nCapEff:\t{capabilities}", **{paths[key]: text for key, text in files.items()}}
    for path, text in written.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("capabilities", "paranoid", "highest", "may"),
    [
        (ALL, "4", 1, True),
        (NONE, "2", 2, True),
        (NONE, "2", 1, False),
        (NONE, "1", 1, True),
        (NONE, "-1", 1, True),
        (CONTAINER, "2", 1, False),
        (f"{1 << _rights.PERFMON:016x}", "4", 1, True),
    ],
)
def test_perf_is_for_whom_the_kernel_lets(tmp_path: Path, capabilities: str, paranoid: str, highest: int, may: bool) -> None:  # noqa: FBT001 a column
    why = _rights.no_perf(highest, "count", machine(tmp_path, capabilities, paranoid=paranoid))
    assert (why is None) == may
    if why is not None:
        assert why == (
            f"kernel.perf_event_paranoid is {paranoid}, so an ordinary user may not count: "
            f"run as root, or `sysctl kernel.perf_event_paranoid={highest}`"
        )


def test_a_kernel_without_perf_events_is_said(tmp_path: Path) -> None:
    assert "no perf events" in (_rights.no_perf(2, "sample", machine(tmp_path, NONE)) or "")


@pytest.mark.parametrize(
    ("capabilities", "scope", "reason"),
    [
        (NONE, None, None),
        (NONE, "0", None),
        (NONE, "1", "ptrace_scope is 1: run as root"),
        (CONTAINER, "1", "ptrace_scope is 1: run as root"),
        (ALL, "1", None),
        (ALL, "2", None),
        (ALL, "3", "no process may"),
    ],
)
def test_memory_is_read_by_whom_yama_lets(tmp_path: Path, capabilities: str, scope: str | None, reason: str | None) -> None:
    """A monitor is no ancestor of the workload, so 1 forbids it: children only. Without Yama the classic rule holds: one's own."""
    why = _rights.no_ptrace(machine(tmp_path, capabilities, **({"scope": scope} if scope else {})))
    assert (why is None) == (reason is None)
    assert reason is None or reason in (why or "")


@pytest.mark.parametrize(
    ("capabilities", "params", "reason"),
    [
        (ALL, None, None),
        (NONE, "Mobile: 4294967295\nRmProfilingAdminOnly: 0", None),
        (NONE, "Mobile: 4294967295\nRmProfilingAdminOnly: 1", "NVreg_RestrictProfilingToAdminUsers=0"),
        (CONTAINER, "RmProfilingAdminOnly: 1", "run as root"),
        (NONE, None, "cannot be told"),
    ],
)
def test_gpu_counters_are_for_administrators_unless_the_driver_was_told(
    tmp_path: Path, capabilities: str, params: str | None, reason: str | None
) -> None:
    why = _nvidia.no_counters(machine(tmp_path, capabilities, **({"params": params} if params else {})))
    assert (why is None) == (reason is None)
    assert reason is None or reason in (why or "")
