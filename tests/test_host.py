"""Facts of the machine: read from a tree of the kernel's files, left out where unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures import host

# As Linux 6.x on a small virtual machine shows them.
FILES = {
    "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.1\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet\n",
    "proc/sys/kernel/random/boot_id": "0d1b6f1e-1111-2222-3333-444455556666\n",
    "proc/cpuinfo": "processor\t: 0\n"
    "model name\t: Example CPU @ 2.00GHz\nmicrocode\t: 0x1\nflags\t\t: fpu vme hypervisor "
    "lahf_lm\n\nprocessor\t: 1\n",
    "proc/meminfo": "MemTotal:        8000000 kB\nMemFree:         1000000 kB\n",
    "proc/uptime": "1234.56 2000.00\n",
    "etc/os-release": 'NAME="Example"\nPRETTY_NAME="Example Linux 12"\n',
    "sys/devices/system/cpu/online": "0-1\n",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n",
    "sys/devices/system/cpu/vulnerabilities/spectre_v2": "Vulnerable\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    ".dockerenv": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_facts_are_what_the_kernel_shows(root: Path) -> None:
    """Memory: 8 000 000 kB · 1024 = 8 192 000 000 bytes (kB in /proc/meminfo is KiB)."""
    found = host.facts(root)
    expected = {
        "kernel_version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.1",
        "cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet",
        "boot_id": "0d1b6f1e-1111-2222-3333-444455556666",
        "os": "Example Linux 12",
        "cpu_model": "Example CPU @ 2.00GHz",
        "cpu_microcode": "0x1",
        "cpus_online": "0-1",
        "cpu_governor": "performance",
        "mitigations": {"meltdown": "Mitigation: PTI", "spectre_v2": "Vulnerable"},
        "mem_total_bytes": 8_192_000_000,
        "thp_enabled": "madvise",
        "hypervisor": "present",
        "container": "docker",
    }
    assert {name: found.get(name) for name in expected} == expected


def test_unknown_facts_are_left_out_never_guessed(tmp_path: Path) -> None:
    found = host.facts(tmp_path)
    assert found.keys().isdisjoint(
        {
            "cpu_model",
            "mem_total_bytes",
            "thp_enabled",
            "mitigations",
            "os",
            "cpu_governor",
            "hypervisor",
        }
    )
    assert not [name for name, value in found.items() if value is None or value in ("", {})]


def test_what_cannot_be_known_of_a_moment_is_null(tmp_path: Path) -> None:
    found = host.now(tmp_path)
    assert (found["boot_id"], found["uptime_s"]) == (None, None)


@pytest.mark.parametrize(
    ("limit", "room_bytes"), [(None, 4096), ("max", 4096), ("3000", 2000), ("500", 0)]
)
def test_available_memory_is_the_machines_or_the_groups(
    tmp_path: Path, limit: str | None, room_bytes: int
) -> None:
    """4 KiB of the machine; a group that uses 1,000 bytes of its limit."""
    files = {
        "proc/meminfo": "MemTotal: 8 kB\nMemAvailable: 4 kB\n",
        "proc/self/cgroup": "0::/pod\n",
    }
    files |= (
        {"sys/fs/cgroup/pod/memory.max": limit, "sys/fs/cgroup/pod/memory.current": "1000"}
        if limit
        else {}
    )
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert host.mem_available_bytes(tmp_path) == room_bytes
