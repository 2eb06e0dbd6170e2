"""What cannot be put back is refused by name; nothing of the catalogue or the study is."""

from __future__ import annotations

import pytest

from control.meaning import number
from fixtures.tweaks import resolve
from fixtures.tweaks.lint import forbidden, irreversible, order, partly_restored


@pytest.mark.parametrize(
    "key",
    [
        "kernel.modules_disabled",
        "kernel.kexec_load_limit_panic",
        "kernel.ns_last_pid",
        "vm.drop_caches",
        "net.ipv4.route.flush",
        "net.ipv6.conf.eth0/5.disable_ipv6",
        "fs.binfmt_misc.register",
        "kernel.shm_rmid_forced",
        "net.ipv6.conf.eth0/5.addr_gen_mode",
        "net.mpls.platform_labels",
    ],
)
def test_actions_and_one_way_switches_are_no_settings(key: str) -> None:
    assert irreversible(key)


MENTIONED = [
    "sysctl -w kernel.modules_d*=1",
    "sysctl -w $ns.modules_disabled=1",
    "sysctl -qw net.ipv6.conf.{all,lo}.disable_ipv6=0x1",
    "sysctl -p - <<E\n-net/ipv4/route/flush = 1\nE",
    "printf 'kernel.tainted = 2\\n' > /x; sysctl -p /x",
    "echo vm.drop_caches=1 > /etc/sysctl.d/9.conf",
    "cat /run/kept > /proc/sys/net/ipv6/conf/lo/disable_ipv6",
    "file=/proc/sys/kernel/shm_rmid_forced; echo 1 | sudo tee $file >/dev/null",
    "echo 1 > /proc/1/root/proc/sys/vm/drop_caches",
    'python3 -c \'open("/proc/sys/vm/drop_caches", "w").write("3")\'',
    "echo x > /proc/sys/fs/binfmt_misc/register",
    "k=drop_caches; echo 3 > /proc/sys/vm/$k",
    "cd /proc/sys/vm && echo 3 > drop_*",
    "r=/sys; echo mem > ${r-${x:-/proc}}/power/state",
    "echo mem | tee /sys/{power/state,x}",
    "for d in /sys/class/net/*/; do echo 500 > ${d}mtu; done",
    "put() { echo $2 > /sys/class/net/eth0/$1; }; put mtu 500",
    "cd /sys/devices/system/cpu/cpu3; echo 0 > online",
    "D=0000:00:03.0; echo 1 > /sys/bus/pci/devices/$D/reset",
    "printf 'state\\n' | xargs -I{} sh -c 'echo mem > /sys/power/{}'",
    "bash -c 'echo b > /proc/sysrq-trigger'",
    (
        'declare -A S=( [kernel.kexec_load_disabled]=1 [vm.x]=3 ); for k in "${!S[@]}"; do sysctl '
        '-w "$k=${S[$k]}"; done'
    ),
    "declare -A S; S[vm.drop_caches]=3",
    'S["vm.compact_memory"]=1',
    "S['net.ipv4.route.flush']=1",
    "declare -A S=([kernel/tainted]=1)",
    "A=vm.drop; B=caches; sysctl -w ${A}_${B}=3",
    "A=drop_; B=caches; echo 3 > /proc/sys/vm/$A$B",
    "K=vm.drop_; K+=caches; sysctl -w $K=3",
    "printf -v k '%s_%s' drop caches; sysctl -w vm.$k=3",
    "printf 'vm.%s_%s=3\\n' drop caches | sysctl -p -",
    "sysctl -p <(printf '%s\\n' vm.drop_caches=3)",
    "sysctl -p <<<'vm.drop_caches=3'",
    "sed -i 's/^.*vm.swappiness.*/vm.drop_caches=1/' /etc/sysctl.conf",
    "sed -i 's/^#\\(vm.drop_caches\\)/\\1/' /etc/sysctl.conf",
    "cd /proc/sys/vm; for k in {drop,x}_caches; do echo 3 > $k; done",
    "a=(drop caches); IFS=_; echo 3 > /proc/sys/vm/${a[*]}",
    "k=drop-caches; sysctl -w vm.${k//-/_}=3",
    "for K in DROP_CACHES; do sysctl -w vm.${K,,}=3; done",
    "echo 3 > /proc/sys/vm/$'drop\\x5fcaches'",
    "python3 - <<'P'\nfor k, v in {'kernel.tainted':1,'vm/drop_caches':3}.items(): put(k, v)\nP",
    'python3 -c \'a, b = "drop", "caches"; open(f"/proc/sys/vm/{a}_{b}", "w").write("3")\'',
    'awk \'BEGIN{print "vm.drop" "_caches=3"}\' | sysctl -p -',
    'python3 -c \'print("_".join(["vm.drop","caches"])+"=3")\' | sysctl -p -',
    "echo 'vm.drop caches' | tr ' ' '_' | sed 's/$/=3/' | sysctl -p -",
    'w() { sysctl -w "vm.$1_$2=$3"; }; w drop caches 3',
    "find /proc/sys/kernel -name '*_disabled' | while read f; do echo 1 > $f; done",
    'a=(net ipv4 route flush); IFS=.; sysctl -w "${a[*]}=1"',
    "k=kernel.; k+=tainted; sysctl -w $k=1",
    "sed 's/^#//' <<E | sysctl -p -\n#vm.drop_caches=3\nE",
    "sysctl -w vm.drop_\\\ncaches=3",
    "while read -r k v; do sysctl -w kernel.$k=$v; done <<E\nkexec_load_disabled 1\nE",
]


