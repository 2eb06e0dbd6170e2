"""Bare settings: each line of sysctl.conf, TuneD profiles and YAML, on a machine of files."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fixtures.catalogue import details
from fixtures.kernel.tunables import Tunables
from fixtures.terms import BadInput
from fixtures.tweaks import bare, manifest, resolve, shell
from fixtures.tweaks.skyhook import obstacles

FILES = {
    "proc/sys/vm/swappiness": "60",
    "proc/sys/vm/dirty_ratio": "20",
    "proc/sys/vm/dirty_background_ratio": "10",
    "proc/sys/vm/stat_interval": "1",
    "proc/sys/kernel/sem": "32000 1024000000 500 32000",
    "proc/sys/kernel/core_pattern": "core",
    "proc/sys/kernel/modules_disabled": "0",
    "proc/sys/net/core/somaxconn": "4096",
    "proc/sys/net/ipv4/tcp_rmem": "4096 131072 6291456",
    "proc/sys/net/ipv4/ip_local_reserved_ports": "",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/block/vda/queue/read_ahead_kb": "128",
    "sys/block/vdb/queue/read_ahead_kb": "128",
    "sys/block/loop0/queue/read_ahead_kb": "128",
} | {
    f"proc/sys/net/ipv4/conf/{name}/rp_filter": "0"
    for name in ("all", "default", "lo", "eth0", "eth0.100")
}

VENDOR = """\
# What a vendor ships
; and a second kind of comment
vm.swappiness = 10
  vm.dirty_ratio=5
-kernel.sched_gone_ns = 3000000
net/ipv4/tcp_rmem = 4096   87380 \t 6291456
kernel.core_pattern = core.%e=%p,a
kernel.modules_disabled = 1
vm.dirty_background_ratio 3
fancy = 1
"""

PROFILE = """\
# TuneD
[main]
summary=Mine
include=throughput-performance

[variables]
late=7
later=${late}

[sysctl]
vm.swappiness = ${later}
vm.dirty_ratio = 40   # half
kernel.sem = "250 32000 100 128"
net.core.somaxconn=>2048
vm.stat_interval=>10
net.ipv4.tcp_rmem = 4096
  131072
  6291456
kernel.sched_gone_ns=1
kernel.core_pattern=${f:exec:hostname}

[vm]
transparent_hugepages=never

