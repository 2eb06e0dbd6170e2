"""Settings in reach of typed writes are read; other changes are attributed and left alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.kernel import config_files
from fixtures.kernel.journal import PARTIAL, WHOLE
from fixtures.kernel.reach import touched
from fixtures.kernel.tunables import Tunables
from fixtures.kernel.turns import Switch
from tests.fake_root import CONFIG, SETTINGS, FakeRoot, writes
from tests.kernel.test_journal import DAMAGE

if TYPE_CHECKING:
    from fixtures.kernel.machine import Machine

SWAPPINESS, RATIO, BYTES = (
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_bytes",
)
THP, MIN_FREE = "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/min_free_kbytes"
RMEM, READ_AHEAD = "/proc/sys/net/core/rmem_max", "/sys/block/vda/queue/read_ahead_kb"
ASKED = writes([(SWAPPINESS, "10")])


def experienced(fake: FakeRoot) -> Machine:
    """A process that has put these settings into force and back once."""
    machine = fake.machine()
    machine.apply("x", ASKED)
    machine.restore()
    return machine


def test_touched_settings_are_a_folder_and_what_the_kernel_moves() -> None:
    """With the files that give ownership: a scanning advisor makes pages_to_scan the kernel's."""
    ksm = "/sys/kernel/mm/ksm"
    settings = [*SETTINGS, f"{ksm}/run", f"{ksm}/advisor_mode", f"{ksm}/pages_to_scan"]
    vm = {path for path in SETTINGS if path.startswith("/proc/sys/vm/")}
    assert touched([SWAPPINESS], settings) == vm
    assert touched([THP], settings) == {THP, f"{Path(THP).parent}/defrag", MIN_FREE}
    assert touched([f"{ksm}/pages_to_scan"], [f"{ksm}/pages_to_scan"]) >= {f"{ksm}/advisor_mode"}


def test_only_the_first_application_reads_the_whole_machine(
    fake: FakeRoot,
) -> None:
    machine = fake.machine()
    first = machine.apply("x", ASKED)
    assert (machine.journal.read()[0]["version"], set(first.before)) == (
        WHOLE,
        SETTINGS.keys() | CONFIG.keys() | _folders(fake),
    )
    machine.restore()
    later = machine.apply("x", ASKED)
    assert (machine.journal.read()[0]["version"], set(later.before)) == (
        PARTIAL,
        {*touched([SWAPPINESS], [*SETTINGS])},
    )
    assert later.changed == first.changed
    assert machine.restore().back == {SWAPPINESS: ("10", "60")}
    fake.must_be_as_found()


def _folders(fake: FakeRoot) -> set[str]:
    return {path for path in fake.machine().tunables.snapshot() if fake.real(path).is_dir()}


def test_writes_of_unknown_reach_watch_the_whole_machine(fake: FakeRoot) -> None:
    """Other writers, an operator, workloads in turns, other writes, a script: each time."""
    machine = experienced(fake)
    other = writes([(SWAPPINESS, "20")])
    script = fake.script("apply", "echo 1 > $ROOT/proc/sys/vm/dirty_ratio")
    for begin, arguments in [
        (machine.begin, ("x", ASKED)),
        (machine.begin, ("x", ())),
        (machine.watch, ("x", ASKED)),
        (machine.apply, ("x", other)),
        (machine.apply, ("x", ASKED, [script])),
    ]:
        begin(*arguments)  # type: ignore[operator]
        assert machine.journal.read()[0]["version"] == WHOLE
        machine.restore()


