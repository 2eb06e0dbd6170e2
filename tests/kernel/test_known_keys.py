"""What the table of keys says of the kernel is so, and what is put back goes by it."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from control import known_keys
from fixtures.kernel.attribution import causes_first, write_back
from fixtures.kernel.tunables import diff, in_force, shown
from tests.fake_root import FakeRoot, writes
from tests.kernel.test_machine import MIN_FREE, RATIO, SWAPPINESS, THP, Kernel, kernel

HOUSE = Path(__file__).parents[2]
ADVISOR, TO_SCAN = "/sys/kernel/mm/ksm/advisor_mode", "/sys/kernel/mm/ksm/pages_to_scan"
SHARING, RUN = "/sys/kernel/mm/ksm/max_page_sharing", "/sys/kernel/mm/ksm/run"
QUEUE = "/sys/block/vda/queue"


@pytest.mark.parametrize("row", known_keys.KNOWN, ids=lambda row: row.keys)
def test_every_row_names_its_source_and_a_test_that_is_there(row: known_keys.KnownKey) -> None:
    file, _, name = row.test.partition("::")
    assert f"def {name}(" in (HOUSE / file).read_text()
    assert row.kernel
    assert row.source
    assert row.says


def test_what_moves_goes_back_after_its_cause() -> None:
    assert causes_first([MIN_FREE, THP]) == [THP, MIN_FREE]
    assert causes_first([TO_SCAN, ADVISOR]) == [ADVISOR, TO_SCAN]
    assert causes_first(
        [f"{QUEUE}/read_ahead_kb", f"{QUEUE}/nr_requests", f"{QUEUE}/scheduler", f"{QUEUE}/iostats"]
    ) == [
        f"{QUEUE}/scheduler",
        f"{QUEUE}/iostats",
        f"{QUEUE}/nr_requests",
        f"{QUEUE}/read_ahead_kb",
    ]
    assert causes_first([SWAPPINESS, "/proc/sys/vm/a"], written=[SWAPPINESS]) == [
        SWAPPINESS,
        "/proc/sys/vm/a",
    ]
    assert causes_first([MIN_FREE, RATIO, "/sys/kernel/other"]) == [
        RATIO,
        "/sys/kernel/other",
        MIN_FREE,
    ]


def test_what_was_written_goes_back_before_what_no_table_knows(fake: FakeRoot) -> None:
    """Writing it moves the other: first the cause, and the other only where it still differs."""
    machine, own = kernel(fake)
    own.answers = lambda path, value: (
        {path: value} | ({RATIO: "20" if value == "60" else "7"} if path == SWAPPINESS else {})
    )
    machine.apply("x", writes([(SWAPPINESS, "10")]))
    own.refuses = {RATIO}
    assert machine.restore().stuck == {}
    fake.must_be_as_found()


def test_what_the_kernel_owns_for_now_is_no_setting(fake: FakeRoot) -> None:
    """A KSM advisor as found owns pages_to_scan: its number is neither put back nor reported."""
    fake.put(ADVISOR, "none [scan-time]")
    fake.put(TO_SCAN, "500")
    machine, own = kernel(fake)
    machine.apply(
        "x",
        [],
        [
            fake.script(
                "apply", f"echo '[none] scan-time' > $ROOT{ADVISOR}; echo 77 > $ROOT{TO_SCAN}"
            )
        ],
    )

    def advised(path: str, value: str) -> dict[str, str]:
        if path == TO_SCAN and "[scan-time]" in str(own.read(ADVISOR)):
            raise OSError(errno.EINVAL, "Invalid argument")
        return (
            {ADVISOR: "none [scan-time]", TO_SCAN: "731"}
            if (path, value) == (ADVISOR, "none [scan-time]")
            else {path: value}
        )

    own.answers = advised
    result = machine.restore()
    assert (result.stuck, result.left_alone, list(result.back)) == ({}, {}, [ADVISOR])
    assert (shown(fake.get(ADVISOR)), fake.journal.exists()) == ("scan-time", False)
    before, after = ({ADVISOR: "none [scan-time]", TO_SCAN: number} for number in ("500", "731"))
    assert diff(before, after) == {}


def test_values_the_kernel_moved_with_a_setting_go_back_with_it(fake: FakeRoot) -> None:
    fake.put(ADVISOR, "[none] scan-time")
    fake.put(TO_SCAN, "250")
    machine, own = kernel(fake)
    own.answers = lambda path, value: {path: value} | ({TO_SCAN: "100"} if path == ADVISOR else {})
    effects = machine.apply(
        "x",
        [],
        [
            fake.script(
                "apply", f"echo 'none [scan-time]' > $ROOT{ADVISOR}; echo 500 > $ROOT{TO_SCAN}"
            )
        ],
    )
    assert list(effects.changed) == [ADVISOR]
    fake.put(TO_SCAN, "731")
    result = machine.restore()
    assert (result.stuck, result.left_alone) == ({}, {})
    assert (shown(fake.get(ADVISOR)), fake.get(TO_SCAN)) == ("none", "250")


@pytest.mark.parametrize(("first", "second"), [(SWAPPINESS, RATIO), (RATIO, SWAPPINESS)])
def test_write_back_orders_settings_that_depend_on_each_other(
    fake: FakeRoot, first: str, second: str
) -> None:
    """One setting refuses numbers while the other is as found: it goes back first, in any order."""
    own = Kernel(fake.root)
    found = {path: str(own.read(path)) for path in (first, second)}
    for path in (first, second):
        fake.put(path, "7")

    def limited(path: str, value: str) -> dict[str, str]:
        if path == second and own.read(first) == found[first]:
            raise OSError(errno.EINVAL, "Invalid argument")
        return {path: value}

    own.answers = limited
    assert write_back(own, dict(found)) == {}
    assert fake.wrong() == {}


def test_what_is_busy_is_opened_first(fake: FakeRoot) -> None:
    """Shared pages pin KSM's limit: unshare them, then restore `run`."""
    fake.put(SHARING, "512")
    fake.put(RUN, "0")
    own = Kernel(fake.root)
    seen: list[tuple[str, str]] = []
    shared = [True]

    def answers(path: str, value: str) -> dict[str, str]:
        if path == SHARING and shared[0]:
            raise OSError(errno.EBUSY, "Device or resource busy")
        if path == RUN:
            shared[0] = shared[0] and value != "2"
        seen.append((path, value))
        return {path: value}

    own.answers = answers
    assert write_back(own, {SHARING: "256"}) == {}
    assert seen == [(RUN, "2"), (SHARING, "256"), (RUN, "0")]