@pytest.mark.parametrize("text", MENTIONED)
def test_a_script_that_mentions_what_has_no_way_back_is_refused(text: str) -> None:
    """In whatever form: also where a name is put together by the shell."""
    assert forbidden(text)


@pytest.mark.parametrize(
    "text",
    [
        "sysctl -w kernel.$key=1 net.ipv4.conf.$i.rp_filter=1",
        "sysctl -w net.ipv4.conf.all.forwarding=1",
        "cat /sys/devices/system/cpu/online /sys/class/net/$i/operstate",
        (
            "ip link set eth0 mtu 9000; ip addr flush dev eth0; echo f > "
            "/sys/class/net/eth0/queues/rx-0/rps_cpus"
        ),
        "for d in /sys/block/*/; do echo none > ${d}queue/scheduler; done",
        "# echo 3 > /proc/sys/vm/drop_caches",
        (
            "declare -A S=([vm.dirty_ratio]=10); for k in ${!S[@]}; do sysctl -w $k=${S[$k]}; "
            "done; for c in cpu[0-9]*; do :; done"
        ),
        "A=vm.dirty; for B in ratio background_ratio; do sysctl -w ${A}_${B}=5; done",
        'usage() { echo "usage: $0 [--drop-caches] [--${x}_$y]"; }; free | grep -i caches',
        "ip route flush cache; for i in all lo; do sysctl -w net.ipv4.conf.$i.rp_filter=2; done",
        (
            "echo memory; echo compact; for k in compaction_proactiveness; do echo 1 > "
            "/proc/sys/vm/$k; done"
        ),
        (
            "find /sys/block -name read_ahead_kb -path '*queue*' | while read f; do echo 512 > "
            "$f; done"
        ),
        "write() { local p=/proc/sys/${1//./\\/}; echo $2 > $p; }; write vm.swappiness 10",
    ],
)
def test_a_script_that_names_other_settings_is_not_refused(text: str) -> None:
    assert forbidden(text) == []


