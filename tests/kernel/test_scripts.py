"""Scripts run as they are; what they change is found by looking, and put back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from fixtures.kernel import cgroups
from fixtures.kernel import scripts as bash
from fixtures.kernel.machine import Write
from fixtures.kernel.written import writes_to
from fixtures.terms import Script, TweakRefused
from tests import waiting
from tests.fake_root import FakeRoot, writes

SWAPPINESS, RATIO = "/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_ratio"
READ_AHEAD = "/sys/block/vda/queue/read_ahead_kb"


def test_stages_run_package_by_package_in_the_operator_s_order() -> None:
    """As Skyhook: apply, config, interrupt, each with its check; unknown stages are not run."""
    given = [
        Script(p, s, "")
        for p in "ab"
        for s in ("config_check", "uninstall", "apply_check", "apply", "config", "other")
    ]
    stages = [(s.package, s.stage) for s in bash.stages(given, bash.APPLY_STAGES)]
    assert stages == [
        (p, s) for p in "ab" for s in ("apply", "apply_check", "config", "config_check")
    ]
    assert [s.stage for s in bash.stages(given, bash.UNDO_STAGES)] == ["uninstall", "uninstall"]


def test_a_script_finds_its_siblings_and_no_one_else_s(tmp_path: Path) -> None:
    """Sourced by bash from $SKYHOOK_DIR/configmaps, where the other stages of its package lie."""
    main = Script(
        "a",
        "apply",
        f". $SKYHOOK_DIR/configmaps/config.sh; ls $SKYHOOK_DIR/configmaps >> {tmp_path}/said",
    )
    bash.run(
        main,
        [main, Script("a", "config", f"echo hello > {tmp_path}/said"), Script("b", "other", "")],
    )
    assert (tmp_path / "said").read_text() == "hello\napply.sh\nconfig.sh\n"


def test_effects_are_found_and_put_back(fake: FakeRoot) -> None:
    """Changed settings; made, changed and removed files and folders: all restored to the byte."""
    text = f"""
    echo 1 > $ROOT{SWAPPINESS}; echo bfq > $ROOT/sys/block/vda/queue/scheduler
    echo 'vm.swappiness = 1' > $ROOT/etc/sysctl.d/99-new.conf
    rm -r $ROOT/etc/security/limits.d
    sed -i s/none/bfq/ $ROOT/etc/udev/rules.d/60-io.rules
    printf '# nothing' > $ROOT/etc/sysctl.conf
    """
    machine = fake.machine()
    effects = machine.apply("x", [], [fake.script("apply", text)])
    assert effects.changed.keys() == {
        SWAPPINESS,
        "/sys/block/vda/queue/scheduler",
        "/etc/sysctl.d/99-new.conf",
        "/etc/security/limits.d",
        "/etc/security/limits.d/90.conf",
        "/etc/udev/rules.d/60-io.rules",
        "/etc/sysctl.conf",
    }
    result = machine.restore()
    assert (result.back.keys(), result.stuck) == (effects.changed.keys(), {})
    fake.must_be_as_found()


MORE = {
    "/sys/kernel/rcu_normal": ("0", "1"),
    "/sys/class/bdi/254:0/max_ratio": ("100", "10"),
    "/sys/class/net/eth0/tx_queue_len": ("1000", "10000"),
    "/sys/class/net/eth0/queues/tx-0/xps_cpus": ("1", "3"),
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": ("tsc", "hpet"),
    "/sys/devices/virtual/workqueue/cpumask": ("3", "1"),
    "/sys/block/sda/device/queue_depth": ("32", "1"),
    "/sys/bus/pci/devices/0000:00:03.0/power/control": ("on", "auto"),
}


@pytest.mark.parametrize("path", MORE)
def test_whatever_is_a_setting_below_sys_is_seen_and_put_back(fake: FakeRoot, path: str) -> None:
    """Of a script that changes nothing else: before, its cell said that nothing was changed."""
    found, value = MORE[path]
    fake.put(path, found)
    machine = fake.machine()
    assert machine.apply(
        "x", [], [fake.script("apply", f"echo {value} > $ROOT'{path}'")]
    ).changed == {path: (found, value)}
    assert (machine.restore().back, fake.get(path)) == ({path: (value, found)}, found)


@pytest.mark.parametrize(
    ("stage", "text", "says"),
    [
        ("apply", "echo cannot; exit 3", r"tune/apply\.sh ended with exit code 3: cannot"),
        ("apply_check", "exit 1", r"tune/apply_check\.sh ended with exit code 1$"),
        ("config", "kill -TERM $$", r"tune/config\.sh died of SIGTERM"),
        (
            "apply",
            "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end >&2; false",
            r"exit code 1: x{590,595} \| end$",
        ),
        ("apply", "sleep 60", r"did not end within 0\.2 s"),
        ("apply", "setsid sleep 60 & wait", r"did not end within 0\.2 s"),
        (
            "apply",
            f"env -i bash -c 'sleep 0.4; echo 3 > '$ROOT{SWAPPINESS}",
            r"did not end within 0\.2 s",
        ),
    ],
)
def test_a_script_that_fails_is_undone(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, stage: str, text: str, says: str
) -> None:
    """Its last lines are the reason; its changes and earlier typed settings are undone."""
    monkeypatch.setattr(bash, "TIMEOUT_S", 0.2 if "sleep" in text else 60.0)
    asked = [
        fake.script("apply", f"echo 1 > $ROOT{SWAPPINESS}"),
        fake.script(stage, f"echo 2 > $ROOT{READ_AHEAD}; {text}"),
    ][stage == "apply" :]
    with pytest.raises(TweakRefused, match=says):
        fake.machine().apply("x", writes([(RATIO, "5")]), asked)
    time.sleep(0.4 if "env -i" in text else 0.0)
    fake.must_be_as_found()


def test_no_bash_is_said_to_be_no_bash(fake: FakeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TweakRefused, match=r"tune/apply\.sh could not be started: .*'bash'"):
        fake.machine().apply("x", writes([(RATIO, "5")]), [fake.script("apply", "true")])
    assert fake.wrong() == {}


def test_the_package_s_own_undo_runs_first(fake: FakeRoot) -> None:
    """It may know more than the tunables; the snapshot has the last word on other values."""
    undo = (
        f"echo 77 > $ROOT{SWAPPINESS}; echo 77 > $ROOT{RATIO}; echo 77 > $ROOT{READ_AHEAD}; touch "
        "$ROOT/undone"
    )
    machine = fake.machine()
    machine.apply(
        "x",
        [],
        [fake.script("apply", f"echo 1 > $ROOT{SWAPPINESS}"), fake.script("uninstall", undo)],
    )
    fake.put(RATIO, "40")
    result = machine.restore()
    assert result.back == {SWAPPINESS: ("1", "60")}
    assert result.elsewhere == {RATIO: ("20", "40")}
    assert fake.get("/undone") == ""
    fake.put("/undone", None)
    assert fake.wrong() == {RATIO: "40"}


def test_an_undo_that_fails_is_noted_and_does_not_stop_the_rest(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.apply(
        "x",
        [],
        [
            fake.script("apply", f"echo 1 > $ROOT{SWAPPINESS}"),
            fake.script("uninstall", "echo no; exit 1"),
        ],
    )
    result = machine.restore()
    assert result.notes == (
        (
            "tune/uninstall.sh ended with exit code 1: no (values are put back from the snapshot "
            "anyway)"
        ),
    )
    fake.must_be_as_found()


def test_a_daemon_does_not_block_and_ends_with_its_tweak(fake: FakeRoot) -> None:
    """It keeps the script's output open in a separate session; its environment identifies it."""
    # `1<>` does not empty the file first: killed in between it would leave what no kernel shows.
    text = (
        f"setsid sh -c 'while sleep 0.01; do echo 11 1<> $ROOT{SWAPPINESS}; done' & echo $! > "
        f"$ROOT/pid; echo 11 > $ROOT{SWAPPINESS}"
    )
    machine = fake.machine()
    machine.apply("x", [], [fake.script("apply", f"export ROOT; {text}")])
    result = machine.restore()
    assert any("left running by a script, was ended" in note for note in result.notes)
    fake.put("/pid", None)
    time.sleep(0.1)
    assert fake.wrong() == {}


