"""The machine is always put back, whatever the request, the interference or the break-off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.display import restored_lines
from fixtures.kernel.attribution import Targets, neighbours, write_back
from fixtures.kernel.journal import Journal
from fixtures.kernel.machine import Machine, Restored
from fixtures.kernel.tunables import Tunables, alike
from fixtures.terms import Refused, TweakRefused
from tests import fake_root
from tests.fake_root import CONFIG, SETTINGS, FakeRoot, plain, writes
from tests.file_size import file_size_limit
from tests.kernel.test_journal import DAMAGE
from tests.sandbox import NOBODY

if TYPE_CHECKING:
    from tests.sessions import Place

pytestmark = pytest.mark.usefixtures("application")

HOUSE = Path(__file__).parents[2]
SWAPPINESS, RATIO, BYTES = (
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_bytes",
)
THP, MIN_FREE = "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/min_free_kbytes"
VALUES = st.sampled_from(["0", "1", "7", "60", "madvise", "always", "4096 131072\t6291456"])
# A value, and for configuration files also their removal or a torn-looking part.
OTHERS = st.dictionaries(
    st.sampled_from([*SETTINGS, *CONFIG, "/etc/sysctl.d/new.conf"]), VALUES, max_size=4
)
ASKED = st.dictionaries(st.sampled_from(list(SETTINGS)), VALUES, max_size=6)


class Kernel(Tunables):
    """Files that answer like the kernel: it refuses, clamps, or moves one setting with another."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.refuses: set[str] = set()
        self.answers: Callable[[str, str], dict[str, str]] = lambda path, value: {path: value}

    def write(self, path: str, value: str | None) -> None:
        if path in self.refuses:
            raise OSError(22, "Invalid argument")
        for moved, to in self.answers(path, value or "").items():
            super().write(moved, to if moved != path or value is not None else None)


def kernel(fake: FakeRoot) -> tuple[Machine, Kernel]:
    machine = fake.machine()
    machine.tunables = own = Kernel(fake.root)
    return machine, own


def either_or(path: str, value: str) -> dict[str, str]:
    """mm/page-writeback.c: vm.dirty_ratio and vm.dirty_bytes zero each other; refuses 0 bytes."""
    if path == BYTES and value == "0":
        raise OSError(22, "Invalid argument")
    return {path: value} | (
        {RATIO: "0"} if path == BYTES else {BYTES: "0"} if path == RATIO else {}
    )


# -- as it should go


def test_settings_are_in_force_and_then_as_before(fake: FakeRoot, application: str) -> None:
    machine = fake.machine()
    effects = machine.apply("x", writes([(SWAPPINESS, "10"), (THP, "always")]))
    assert effects.changed == {SWAPPINESS: ("60", "10"), THP: ("always [madvise] never", "always")}
    beside = {
        path: text
        for path, text in SETTINGS.items()
        if path.startswith((f"{Path(SWAPPINESS).parent}/", f"{Path(THP).parent}/"))
    }
    assert plain(effects.before) == ({**SETTINGS, **CONFIG} if application == "first" else beside)
    assert (fake.get(SWAPPINESS), fake.get(THP)) == ("10", "always")
    result = machine.restore()
    assert result.back == {SWAPPINESS: ("10", "60"), THP: ("always", "always [madvise] never")}
    assert (result.left_alone, result.stuck, result.elsewhere, result.notes, result.label) == (
        {},
        {},
        {},
        (),
        "x",
    )
    fake.must_be_as_found()


def test_originals_are_on_disk_before_the_first_write(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    synced: set[str] = set()
    sync, write = os.fsync, Tunables.write

    def noted_sync(handle: int) -> None:
        sync(handle)
        synced.add(Path(f"/proc/self/fd/{handle}").readlink().name)

    def noted_write(self: Tunables, path: str, value: str | None) -> None:
        assert synced >= {".journal", fake.state.name}  # as it is called before it is whole
        assert Journal(fake.state).read()[0]["before"][path] == SETTINGS[path]
        seen.append(path)
        write(self, path, value)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Tunables, "write", noted_write)
    fake.machine().apply("x", writes([(SWAPPINESS, "10"), (RATIO, "5")]))
    assert seen == [SWAPPINESS, RATIO]


