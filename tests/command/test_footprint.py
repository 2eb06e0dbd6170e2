"""Resources that a command holds, and whether several copies may be alive at once."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.studies.command.footprint import PAGE_BYTES, SPARE, Footprint, footprint, why_alone
from tests.waiting import until

MIB = 1 << 20
FREE_MIB = 1000
LISTEN, CONNECTED = "0A", "01"


def process(root: Path, pid: int, pages: int, *links: str, parent_of: tuple[int, ...] = ()) -> None:
    """A process in a made /proc, with the files that it has open."""
    folder = root / f"proc/{pid}"
    (folder / "fd").mkdir(parents=True)
    (folder / f"task/{pid}").mkdir(parents=True)
    (folder / f"task/{pid}/children").write_text(" ".join(map(str, parent_of)))
    (folder / "statm").write_text(f"99999 {pages} 7 1 0 50 0\n")
    for number, link in enumerate(links):
        (folder / f"fd/{number}").symlink_to(link)


def sockets(root: Path, pid: int, *lines: tuple[str, str, str]) -> None:
    """Its network's table of TCP sockets: address, state and inode."""
    folder = root / f"proc/{pid}/net"
    folder.mkdir()
    rest = (
        "00000000:0000 {} 00000000:00000000 00:00000000 00000000     0        0 {} 1 0 100 0 0 10 0"
    )
    rows = [
        f"   {at}: {address} {rest.format(state, inode)}"
        for at, (address, state, inode) in enumerate(lines)
    ]
    (folder / "tcp").write_text("\n".join(["  sl  local_address rem_address   st …", *rows]) + "\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/sys/net/ipv4").mkdir(parents=True)
    (tmp_path / "proc/sys/net/ipv4/ip_local_port_range").write_text("32768\t60999\n")
    (tmp_path / "proc/meminfo").write_text(
        f"MemTotal: 9999999 kB\nMemAvailable: {FREE_MIB * 1024} kB\n"
    )
    return tmp_path


def test_memory_and_ports_are_those_of_all_its_processes(root: Path) -> None:
    process(root, 10, 100, "/dev/null", "socket:[777]", parent_of=(11,))
    process(root, 11, 50, "socket:[778]", "/dev/nvidia0")
    sockets(
        root,
        10,
        ("0100007F:1F90", LISTEN, "777"),
        ("00000000:0016", LISTEN, "555"),
        ("0100007F:C000", CONNECTED, "778"),
    )
    assert footprint(10, root) == Footprint(150 * PAGE_BYTES, gpu=True, ports=(8080,))


def test_one_that_has_ended_holds_nothing(root: Path) -> None:
    assert footprint(12, root) == Footprint()


def test_a_real_listener_is_seen() -> None:
    program = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
        "print(s.getsockname()[1], flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        port = int(child.stdout.readline())
        seen = footprint(child.pid)
        child.kill()
    assert seen.ports == (port,)
    assert MIB < seen.memory_bytes < 200 * MIB
    assert seen.gpu is False
    with socket.socket() as free:
        until(lambda: free.connect_ex(("127.0.0.1", port)) != 0)


@pytest.mark.parametrize(
    ("held", "arms", "why"),
    [
        (None, 3, "it ended before its memory was measured"),
        (Footprint(MIB, gpu=True), 3, "it uses a GPU"),
        (Footprint(MIB, ports=(29500, 40000)), 3, "it listens on port 29500"),
        (Footprint(MIB, ports=(40000,)), 3, ""),  # the kernel gave it that
        (Footprint(int(SPARE * FREE_MIB / 5) * MIB), 5, ""),
        (
            Footprint(int(SPARE * FREE_MIB / 5 + 1) * MIB),
            5,
            (
                "5 × 161 MiB do not fit in 1000 MiB of free memory (to take turns, free some, or "
                "name fewer tweak sets: 4 copies fit)"
            ),
        ),
    ],
)
def test_copies_run_at_once_if_each_has_its_own_resources(
    root: Path, held: Footprint | None, arms: int, why: str
) -> None:
    assert why_alone(held, arms, root) == why


def test_of_several_looks_the_most_counts() -> None:
    looks = Footprint(5 * MIB, ports=(80,)).joined(Footprint(3 * MIB, gpu=True, ports=(81,)))
    assert looks == Footprint(5 * MIB, gpu=True, ports=(80, 81))