@pytest.mark.parametrize("ends", ["", "sleep 60"])
@pytest.mark.parametrize("undo", [[], ["true"]])
def test_late_changes_of_a_scripts_process_are_undone(
    fake: FakeRoot, ends: str, undo: list[str]
) -> None:
    """Whether the process is still there or not, and whether the package has an undo of its own."""
    late = f"sleep 0.3; echo 77 > $ROOT{SWAPPINESS}; touch $ROOT/done; {ends}"
    text = f"(setsid env -i ROOT=$ROOT bash -c '{late}' > /dev/null 2>&1 &); echo 5 > $ROOT{RATIO}"
    machine = fake.machine()
    machine.apply(
        "x", [], [fake.script("apply", text), *(fake.script("uninstall", one) for one in undo)]
    )
    waiting.until((fake.root / "done").exists)
    fake.put("/done", None)
    machine.restore()
    fake.must_be_as_found()


def test_a_script_that_has_not_begun_is_found_by_its_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before exec it has the harness's environment; it would start writing after the restore."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"{bash.FOLDER}0123456789abcdef-x"
    folder.mkdir()
    with (folder / "output").open("wb") as sink:
        left = subprocess.Popen(["sleep", "60"], stdout=sink)
    other = subprocess.Popen(["sleep", "60"])
    try:
        assert bash.end_leftovers("0123456789abcdef") == [
            f"process {left.pid} (sleep 60), left running by a script, was ended"
        ]
        assert (left.wait(), other.poll(), folder.exists()) == (-9, None, False)
    finally:
        for one in (left, other):
            one.kill()
            one.wait()


