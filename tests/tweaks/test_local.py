"""A tweak set on this machine: the plan only reads, and gives each reason against measuring."""

from __future__ import annotations

import os
import re
import resource
import shutil
from pathlib import Path

import pytest

from fixtures.kernel.machine import Write
from fixtures.kernel.tunables import Tunables
from fixtures.terms import WHOLE, Kind, Script, Tweak, TweakSet
from fixtures.tweaks import bare
from fixtures.tweaks.local import Plan, _meant, outside_snapshot, plan
from fixtures.tweaks.settings import parse_section

FILES = {
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/dirty_bytes": "0\n",
    "proc/sys/kernel/osrelease": "6.18.1\n",
    "proc/sys/net/core/flow_limit_cpu_bitmap": "0\n",
    "proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
    "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "proc/cmdline": (
        'BOOT_IMAGE=/vmlinuz "console=ttyS0" hugepagesz=1G hugepages=2 hugepagesz=2M '
        "hugepages=512 quiet\n"
    ),
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/block/vda/queue/read_ahead_kb": "128\n",
}


@pytest.fixture
def machine(tmp_path: Path) -> Tunables:
    """A small machine made of files."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tunables(tmp_path)


def planned(
    machine: Tunables, *settings: tuple[Kind, str, str], scripts: tuple[Script, ...] = ()
) -> Plan:
    return plan(
        TweakSet("one", tweaks=tuple(Tweak(*one) for one in settings), scripts=scripts), machine
    )


def with_script(machine: Tunables, text: str, stage: str = "apply") -> tuple[str, ...]:
    return planned(machine, scripts=(Script("package", stage, text),)).cannot


def test_settings_become_writes_in_the_order_of_the_manifest(machine: Tunables) -> None:
    """Each with the file it goes to and the name it was asked for by."""
    found = planned(
        machine,
        ("sysctl", "vm.swappiness", "10"),
        ("sysctl", "net/ipv4/tcp_rmem", "4096 87380 1000000"),
    )
    assert found.cannot == ()
    assert found.writes == (
        Write("/proc/sys/vm/swappiness", "10", "vm.swappiness"),
        Write("/proc/sys/net/ipv4/tcp_rmem", "4096 87380 1000000", "net/ipv4/tcp_rmem"),
    )


def test_a_package_that_only_the_operator_runs_is_refused_here(machine: Tunables) -> None:
    says = (
        "package package is an image that only the operator can run: measure it with "
        "--target=kubernetes"
    )
    assert with_script(machine, "{}", stage=WHOLE) == (says,)


def test_planning_changes_no_file(machine: Tunables) -> None:
    with_script(machine, "echo always > /sys/kernel/mm/transparent_hugepage/enabled")
    planned(machine, ("sysctl", "vm.swappiness", "10"))
    assert {name: (machine.root / name).read_text() for name in FILES} == FILES


def test_a_value_that_stands_there_already_is_told(machine: Tunables) -> None:
    """However it is spaced: under such a set the machine is not changed, and a reader must know."""
    found = planned(
        machine,
        ("sysctl", "vm.swappiness", "10"),
        ("sysctl", "net.ipv4.tcp_rmem", "4096 131072 6291456"),
    )
    assert found.already_in_force(machine) == ["net.ipv4.tcp_rmem"]


def test_an_unknown_key_stops_the_whole_set(machine: Tunables) -> None:
    """Half a tweak set would be measured under its full name."""
    found = planned(machine, ("sysctl", "vm.swappiness", "10"), ("sysctl", "vm.swapiness", "10"))
    assert found.cannot == ("vm.swapiness: this kernel has no such setting",)
    assert found.writes == ()


def test_what_cannot_be_put_back_is_never_written(machine: Tunables) -> None:
    """Even where the kernel has it, and in sysctl's other spelling."""
    (machine.root / "proc/sys/vm/drop_caches").write_text("0\n")
    as_written = parse_section(
        "sysctl.conf", "vm/drop_caches = 3", "tuning", "here", list[str]().append
    )
    found = plan(TweakSet("one", tweaks=tuple(as_written)), machine)
    assert found.writes == ()
    assert "an action, not a setting" in found.cannot[0]