[sysfs]
/sys/block/*/queue/read_ahead_kb = 512

[cpu]
governor=performance

[bootloader]
cmdline = isolcpus=2-3

[sysctl.arm]
type=sysctl
uname_regex=aarch64
vm.dirty_background_ratio=3
"""

YAML = """\
sysctl:
  vm.swappiness: 10
  net.ipv4.tcp_rmem: [4096, 131072, 6291456]
  kernel.core_pattern: yes
/sys/kernel/mm/transparent_hugepage/enabled: always
udev: {rule: 1}
vm.dirty_ratio: [[1]]
"""


@pytest.fixture
def machine(tmp_path: Path) -> Tunables:
    """A small machine made of files, with five network interfaces and three disks."""
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return Tunables(tmp_path / "root")


def written(tmp_path: Path, text: str, name: str = "99-vendor.conf") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def fates(source: Path | str, machine: Tunables) -> dict[int, list[str]]:
    """Of each line what it sets, then the reasons for what it does not."""
    lines = bare.account(source, machine)
    return {
        line.number: [*(f"{key}={value}" for key, value in line.settings), *line.left_out]
        for line in lines
    }


def rp_filters(text: str, tmp_path: Path, machine: Tunables) -> dict[str, str]:
    lines = bare.account(written(tmp_path, text), machine)
    settings = [pair for line in lines for pair in line.settings]
    return {
        key.removeprefix("net.ipv4.conf.").removesuffix(".rp_filter"): value
        for key, value in settings
    }


def test_each_line_of_a_sysctl_conf_is_accounted_for(tmp_path: Path, machine: Tunables) -> None:
    assert fates(written(tmp_path, VENDOR), machine) == {
        3: ["vm.swappiness=10"],
        4: ["vm.dirty_ratio=5"],
        5: ["kernel.sched_gone_ns: this kernel has no such setting"],
        6: ["net.ipv4.tcp_rmem=4096   87380 \t 6291456"],
        7: ["kernel.core_pattern=core.%e=%p,a"],
        8: ["kernel.modules_disabled: once 1, it stays 1 until a reboot"],
        9: ["sets nothing; write it as key = value"],
        10: ["'fancy' is not the name of a setting"],
    }


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        # As `sysctl -p` (procps 4.0.2) and systemd-sysctl (252) leave them, all 0 before.
        (
            "net.ipv4.conf.*.rp_filter = 1",
            {"all": "1", "default": "1", "eth0": "1", "eth0/100": "1", "lo": "1"},
        ),
        ("net/ipv4/conf/e*/rp_filter = 1", {"eth0": "1", "eth0/100": "1"}),
        ("net.ipv4.conf.[dl]*.rp_filter = 1", {"default": "1", "lo": "1"}),
        ("net.ipv4.conf.lo.rp_filter = 2\nnet.ipv4.conf.l*.rp_filter = 1", {"lo": "2"}),
        (
            "net.ipv4.conf.[dl]*.rp_filter = 1\nnet/ipv4/conf/lo/rp_filter = 2",
            {"default": "1", "lo": "2"},
        ),
        (
            "net.ipv4.conf.[dl]*.rp_filter = 1\nnet.ipv4.conf.l*.rp_filter = 2",
            {"default": "1", "lo": "2"},
        ),
        ("-net.ipv4.conf.lo.rp_filter\nnet.ipv4.conf.[dl]*.rp_filter = 1", {"default": "1"}),
        (
            "net.ipv4.conf.[dl]*.rp_filter = 1\n-net.ipv4.conf.l*.rp_filter",
            {"default": "1", "lo": "1"},
        ),
        ("-net.ipv4.conf.lo.rp_filter\nnet.ipv4.conf.lo.rp_filter = 2", {"lo": "2"}),
        ("-net.ipv4.conf.e*.rp_filter = 1", {"eth0": "1", "eth0/100": "1"}),
        ("net.ipv4.conf.lo.rp_filter = 1\nnet/ipv4/conf/lo/rp_filter = 2", {"lo": "2"}),
        ("net/ipv4/conf/eth0.100/rp_filter = 2", {"eth0/100": "2"}),
        ("/net/ipv4/conf/lo/rp_filter = 2", {"lo": "2"}),
    ],
)
def test_patterns_and_minus_mean_what_sysctl_makes_of_them(
    text: str, effect: dict[str, str], tmp_path: Path, machine: Tunables
) -> None:
    assert rp_filters(text, tmp_path, machine) == effect


def test_each_line_of_a_tuned_profile_is_accounted_for(tmp_path: Path, machine: Tunables) -> None:
    path = written(tmp_path, PROFILE, "tuned.conf")
    only = "only [sysctl], [vm] and [sysfs] of a TuneD profile are read"
    assert fates(path, machine) == {
        4: ["included files are not read; name the included file as well"],
        11: ["vm.swappiness=7"],
        12: ["vm.dirty_ratio=40"],
        13: ["kernel.sem=250 32000 100 128"],
        14: ["net.core.somaxconn: >2048 does not change the current value 4096"],
        15: ["vm.stat_interval=10"],
        16: ["net.ipv4.tcp_rmem=4096 131072 6291456"],
        19: ["kernel.sched_gone_ns: this kernel has no such setting"],
        20: ["${f:exec:hostname} contains an unknown variable or function"],
        23: ["/sys/kernel/mm/transparent_hugepage/enabled=never"],
        26: [
            "/sys/block/vda/queue/read_ahead_kb=512",
            "/sys/block/vdb/queue/read_ahead_kb=512",
            (
                "/sys/block/loop0/queue/read_ahead_kb: not one of the settings that a run puts "
                "back (docs/settings.md)"
            ),
        ],
        29: [f"[cpu]: {only}"],
        32: [f"[bootloader]: {only}"],
        37: ["[sysctl.arm] applies only under uname_regex, which is not evaluated here"],
    }
    # Each profile's file is called tuned.conf.
    assert bare.read(path, machine).name == tmp_path.name