def test_processes_of_others_are_not_ended(fake: FakeRoot) -> None:
    others = [
        subprocess.Popen(["sleep", "60"], env={**os.environ, bash.MARK: "another"}),
        subprocess.Popen(["sleep", "60"]),
    ]
    try:
        machine = fake.machine()
        machine.apply("x", [], [fake.script("apply", "true"), fake.script("apply_check", "true")])
        assert machine.restore().notes == ()
        assert [one.poll() for one in others] == [None, None]
    finally:
        for one in others:
            one.kill()
            one.wait()


def test_a_killed_runs_script_is_ended_before_any_restoration(fake: FakeRoot) -> None:
    """A kill -9 of the run spares its script, which goes on writing in a separate session."""
    script = fake.script(
        "apply",
        f"touch $ROOT/started; for i in $(seq 60000); do echo $i > $ROOT{SWAPPINESS}; sleep 0.01; "
        "done",
    )
    pid = os.fork()
    if pid == 0:
        fake.machine().apply("x", [], [script])
        os._exit(0)
    while not fake.real("/started").exists():
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    result = fake.machine().restore()
    assert len([n for n in result.notes if "was ended" in n]) >= 1
    fake.put("/started", None)
    time.sleep(0.1)
    fake.must_be_as_found()


def test_settings_of_a_loaded_module_do_not_block_the_machine(fake: FakeRoot) -> None:
    path = "/sys/module/tcp_htcp/parameters/use_rtt_scaling"
    machine = fake.machine()
    effects = machine.apply(
        "x",
        [],
        [
            fake.script(
                "apply",
                f"mkdir -p $(dirname $ROOT{path}); echo 1 > $ROOT{path}; echo 1 > "
                f"$ROOT{SWAPPINESS}",
            )
        ],
    )
    assert effects.changed == {path: (None, "1"), SWAPPINESS: ("60", "1")}
    result = machine.restore()
    assert (result.stuck, result.elsewhere, fake.journal.exists()) == (
        {},
        {path: (None, "1")},
        False,
    )
    assert fake.wrong() == {path: "1"}