@settings(max_examples=150)  # what the product promises is worth a second
@given(asked=ASKED, others=OTHERS)
def test_originals_come_back_and_what_others_changed_stays(
    tmp_path_factory: pytest.TempPathFactory, asked: dict[str, str], others: dict[str, str]
) -> None:
    """Any settings, then anybody's changes: theirs are reported and stay, ours go back."""
    fake = fake_root.make(tmp_path_factory.mktemp("fake"))
    machine = fake.machine()
    machine.apply("x", writes(list(asked.items())))
    for path, value in others.items():
        fake.put(path, value)
    result = machine.restore()
    ours = {p: v for p, v in asked.items() if not alike(p, v, SETTINGS[p])}
    theirs = {p: v for p, v in others.items() if p in ours and not alike(p, v, ours[p])}
    made = {**SETTINGS, **CONFIG}
    untouched = {p: v for p, v in others.items() if p not in ours and not alike(p, v, made.get(p))}
    assert {p: found for p, (found, _) in result.left_alone.items()} == theirs
    assert {
        p: now for p, (_, now) in plain(result.elsewhere).items() if now != CONFIG.get(p)
    } == untouched, "a file that was written anew aside"
    assert (
        fake.wrong()
        == {p: v for p, v in theirs.items() if not alike(p, v, SETTINGS[p])} | untouched
    )
    assert (result.stuck, fake.journal.exists()) == ({}, False)


# -- refusals: all or none


def test_a_value_the_kernel_refuses_leaves_everything_as_it_was(fake: FakeRoot) -> None:
    machine, own = kernel(fake)
    own.refuses = {RATIO}
    with pytest.raises(
        TweakRefused,
        match=r"dirty_ratio: the kernel refused '5' \(Invalid argument\); it is still '20'. .*"
        r"remove it from 'x'",
    ):
        machine.apply("x", writes([(SWAPPINESS, "10"), (RATIO, "5"), (BYTES, "1")]))
    fake.must_be_as_found()


def test_a_value_the_kernel_changes_silently_is_not_in_force(fake: FakeRoot) -> None:
    machine, own = kernel(fake)
    own.answers = lambda path, value: {path: "200" if value == "1000" else value}
    with pytest.raises(
        TweakRefused, match="wrote '1000', but the kernel reports '200'; it is not in force"
    ):
        machine.apply("x", writes([(RATIO, "5"), (SWAPPINESS, "1000")]))
    fake.must_be_as_found()


def test_a_setting_that_cannot_be_read_is_not_written(fake: FakeRoot) -> None:
    with pytest.raises(TweakRefused, match=r"no_such.*cannot be read.*nothing was written"):
        fake.machine().apply("x", writes([(SWAPPINESS, "10"), ("/proc/sys/vm/no_such", "1")]))
    fake.must_be_as_found()


def test_one_key_with_two_values_is_refused_and_restored(fake: FakeRoot) -> None:
    with pytest.raises(TweakRefused, match="wrote '10', but the kernel reports '20'"):
        fake.machine().apply("x", writes([(SWAPPINESS, "10"), (SWAPPINESS, "20")]))
    assert fake.wrong() == {}


def test_a_machine_that_is_changed_is_not_changed_again(fake: FakeRoot) -> None:
    fake.machine().apply("x", writes([(SWAPPINESS, "10")]))
    with pytest.raises(Refused, match="fixtures restore"):
        fake.machine().apply("y", writes([(RATIO, "5")]))
    assert fake.wrong() == {SWAPPINESS: "10"}
    fake.machine().restore()
    assert fake.wrong() == {}