def test_each_line_of_yaml_is_taken_as_written(tmp_path: Path, machine: Tunables) -> None:
    assert fates(written(tmp_path, YAML, "mine.yaml"), machine) == {
        2: ["vm.swappiness=10"],
        3: ["net.ipv4.tcp_rmem=4096 131072 6291456"],
        4: ["kernel.core_pattern=yes"],
        5: ["/sys/kernel/mm/transparent_hugepage/enabled=always"],
        6: ["udev: a mapping is read only below sysctl: and sysfs:"],
        7: ["a value must be one text or number, or a list of these"],
    }


@pytest.mark.parametrize(
    ("name", "text"), [("99.conf", VENDOR), ("a.conf", PROFILE), ("b.yaml", YAML)]
)
def test_the_manifest_read_again_is_the_same_set(
    name: str, text: str, tmp_path: Path, machine: Tunables
) -> None:
    """So the file that is saved is what was measured, and Skyhook's operator takes it."""
    tweakset = bare.read(written(tmp_path, text, name), machine)
    saved = written(tmp_path, tweakset.text, "saved.yaml")
    again = bare.read(saved, machine)
    assert (again.tweaks, again.scripts, again.sha256) == (
        tweakset.tweaks,
        tweakset.scripts,
        tweakset.sha256,
    )
    assert again == manifest.read(saved)
    assert obstacles(again) == []
    asked = {
        key: value
        for line in bare.account(tmp_path / name, machine)
        for key, value in line.settings
    }
    sysctls = {tweak.key: tweak.value for tweak in again.tweaks}
    files = [path for s in again.scripts if s.stage == "apply" for path in shell.mentions(s.text)]
    assert sysctls.items() <= asked.items()
    assert {*files} >= asked.keys() - sysctls.keys()


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_scripts_for_sysfs_set_check_and_put_back(tmp_path: Path) -> None:
    file = tmp_path / "read_ahead_kb"
    file.write_text("128\n")
    tweakset = bare.read("/sys/block/vda/queue/read_ahead_kb=512", Tunables(tmp_path))
    texts = {
        s.stage: s.text.replace("/sys/block/vda/queue", str(tmp_path)) for s in tweakset.scripts
    }
    texts = {
        stage: text.replace("/run/deeptweak", f"{tmp_path}/run") for stage, text in texts.items()
    }
    seen = []
    for stage in ("apply_check", "apply", "apply_check", "apply", "uninstall", "uninstall"):
        code = subprocess.run(
            ["bash", "-c", texts[stage]], check=False, capture_output=True
        ).returncode
        seen.append((stage, code, file.read_text().strip()))
    assert seen == [
        ("apply_check", 1, "128"),
        ("apply", 0, "512"),
        ("apply_check", 0, "512"),
        ("apply", 0, "512"),
        ("uninstall", 0, "128"),
        ("uninstall", 0, "128"),
    ]