CONGESTION = "net.ipv4.tcp_congestion_control"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            "vm.swappiness=abc",
            "vm.swappiness: it needs a whole number, such as '60', not 'abc'",
        ),
        (
            "vm.swappiness=10 20",
            "vm.swappiness: it needs a whole number, such as '60', not '10 20'",
        ),
        (
            "net.ipv4.tcp_rmem=1 2 3 4",
            (
                "net.ipv4.tcp_rmem: it needs 3 whole numbers, such as '4096 131072 6291456', not "
                "'1 2 3 4'"
            ),
        ),
        (f"{CONGESTION}=fast", f"{CONGESTION}: this kernel has reno, cubic, not 'fast'"),
        (
            "vm.dirty_bytes=4096 vm.dirty_ratio=5",
            (
                "vm.dirty_bytes: writing vm.dirty_ratio after it sets it to 0; leave one of the "
                "two out"
            ),
        ),
        ("vm.dirty_ratio=0 vm.dirty_bytes=4096", None),
        ("net.ipv4.tcp_rmem=4096", None),
        ("net.core.flow_limit_cpu_bitmap=ff", None),
        ("vm.swappiness=0x10", None),
        (f"{CONGESTION}=reno", None),
    ],
)
def test_a_value_that_cannot_stand_is_refused_in_the_plan(
    machine: Tunables, settings: str, reason: str | None
) -> None:
    """The same reason is in `list`, beside the line."""
    lines = re.sub(r" (?=vm\.)", "+", settings)
    found = plan(bare.read(lines, machine), machine)
    assert found.cannot == ((reason,) if reason else ())
    told = [*bare.account_text(bare.account(lines, machine), found.cannot)]
    key, _, value = settings.partition(" vm.")[0].partition("=")
    what = "cannot set" if reason else "sets"
    because = reason.removeprefix(key) if reason else ""
    assert told[1] == f"    {what} {key} = {value}{because}"


@pytest.mark.parametrize(
    ("files", "is_known"),
    [("", True), ("kernel/net/ipv4/tcp_bbr.ko.xz:\n", True), ("x.ko:\n", False)],
)
def test_an_algorithm_of_a_module_is_loaded_by_the_kernel(
    machine: Tunables, files: str, *, is_known: bool
) -> None:
    """Without the list of modules, as in a container, nothing can be told."""
    (machine.root / "proc/modules").touch()
    if files:
        folder = machine.root / "lib/modules/6.18.1"
        folder.mkdir(parents=True)
        (folder / "modules.dep").write_text(files)
    assert bool(planned(machine, ("sysctl", CONGESTION, "bbr")).cannot) is not is_known


@pytest.mark.parametrize(
    ("tokens", "missing"),
    [
        ([("quiet", "")], None),
        (
            [("hugepagesz", "1G"), ("hugepages", "2"), ("hugepagesz", "2M"), ("hugepages", "512")],
            None,
        ),
        ([("isolcpus", "2-3")], "isolcpus=2-3"),
        ([("hugepages", "3")], "hugepages=3"),
        # 1 GiB pages 512 times is not what this kernel was booted with, though each token is there.
        ([("hugepagesz", "2M"), ("hugepages", "2")], "hugepages=2"),
        ([("quiet", ""), ("console", "ttyS0")], "console=ttyS0"),
    ],
)
def test_boot_tokens_count_if_the_kernel_has_them_in_this_order(
    machine: Tunables, tokens: list[tuple[str, str]], missing: str | None
) -> None:
    found = planned(machine, *(("boot", key, value) for key, value in tokens))
    if missing is None:
        assert found.cannot == ()
    else:
        assert len(found.cannot) == 1
        assert found.cannot[0].startswith(
            f"boot token {missing}: not in /proc/cmdline; reboot with it"
        )
        assert all(key in found.cannot[0] for key, _ in tokens)


def with_capabilities(machine: Tunables, effective: str) -> None:
    status = machine.root / "proc/self/status"
    status.parent.mkdir()
    status.write_text(f"Name:\tpython\nCapPrm:\t000001ffffffffff\nCapEff:\t{effective}\n")