@pytest.mark.parametrize("room", [0, 100, 200, 300, 500])
def test_a_full_disk_changes_nothing(fake: FakeRoot, room: int) -> None:
    """No room for the journal, or `room` bytes after its first line, with changes made."""
    machine = fake.machine()
    asked = writes([(SWAPPINESS, "10"), (RATIO, "5"), (THP, "always"), (MIN_FREE, "1")])
    machine.apply("x", asked)
    lines = fake.journal.read_bytes().splitlines(keepends=True)
    machine.restore()
    fake_root.make(fake.path)
    assert len(lines[0]) + room < sum(map(len, lines))
    says = r"journal\.jsonl: (the journal cannot be written|No space left|File too large)"
    with file_size_limit(len(lines[0]) + (room or -1)), pytest.raises(TweakRefused, match=says):
        fake.machine().apply("x", asked)
    fake.must_be_as_found()


@pytest.mark.needs("namespaces")
def test_a_really_full_disk_changes_nothing(fake: FakeRoot) -> None:
    fake.state.mkdir()
    check = """
import sys
from pathlib import Path
from fixtures.terms import TweakRefused
from tests import fake_root
fake = fake_root.FakeRoot(Path(sys.argv[1]))
fake.state.joinpath("filler").write_bytes(b"x" * 4096)
try:
    fake.machine().apply("x", fake_root.writes([("/proc/sys/vm/swappiness", "10")]))
except TweakRefused as refused:
    print(refused)
print(fake.wrong(), [p.name for p in fake.state.iterdir()])
"""
    command = [
        "unshare",
        "-m",
        "sh",
        "-c",
        'mount -t tmpfs -o size=4k none "$3" && exec "$0" -c "$1" "$2"',
    ]
    command += [sys.executable, check, str(fake.path), str(fake.state)]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    assert "No space left on device); nothing was changed" in done.stdout, done.stderr
    assert done.stdout.endswith("{} ['filler']\n")


def test_a_rounded_value_is_ours_when_a_set_fails_midway(fake: FakeRoot) -> None:
    machine, own = kernel(fake)
    own.answers = lambda path, value: {path: "200" if value == "1000" else value}
    own.refuses = {RATIO}
    with pytest.raises(TweakRefused, match="dirty_ratio: the kernel refused"):
        machine.apply("x", writes([(SWAPPINESS, "1000"), (RATIO, "5")]))
    fake.must_be_as_found()


# -- settings that hang together


def test_a_write_that_zeroes_its_neighbour_is_put_back_with_it(fake: FakeRoot) -> None:
    """vm.dirty_bytes cannot be set to 0, only vm.dirty_ratio brings it there."""
    machine, own = kernel(fake)
    own.answers = either_or
    machine.apply("x", writes([(BYTES, "1000000")]))
    assert (fake.get(RATIO), fake.get(BYTES)) == ("0", "1000000")
    assert machine.restore().stuck == {}
    assert fake.wrong() == {}


@pytest.mark.parametrize("order", [(RATIO, BYTES, SWAPPINESS), (BYTES, RATIO, SWAPPINESS)])
def test_a_set_that_breaks_off_between_neighbours_is_put_back(
    fake: FakeRoot, order: tuple[str, ...]
) -> None:
    machine, own = kernel(fake)
    own.answers, own.refuses = either_or, {SWAPPINESS}
    with pytest.raises(TweakRefused, match="refused"):
        machine.apply("x", writes([(path, "1000000") for path in order]))
    fake.must_be_as_found()


def test_putting_back_one_setting_does_not_lose_what_it_moves(fake: FakeRoot) -> None:
    """mm/khugepaged.c raises vm.min_free_kbytes when THP is set; another user had lowered it."""
    machine, own = kernel(fake)
    own.answers = lambda path, value: {path: value} | ({MIN_FREE: "90112"} if path == THP else {})
    machine.apply("x", writes([(THP, "always")]))
    fake.put(MIN_FREE, "50000")
    result = machine.restore()
    assert result.left_alone == {MIN_FREE: ("50000", "90112")}
    assert fake.wrong() == {MIN_FREE: "50000"}