@pytest.mark.parametrize(
    ("word", "name", "settings"),
    [
        ("vm.swappiness=10", "vm.swappiness-10", {"vm.swappiness": "10"}),
        (
            "vm.swappiness=1+vm.dirty_ratio=2",
            "vm.swappiness-1-vm.dirty_ratio-2",
            {"vm.swappiness": "1", "vm.dirty_ratio": "2"},
        ),
        (
            "late:vm.swappiness=10+vm.dirty_ratio=5",
            "late",
            {"vm.swappiness": "10", "vm.dirty_ratio": "5"},
        ),
        ("a:kernel.core_pattern=|/bin/x +%p,%e", "a", {"kernel.core_pattern": "|/bin/x +%p,%e"}),
        ("a:/proc/sys/vm/swappiness=3", "a", {"vm.swappiness": "3"}),
        ("a:net.ipv4.conf.eth0/100.rp_filter=1", "a", {"net.ipv4.conf.eth0/100.rp_filter": "1"}),
        (
            "net.ipv4.tcp_rmem=4096 131072 6291456+net.core.somaxconn=10",
            "net.ipv4.tcp_rmem-4096-131072-629-35d65e",
            {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.core.somaxconn": "10"},
        ),
    ],
)
def test_settings_are_named_on_the_command_line(
    word: str, name: str, settings: dict[str, str], machine: Tunables
) -> None:
    tweakset = bare.read(word, machine)
    assert {tweak.key: tweak.value for tweak in tweakset.tweaks} == settings
    assert tweakset.name == name


def test_a_comma_separates_sets_and_a_backslash_keeps_it() -> None:
    """The path of a set is the word that gives it again."""
    selector = r"vm.swappiness=10,thp-always,a:net.ipv4.ip_local_reserved_ports=8080\,9090"
    sets = resolve(selector)
    assert [tweakset.name for tweakset in sets] == ["vm.swappiness-10", "thp-always", "a"]
    assert [tweak.value for tweak in sets[-1].tweaks] == ["8080,9090"]
    assert sets[-1].path == r"a:net.ipv4.ip_local_reserved_ports=8080\,9090"
    assert resolve(str(sets[-1].path)) == sets[-1:]
    with pytest.raises(
        BadInput,
        match=re.escape(r"'9090'.") + ".*" + re.escape(r"A comma inside a value is written as \,"),
    ):
        resolve("net.ipv4.ip_local_reserved_ports=8080,9090")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "kernel.modules_disabled = 1\n",
            "line 1 (kernel.modules_disabled = 1) is left out: kernel.modules_disabled: once 1",
        ),
        (
            "[bootloader]\ncmdline=quiet\n",
            "line 2 (cmdline=quiet) is left out: [bootloader]: only [sysctl], [vm]",
        ),
        ("-net.ipv4.conf.all.rp_filter\n", "it requests nothing"),
        ("# nothing\n", "it requests nothing"),
        ("vm.swappiness =\n", "has no value"),
        ("vm.swappiness = 1\x07\n", "a control character, U+0007"),
        ("../../etc/passwd = 1\n", "is not the name of a setting"),
        ("/sys/../etc/x = 1\n", "is not the name of a setting"),
        ("/sys/kernel/profiling = 1\n", "once started, profiling continues until a reboot"),
    ],
)
def test_a_file_of_which_nothing_can_be_carried_is_refused(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(
        BadInput, match=re.escape(f"{path}: no line gives a valid setting: ")
    ) as caught:
        resolve(str(path))
    assert reason in str(caught.value)


def test_list_shows_what_becomes_of_each_line(tmp_path: Path) -> None:
    """A key that is missing here is told with the way to leave it out."""
    text = (
        "-net.ipv4.conf.all.rp_filter\nvm.swappiness = 5\nkernel.gone_ns = 1\n"
        "kernel.modules_disabled=1\n"
    )
    path = written(tmp_path, text)
    # Whether this user may set it.
    lines = [line for line in details([str(path)]) if "swappiness" not in line]
    assert lines[:6] == [
        "  line 1: -net.ipv4.conf.all.rp_filter",
        "    keeps net.ipv4.conf.all.rp_filter out of patterns",
        "  line 3: kernel.gone_ns = 1",
        (
            "    cannot set kernel.gone_ns = 1: this kernel has no such setting; write "
            "-kernel.gone_ns to omit it"
        ),
        "  line 4: kernel.modules_disabled=1",
        "    left out: kernel.modules_disabled: once 1, it stays 1 until a reboot",
    ]
    assert "  skipped on this machine: kernel.gone_ns: this kernel has no such setting" in lines[6:]
