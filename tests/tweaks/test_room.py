"""A limit below current use is refused: the process that puts the machine back could not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.kernel.tunables import Tunables
from fixtures.terms import Script, Tweak, TweakSet
from fixtures.tweaks.local import plan
from fixtures.tweaks.room import reasons

PROC = {
    "loadavg": "0.10 0.20 0.30 1/1000 4242\n",
    "sys/fs/file-nr": "5000\t0\t9223372036854775807\n",
    "sys/vm/overcommit_memory": "0\n",
    "sys/vm/overcommit_ratio": "50\n",
    "sys/vm/overcommit_kbytes": "0\n",
    "7/maps": "00400000-00401000 r-xp\n" * 900,
    "8/maps": "00400000-00401000 r-xp\n" * 12,
    "meminfo": (
        "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\nSwapTotal: 0 kB\nCommitted_AS: 2000000 "
        "kB\n"
        "HugePages_Total: 0\nHugepagesize: 2048 kB\n"
    ),
}
# key → the least that leaves room
LEAST = {
    "kernel.threads-max": 1256,
    "kernel.pid_max": 1256,
    "fs.file-max": 6024,
    "vm.max_map_count": 1156,
    "net.core.netdev_max_backlog": 64,
    "net.core.somaxconn": 1,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in PROC.items():
        file = tmp_path / "proc" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.mark.parametrize("key", LEAST)
def test_a_limit_leaves_room_beside_what_is_in_use(root: Path, key: str) -> None:
    """With 1000 threads, 5000 open files, 900 maps in one process, and so on."""
    assert [found for found, _ in reasons([(key, str(LEAST[key] - 1))], root)] == [key]
    assert list(reasons([(key, str(LEAST[key]))], root)) == []


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"fs.file-max": "0x10"}, ["fs.file-max"]),
        ({"vm.min_free_kbytes": "3000001"}, ["vm.min_free_kbytes"]),
        ({"vm.min_free_kbytes": "131072"}, []),
        ({"vm.nr_hugepages": "2700"}, ["vm.nr_hugepages"]),
        ({"vm.nr_hugepages": "4"}, []),
        ({"vm.overcommit_memory": "2"}, []),  # 4,000,000 of which 2,000,000 are promised
        ({"vm.overcommit_memory": "2", "vm.overcommit_ratio": "28"}, ["vm.overcommit_memory"]),
        ({"vm.overcommit_memory": "2", "vm.overcommit_kbytes": "2262144"}, []),
        ({"vm.overcommit_ratio": "1"}, []),  # which counts under 2 alone
        ({"vm.swappiness": "1"}, []),
    ],
)
def test_memory_is_left_to_who_puts_the_machine_back(
    root: Path, settings: dict[str, str], refused: list[str]
) -> None:
    assert [key for key, _ in reasons(list(settings.items()), root)] == refused


def test_a_ratio_counts_where_strict_accounting_stands_already(root: Path) -> None:
    (root / "proc/sys/vm/overcommit_memory").write_text("2\n")
    assert [key for key, _ in reasons([("vm.overcommit_ratio", "1")], root)] == [
        "vm.overcommit_ratio"
    ]


def test_the_plan_refuses_it_typed_or_by_a_script(root: Path) -> None:
    """With the numbers that are wanting."""
    (root / "proc/sys/kernel").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/kernel/threads-max").write_text("190000\n")
    says = (
        (
            "kernel.threads-max: 300 is too low: 1,000 threads run now. Below 1,256 the machine "
            "could not be put back"
        ),
    )
    typed = TweakSet("x", tweaks=(Tweak("sysctl", "kernel.threads-max", "300"),))
    scripted = TweakSet(
        "x", scripts=(Script("p", "apply", "echo 300 > /proc/sys/kernel/threads-max"),)
    )
    assert plan(typed, Tunables(root)).cannot == says
    assert plan(scripted, Tunables(root)).cannot == says
