"""Mentions and plain writes of a script are found in its text."""

from __future__ import annotations

import pytest

from fixtures.tweaks.shell import ScriptWrite, may_write, mentions, writes

WRITTEN: dict[str, list[tuple[str, str]]] = {
    "echo 1 > /sys/a/b": [("/sys/a/b", "1")],
    "echo '1 2' > \"/proc/sys/a\"": [("/proc/sys/a", "1 2")],
    "if true; then echo 1 > /sys/a; else echo 2 > /sys/a; fi": [("/sys/a", "1"), ("/sys/a", "2")],
    "sysctl -w vm.x=1 net.y='1 2 3' && sysctl -qw vm/z=4": [
        ("/proc/sys/vm/x", "1"),
        ("/proc/sys/net/y", "1 2 3"),
        ("/proc/sys/vm/z", "4"),
    ],
    "sysctl -w ../x=1": [],
    "echo $v > /sys/a; echo `nproc` > /sys/b; echo 1 > /sys/*; echo 1 > $f": [],
    "echo 1 >> /sys/a; echo 1 | tee /sys/b; printf 1 > /sys/c": [],
    "echo 1 > /sys/a; f=/sys/a; echo 2 > $f": [],  # mentioned in another way too
    "cat > /x.sh <<E\necho 1 > /sys/a\nE": [],
    "put() {\necho 1 > /sys/a\n}": [],
    "# echo 1 > /sys/a": [],
}
MENTIONED: dict[str, tuple[str, ...]] = {
    "sysctl -w net.$v.conf.lo.mtu=$n": ("/proc/sys/net/*/conf/lo/mtu",),
    "sysctl net.ipv4.conf.eth0/5.rp_filter net/core/x": (
        "/proc/sys/net/ipv4/conf/eth0.5/rp_filter",
        "/proc/sys/net/core/x",
    ),
    "for f in /sys/block/*/queue/x; do echo 1 > $f; done": ("/sys/block/*/queue/x",),
    'echo ${f:-/sys/a} "$(cat /sys/b)" `cat /sys/c`': ("/sys/a", "/sys/b", "/sys/c"),
    "echo 1 > /sys/{a,b}/c": ("/sys/*/c",),
    "echo 1 > /proc/self/root//sys/a": ("/sys/a",),
    'S=([vm.x]=1); S["net.core.y"]=2': ("/proc/sys/vm/x", "/proc/sys/net/core/y"),
    "echo 1 > $d/queue/x": ("*/queue/x",),
    "cat /etc/hosts; x.sh; https://docs.kernel.org/a": (),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_plain_writes(text: str) -> None:
    assert writes(text) == [ScriptWrite(*write) for write in WRITTEN[text]]


@pytest.mark.parametrize("text", MENTIONED)
def test_mentions(text: str) -> None:
    assert mentions(text) == MENTIONED[text]


@pytest.mark.parametrize(
    "text",
    [
        "echo '",
        'echo "$(',
        "$(((",
        "`",
        "\\",
        "> ",
        "${",
        "{b,c}" * 999,
        '"$(' * 9999,
        "${" * 9999 + "}" * 9999,
    ],
)
def test_a_text_that_is_no_script_ends(text: str) -> None:
    assert writes(text) == []
    assert mentions(text) == ()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("f=/sys/k/run\necho 1 > $f", {"/sys/k/run": {"1"}}),
        ('for f in "/sys/a" /sys/b; do echo 1 > "${f}"; done', {"/sys/a": {"1"}, "/sys/b": {"1"}}),
        ('for d in /sys/b/*/; do\n  f="${d}q"\n  echo 8 > "$f"\ndone', {"/sys/b/*/q": {"8"}}),
        ("echo 1 > /sys/a || echo 2 > /sys/a", {"/sys/a": {"1", "2"}}),
        ("sysctl -w vm.swappiness=7", {"/proc/sys/vm/swappiness": {"7"}}),
        ("echo $(cat x) > /sys/a; echo 1 > /tmp/a; echo 1 > /sys/$x", {}),
    ],
)
def test_values_that_a_script_may_write(text: str, written: dict[str, set[str]]) -> None:
    assert may_write(text) == written


def test_many_combinations_of_variables_end() -> None:
    loops = "".join(f"for v{n} in {'x ' * 50}; do\n" for n in range(20))
    assert may_write(f"{loops}echo {''.join(f'$v{n}' for n in range(20))} > /sys/a")
