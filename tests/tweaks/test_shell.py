"""What a script would write is read from its text: paths and values where they stand there, nothing where only a run could tell."""

from __future__ import annotations

import pytest

from fixtures.tweaks import resolve
from fixtures.tweaks.shell import Write, read

CASES: dict[str, list[tuple[str, str | None]]] = {
    "echo 1 > /sys/a/b": [("/sys/a/b", "1")],
    "sysctl -w ../x=1": [],
    "echo 1 >/sys/a/b 2>&1; echo 2>/dev/null": [("/sys/a/b", "1")],
    "echo -n '1 2' >> \"/proc/sys/a\"": [("/proc/sys/a", "1 2")],
    "printf '%s\\n' 5 > /sys/a": [("/sys/a", "5")],
    "echo 3 | sudo tee /sys/a /sys/b > /dev/null": [("/sys/a", "3"), ("/sys/b", "3")],
    "sysctl -w vm.swappiness=10 'net.ipv4.tcp_rmem = 1 2 3' vm.x": [
        ("/proc/sys/vm/swappiness", "10"),
        ("/proc/sys/net/ipv4/tcp_rmem", "1 2 3"),
    ],
    "f=/sys/a; v=7; timeout 5 echo $v > ${f}": [("/sys/a", "7")],
    'for d in /sys/block/*/; do echo 1 > "${d}queue/x"; done': [("/sys/block/*/queue/x", "1")],
    "for k in a b; do echo $k > /sys/$k; done": [("/sys/a", "a"), ("/sys/a", "b"), ("/sys/b", "a"), ("/sys/b", "b")],
    "cd /sys/a && echo 1 > b": [("/sys/a/b", "1")],
    "put() { echo 1 > $file; }; file=/sys/a; put": [("/sys/a", "1")],
    "echo $(cat /sys/c) > /sys/a": [("/sys/a", None)],
    "x=$(echo 1 > /sys/a)": [("/sys/a", "1")],
    "sed -i s/1/2/ /sys/a": [("/sys/a", None)],
    "dd if=/x of=/sys/a": [("/sys/a", None)],
    "cat <<EOF > /sys/a\necho 1 > /sys/b\nEOF\necho 2 > /sys/c": [("/sys/a", None), ("/sys/c", "2")],
    "echo a # > /sys/a": [],
    "echo '1 > /sys/a'": [],
    "cat /sys/a; [ -e /sys/b ] && grep -q x < /sys/c": [],
    "while read -r l; do :; done < /sys/a": [],
    "echo ${v:-1} > ${r:-/sys}/a; : ${d:=/sys/b}; echo 2 > $d": [("/sys/a", "1"), ("/sys/b", "2")],
    "r=/sys; echo 1 > ${r-${x:-/proc/sys}}/a": [("/sys/a", "1"), ("/proc/sys/a", "1")],
    'a=(x\n y)\nfor k in "${a[@]}"; do echo 1 > /sys/$k; done': [("/sys/x", "1"), ("/sys/y", "1")],
    "echo 1 > /sys/a$'\\x5f\\142'": [("/sys/a_b", "1")],
    "trap 'echo 1 > /sys/a' EXIT": [("/sys/a", "1")],
    "sh -s <<E\n# echo 1 > /sys/a\necho 2 > /sys/b\nE\n": [("/sys/b", "2")],
    "cat <<'E' | bash\necho 1 > /sys/a\nE\n": [("/sys/a", "1")],
    "cat > /tmp/x.sh <<E\necho 1 > /sys/a\nE\n": [],
    "bash <<< 'echo 1 > /sys/a'; echo 'echo 2 > /sys/b' | sh": [("/sys/a", "1"), ("/sys/b", "2")],
    "cat > /etc/sysctl.d/x.conf <<E\n; text\n-vm.x = 1 2\nE\nsysctl --system": [("/proc/sys/vm/x", "1 2")],
    "cat > /etc/sysctl.d/x.conf <<E\nvm.x = 1\nE\nsysctl -w vm.y=2": [("/proc/sys/vm/y", "2")],
}


@pytest.mark.parametrize("text", CASES)
def test_writes(text: str) -> None:
    assert read(text).writes == [Write(*write) for write in CASES[text]]


def test_calls_of_nvidia_smi() -> None:
    text = "for g in 0 1; do nvidia-smi -i $g -pl 300; done; if true; then /usr/bin/nvidia-smi -lgc 300,900; fi"
    assert read(text).nvidia_smi == [("-i", "0", "1", "-pl", "300"), ("-lgc", "300,900")]


@pytest.mark.parametrize(
    "text", ["echo '", 'echo "$(', "$(((", "`", "\\", "> ", "for", "${", "a=" + "{b,c}" * 99 + "; echo $a > /sys/a", '"$(' * 9999]
)
def test_a_text_that_is_no_script_ends(text: str) -> None:
    assert all(write.value is None for write in read(text).writes)


def test_the_catalogue_is_read_to_its_values() -> None:
    """All that its scripts apply; only what an uninstall brings back from a file cannot be told."""
    applied = [w for s in resolve("all") for script in s.scripts if script.stage == "apply" for w in read(script.text).writes]
    assert len(applied) >= 10
    assert all(write.value for write in applied)
