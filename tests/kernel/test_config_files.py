"""Configuration files come back: kind, target, mode, owner, time, extended attributes."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from fixtures.kernel import config_files
from fixtures.kernel.tunables import BOOT_FILES, TUNABLE, Tunables, shown
from tests import fake_root
from tests.fake_root import FakeRoot, plain, writes

LINK, SECRET = "/etc/sysctl.d/99-sysctl.conf", "/etc/modprobe.d/secret.conf"
TWIN = "/etc/sysctl.d/10-net.conf"
OLD_NS = 1_600_000_000_123_456_789


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    """Add a link, as Debian has it, a root-only file, another user's and one in a subfolder."""
    fake = fake_root.make(tmp_path)
    fake.real(LINK).symlink_to("../sysctl.conf")
    fake.put(SECRET, "options x y=1\n")
    fake.real(SECRET).chmod(0o600)
    fake.put("/etc/sysctl.d/below/a.conf", "vm.swappiness = 60\n")
    fake.real("/etc/sysctl.d/below").chmod(0o750)
    for path in (fake.root / "etc").rglob("*"):
        os.utime(path, ns=(OLD_NS, OLD_NS), follow_symlinks=False)
    return fake


def everything(fake: FakeRoot) -> dict[str, tuple[object, ...]]:
    """Below /etc: kind, mode, owner, target or text, time (not of folders), extended attributes."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (fake.root / "etc").rglob("*"):
        info = path.lstat()
        text = (
            str(path.readlink())
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else ""
        )
        when = 0 if stat.S_ISDIR(info.st_mode) else info.st_mtime_ns
        attributes = {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        }
        found[str(path)] = (oct(info.st_mode), info.st_uid, info.st_gid, text, when, attributes)
    return found


SCRIPTS = {
    "a link edited in place becomes a file": f"sed -i s/nothing/all/ $ROOT{LINK}",
    "a link removed": f"rm $ROOT{LINK}",
    "two files made one": f"ln -f $ROOT{SECRET} $ROOT{TWIN}",
    "two files made one, then written": (
        f"ln -f $ROOT{SECRET} $ROOT{TWIN}; echo more >> $ROOT{SECRET}"
    ),
    "a link led elsewhere": f"ln -sf /etc/passwd $ROOT{LINK}",
    "a file made a link": f"ln -sf /etc/passwd $ROOT{SECRET}",
    "a file written through a link": f"echo vm.swappiness=1 > $ROOT{LINK}",
    "a new link": "ln -s x $ROOT/etc/sysctl.d/new.conf",
    "a dangling link": f"ln -sf nowhere $ROOT{LINK}; ln -s nowhere $ROOT/etc/tmpfiles.d",
    "a file of root's alone removed": f"rm $ROOT{SECRET}",
    "a mode": f"chmod 666 $ROOT{SECRET}; chmod 4755 $ROOT/etc/sysctl.conf",
    "a time": f"touch $ROOT{SECRET} $ROOT/etc/sysctl.conf",
    "the same text written anew": (
        f"cp $ROOT{SECRET} $ROOT/x; cat $ROOT/x > $ROOT{SECRET}; rm $ROOT/x"
    ),
    "a folder that was not there": (
        "mkdir -p $ROOT/etc/tmpfiles.d/a/b; echo 1 > $ROOT/etc/tmpfiles.d/a/b/c.conf"
    ),
    "a folder with all that was in it": "rm -r $ROOT/etc/sysctl.d",
    "a folder's mode": "chmod 700 $ROOT/etc/sysctl.d/below",
    "a folder made a file": "rm -r $ROOT/etc/sysctl.d/below; echo x > $ROOT/etc/sysctl.d/below",
    "a file made a folder": f"rm $ROOT{SECRET}; mkdir $ROOT{SECRET}; echo x > $ROOT{SECRET}/y",
    "a pipe, and one in a folder": (
        "mkfifo $ROOT/etc/sysctl.d/pipe; mkdir $ROOT/etc/tmpfiles.d; mkfifo "
        "$ROOT/etc/tmpfiles.d/pipe"
    ),
    "a file made a pipe": f"rm $ROOT{SECRET}; mkfifo $ROOT{SECRET}",
    "a large file": "head -c 2000000 /dev/zero > $ROOT/etc/sysctl.d/large",
    "a file made large": f"head -c 2000000 /dev/zero >> $ROOT{SECRET}",
    "an owner": (
        f"chown 1234:4321 $ROOT{SECRET} $ROOT/etc/sysctl.d/below; chown -h 1234 $ROOT{LINK}"
    ),
}


@pytest.mark.parametrize("what", SCRIPTS)
@pytest.mark.parametrize("died", [False, True])
def test_what_a_script_did_to_files_is_seen_and_undone(
    fake: FakeRoot, what: str, *, died: bool
) -> None:
    if what == "an owner" and os.geteuid():
        pytest.skip("nobody but root gives files away")
    before = everything(fake)
    machine = fake.machine()
    effects = machine.apply(
        "x", writes([("/proc/sys/vm/swappiness", "60")]), [fake.script("apply", SCRIPTS[what])]
    )
    assert effects.changed
    result = (fake.machine() if died else machine).restore()
    assert (result.stuck, result.left_alone, result.elsewhere) == ({}, {}, {})
    assert everything(fake) == before


@pytest.mark.parametrize(
    "script",
    [
        f"echo 1 >> $ROOT{SECRET}",
        f"rm $ROOT{SECRET}",
        f"tr '#' x < $ROOT{SECRET} | tee $ROOT{SECRET}.x; mv $ROOT{SECRET}.x $ROOT{SECRET}",
    ],
)
def test_a_large_file_that_was_there_is_to_be_put_back_by_hand(fake: FakeRoot, script: str) -> None:
    fake.put(SECRET, "#" * 2_000_000)
    machine, before = fake.machine(), everything(fake)
    machine.apply("x", [], [fake.script("apply", script)])
    why = machine.restore().stuck[SECRET]
    assert "by hand" in why
    assert f"2000000 bytes, sha256 {hashlib.sha256(b'#' * 2_000_000).hexdigest()}" in why
    fake.real(SECRET).write_text("#" * 2_000_000)
    assert machine.restore().stuck == {}
    assert (everything(fake), fake.journal.exists()) == (before, False)


def test_a_large_file_s_owner_and_mode_come_back(fake: FakeRoot) -> None:
    fake.put(SECRET, "#" * 2_000_000)
    machine, before = fake.machine(), everything(fake)
    machine.apply("x", [], [fake.script("apply", f"chmod 666 $ROOT{SECRET}")])
    assert (machine.restore().stuck, everything(fake), fake.journal.exists()) == ({}, before, False)


def test_extended_attributes_come_back(fake: FakeRoot) -> None:
    try:
        os.setxattr(fake.real(SECRET), "user.kept", b"\0one")
    except OSError as error:
        pytest.skip(f"this file system has none: {error}")
    machine, before = fake.machine(), everything(fake)
    machine.watch("x")
    os.removexattr(fake.real(SECRET), "user.kept")
    os.setxattr(fake.real("/etc/sysctl.conf"), "user.new", b"two")
    assert machine.observed().changed.keys() == {SECRET, "/etc/sysctl.conf"}
    assert machine.restore().stuck == {}
    assert everything(fake) == before


def test_a_folder_with_foreign_files_stays_and_blocks_nothing(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.apply("x", [], [fake.script("apply", "mkdir $ROOT/etc/tmpfiles.d")])
    fake.put("/etc/tmpfiles.d/theirs.conf", "x")
    result = machine.restore()
    assert (result.stuck, set(result.elsewhere)) == (
        {},
        {"/etc/tmpfiles.d", "/etc/tmpfiles.d/theirs.conf"},
    )
    assert (fake.get("/etc/tmpfiles.d/theirs.conf"), fake.journal.exists()) == ("x", False)


def test_a_journal_of_texts_alone_is_still_carried_out(fake: FakeRoot) -> None:
    """From before owners and modes were kept: put the text back, leave files that have it."""
    machine = fake.machine()
    record = machine.watch("x")
    record["before"] = {
        path: value
        for path, value in plain(record["before"]).items()
        if not fake.real(path).is_symlink()
    }
    machine.journal.close()
    machine.journal.begin(record)
    machine.journal.add({"record": "scripts"})
    fake.put("/etc/sysctl.conf", "# other\n")
    fake.real(SECRET).chmod(0o644)
    assert fake.machine().restore().back.keys() >= {"/etc/sysctl.conf"}
    assert (fake.get("/etc/sysctl.conf"), fake.real(SECRET).stat().st_mode & 0o777) == (
        "# nothing\n",
        0o644,
    )


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            '{"kind": "file"',
            "x\n{}",
            '{"kind": "link"}\nx',
            '{"kind": "link", "owner": "root", "mtime_ns": 1}\nx',
        ),
        '{"kind": "file", "owner": "0:0", "mtime_ns": 1, "mode": "888", "xattrs": {}}\nx',
        '{"kind": "file", "owner": "0:0", "mtime_ns": 1, "mode": "0644", "xattrs": {"a": "zz"}}\nx',
        '{"kind": "link", "owner": "0:0", "mtime_ns": 9223372036854775808}\nx',
        '{"kind": "file", "owner": "0:0", "mtime_ns": true, "mode": "0644", "xattrs": {}}\nx',
    ],
)
def test_a_text_is_no_state(text: str) -> None:
    assert (config_files.about(text), config_files.text(text)) == (None, text)


def test_people_are_shown_a_line(fake: FakeRoot) -> None:
    tunables, me = Tunables(fake.root), f"{os.geteuid()}:{os.getegid()}"
    assert shown(tunables.read(SECRET)) == f"file 0600 {me} 2020-09-13T12:26:40Z: options x y=1"
    assert shown(tunables.read(LINK)) == f"link {me} 2020-09-13T12:26:40Z: ../sysctl.conf"
    assert shown(tunables.read("/etc/sysctl.d/below")) == f"folder 0750 {me}"
    assert str(shown(tunables.read("/etc/udev/rules.d/60-io.rules"))).endswith(
        'KERNEL=="sd[a-z]", ATTR{queue/scheduler}="none"'
    )


@pytest.mark.parametrize("top", BOOT_FILES)
def test_what_a_snapshot_takes_a_journal_may_name(fake: FakeRoot, top: str) -> None:
    path = top if "." in top.rpartition("/")[2] and not top.endswith(".d") else f"{top}/a/b.conf"
    fake.put(path, "x")
    assert path in Tunables(fake.root).snapshot()
    assert TUNABLE.fullmatch(path)


@pytest.mark.parametrize("top", ["/run", "/usr/local/lib", "/usr/lib"])
def test_a_boot_file_outside_etc_goes_back(fake: FakeRoot, top: str) -> None:
    """sysctl.d(5) reads it as in /etc. A file in /run is lost at reboot, and stays lost."""
    path = f"{top}/sysctl.d/99-x.conf"
    fake.put(path, "vm.swappiness = 60\n")
    machine = fake.machine()
    effects = machine.apply(
        "x",
        [],
        [fake.script("apply", f"rm $ROOT{path}; echo 'vm.x = 1' > $ROOT{top}/sysctl.d/new.conf")],
    )
    assert effects.changed.keys() == {path, f"{top}/sysctl.d/new.conf"}
    fake.reboot()
    fake.put(f"{top}/sysctl.d/new.conf", None)
    assert fake.machine().restore().back.keys() == ({path} if top != "/run" else set())
    assert fake.real(path).exists() is (top != "/run")