def test_a_coupling_missing_from_the_table_is_restored_each_time(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Tunables.write

    def moves(self: Tunables, path: str, value: str | None) -> None:
        write(self, path, value)
        if path == SWAPPINESS and value == "10":
            write(self, RMEM, "1")

    monkeypatch.setattr(Tunables, "write", moves)
    machine = experienced(fake)
    fake.must_be_as_found()
    assert machine.apply("x", ASKED).changed.keys() == {SWAPPINESS, RMEM}
    assert machine.journal.read()[0]["version"] == PARTIAL
    assert fake.machine().restore().back.keys() == {SWAPPINESS, RMEM}
    fake.must_be_as_found()


def test_a_value_that_stood_there_already_shows_no_coupling(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first application changes nothing; the second changes a value and moves another."""
    write = Tunables.write

    def moves(self: Tunables, path: str, value: str | None) -> None:
        differs = self.read(path) != value
        write(self, path, value)
        if differs and path == SWAPPINESS and value == "10":
            write(self, RMEM, "1")

    machine = fake.machine()
    before = machine.tunables.read(SWAPPINESS)
    machine.tunables.write(SWAPPINESS, "10")
    monkeypatch.setattr(Tunables, "write", moves)
    machine.apply("x", ASKED)
    machine.restore()
    write(machine.tunables, SWAPPINESS, before)
    assert machine.apply("x", ASKED).changed.keys() == {SWAPPINESS, RMEM}
    machine.restore()
    fake.must_be_as_found()


def test_what_goes_back_moves_what_the_table_says(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Tunables.write

    def moves(self: Tunables, path: str, value: str | None) -> None:
        write(self, path, value)
        if path == RMEM and value == "10":
            write(self, THP, "never")

    monkeypatch.setattr(Tunables, "write", moves)
    machine, asked = fake.machine(), writes([(RMEM, "10")])
    machine.apply("x", asked)
    machine.restore()
    assert machine.apply("x", asked).before.keys() >= {RMEM, THP, MIN_FREE}
    machine.restore()
    fake.must_be_as_found()


@pytest.mark.parametrize("in_turns", [False, True])
def test_a_late_coupling_goes_back_with_what_it_moves(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, *, in_turns: bool
) -> None:
    """From its second application on defrag moves THP; as the table says, THP moves another."""
    defrag = f"{Path(THP).parent}/defrag"
    machine, asked, write = fake.machine(), writes([(defrag, "always")]), Tunables.write
    machine.apply("x", asked)
    machine.restore()

    def moves(self: Tunables, path: str, value: str | None) -> None:
        write(self, path, value)
        if (path, value) == (defrag, "always"):
            moves(self, THP, "never")
        elif path == THP:
            write(self, MIN_FREE, "45056" if value == "never" else "90112")

    monkeypatch.setattr(Tunables, "write", moves)
    assert machine.apply("x", asked).changed.keys() == {defrag, THP, MIN_FREE}
    assert machine.journal.read()[0]["version"] == PARTIAL
    if in_turns:
        switch = Switch(machine)
        switch.to("found")
        assert fake.wrong() == {}
        switch.to("set")
        assert fake.get(MIN_FREE) == "45056"
    assert machine.restore().stuck == {}
    fake.must_be_as_found()


def test_turns_name_what_each_of_them_touches(fake: FakeRoot) -> None:
    machine = fake.machine()
    switches = []
    for asked in (ASKED, writes([(THP, "always")])):
        machine.apply("x", asked)
        switches.append(Switch(machine))
        machine.restore()
        switches[-1].was_put_back()
    files = {path for switch in switches for path in switch.files}
    begun = machine.begin("turns", (), alone=True, turns=files)
    assert (begun["version"], set(begun["before"])) == (
        PARTIAL,
        {*touched([SWAPPINESS, THP], [*SETTINGS])},
    )
    switches[0].to("set")
    switches[0].to("found")
    switches[1].to("set")
    fake.put(RATIO, "1")
    result = fake.machine().restore()
    assert (result.stuck, result.left_alone, fake.wrong()) == ({}, {}, {RATIO: "1"})


def test_who_writes_nothing_touches_nothing(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fixtures.kernel.machine.LOOK_EACH_S", 0.0)
    machine = experienced(fake)
    assert machine.apply("stock", ()).before == {}
    fake.put(SWAPPINESS, "33")
    result = machine.restore()
    assert (result.back, result.elsewhere, fake.wrong()) == (
        {},
        {SWAPPINESS: ("60", "33")},
        {SWAPPINESS: "33"},
    )


def test_what_others_change_elsewhere_is_said_once_and_left(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a whole-machine read: kernel settings, and configuration files of the same length."""
    monkeypatch.setattr("fixtures.kernel.machine.LOOK_EACH_S", 0.0)
    machine = experienced(fake)
    machine.apply("x", ASKED)
    fake.put(RMEM, "1")
    fake.put("/etc/sysctl.conf", CONFIG["/etc/sysctl.conf"].swapcase())
    found = machine.restore()
    assert found.elsewhere.keys() == {RMEM, "/etc/sysctl.conf"}
    assert (found.elsewhere[RMEM], set(fake.wrong())) == (
        ("212992", "1"),
        {RMEM, "/etc/sysctl.conf"},
    )
    machine.apply("x", ASKED)
    assert machine.restore().elsewhere == {}


def test_what_others_change_is_said_at_the_next_look(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = experienced(fake)
    monkeypatch.setattr("fixtures.kernel.machine.LOOK_EACH_S", 1e9)
    machine.apply("x", ASKED)
    fake.put(RMEM, "1")
    fake.put(RATIO, "1")  # beside what is written: seen each time
    assert machine.restore().elsewhere == {RATIO: ("20", "1")}
    monkeypatch.setattr("fixtures.kernel.machine.LOOK_EACH_S", 0.0)
    machine.apply("x", ASKED)
    assert machine.restore().elsewhere == {RMEM: ("212992", "1")}


@pytest.mark.parametrize("look_each_s", [0.0, 1e9])
def test_settings_of_other_sets_are_not_taken_for_somebody_s(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, look_each_s: float
) -> None:
    monkeypatch.setattr("fixtures.kernel.machine.LOOK_EACH_S", look_each_s)
    machine = fake.machine()
    sets = [
        writes([(THP, "always"), (MIN_FREE, "1")]),
        writes([(READ_AHEAD, "4096")]),
        writes([(RATIO, "5")]),
    ]
    for asked in sets * 3:
        machine.apply("x", asked)
        result = machine.restore()
        assert (result.stuck, result.elsewhere, result.left_alone) == ({}, {}, {})
    monkeypatch.setattr("fixtures.kernel.machine.LOOK_EACH_S", 0.0)
    machine.apply("x", sets[0])
    assert machine.restore().elsewhere == {}
    fake.must_be_as_found()


def test_another_process_restores_only_what_the_run_could_touch(fake: FakeRoot) -> None:
    experienced(fake).apply("x", ASKED)
    fake.put(RMEM, "1")
    result = fake.machine().restore()
    assert (result.back, result.stuck, result.elsewhere) == ({SWAPPINESS: ("10", "60")}, {}, {})
    assert (fake.wrong(), fake.journal.exists()) == ({RMEM: "1"}, False)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_partial_journal_restores_only_what_it_names(
    fake: FakeRoot, damage: Callable[[Path], object]
) -> None:
    experienced(fake).apply("x", ASKED)
    damage(fake.journal)
    fake.put(RMEM, "1")
    result = fake.machine().restore()
    assert (result.back, result.stuck, "journal.jsonl, line " in result.damaged) == (
        {SWAPPINESS: ("10", "60")},
        {},
        True,
    )
    assert fake.wrong() == {RMEM: "1"}


def test_a_value_restored_by_another_process_is_not_foreign(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value was stuck, and `restore` brought it back later."""
    machine = experienced(fake)
    machine.apply("x", ASKED)
    write = Tunables.write

    def refuses(self: Tunables, path: str, value: str | None) -> None:
        if path == SWAPPINESS:
            raise OSError(22, "Invalid argument")
        write(self, path, value)

    with monkeypatch.context() as patch:
        patch.setattr(Tunables, "write", refuses)
        assert machine.restore().stuck.keys() == {SWAPPINESS}
    assert fake.machine().restore().back == {SWAPPINESS: ("10", "60")}
    machine.journal.let_go()
    machine.apply("x", ASKED)
    assert machine.restore().elsewhere == {}
    fake.must_be_as_found()


def test_configuration_files_are_reread_when_metadata_changed(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inode, size and times say so; a file changed within the last seconds is read in any case."""
    path = "/etc/sysctl.conf"
    tunables = fake.machine().tunables
    reads: list[str] = []
    read = config_files.read

    def noted(real: Path) -> str | None:
        reads.append(real.name)
        return read(real)

    monkeypatch.setattr(config_files, "read", noted)
    tunables.snapshot()
    del reads[:]
    before = tunables.snapshot(reread=False)
    assert "sysctl.conf" in reads
    monkeypatch.setattr(config_files, "SETTLED_NS", 0)
    tunables.snapshot()
    del reads[:]
    assert (tunables.snapshot(reread=False), reads) == (before, [])
    times = fake.real(path).stat()
    fake.put(path, CONFIG[path].swapcase())
    os.utime(fake.real(path), ns=(times.st_atime_ns, times.st_mtime_ns))
    assert config_files.text(tunables.snapshot(reread=False)[path]) == CONFIG[path].swapcase()
    assert reads == ["sysctl.conf"]