def test_a_limit_up_to_the_hard_limit_needs_no_privilege(
    machine: Tunables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    found = planned(machine, ("ulimit", "nofile", "4096"))
    assert (found.cannot, found.limits) == ((), {"nofile": (4096, 4096)})


@pytest.mark.parametrize("value", ["4097", "unlimited"])
@pytest.mark.parametrize(
    ("effective", "may"),
    # CAP_SYS_RESOURCE is bit 24 (capabilities(7)): 0x1000000; root without it is as bound as
    # anybody.
    [("0000000001000000", True), ("000001fffeffffff", False)],
)
def test_a_limit_above_the_hard_limit_needs_the_capability(
    machine: Tunables, monkeypatch: pytest.MonkeyPatch, value: str, effective: str, *, may: bool
) -> None:
    """Known beforehand, so the cell is skipped with this reason and not begun."""
    with_capabilities(machine, effective)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    found = planned(machine, ("ulimit", "nofile", value)).cannot
    assert len(found) == (not may)
    assert may or "CAP_SYS_RESOURCE" in found[0]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("sshd.LimitNOFILE", "sshd does not start the workload on this machine"),
        ("containerd.CPUAffinity", "only have a container runtime's Limit* directives"),
    ],
)
def test_other_service_settings_do_not_reach_the_workload(
    machine: Tunables, key: str, says: str
) -> None:
    assert says in planned(machine, ("service", key, "1")).cannot[0]


def test_scripts_need_bash(machine: Tunables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert with_script(machine, "true") == ("its scripts need bash, which is not installed",)


@pytest.mark.parametrize(
    ("text", "is_missed"),
    [
        ("tuned-adm profile x\nsysctl -w vm.swappiness=10", True),
        ("command -v tuned-adm || exit 1\ntuned-adm profile x", True),
        ("command -v tuned-adm && tuned-adm profile x", False),
        ("tuned-adm profile x || true", False),
        ("echo 10 > /proc/sys/vm/swappiness", False),
    ],
)
def test_a_program_that_a_script_demands_must_exist(
    machine: Tunables, monkeypatch: pytest.MonkeyPatch, text: str, *, is_missed: bool
) -> None:
    """Without it the set would be in force in part."""
    monkeypatch.setattr("shutil.which", lambda name: None if name == "tuned-adm" else name)
    says = ("its scripts call tuned-adm: it is not installed",) if is_missed else ()
    assert with_script(machine, text) == says


@pytest.mark.parametrize(
    "command",
    ["sysctl -p /opt/9.conf", "sysctl -qp/opt/9.conf", "sysctl --load=/opt/9.conf 2>/dev/null"],
)
def test_a_loaded_file_may_not_set_what_has_no_way_back(machine: Tunables, command: str) -> None:
    loaded = machine.root / "opt/9.conf"
    loaded.parent.mkdir()
    loaded.write_text("vm.swappiness = 10\na.//.b = 1\n= 2\n")
    assert with_script(machine, command) == ()
    loaded.write_text("vm.swappiness = 10\nvm/drop_caches = 3\n")
    (reason,) = with_script(machine, command)
    assert "/opt/9.conf, line 2, which sets vm.drop_caches: " in reason


def test_what_a_boot_loads_may_not_be_loaded_by_a_script(machine: Tunables) -> None:
    """Where it sets what has no way back."""
    (machine.root / "etc/sysctl.d").mkdir(parents=True)
    (machine.root / "etc/sysctl.d/9.conf").write_text("kernel.modules_disabled=1\n")
    (reason,) = with_script(machine, "sysctl --system")
    assert "/etc/sysctl.d/9.conf, line 1, which sets kernel.modules_disabled: " in reason


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("echo always > /sys/kernel/mm/transparent_hugepage/enabled", None),
        ("echo 1 > /sys/kernel/mm/lru_gen/enabled", "/sys/kernel/mm/lru_gen/enabled"),
        ('echo 1 > "/sys/kernel/mm/lru_gen/enabled"', "/sys/kernel/mm/lru_gen/enabled"),
        ("echo 1 >/proc/sys/vm/nothing", "/proc/sys/vm/nothing"),
        ("for f in /sys/block/*/queue/read_ahead_kb; do echo 4096 > $f; done", None),
        (
            "for f in /sys/block/nvme*/queue/read_ahead_kb; do echo 4096 > $f; done",
            "/sys/block/nvme*/queue/read_ahead_kb",
        ),
        ("ls /sys/block/", None),
        ("echo 1 > /sys/block/$disk/queue/nomerges", "/sys/block/*/queue/nomerges"),
        ("cat /host/sys/kernel/nothing", None),
        ("# echo 1 > /sys/kernel/mm/lru_gen/enabled", None),
        (
            "[ -e /sys/kernel/mm/lru_gen/enabled ] && echo 1 > /sys/kernel/mm/lru_gen/enabled",
            "/sys/kernel/mm/lru_gen/enabled",
        ),
    ],
)
def test_a_kernel_file_in_a_script_must_exist(
    machine: Tunables, text: str, missing: str | None
) -> None:
    found = with_script(machine, text)
    if missing is None:
        assert found == ()
    else:
        assert len(found) == 1
        assert found[0].startswith(f"its scripts use {missing}: ")


