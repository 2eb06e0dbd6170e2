"""What can be tuned: found, read, compared and written back the way the kernel means it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.kernel.attribution import neighbours
from fixtures.kernel.tunables import (
    SCHED_FEATURES,
    TUNABLE,
    Tunables,
    alike,
    diff,
    same,
    sysctl_path,
)
from tests import fake_root
from tests.fake_root import FakeRoot, plain
from tests.programs import python

HOUSE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("vm.swappiness", "vm/swappiness"),
        ("vm/swappiness", "vm/swappiness"),
        (
            "net.ipv4.conf.eth0/1.forwarding",
            "net/ipv4/conf/eth0.1/forwarding",
        ),  # sysctl(8): a `/` in a dotted key is a dot
        ("net/ipv4/conf/eth0.1/forwarding", "net/ipv4/conf/eth0.1/forwarding"),
    ],
)
def test_a_key_names_the_file_that_sysctl_would_write(key: str, path: str) -> None:
    assert sysctl_path(key) == f"/proc/sys/{path}"


@given(st.text(st.sampled_from("./ab \0~*"), max_size=12) | st.text(max_size=12))
def test_no_key_leaves_proc_sys(key: str) -> None:
    try:
        path = sysctl_path(key)
    except ValueError:
        return
    assert os.path.normpath(path) == "/proc/sys" or os.path.normpath(path).startswith("/proc/sys/")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("4096\t131072\t6291456", "4096 131072  6291456"),
        ("0x10", "16"),
        ("020", "16"),
        ("-1", "-01"),
        ("always [madvise] never", "madvise"),
        ("none voluntary (full) lazy", "full"),
        ("", " "),
    ],
)
def test_these_mean_the_same_setting(one: str, other: str) -> None:
    """Blanks, the base of numbers (strtoul with base 0) and unchosen options make no difference."""
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("10", "100"), ("always [madvise] never", "always madvise [never]"), ("", "0"), ("08", "8x")],
)
def test_these_do_not(one: str, other: str) -> None:
    assert not same(one, other)


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_configuration_file_stays_itself_to_the_byte_only(one: str, other: str) -> None:
    """In a udev rule `sd[a-z]` is no choice, and a comment is not blank space."""
    assert alike("/etc/udev/rules.d/60.rules", one, other) == (one == other)


def test_brackets_are_choices_in_sysfs_alone() -> None:
    """`core.[%e]` is a file name: two that share a bracket are still two."""
    assert not alike("/proc/sys/kernel/core_pattern", "a [%e] b", "c [%e] d")
    assert alike("/sys/block/vda/queue/scheduler", "none [bfq]", "bfq")
    assert alike("/proc/sys/net/ipv4/tcp_rmem", "1\t2\t3", "1 2 3")


def test_a_snapshot_holds_only_settings_and_configuration(
    fake: FakeRoot,
) -> None:
    """No triggers, identities, loop devices, read-only or silent files; no text of large files."""
    fake.put("/proc/sys/vm/read_only", "1")
    fake.real("/proc/sys/vm/read_only").chmod(0o444)
    fake.real("/proc/sys/vm/link").symlink_to("swappiness")
    fake.real("/proc/sys/vm/silent").symlink_to("nothing")
    fake.put("/etc/sysctl.d/large.conf", "#" * (1 << 20) + "#")
    fake.put("/etc/passwd", "root:x:0:0")
    assert plain(Tunables(fake.root).snapshot()) == {
        **fake_root.SETTINGS,
        **fake_root.CONFIG,
        "/etc/sysctl.d/large.conf": "",
    }


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("/sys/class/scsi_host/host0/link_power_management_policy", True),
        ("/sys/class/scsi_host/host0/scan", False),
        ("/sys/class/devfreq/a.gpu/governor", True),
        ("/sys/class/devfreq/a.gpu/userspace/set_freq", True),
        ("/sys/class/devfreq/a.gpu/trans_stat", False),
        ("/sys/class/thermal/thermal_zone0/policy", True),
        ("/sys/class/thermal/thermal_zone0/trip_point_0_temp", True),
        ("/sys/class/thermal/thermal_zone0/hwmon0/temp1_max", False),
        ("/sys/class/thermal/cooling_device0/cur_state", False),
        ("/sys/bus/usb/devices/1-1/authorized", False),
        ("/sys/firmware/acpi/platform_profile", True),
    ],
)
def test_device_settings_exclude_triggers_and_changing_values(
    fake: FakeRoot, path: str, *, taken: bool
) -> None:
    fake.put(path, "1")
    assert (path in Tunables(fake.root).snapshot()) == taken
    assert TUNABLE.fullmatch(path) or not taken


@pytest.mark.parametrize(
    "path",
    ["/etc/sysfs.conf", "/etc/sysfs.d/a.conf", "/etc/rc.local", "/etc/sysctl.d/below/a.conf"],
)
def test_what_brings_settings_back_at_boot_is_taken(fake: FakeRoot, path: str) -> None:
    fake.put(path, "echo 1 >/proc/sys/vm/swappiness")
    assert path in Tunables(fake.root).snapshot()
    assert TUNABLE.fullmatch(path)


def test_a_snapshot_leaves_out_what_does_not_answer(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some files answer EIO or EINVAL by design (`/proc/sys/net/ipv6/conf/*/stable_secret`)."""
    tunables = Tunables(fake.root)
    silent = fake.real("/proc/sys/vm/swappiness").stat().st_ino
    answered = os.pread

    def read(handle: int, size: int, offset: int) -> bytes:
        if os.fstat(handle).st_ino == silent:
            raise OSError(5, "Input/output error")
        return answered(handle, size, offset)

    monkeypatch.setattr(os, "pread", read)
    assert fake_root.SETTINGS.keys() - tunables.snapshot().keys() == {"/proc/sys/vm/swappiness"}