def test_read_ahead_goes_back_after_whatever_resets_it(fake: FakeRoot) -> None:
    """Any write to the files beside it raises it (block/blk-settings.c)."""
    for name, value in {
        "iostats": "1",
        "rotational": "1",
        "max_sectors_kb": "1280",
        "stable_writes": "0",
    }.items():
        fake.put(f"{QUEUE}/{name}", value)
    machine, own = kernel(fake)
    ahead = f"{QUEUE}/read_ahead_kb"
    own.answers = lambda path, value: {path: value} | ({} if path == ahead else {ahead: "8192"})
    text = (
        f"Q=$ROOT{QUEUE}; echo 4096 > $Q/read_ahead_kb; echo 0 > $Q/iostats; echo 512 > "
        "$Q/max_sectors_kb; echo 1 > $Q/stable_writes"
    )
    machine.apply("x", [], [fake.script("apply", text)])
    assert machine.restore().stuck == {}
    assert (fake.get(ahead), fake.get(f"{QUEUE}/max_sectors_kb")) == ("128", "1280")


@pytest.mark.needs("namespaces")
def test_forwarding_moves_what_the_table_says_and_no_more() -> None:
    """Test this kernel in a network namespace: rp_filter of all interfaces moves nothing."""
    check = """
from fixtures.kernel.attribution import neighbours
from fixtures.kernel.tunables import Tunables, diff
tunables, root = Tunables(), "/proc/sys/net/ipv4/"
for key in ("ip_forward", "conf/all/rp_filter"):  # a new namespace begins with the host's values
    tunables.write(root + key, "0")
for key, value in (("ip_forward", "1"), ("conf/all/forwarding", "0"), ("conf/all/rp_filter", "1")):
    before = tunables.snapshot()
    tunables.write(root + key, value)
    moved = diff(before, tunables.snapshot()).keys() - {root + key}
    allowed = neighbours([root + key], before)
    print(key, len(moved) > 0, sorted(moved - allowed))
"""
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", check],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "ip_forward True []",
        "conf/all/forwarding True []",
        "conf/all/rp_filter False []",
    ], done.stderr


@pytest.mark.needs("namespaces")
def test_default_moves_interfaces_without_a_value_of_their_own() -> None:
    """A network namespace's loopback has no address.

    Once its own file is written, with the same number too, default leaves it alone.
    """
    check = """
from fixtures.kernel.attribution import neighbours
from fixtures.kernel.tunables import Tunables, diff
tunables, conf = Tunables(), "/proc/sys/net/ipv4/conf/"
default, own = conf + "default/rp_filter", conf + "lo/rp_filter"
tunables.write(default, "0")
for value in ("1", "0", "1"):
    before = tunables.snapshot()
    tunables.write(default, value)
    changed = diff(before, tunables.snapshot()).keys() - {default}
    # Other tests change settings that all namespaces share.
    moved = {path for path in changed if path.startswith(conf)}
    print(own in moved, sorted(moved - neighbours([default], before)))
    if value == "0":
        tunables.write(own, "0")
"""
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", check],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.splitlines() == ["True []", "True []", "False []"], done.stderr
    assert (
        causes_first([f"{IP}/conf/cni0/rp_filter", f"{IP}/conf/default/rp_filter"])[0]
        == f"{IP}/conf/default/rp_filter"
    )