@pytest.mark.parametrize("stage", ["apply", "uninstall"])
def test_a_script_that_names_an_irreversible_key_is_refused(machine: Tunables, stage: str) -> None:
    """That the file cannot be written is no second reason.

    What it would do with the file does not matter.
    """
    (reason,) = with_script(machine, "set -e\ncat /proc/sys/kernel/shm_rmid_forced", stage)
    place = (
        f"its script package/{stage}.sh, line 2 (cat /proc/sys/kernel/shm_rmid_forced), names "
        "kernel.shm_rmid_forced"
    )
    why = (
        "1 destroys all shared memory segments without an attached process; scripts that only "
        "read it are refused, too"
    )
    assert reason == f"{place}: {why}"
    (reason,) = with_script(machine, "A=vm.drop; B=caches\nsysctl -w ${A}_$B=3", stage)
    assert reason.startswith(
        f"its script package/{stage}.sh joins words to vm.drop_caches: writing it drops"
    )
    assert with_script(machine, "# echo 3 > /proc/sys/vm/drop_caches", stage) == ()


@pytest.mark.parametrize(
    "text",
    [
        "P=/sys/kernel/mm/lru_gen/enabled; if [ -f $P ]; then echo 1 > $P; fi",
        "D=/sys/kernel/mm/lru_gen; [[ -d ${D} ]] && echo 1 > /sys/kernel/mm/lru_gen/enabled",
        'for f in /sys/kernel/mm/lru_gen/enabled; do [ -w "$f" ] || continue; echo 1 > $f; done',
        "echo 1 > /sys/kernel/mm/lru_gen/enabled || true",
        "if grep -q 1 /sys/kernel/mm/lru_gen/enabled; then :; fi",
        "for d in /sys/block/sd* /sys/block/vd*; do [ -d $d ] || continue; echo 1 > $d/x; done",
    ],
)
def test_a_script_may_do_without_some_of_its_files(machine: Tunables, text: str) -> None:
    assert with_script(machine, f"echo 1 > /proc/sys/vm/swappiness\n{text}") == ()


@pytest.mark.parametrize(
    "text",
    [
        "[ -w /sys/kernel/mm/lru_gen/enabled ] || exit 1; echo 1 > /sys/kernel/mm/lru_gen/enabled",
        "echo 1 > /sys/kernel/mm/lru_gen/enabled",
    ],
)
def test_what_a_script_demands_must_be_there(machine: Tunables, text: str) -> None:
    assert len(with_script(machine, f"echo 1 > /proc/sys/vm/swappiness\n{text}")) == 1