def test_a_value_that_its_cause_restores_is_not_written(fake: FakeRoot) -> None:
    """THP moves vm.min_free_kbytes both ways; one write would make it the user's until reboot."""
    machine, own = kernel(fake)
    users: list[str] = []

    def answers(path: str, value: str) -> dict[str, str]:
        users.extend([value] * (path == MIN_FREE))
        moved = "19832" if value == "never" else "67584"
        return {path: value} | ({MIN_FREE: moved} if path == THP and not users else {})

    own.answers = answers
    script = fake.script("apply", f"echo never > $ROOT{THP}; echo 19832 > $ROOT{MIN_FREE}")
    for _ in range(2):
        assert machine.apply("x", [], [script]).changed.keys() == {THP, MIN_FREE}
        assert machine.restore().stuck == {}
        assert (fake.wrong(), users) == ({}, [])
    switch_targets: Targets = {MIN_FREE: "19832", THP: "never"}
    assert write_back(own, switch_targets) == {}
    assert (fake.get(MIN_FREE), users) == ("19832", [])


def test_a_users_value_is_written_unless_its_cause_restores_it(fake: FakeRoot) -> None:
    """The kernel would restore its own number: a remaining difference was marked as a user's."""
    fake.put(MIN_FREE, "40000")
    machine, own = kernel(fake)
    own.answers = lambda path, value: {path: value} | ({MIN_FREE: "67584"} if path == THP else {})
    machine.apply(
        "x", [], [fake.script("apply", f"echo always > $ROOT{THP}; echo 67584 > $ROOT{MIN_FREE}")]
    )
    assert machine.restore().stuck == {}
    assert fake.get(MIN_FREE) == "40000"


def test_a_marked_setting_waits_for_its_cause(fake: FakeRoot) -> None:
    """While the switch is stuck, the number that it moves is stuck too, and not written."""
    machine, own = kernel(fake)
    machine.apply(
        "x", [], [fake.script("apply", f"echo never > $ROOT{THP}; echo 19832 > $ROOT{MIN_FREE}")]
    )
    own.refuses = {THP}
    assert machine.restore().stuck.keys() == {THP, MIN_FREE}
    assert fake.get(MIN_FREE) == "19832"


def test_a_value_undone_by_restoring_another_is_stuck(fake: FakeRoot) -> None:
    machine, own = kernel(fake)
    machine.apply("x", writes([(SWAPPINESS, "1"), (RATIO, "1")]))
    own.answers = lambda path, value: (
        {path: value} | {RATIO if path == SWAPPINESS else SWAPPINESS: "1"}
    )
    assert len(machine.restore().stuck) == 1
    assert fake.journal.exists()