IP, NET, SYSFS = "/proc/sys/net/ipv4", "/proc/sys/net/core", "/sys/kernel/mm/ksm/pages_to_scan"
MEANS = [
    (f"{IP}/ip_local_reserved_ports", "100-105,103-110,9,8", "8-9,100-110", "same"),
    (f"{IP}/ip_local_reserved_ports", "100-105", "100-104", ""),
    ("/proc/sys/kernel/watchdog_cpumask", "0,1", "0-1", "same"),
    (f"{IP}/tcp_rmem", "5000", "5000\t131072\t33554432", "same"),
    (f"{IP}/tcp_rmem", "5000 2", "5000\t131072\t33554432", ""),
    ("/proc/sys/kernel/sem", "32000 1024000000", "32000\t1024000000\t500\t32000", "same"),
    ("/proc/sys/vm/swappiness", "10 20", "10", ""),
    ("/proc/sys/kernel/seccomp/actions_logged", "log trace errno", "errno trace log", "same"),
    ("/proc/sys/kernel/seccomp/actions_logged", "log trace", "errno trace log", ""),
    (f"{IP}/tcp_allowed_congestion_control", "cubic reno", "reno cubic", "same"),
    ("/proc/irq/24/smp_affinity", "3", "00000003", "same"),
    ("/proc/irq/24/smp_affinity", "10", "00000010", "same"),
    ("/proc/irq/24/smp_affinity", "8", "00000010", ""),
    ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "1,00000000", "1,00000000", "same"),
    (f"{QUEUE}/iostats", "2", "1", "same"),
    (f"{QUEUE}/nr_requests", "2", "1", ""),
    ("/sys/module/zswap/parameters/enabled", "1", "Y", "same"),
    ("/sys/module/zswap/parameters/enabled", "off", "N", "same"),
    ("/sys/module/zswap/parameters/enabled", "1", "N", ""),
    ("/sys/block/zram0/disksize", "64M", "67108864", "same"),
    (f"{QUEUE}/read_ahead_kb", "7", "4", "rounded"),
    (f"{QUEUE}/read_ahead_kb", "7", "8192", ""),
    ("/proc/sys/fs/pipe-max-size", "1048577", "2097152", "rounded"),
    ("/proc/sys/fs/pipe-max-size", "1048577", "1048576", ""),
    (f"{NET}/rps_sock_flow_entries", "1000", "1024", "rounded"),
    (f"{IP}/neigh/lo/retrans_time_ms", "1003", "1004", "rounded"),
    (f"{IP}/neigh/lo/retrans_time_ms", "1003", "1000", ""),
    ("/proc/sys/vm/swappiness", "1003", "1004", ""),
    ("/proc/sys/vm/swappiness", "010", "8", "same"),
    ("/proc/sys/vm/swappiness", "0x10", "16", "same"),
    (SYSFS, "010", "10", "same"),
    (SYSFS, "010", "8", ""),
    (THP, "madvise", "always [madvise] never", "same"),
    (SWAPPINESS, None, "60", ""),
]


@pytest.mark.parametrize(("path", "asked", "answer", "how"), MEANS)
def test_a_value_counts_by_its_meaning(path: str, asked: str | None, answer: str, how: str) -> None:
    """As Linux 6.18 answered, and beside each what would be something else."""
    assert in_force(path, asked, answer) == how


# key → what is written, and how that is said to stand to what the kernel makes of it; each is put
# back at once.
ASKED = {
    "net.ipv4.ip_local_reserved_ports": ("9,8,100-105,103-110", "same"),
    "net.ipv4.neigh.lo.retrans_time_ms": ("1003", None),
    "net.ipv4.route.gc_min_interval_ms": ("501", None),
    "net.ipv4.tcp_rmem": ("5000", "same"),
    "kernel.sem": ("31999", "same"),
}


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("key", ASKED)
def test_this_kernel_s_own_wording_is_in_force(key: str) -> None:
    asked, how = ASKED[key]
    check = f"""
from fixtures.kernel.tunables import Tunables, in_force, sysctl_path
path, tunables = sysctl_path({key!r}), Tunables()
if tunables.refusal(path):
    print("not here")
else:
    tunables.write(path, {asked!r})
    print(in_force(path, {asked!r}, tunables.read(path)), repr(tunables.read(path)))
"""
    command = ["unshare", "-n", "-i", sys.executable, "-c", check]
    done = subprocess.run(
        command, cwd=HOUSE, capture_output=True, text=True, check=False, timeout=60
    )
    if done.stdout.startswith("not here"):
        pytest.skip("not in a namespace's own settings")
    word = done.stdout.split()[0] if done.stdout else done.stderr
    assert word == how if how else word in ("same", "rounded"), done.stdout


def test_a_set_whose_list_the_kernel_sorts_is_in_force(fake: FakeRoot) -> None:
    ports = "/proc/sys/net/ipv4/ip_local_reserved_ports"
    fake.put(ports, "")
    machine, own = kernel(fake)
    own.answers = lambda path, value: {path: "8-9,100-110" if path == ports and value else value}
    assert machine.apply("x", writes([(ports, "100-110,9,8")])).changed == {
        ports: ("", "8-9,100-110")
    }
    assert machine.restore().stuck == {}