def test_a_missing_debugfs_is_named(machine: Tunables) -> None:
    assert with_script(machine, "echo 1 > /sys/kernel/debug/sched/base_slice_ns")[0].endswith(
        "(is debugfs mounted?)"
    )


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Parts of paths that this process may not write; it reads all, and has every program."""
    parts: set[str] = set()
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: not (mode & os.W_OK and any(part in str(path) for part in parts)),
    )
    return parts


def test_sets_that_need_the_same_closed_file_share_one_reason(
    machine: Tunables, closed: set[str]
) -> None:
    """By value or by script: a reader is told once."""
    closed.add("/proc/sys")
    typed = planned(machine, ("sysctl", "vm.swappiness", "10"), ("sysctl", "vm.dirty_ratio", "10"))
    assert len(typed.cannot) == 1
    assert with_script(machine, "sysctl -w vm.swappiness=10") == typed.cannot
    assert with_script(machine, "echo 10 > /proc/sys/vm/swappiness") == typed.cannot


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("for f in /sys/block/*/queue/read_ahead_kb; do echo 4096 > $f; done", False),
        ("echo 1 > /sys/block/$disk/queue/read_ahead_kb", False),
        ("for disk in /sys/block/vd[ab]; do echo 1 > $disk/queue/read_ahead_kb; done", False),
        ("cat /sys/block/*/queue/read_ahead_kb; sysctl -w vm.swappiness=1", True),
        ("cat /sys/block/$disk/queue/read_ahead_kb; echo 1 > /proc/sys/vm/$key", True),
        ("true", True),  # its effect is unknown, and there is something it may do
    ],
)
def test_a_script_is_refused_if_all_its_files_are_closed(
    machine: Tunables, closed: set[str], text: str, *, may: bool
) -> None:
    """Reading a file closes nothing."""
    closed.add("/sys/block")
    assert (with_script(machine, text) == ()) == may


@pytest.mark.parametrize(
    ("effective", "may"),
    [("000001ffffffffff", True), ("00000000a80425fb", False), ("0000000000000000", False)],
)
def test_a_script_of_unknown_effects_needs_some_power(
    machine: Tunables, closed: set[str], effective: str, *, may: bool
) -> None:
    """Where no setting can be written. The second is what root has in a container by default."""
    closed.update(("/proc/sys", "/sys"))
    with_capabilities(machine, effective)
    assert (with_script(machine, "tune-it") == ()) == may


def test_plain_writes_of_scripts_are_compared() -> None:
    """The last script that mentions a file counts; its branches are alternatives.

    What it writes in another form is left out.
    """
    scripts = (
        Script(
            "p",
            "apply",
            "echo 1 > /proc/sys/vm/swappiness; echo $(nproc) > /proc/sys/vm/dirty_ratio; sysctl "
            "-w vm.x=1",
        ),
        Script(
            "p",
            "config",
            "if true; then echo 2 > /proc/sys/vm/swappiness; else echo 3 > "
            "/proc/sys/vm/swappiness; fi; echo $v > /proc/sys/vm/x",
        ),
        Script("p", "uninstall", "echo 60 > /proc/sys/vm/swappiness"),
    )
    assert _meant(scripts) == (
        Write("/proc/sys/vm/swappiness", "2", "p/config.sh"),
        Write("/proc/sys/vm/swappiness", "3", "p/config.sh"),
    )


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("echo 1 > /proc/sys/vm/swappiness; echo x > /etc/sysctl.d/9.conf", ()),
        ("echo x > /etc/hosts", ("/etc/hosts",)),
        ("echo x | tee -a /usr/local/lib/tune.conf", ("/usr/local/lib/tune.conf",)),
        ("cp /tmp/a /usr/lib/udev/hwdb.d/1.hwdb", ("/usr/lib/udev/hwdb.d/1.hwdb",)),
        ("sed -i s/a/b/ /etc/fstab; rm -f /etc/cron.d/tune", ("/etc/fstab", "/etc/cron.d/tune")),
        (
            "echo 1 > /sys/block/loop0/queue/read_ahead_kb",
            ("/sys/block/loop0/queue/read_ahead_kb",),
        ),
        (
            "echo max > /sys/fs/cgroup/a/memory.high; echo 1 > /sys/class/leds/x/brightness",
            ("/sys/class/leds/x/brightness",),
        ),
        ("echo 1 > /sys/$somewhere", ()),  # unknown place
        (
            "for f in /sys/class/leds/*/brightness; do echo $v > $f; done",
            ("/sys/class/leds/*/brightness",),
        ),
        ("ethtool -K eth0 gro off", ("network cards (ethtool)",)),
        (
            (
                "ethtool -k eth0; ip addr show; systemctl is-active tuned; mount; swapon -s; # tc "
                "qdisc add"
            ),
            (),
        ),
        (
            "sudo ip link set eth0 txqueuelen 10000 && tc qdisc replace dev eth0 root fq",
            ("addresses, routes and interfaces (ip)",),
        ),
        ("systemctl stop irqbalance", ("services (systemctl)",)),
        (
            "modprobe tcp_bbr; wrmsr -a 0x1a4 0xf",
            ("modules (modprobe)", "registers (wrmsr, setpci)"),
        ),
        ("mkdir -p /run/tune; echo 1 > /tmp/x; cat /etc/passwd > /dev/null; grep x /etc/group", ()),
    ],
)
def test_what_scripts_write_outside_the_snapshot_is_named(
    text: str, outside: tuple[str, ...]
) -> None:
    assert set(outside) <= set(outside_snapshot([Script("p", "apply", text)]))
    assert outside or outside_snapshot([Script("p", "apply", text)]) == ()


def test_a_moved_key_is_missing_with_a_hint_to_its_new_place(machine: Tunables) -> None:
    """The reason is what a reader sees; the warning beside it may be pages away."""
    cannot = planned(machine, ("sysctl", "kernel.sched_migration_cost_ns", "5000000")).cannot
    went = (
        "it left /proc/sys in Linux 5.13 (commit 8a99b6833c88); now "
        "/sys/kernel/debug/sched/migration_cost_ns"
    )
    assert cannot == (f"kernel.sched_migration_cost_ns: this kernel has no such setting; {went}",)