@pytest.mark.parametrize("name", ["dirty", "dirty_background", "overcommit"])
def test_what_the_kernel_moved_just_before_the_end_goes_back(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Writing a ratio zeroes the amount (mm/page-writeback.c, mm/util.c), unseen before a kill."""
    ratio, amount = (
        f"/proc/sys/vm/{name}_ratio",
        f"/proc/sys/vm/{name}_{'kbytes' if name == 'overcommit' else 'bytes'}",
    )
    fake.put(ratio, "0")
    fake.put(amount, "4096")
    write = Tunables.write

    def dies(self: Tunables, path: str, value: str | None) -> None:
        write(self, path, value)
        write(self, amount, "0")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Tunables, "write", dies)
        with pytest.raises(Killed):
            fake.machine().apply("x", writes([(ratio, "31")]))
    fake.machine().restore()
    assert (fake.get(ratio), fake.get(amount)) == ("0", "4096")


# -- what cannot go back


def test_a_value_the_kernel_refuses_is_stuck_until_it_accepts(fake: FakeRoot) -> None:
    """The journal stays, no run can start; a later restore finishes and repeats nothing."""
    machine, own = kernel(fake)
    machine.apply("x", writes([(SWAPPINESS, "10"), (RATIO, "5")]))
    own.refuses = {RATIO}
    result = machine.restore()
    assert result.stuck == {RATIO: "Invalid argument on writing '20'"}
    assert result.back == {SWAPPINESS: ("10", "60")}
    assert fake.wrong() == {RATIO: "5"}
    fake.put(SWAPPINESS, "33")
    again = fake.machine().restore()
    assert (again.back, again.stuck, again.left_alone) == ({RATIO: ("5", "20")}, {}, {})
    assert (fake.wrong(), fake.journal.exists()) == ({SWAPPINESS: "33"}, False)


def test_a_stuck_value_that_somebody_changed_is_theirs(fake: FakeRoot) -> None:
    machine, own = kernel(fake)
    machine.apply("x", writes([(RATIO, "5")]))
    own.refuses = {RATIO}
    assert machine.restore().stuck
    fake.put(RATIO, "40")
    assert fake.machine().restore().left_alone == {RATIO: ("40", "5")}
    assert (fake.wrong(), fake.journal.exists()) == ({RATIO: "40"}, False)


def test_a_refused_set_that_cannot_be_put_back_says_both(fake: FakeRoot) -> None:
    machine, own = kernel(fake)
    own.answers = lambda path, _value: {path: "1"}
    with pytest.raises(
        Refused,
        match=r"not in force — and the machine could not be put back: "
        r".*swappiness: wrote '60', but the kernel reports '1'",
    ):
        machine.apply("x", writes([(SWAPPINESS, "10")]))
    assert fake.journal.exists()


def test_a_setting_that_does_not_answer_is_nobody_else_s(fake: FakeRoot) -> None:
    """A setting unreadable in its turn is stuck, not left alone; it goes back once readable."""
    machine = fake.machine()
    machine.apply("x", writes([(SWAPPINESS, "10")]))
    away = fake.real(SWAPPINESS).with_name("away")
    fake.real(SWAPPINESS).rename(away)
    fake.real(SWAPPINESS).mkdir()  # reading it is an error
    result = machine.restore()
    assert (list(result.stuck), result.left_alone) == ([SWAPPINESS], {})
    fake.real(SWAPPINESS).rmdir()
    away.rename(fake.real(SWAPPINESS))
    assert fake.machine().restore().stuck == {}
    fake.must_be_as_found()


def test_a_device_that_left_does_not_block_the_machine(fake: FakeRoot) -> None:
    machine = fake.machine()
    path = "/sys/block/vda/queue/read_ahead_kb"
    machine.apply("x", writes([(path, "4096"), (SWAPPINESS, "10")]))
    fake.put(path, None)
    result = machine.restore()
    assert (result.stuck, result.elsewhere) == ({}, {path: ("128", None)})
    assert (fake.wrong(), fake.journal.exists()) == ({path: None}, False)


def test_a_file_of_ours_that_somebody_removed_stays_away(fake: FakeRoot) -> None:
    """An unreadable kernel setting is still ours; a missing configuration file was removed."""
    path = "/etc/sysctl.d/10-net.conf"
    machine = fake.machine()
    machine.apply("x", [], [fake.script("apply", f"echo net.core.rmem_max=1 > $ROOT{path}")])
    fake.put(path, None)
    result = machine.restore()
    assert (fake.get(path), result.back, list(result.left_alone)) == (None, {}, [path])


# -- broken off


@settings(max_examples=150)  # what the product promises is worth a second
@given(
    data=st.data(),
    asked=st.lists(st.tuples(st.sampled_from(list(SETTINGS)), VALUES), min_size=1, max_size=6),
)
def test_a_journal_cut_anywhere_puts_back_what_had_been_done(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, asked: list[tuple[str, str]]
) -> None:
    """Cut at any byte; the machine then has one setting per whole `wrote`, and perhaps the next."""
    fake = fake_root.make(tmp_path_factory.mktemp("fake"))
    latest = dict(asked)
    asked = [(path, latest[path]) for path, _ in asked]  # a key may come twice, with one value
    fake.machine().apply("x", writes(asked))
    text = fake.journal.read_bytes()
    cut = data.draw(st.integers(0, len(text)), "cut")
    fake.journal.write_bytes(text[:cut])
    fresh = fake_root.make(fake.path)
    lines = text[:cut].count(b"\n")
    in_flight = data.draw(st.booleans(), "in flight") if lines else False
    for path, value in asked[: max(0, lines - 1) + in_flight]:
        fresh.put(path, value)
    stranger = data.draw(
        st.sampled_from(
            [None, *sorted(SETTINGS.keys() - latest.keys() - neighbours(latest, SETTINGS))]
        ),
        "stranger",
    )
    if stranger and lines:
        fresh.put(stranger, "12345")
    result = fresh.machine().restore()
    assert (result.stuck, result.left_alone) == ({}, {})
    assert fresh.wrong() == ({stranger: "12345"} if stranger and lines else {})
    assert not fresh.journal.exists()


class Killed(BaseException):
    """Stands for SIGKILL: from one system call on, this process does nothing more."""


class Mortal:
    """Kill a process at its n-th system call that changes a file: before, after or within it."""

    CALLS = ("open", "write", "fsync", "ftruncate", "rename", "unlink", "close")

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int, how: str) -> None:
        self.left, self.how, self.dead = last, how, False
        for name in self.CALLS:
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            changing = call.__name__ not in ("close", "open") or (
                call.__name__ == "open" and int(str(args[1])) & (os.O_WRONLY | os.O_RDWR)
            )
            if self.dead and (changing or call.__name__ == "open"):
                raise Killed
            if not changing:
                return call(*args, **kwargs)
            self.left -= 1
            if self.left >= 0:
                return call(*args, **kwargs)
            self.dead = True
            if self.how == "after":
                call(*args, **kwargs)
            if self.how == "torn" and call.__name__ == "write":
                name = str(Path(f"/proc/self/fd/{args[0]}").readlink())
                text = args[1]
                assert isinstance(text, bytes)
                call(
                    args[0],
                    text[: len(text) // 2] if "/etc/" in name or "journal" in name else text,
                )
            raise Killed

        return wrapper


def _with_scripts(fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, mortal: Mortal | None) -> None:
    # Scripts in Python, one file at a time, so that a crash can come between any two of their
    # effects.
    steps: dict[str, list[tuple[str, str | None]]] = {
        "apply": [
            (THP, "always"),
            ("/etc/sysctl.d/new.conf", "vm.swappiness = 1\n"),
            ("/etc/sysctl.conf", None),
            (SWAPPINESS, "1"),
        ],
        "uninstall": [(THP, "never"), ("/etc/sysctl.conf", "# other\n"), (RATIO, "30")],
    }

    def run(script: object, _siblings: object, _mark: str = "") -> None:
        for path, text in steps[getattr(script, "stage", "")]:
            if mortal:
                mortal.left -= 1
                if mortal.left < 0:
                    mortal.dead = True
                    raise Killed
            if not mortal or not mortal.dead:
                fake.put(path, text)

    monkeypatch.setattr("fixtures.kernel.scripts.run", run)
    monkeypatch.setattr("fixtures.kernel.scripts.end_leftovers", lambda _mark: [])


@pytest.mark.parametrize("how", ["before", "after", "torn"])
@pytest.mark.parametrize("scripted", [False, True])
def test_death_at_any_system_call_and_again_during_recovery(
    tmp_path: Path, how: str, *, scripted: bool
) -> None:
    """A run dies at each n-th call, recovery at some m-th; a second recovery finds everything."""
    deaths = 0
    for number in range(10_000):
        fake = fake_root.make(tmp_path / str(number))
        scripts = (fake.script("apply", ""), fake.script("uninstall", "")) if scripted else ()
        asked = writes(
            [(SWAPPINESS, "10"), (RATIO, "5"), (SWAPPINESS, "10"), (MIN_FREE, "1")][
                : 2 if scripted else 4
            ]
        )
        survived = True
        for last in (number, (number * 7) % 23):
            with pytest.MonkeyPatch.context() as patch:
                mortal = Mortal(patch, last, how)
                _with_scripts(fake, patch, mortal)
                machine = fake.machine()
                try:
                    if last == number and survived:
                        machine.apply(
                            "x", [w for w in asked if not scripted or w.path != SWAPPINESS], scripts
                        )
                    machine.restore()
                except Killed:
                    deaths += 1
                    survived = False
                handle, machine.journal._handle = machine.journal._handle, None
            if handle is not None:
                os.close(handle)
        with pytest.MonkeyPatch.context() as patch:
            _with_scripts(fake, patch, None)
            result = fake.machine().restore()
        assert (fake.wrong(), result.stuck, result.left_alone, fake.journal.exists()) == (
            {},
            {},
            {},
            False,
        ), number
        if survived:
            break
    assert deaths > 20


def test_somebody_s_change_after_a_crash_during_recovery_stays(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restore died between two settings; days later one of them has been changed by hand."""
    fake.machine().apply("x", writes([(SWAPPINESS, "10"), (RATIO, "5")]))
    write = Tunables.write

    def dies(self: Tunables, path: str, value: str | None) -> None:
        if path == SWAPPINESS:
            raise Killed
        write(self, path, value)

    with monkeypatch.context() as patch:
        patch.setattr(Tunables, "write", dies)
        with pytest.raises(Killed):
            fake.machine().restore()
    assert fake.wrong() == {SWAPPINESS: "10"}
    fake.put(SWAPPINESS, "33")
    assert fake.machine().restore().left_alone == {SWAPPINESS: ("33", "10")}
    assert fake.wrong() == {SWAPPINESS: "33"}


def test_changes_during_a_set_without_writes_belong_to_others(
    fake: FakeRoot,
) -> None:
    """For stock or process settings, a change between the snapshots is not this run's to undo."""
    machine = fake.machine()
    machine.begin("stock", [])
    fake.put(SWAPPINESS, "10")
    assert machine.carry_out().changed == {}
    result = machine.restore()
    assert (fake.get(SWAPPINESS), result.back, set(result.elsewhere)) == ("10", {}, {SWAPPINESS})


def test_a_value_that_others_reset_during_the_run_is_reported(
    fake: FakeRoot,
) -> None:
    """What was measured then was not what was asked for.

    After a restore that broke off it may as well have been ourselves.
    """
    fake.machine().apply("x", writes([(SWAPPINESS, "10"), (RATIO, "5")]))
    fake.put(SWAPPINESS, "60")
    journal = fake.journal.read_bytes()
    result = fake.machine().restore()
    assert (result.left_alone, result.back) == ({SWAPPINESS: ("60", "10")}, {RATIO: ("5", "20")})
    restoring = (
        b'{"record":"restoring","effects":{"/proc/sys/vm/swappiness":["60","10"]},"left":{}}\n'
    )
    fake.journal.write_bytes(journal + restoring)
    fake.journal.chmod(0o600)
    assert fake.machine().restore().left_alone == {}
    assert fake.wrong() == {}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_journal_restores_and_reports_all_differences(
    fake: FakeRoot, damage: Callable[[Path], object]
) -> None:
    script = fake.script(
        "apply",
        "echo 1 > $ROOT/proc/sys/vm/dirty_ratio; echo vm.swappiness=1 > $ROOT/etc/sysctl.d/9.conf",
    )
    fake.machine().apply(
        "x",
        writes([(SWAPPINESS, "10")]),
        [script, fake.script("uninstall", "touch $ROOT/../undone")],
    )
    damage(fake.journal)
    fake.put(MIN_FREE, "1")
    with pytest.raises(Refused, match="fixtures restore"):
        fake.machine().apply("y", writes([(THP, "always")]))
    result = fake.machine().restore()
    assert result.back.keys() == {SWAPPINESS, RATIO, MIN_FREE, "/etc/sysctl.d/9.conf"}
    assert (result.label, result.stuck, "journal.jsonl, line " in result.damaged) == ("x", {}, True)
    assert any(result.damaged in line for line in restored_lines(result))
    assert (fake.wrong(), (fake.path / "undone").exists()) == ({}, True)
    assert fake.machine().restore() == Restored()
    fake.machine().apply("y", writes([(SWAPPINESS, "10")]))
    assert (fake.machine().restore().label, fake.wrong()) == ("y", {})


@pytest.mark.parametrize(
    "ruin",
    [
        "echo garbage >> $J/journal.jsonl",
        ": > $J/journal.jsonl",
        "rm $J/journal.jsonl; mkdir $J/journal.jsonl",
        "rm -r $J",
    ],
)
@pytest.mark.parametrize("stage", ["apply", "uninstall"])
def test_a_script_that_ruins_the_journal_is_undone_all_the_same(
    fake: FakeRoot, ruin: str, stage: str
) -> None:
    machine = fake.machine()
    other = "uninstall" if stage == "apply" else "apply"
    do = f"J=$ROOT/../state; echo 1 > $ROOT/proc/sys/vm/dirty_ratio; {ruin}"
    machine.apply(
        "x", writes([(SWAPPINESS, "10")]), [fake.script(stage, do), fake.script(other, "true")]
    )
    assert machine.restore().stuck == {}
    assert (fake.wrong(), fake.machine().restore()) == ({}, Restored())


def test_nothing_is_restored_without_the_journal_and_its_copy(fake: FakeRoot) -> None:
    fake.machine().apply("x", writes([(SWAPPINESS, "10")]))
    for path in fake.state.iterdir():
        path.write_bytes(path.read_bytes()[:30])
    for _ in range(2):
        with pytest.raises(Refused, match=r"journal\.jsonl, line 1: .*incomplete.*by hand"):
            fake.machine().restore()
    assert len(list(fake.state.iterdir())) == 2


def test_after_a_reboot_only_files_are_put_back(fake: FakeRoot) -> None:
    """A new boot has new kernel settings; the report says that it may have used the files."""
    script = fake.script(
        "apply",
        "echo 1 > $ROOT/proc/sys/vm/swappiness; echo vm.swappiness=1 > $ROOT/etc/sysctl.d/9.conf; "
        "rm $ROOT/etc/sysctl.conf",
    )
    fake.machine().apply(
        "x",
        writes([(RATIO, "5")]),
        [script, fake.script("uninstall", "echo 77 > $ROOT/proc/sys/vm/swappiness")],
    )
    fake.reboot()
    fake.put(RATIO, "40")
    result = fake.machine().restore()
    assert plain(result.back) == {
        "/etc/sysctl.d/9.conf": ("vm.swappiness=1\n", None),
        "/etc/sysctl.conf": (None, "# nothing\n"),
    }
    assert [n.partition(":")[0] for n in result.notes] == [
        "the machine was rebooted, so only configuration files had to be put back",
        "this boot may have started with the changed files",
    ]
    assert fake.wrong() == {
        RATIO: "40",
        "/proc/sys/kernel/random/boot_id": fake.get("/proc/sys/kernel/random/boot_id"),
    }
    assert not fake.journal.exists()


def test_a_script_without_effect_or_check_is_not_in_force(fake: FakeRoot) -> None:
    """Exit code 0 proves little: without a visible effect, the cell might measure stock."""
    with pytest.raises(TweakRefused, match="so it is unknown whether the set is in force"):
        fake.machine().apply("x", (), [fake.script("apply", "true")])
    checked = [fake.script("apply", "true"), fake.script("apply_check", "true")]
    assert fake.machine().apply("x", (), checked).changed == {}


@pytest.mark.needs("root", "session")
def test_root_finishes_a_user_s_run_with_that_user_s_rights(
    kernel_lock: None,  # noqa: ARG001 the lock is lent
    place: Place,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        state = Path(name)
        swappiness = Path(SWAPPINESS).read_text()
        machine = Machine(folder=state)
        machine.begin("of a user", writes([(SWAPPINESS, "7")]))
        first = json.loads(machine.journal.path.read_bytes())
        first["before"][SWAPPINESS] = "8"  # what the user would have root write
        for path in (machine.journal.path, machine.journal.copy):
            path.write_text(json.dumps(first) + "\n")
        for path in (state, *state.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        done = replace(place, environment={"DEEPTWEAK_STATE_DIR": name}).restore()
        assert done.code == 2
        assert done.lines("of a user")
        assert done.lines(f"{SWAPPINESS}: NOT put back: Permission denied"), done.out
        assert Path(SWAPPINESS).read_text() == swappiness
        first["before"][SWAPPINESS] = swappiness.strip()
        (state / "journal.jsonl").write_text(json.dumps(first) + "\n")
        done = replace(place, environment={"DEEPTWEAK_STATE_DIR": name}).restore()
        assert (done.code, list(state.glob("journal.*"))) == (0, [state / "journal.closed"]), (
            done.out
        )
