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
    "cat <<EOF > /sys/a\necho 1 > /sys/b\nEOF\necho 2 > /sys/c": [("/sys/a", "echo 1 > /sys/b"), ("/sys/c", "2")],
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
    "echo vm.x=1 > /x; sysctl -p /x": [("/proc/sys/vm/x", "1")],
    "f=$(mktemp); printf 'vm.x = %s\\nvm.y = 2\\n' 1 | sudo tee -a $f; sysctl -qp $f": [("/proc/sys/vm/x", "1"), ("/proc/sys/vm/y", "2")],
    "echo vm.x=1 > /x; echo vm.y=1 > /y; sysctl -p /y": [("/proc/sys/vm/y", "1")],
    "echo vm.x=1 | sysctl -p -": [("/proc/sys/vm/x", "1")],
    "sysctl -p - <<< vm.x=$(cat /x)": [("/proc/sys/vm/x", None)],
    "echo vm.x=1 > /etc/sysctl.d/9.conf; systemctl restart systemd-sysctl.service": [("/proc/sys/vm/x", "1")],
    "echo vm.x=1 vm.y=2 | xargs -n1 sysctl -w": [("/proc/sys/vm/x", "1"), ("/proc/sys/vm/y", "2")],
    "printf 'a\\nb\\n' | xargs -I{} sh -c 'echo 1 > /sys/{}'": [("/sys/a", "1"), ("/sys/b", "1")],
    "cat /x | xargs -I % sysctl vm.x=%": [("/proc/sys/vm/x", None)],
    "while read -r k v; do sysctl -w $k=$v; done <<E\nvm.x 1\nvm.y  2 3\nE": [("/proc/sys/vm/x", "1"), ("/proc/sys/vm/y", "2 3")],
    "printf 'vm.x=1\\n' | while IFS== read k v; do if true; then sysctl $k=$v; fi; done; sysctl vm.y=2": [
        ("/proc/sys/vm/x", "1"),
        ("/proc/sys/vm/y", "2"),
    ],
    "while read l; do for i in 1; do echo $l > /sys/a; done; done < <(echo 7)": [("/sys/a", "7")],
    "cat > /x <<E\n5\nE\nwhile read v; do echo $v > /sys/a; done < /x": [("/sys/a", "5")],
    "v=0; read v < /x; echo $v > /sys/a": [("/sys/a", "0"), ("/sys/a", None)],
    "cat > /x.sh <<'E'\necho 1 > /sys/a\nE\n. /x.sh; bash /y.sh": [("/sys/a", "1")],
    "cat > /x.sh <<'E'\necho 1 > /sys/a\nE\nchmod +x /x.sh; sudo bash /x.sh": [("/sys/a", "1")],
    "f=/x.sh; echo 'echo 1 > /sys/a' > $f; chmod +x $f; \"$f\" now": [("/sys/a", "1")],
    'put() { local k=$1; sysctl -w "$k=$2"; }\nput vm.x 1; put vm.y 2': [("/proc/sys/vm/x", "1"), ("/proc/sys/vm/y", "2")],
    'function put() {\n echo "$2" > /sys/$1\n}\n$do a 1': [("/sys/*", None)],
    "f() { [ -z $1 ] || f; echo $1 > /sys/a; }; f 1; echo 2 > /sys/b": [("/sys/a", "1"), ("/sys/b", "2")],
    "f() { shift; echo $1 > /sys/a; }; f 1 2": [("/sys/a", "1"), ("/sys/a", "2")],
    "a='vm.x=1 vm.y=2'; a+=' vm.z=3'; sysctl -w $a": [("/proc/sys/vm/x", "1"), ("/proc/sys/vm/y", "2"), ("/proc/sys/vm/z", "3")],
    'l="a b"; for k in $l $(echo c); do echo 1 > /sys/$k; done; for k in "$l"; do :; done': [
        ("/sys/a", "1"),
        ("/sys/b", "1"),
        ("/sys/c", "1"),
        ("/sys/a b", "1"),
    ],
    'python3 -c \'open("/sys/a", "w").write("1")\'; awk \'BEGIN{print 1 > "/sys/b"}\'; awk \'{print}\' /sys/c': [
        ("/sys/a", None),
        ("/sys/b", None),
    ],
    "perl <<'E'\nopen F, '>', '/proc/sys/vm/x';\nE": [("/proc/sys/vm/x", None)],
    "pushd /sys; echo 1 > a; echo ${1:+2} > /proc/1/root/sys/b": [("/sys/a", "1"), ("/sys/b", None), ("/sys/b", "2")],
    "f() { echo 1 > ${1%/}; }; f /sys/a/": [("/sys/a", None)],
}


@pytest.mark.parametrize("text", CASES)
def test_writes(text: str) -> None:
    assert read(text).writes == [Write(*write) for write in CASES[text]]


def test_a_script_of_others_is_named() -> None:
    text = '. /opt/a.sh; bash -x /opt/b.sh; . /etc/os-release; . "$SKYHOOK_DIR/configmaps/config.sh"; echo : > /c.sh; sh /c.sh; /opt/d.sh'
    assert read(text).elsewhere == ["/opt/a.sh", "/opt/b.sh", "/opt/d.sh"]


def test_calls_of_nvidia_smi() -> None:
    text = "for g in 0 1; do nvidia-smi -i $g -pl 300; done; if true; then /usr/bin/nvidia-smi -lgc 300,900; fi"
    assert read(text).nvidia_smi == [("-i", "0", "1", "-pl", "300"), ("-lgc", "300,900")]


@pytest.mark.parametrize(
    "text",
    [
        "echo '",
        'echo "$(',
        "$(((",
        "`",
        "\\",
        "> ",
        "for",
        "${",
        "a=" + "{b,c}" * 99 + "; echo $a > /sys/a",
        '"$(' * 9999,
        "f() { $@; f; }; f",
        "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }};" for n in range(40)) + "f0",
    ],
)
def test_a_text_that_is_no_script_ends(text: str) -> None:
    assert all(write.value is None for write in read(text).writes)


def test_the_catalogue_is_read_to_its_values() -> None:
    """All that its scripts apply; only what an uninstall brings back from a file cannot be told."""
    applied = [w for s in resolve("all") for script in s.scripts if script.stage == "apply" for w in read(script.text).writes]
    assert len(applied) >= 10
    assert all(write.value for write in applied)