def test_a_refused_name_has_its_line() -> None:
    """The first line that names the setting; none where only several lines together do."""
    found = forbidden(
        "#!/bin/bash\n# drop_caches\nsysctl \\\n  -w vm.x=1\nsysctl -w kernel.${k}_disabled=1\n"
    )
    assert (found[0].line, found[0].key) == (5, "kernel.modules_disabled")
    assert [(one.line, one.key) for one in forbidden("A=drop\nB=caches\necho 3 > $D/${A}_$B")] == [
        (0, "vm.drop_caches")
    ]


def test_no_catalogue_script_names_an_irreversible_setting() -> None:
    assert [
        script
        for tweakset in resolve("all")
        for script in tweakset.scripts
        if forbidden(script.text)
    ] == []


@pytest.mark.parametrize(
    ("key", "sticky", "free"),
    [
        (
            "kernel.unprivileged_bpf_disabled",
            "1",
            "2",
        ),  # bpf_unpriv_handler: locked_state = (value == 1)
        ("kernel.yama.ptrace_scope", "3", "2"),
        ("kernel.modules_disabled", "1", "0"),
        ("net.ipv6.conf.all.disable_ipv6", "1", "0"),
    ],
)
def test_only_the_sticky_value_is_one_way(key: str, sticky: str, free: str) -> None:
    """Without a value the worst is assumed."""
    assert irreversible(key)
    assert irreversible(key, f" {sticky}\n")
    assert irreversible(key, free) is None


@pytest.mark.parametrize(
    "text", ["1", "0X01", " 1", "1\t0", "-1", "on", "", "0 1", "+0", "\u00a00"]
)
def test_a_value_that_is_not_known_to_be_safe_is_none(text: str) -> None:
    """The first five disable IPv6 on a real kernel (any number but 0 does); the rest would fail."""
    assert irreversible("net.ipv6.conf.lo.disable_ipv6", text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31),
        ("-010", -8),
        ("0", 0),
        (" 00 ", 0),
        ("08", None),
        ("0x", None),
        ("0" * 21, 0),
        ("1" * 22, None),
    ],
)
def test_numbers_are_those_of_the_kernel(text: str, value: int | None) -> None:
    """simple_strtoul, base 0: 0x is hexadecimal, 0 octal; 21 characters at most (TMPBUFLEN - 1)."""
    assert number(text) == value


@pytest.mark.parametrize(
    ("path", "loses", "keeps"),
    [
        ("/sys/devices/system/cpu/cpu3/online", "0", "1"),
        ("/sys/devices/system/cpu/smt/control", "off", None),
        ("/sys/class/net/eth0/mtu", "1279", "1280"),
        ("/sys/class/net/eth0/mtu", "576", "9000"),
        ("/sys/class/net/eth0/flags", "0x1002", None),
        ("/sys/class/net/bonding_masters", "-bond0", None),
        ("/sys/class/net/eth0/device/sriov_numvfs", "0", None),
        ("/sys/bus/pci/devices/0000:00:03.0/reset", "1", None),
        ("/sys/block/zram0/reset", "1", None),
        ("/sys/block/sda/device/state", "offline", None),
    ],
)
def test_what_takes_a_device_s_own_settings_away_is_refused(
    path: str, loses: str, keeps: str | None
) -> None:
    """They are in no file: no snapshot brings them back.

    A value that is not known may be the worst.
    """
    assert order(path, loses)
    assert order(path)
    assert keeps is None or order(path, keeps) is None


@pytest.mark.parametrize(
    "key",
    [
        "net.ipv4.ip_forward",
        "kernel.cad_pid",
    ],
)
def test_a_hazard_that_can_be_undone_is_not_irreversible(key: str) -> None:
    assert partly_restored(key)
    assert irreversible(key) is None


def test_nothing_in_the_catalogue_is_irreversible_or_dangerous() -> None:
    keys = [
        (t.key, t.value)
        for tweakset in resolve("all")
        for t in tweakset.tweaks
        if t.kind == "sysctl"
    ]
    assert len(keys) > 40
    assert [
        pair
        for pair in keys
        if irreversible(*pair) or irreversible(pair[0]) or partly_restored(*pair)
    ] == []