@given(content=st.binary(max_size=200))
def test_a_configuration_file_is_put_back_to_the_byte(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    fake = fake_root.FakeRoot(tmp_path_factory.getbasetemp())
    real = fake.real("/etc/sysctl.d/a.conf")
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_bytes(content)
    tunables = Tunables(fake.root)
    text = tunables.read("/etc/sysctl.d/a.conf")
    real.unlink()
    tunables.write("/etc/sysctl.d/a.conf", text)
    assert real.read_bytes() == content


def test_a_configuration_file_is_never_written_through_a_link(fake: FakeRoot) -> None:
    """After a script replaced a file by a link, the link's target must not be overwritten."""
    fake.put("/etc/precious", "mine")
    link = fake.real("/etc/sysctl.conf")
    link.unlink()
    link.symlink_to(fake.real("/etc/precious"))
    Tunables(fake.root).write("/etc/sysctl.conf", "# nothing\n")
    assert (link.is_symlink(), link.read_text(), fake.get("/etc/precious")) == (
        False,
        "# nothing\n",
        "mine",
    )


def test_the_chosen_word_is_what_is_written(fake: FakeRoot) -> None:
    tunables = Tunables(fake.root)
    for path in fake_root.SETTINGS:
        tunables.write(path, tunables.read(path))
    tunables.write("/proc/sys/kernel/core_pattern", "|/usr/bin/dump [%e] now")
    assert fake.get("/sys/block/vda/queue/scheduler") == "mq-deadline"
    assert fake.get("/proc/sys/kernel/core_pattern") == "|/usr/bin/dump [%e] now"


def test_scheduler_features_are_written_one_at_a_time(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kernel/sched/debug.c, sched_feat_write: one name a write, though a read shows them all."""
    fake.put(SCHED_FEATURES, "X")
    written: list[bytes] = []

    def write(_handle: int, text: bytes) -> int:
        written.append(text)
        return len(text)

    monkeypatch.setattr(os, "write", write)
    Tunables(fake.root).write(SCHED_FEATURES, "PLACE_LAG NO_HRTICK UTIL_EST")
    assert written == [b"PLACE_LAG\n", b"NO_HRTICK\n", b"UTIL_EST\n"]


@pytest.mark.needs("namespaces")
def test_the_kernel_reads_and_writes_a_list_longer_than_a_page() -> None:
    """In a network namespace of its own, so that this machine's ports stay as they are.

    Even ports of 20000…21998: 1000 entries of 6 characters less the last comma.
    """
    check = """
from fixtures.kernel.tunables import TUNABLE
from fixtures.kernel.tunables import Tunables
path, tunables = "/proc/sys/net/ipv4/ip_local_reserved_ports", Tunables()
ports = ",".join(map(str, range(20000, 22000, 2)))
tunables.write(path, ports)
assert len(ports) == 5999 and tunables.read(path) == ports, tunables.read(path)
"""
    done = python(check, before=("unshare", "-n"))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("namespaces", "ip")
def test_a_snapshot_is_current_although_kernel_files_stay_open() -> None:
    """A written value, a lost device, a namesake; children inherit neither files nor limit."""
    check = """
import os, resource, subprocess
from fixtures.kernel.tunables import TUNABLE
from fixtures.kernel.tunables import FIRST_KEPT, Tunables
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
path, tunables = "/proc/sys/net/ipv4/conf/br7/forwarding", Tunables()
device = lambda what: subprocess.run(["ip", "link", what, "br7", "type", "bridge"], check=True)
device("add")
tunables.refresh()
tunables.write(path, "0")
seen = [tunables.snapshot().get(path)]
tunables.write(path, "1")
seen += [tunables.snapshot().get(path)]
device("del")
seen += [tunables.snapshot().get(path)]
device("add")
tunables.write(path, "1")
tunables.snapshot()
tunables.write(path, "0")
seen += [tunables.snapshot().get(path)]
assert seen == ["0", "1", None, "0"], seen
kept = [int(name) for name in os.listdir("/proc/self/fd") if int(name) >= FIRST_KEPT]
assert len(kept) > 100, kept
inherited = "ulimit -n; ls /proc/self/fd | wc -l"
done = subprocess.run(inherited, shell=True, capture_output=True)
assert done.stdout.split() == [b"256", b"4"]
tunables.refresh()
assert len(os.listdir("/proc/self/fd")) < 10
"""
    done = python(check, before=("unshare", "-n"))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_kernel_setting_is_never_removed_or_made(fake: FakeRoot) -> None:
    with pytest.raises(OSError, match="cannot be removed"):
        Tunables(fake.root).write("/proc/sys/vm/swappiness", None)
    with pytest.raises(FileNotFoundError):
        Tunables(fake.root).write("/proc/sys/vm/no_such", "1")
    assert fake.wrong() == {}


def test_diff_says_what_differs_and_what_came_or_went() -> None:
    before = {"/proc/sys/a": "1", "/proc/sys/b": "1\t2", "/etc/c": "x"}
    after = {"/proc/sys/a": "2", "/proc/sys/b": "1 2", "/etc/d": "y"}
    assert diff(before, after) == {
        "/proc/sys/a": ("1", "2"),
        "/etc/c": ("x", None),
        "/etc/d": (None, "y"),
    }


def test_diff_leaves_out_interfaces_that_came_or_went() -> None:
    """The bridge of a node's first pod is no change; a file gained or lost by an interface is."""
    a, b = "/proc/sys/net/ipv4/conf/eth0/rp_filter", "/proc/sys/net/ipv4/conf/eth0/forwarding"
    bridge = {
        "/proc/sys/net/ipv4/conf/cni0/rp_filter": "1",
        "/sys/class/net/cni0/queues/rx-0/rps_cpus": "0",
    }
    assert diff({a: "1"}, {a: "2"} | bridge) == {a: ("1", "2")}
    assert diff(bridge | {a: "1"}, {a: "1"}) == {}
    assert diff({a: "1", b: "0"}, {a: "1"} | bridge) == {b: ("0", None)}
    assert diff({}, {"/proc/sys/vm/swappiness": "1"} | bridge) == {
        "/proc/sys/vm/swappiness": (None, "1")
    }


# What is written, what the kernel then moves by itself, and what stands beside it and stays.
MOVED = {
    "/proc/sys/vm/dirty_ratio": ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_background_bytes"),
    "/proc/sys/vm/dirty_background_bytes": (
        "/proc/sys/vm/dirty_background_ratio",
        "/proc/sys/vm/dirty_ratio",
    ),
    "/proc/sys/vm/overcommit_kbytes": (
        "/proc/sys/vm/overcommit_ratio",
        "/proc/sys/vm/overcommit_memory",
    ),
    "/sys/kernel/mm/transparent_hugepage/enabled": (
        "/proc/sys/vm/min_free_kbytes",
        "/proc/sys/vm/swappiness",
    ),
    "/proc/sys/vm/nr_hugepages": (
        "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
        "/proc/sys/vm/min_free_kbytes",
    ),
    "/proc/sys/net/ipv4/ip_forward": (
        "/proc/sys/net/ipv4/conf/eth0/forwarding",
        "/proc/sys/net/ipv4/conf/eth0/rp_filter",
    ),
    "/proc/sys/net/ipv6/conf/all/mtu": (
        "/proc/sys/net/ipv6/conf/eth0/mtu",
        "/proc/sys/net/ipv6/route/max_size",
    ),
    "/proc/sys/net/ipv4/tcp_congestion_control": (
        "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
        "/proc/sys/net/ipv4/tcp_rmem",
    ),
    "/proc/sys/kernel/watchdog": (
        "/proc/sys/kernel/nmi_watchdog",
        "/proc/sys/kernel/watchdog_thresh",
    ),
    "/sys/block/vda/queue/scheduler": ("/sys/block/vda/queue/nr_requests", "/sys/block/vda/stat"),
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": (
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq",
        "/sys/module/x",
    ),
    "/sys/class/bdi/254:0/min_ratio": (
        "/sys/class/bdi/254:0/min_ratio_fine",
        "/sys/class/bdi/254:0/read_ahead_kb",
    ),
    "/sys/class/net/eth0/mtu": (
        "/proc/sys/net/ipv6/conf/eth0/mtu",
        "/sys/class/net/eth0/tx_queue_len",
    ),
}


@pytest.mark.parametrize("written", MOVED)
def test_the_kernel_moves_neighbours_and_nothing_else(written: str) -> None:
    moved, beside = MOVED[written]
    assert neighbours([written], [written, moved, beside]) == {moved}
    assert neighbours([beside], [beside, "/proc/sys/vm/swappiness"]) == set()


@pytest.mark.needs("namespaces")
def test_a_read_only_mount_is_refused_by_its_name(fake: FakeRoot) -> None:
    """As in a container without privileges, with /proc/sys read-only; here a mount namespace."""
    check = 'mount --bind $1 $1 && mount -o remount,ro,bind $1 && exec $0 -c "$2" $1'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", check, sys.executable, str(fake.root), _REFUSAL],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(f"{fake.root} is read-only"), done.stderr


@pytest.mark.needs("root")
def test_an_ordinary_user_is_told_to_be_root() -> None:
    nobody = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)"
    check = _REFUSAL.replace("print(", f"{nobody}\nprint(")
    done = python(check, "/")
    assert (done.stdout.strip(), done.stderr) == (
        "kernel settings cannot be written by this user; run as root",
        "",
    )


_REFUSAL = """
import sys
from pathlib import Path
from fixtures.kernel.tunables import TUNABLE
from fixtures.kernel.tunables import Tunables
print(Tunables(Path(sys.argv[1])).refusal("/proc/sys/vm/swappiness"))
"""


def test_interfaces_that_containers_bring_are_no_settings(tmp_path: Path) -> None:
    """A veth's other end is another interface; so is what a VLAN is stacked on.

    A card's is itself.
    """
    for name, index, link in (("eth0", "2", "2"), ("veth1a", "7", "3"), ("eth0.5", "8", "2")):
        for folder, setting in (
            (f"sys/class/net/{name}/queues/rx-0", "rps_cpus"),
            (f"proc/sys/net/ipv6/neigh/{name}", "locktime"),
        ):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / setting).write_text("0\n")
        for file, text in (("ifindex", index), ("iflink", link)):
            (tmp_path / f"sys/class/net/{name}/{file}").write_text(f"{text}\n")
            (tmp_path / f"sys/class/net/{name}/{file}").chmod(0o444)
    assert set(Tunables(tmp_path).snapshot()) == {
        "/sys/class/net/eth0/queues/rx-0/rps_cpus",
        "/proc/sys/net/ipv6/neigh/eth0/locktime",
    }