def test_a_device_that_came_before_the_script_is_not_its_effect(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.tunables.refresh()
    fake.put("/sys/block/vdb/queue/read_ahead_kb", "128")
    assert (
        machine.apply(
            "x", [], [fake.script("apply", "true"), fake.script("apply_check", "true")]
        ).changed
        == {}
    )


def test_a_daemon_that_drops_every_mark_is_ended_too(fake: FakeRoot) -> None:
    """No environment, own session, no file of ours: it is an orphan, and we adopt orphans."""
    loop = f"while :; do echo 42 1<> {fake.machine().tunables.real(SWAPPINESS)}; sleep 0.01; done"
    script = fake.script(
        "apply",
        f"(cd /; exec env -i setsid bash -c '{loop}' </dev/null >/dev/null 2>&1 &)\nsleep 0.1",
    )
    machine = fake.machine()
    machine.apply("x", [], [script, fake.script("apply_check", "true")])
    notes = machine.restore().notes
    assert any("left running by a script, was ended" in note for note in notes)
    time.sleep(0.1)
    assert fake.wrong() == {}


def test_a_script_s_write_is_read_back_by_its_meaning(fake: FakeRoot) -> None:
    """As for a typed setting: another number refuses the set, a rounded number does not."""
    machine = fake.machine()
    late = fake.script(
        "apply",
        f"echo 4096 > $ROOT{READ_AHEAD}; echo 1 > $ROOT{SWAPPINESS}; echo 8192 > "
        "$ROOT/sys/block/vda/queue/read_ahead_kb",
    )
    meant = [Write(READ_AHEAD, "4096", "tune/apply.sh"), Write(SWAPPINESS, "1", "tune/apply.sh")]
    with pytest.raises(
        TweakRefused,
        match=r"tune/apply\.sh wrote '4096' to .*/read_ahead_kb, but the kernel reports '8192': it "
        r"is not in force",
    ):
        machine.apply("x", [], [late], meant)
    fake.must_be_as_found()
    rounded = fake.script("apply", f"echo 4 > $ROOT{READ_AHEAD}")  # as the kernel makes it of 7
    assert machine.apply("x", [], [rounded], [Write(READ_AHEAD, "7", "tune/apply.sh")]).changed == {
        READ_AHEAD: ("128", "4")
    }
    machine.restore()


def test_values_a_script_skips_or_overwrites_are_no_failure(fake: FakeRoot) -> None:
    machine = fake.machine()
    script = fake.script(
        "apply", f"if false; then echo 5 > $ROOT{RATIO}; fi; echo 4096 > $ROOT{READ_AHEAD}"
    )
    meant = [Write(RATIO, "5", "a"), Write(READ_AHEAD, "128", "a"), Write(READ_AHEAD, "4096", "a")]
    assert machine.apply("x", [], [script], meant).changed == {READ_AHEAD: ("128", "4096")}
    machine.restore()
    fake.must_be_as_found()


def test_a_write_of_the_text_that_stands_there_counts_as_written(fake: FakeRoot) -> None:
    """The kernel shows it: 20 was requested and is in force; 7 was requested, 20 is in force."""
    machine = fake.machine()
    same = fake.script("apply", f"echo 20 > $ROOT{RATIO}; echo 1 > $ROOT{SWAPPINESS}")
    machine.apply("x", [], [same], [Write(RATIO, "20", "a")])
    machine.restore()
    with pytest.raises(TweakRefused, match=r"wrote '7'.*reports '20'"):
        machine.apply("x", [], [same], [Write(RATIO, "7", "a")])
    fake.must_be_as_found()


def test_a_write_outside_the_snapshot_is_told(fake: FakeRoot) -> None:
    machine = fake.machine()
    loop = "/sys/block/loop0/queue/read_ahead_kb"
    script = fake.script("apply", f"echo 4 > $ROOT{loop}; echo 1 > $ROOT{SWAPPINESS}")
    assert machine.apply(
        "x", [], [script], [Write(loop, "4", "a"), Write(SWAPPINESS, "1", "a")]
    ).outside == (loop,)
    machine.restore()
    fake.put(loop, "128")
    fake.must_be_as_found()


def test_the_kernel_tells_of_writes_to_its_own_files() -> None:
    """Of this kernel, on two settings whose own text is written back."""
    size, limit = "/proc/sys/net/core/optmem_max", "/proc/sys/kernel/random/urandom_min_reseed_secs"
    if not os.access(size, os.W_OK):
        pytest.skip("no setting may be written here")
    with writes_to([size, limit]) as seen:
        Path(size).write_text(Path(size).read_text())
        Path(limit).read_text()
    assert seen == {size}


@pytest.mark.skipif(not cgroups.gathering("mark"), reason="no cgroup can be made here")
@pytest.mark.parametrize("when", ["while it ran", "when it was in force"])
def test_a_killed_run_s_daemon_without_marks_is_ended(
    fake: FakeRoot, tmp_path: Path, when: str
) -> None:
    """Environment, session and files tell nothing of it; its cgroup does.

    What it wrote meanwhile goes back.
    """
    daemon = f"while :; do echo 7 1<> $ROOT{SWAPPINESS}; sleep 0.01; done"
    text = (
        f"env -i ROOT=$ROOT setsid -f bash -c 'cd /; {daemon}' <&- >&- 2>&-; until grep -q 7 "
        f"$ROOT{SWAPPINESS}; do :; done"
    )
    text += f"; touch {tmp_path}/started" + "; sleep 600" * (when == "while it ran")
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            fake.machine().apply("x", [], [fake.script("apply", text)])
            (tmp_path / "in force").touch()
            time.sleep(600)
        os._exit(1)
    waiting.until((tmp_path / ("started" if when == "while it ran" else "in force")).exists)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    result = fake.machine().restore()
    assert result.back == {SWAPPINESS: ("7", "60")}
    assert any("left running by a script, was ended" in note for note in result.notes)
    time.sleep(0.1)  # a daemon would have written again
    fake.must_be_as_found()


MOUNTS = {
    "a file": f"echo 60 > $ROOT/other; mount --bind $ROOT/other $ROOT{SWAPPINESS}",
    "a folder": "mount -t tmpfs none $ROOT/proc/sys/vm",
    "twice": (
        f"mount -t tmpfs none $ROOT/proc/sys/vm; echo 60 > $ROOT{SWAPPINESS}; mount --bind "
        "$ROOT/proc/sys/vm $ROOT/proc/sys/vm"
    ),
}


@pytest.mark.needs("root")
@pytest.mark.parametrize("mount", MOUNTS.values(), ids=MOUNTS)
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "ended"])
def test_a_script_s_mount_over_a_setting_hides_nothing(
    fake: FakeRoot, tmp_path: Path, mount: str, *, killed: bool
) -> None:
    """The set is refused; the mount goes before anything is read, after `kill -9` too."""
    script = fake.script(
        "apply",
        f"echo 7 > $ROOT{SWAPPINESS}; {mount}; touch {tmp_path}/mounted{'; sleep 600' * killed}",
    )
    if killed:
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                fake.machine().apply("x", [], [script])
            os._exit(1)
        waiting.until((tmp_path / "mounted").exists)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        result = fake.machine().restore()
        assert result.back == {SWAPPINESS: ("7", "60")}
        assert any(note.startswith("a mount over /proc/sys/vm") for note in result.notes)
    else:
        with pytest.raises(TweakRefused, match="its scripts mount over /proc/sys/vm"):
            fake.machine().apply("x", [], [script])
    fake.put("/other", None)
    fake.must_be_as_found()


@pytest.mark.needs("root")
def test_somebody_else_s_mount_over_a_setting_is_named(fake: FakeRoot) -> None:
    """Without a script the mount is not the run's: the journal stays until the mount is gone."""
    machine = fake.machine()
    machine.apply("x", writes([(SWAPPINESS, "7")]))
    point = fake.real(SWAPPINESS)
    subprocess.run(["mount", "--bind", fake.real(RATIO), point], check=True)
    try:
        assert "a mount covers it" in fake.machine().restore().stuck[SWAPPINESS]
        assert fake.journal.exists()
    finally:
        subprocess.run(["umount", point], check=True)
    assert fake.machine().restore().back == {SWAPPINESS: ("7", "60")}
    fake.must_be_as_found()
