"""Settings switched off and on while a program runs: fake root, and real kernel with kill -9."""

from __future__ import annotations

import functools
import itertools
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.kernel.machine import Machine, Write
from fixtures.kernel.tunables import Tunables, diff, sysctl_path
from fixtures.kernel.turns import Switch
from fixtures.terms import Refused, TweakRefused
from tests import fake_root
from tests.kernel.kills import kill_once, phase, to_and_fro

if TYPE_CHECKING:
    from tests.fake_root import FakeRoot

SWAPPINESS, RATIO, THP = (
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/dirty_ratio",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
ASKED = fake_root.writes([(SWAPPINESS, "10"), (RATIO, "30"), (THP, "always madvise [never]")])
SEED = 20240301


def switched(fake: FakeRoot) -> tuple[Machine, Switch]:
    machine = fake.machine()
    machine.apply("x", ASKED)
    return machine, Switch(machine)


def test_to_and_fro_and_back(fake: FakeRoot) -> None:
    machine, switch = switched(fake)
    for _ in range(3):
        switch.to("found")
        assert (fake.get(SWAPPINESS), fake.get(RATIO)) == ("60", "20")
        switch.to("found")
        switch.to("set")
        assert (fake.get(SWAPPINESS), fake.get(RATIO)) == ("10", "30")
    result = machine.restore()
    assert set(result.back) >= {SWAPPINESS, RATIO}
    assert (result.left_alone, result.stuck, fake.journal.exists(), fake.get(SWAPPINESS)) == (
        {},
        {},
        False,
        "60",
    )


def test_a_set_whose_script_ruins_the_journal_is_not_switched(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.apply(
        "x", ASKED, [fake.script("apply", "echo garbage >> $ROOT/../state/journal.jsonl")]
    )
    with pytest.raises(TweakRefused, match=r"journal\.jsonl, line \d+: not a journal record"):
        Switch(machine)
    machine.restore()
    assert fake.wrong() == {}


@pytest.mark.parametrize("arm", ["found", "set"])
def test_the_next_process_restores_one_that_died_in_either_arm(fake: FakeRoot, arm: str) -> None:
    _, switch = switched(fake)
    switch.to("found")
    if arm == "set":
        switch.to("set")
    result = fake.machine().restore()
    assert (
        result.left_alone,
        result.stuck,
        result.elsewhere,
        fake.get(SWAPPINESS),
        fake.get(RATIO),
    ) == ({}, {}, {}, "60", "20")


@pytest.mark.parametrize("arm", ["found", "set"])
def test_a_setting_written_by_others_is_noticed_and_left_alone(fake: FakeRoot, arm: str) -> None:
    machine, switch = switched(fake)
    if arm == "found":
        switch.to("found")
    fake.put(SWAPPINESS, "77")
    with pytest.raises(TweakRefused, match=r"swappiness was '77' at a segment's end"):
        switch.to("set" if arm == "found" else "found")
    result = machine.restore()
    assert set(result.left_alone) == {SWAPPINESS}
    assert (fake.get(SWAPPINESS), fake.get(RATIO)) == ("77", "20")


def test_a_refusal_in_the_middle_is_said_and_all_goes_back(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, switch = switched(fake)
    switch.to("found")
    write = Tunables.write

    def refusing(self: Tunables, path: str, value: str | None) -> None:
        if path == RATIO and value == "30":
            raise OSError(22, "Invalid argument")
        write(self, path, value)

    monkeypatch.setattr(Tunables, "write", refusing)
    with pytest.raises(TweakRefused, match=r"dirty_ratio: Invalid argument"):
        switch.to("set")
    result = machine.restore()
    assert (result.left_alone, result.stuck, fake.get(SWAPPINESS), fake.get(RATIO)) == (
        {},
        {},
        "60",
        "20",
    )


def test_what_the_kernel_answers_otherwise_is_a_refusal(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, switch = switched(fake)
    write = Tunables.write
    monkeypatch.setattr(
        Tunables,
        "write",
        lambda self, path, value: write(
            self, path, "21" if (path, value) == (RATIO, "20") else value
        ),
    )
    with pytest.raises(TweakRefused, match=r"wrote '20', but the kernel reports '21'"):
        switch.to("found")
    monkeypatch.undo()
    machine.restore()


def test_only_what_is_in_force_can_be_switched(fake: FakeRoot) -> None:
    with pytest.raises(Refused, match="Apply first"):
        Switch(fake.machine())


def test_nothing_asked_for_is_nothing_written(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.apply("stock-again", [])
    switch = Switch(machine)
    switch.to("found")
    switch.to("set")
    assert machine.restore().back == {}


def test_a_coupled_setting_goes_with_the_one_that_moves_it(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dirty_bytes is 0 while dirty_ratio counts, and the other way round (mm/page-writeback.c)."""
    bytes_path = "/proc/sys/vm/dirty_bytes"
    fake.put(bytes_path, "1000000")
    fake.put(RATIO, "0")
    write = Tunables.write

    def coupled(self: Tunables, path: str, value: str | None) -> None:
        write(self, path, value)
        if value != "0" and path in (RATIO, bytes_path):
            write(self, RATIO if path == bytes_path else bytes_path, "0")

    monkeypatch.setattr(Tunables, "write", coupled)
    machine = fake.machine()
    machine.apply("x", fake_root.writes([(RATIO, "30")]))
    switch = Switch(machine)
    for _ in range(2):
        switch.to("found")
        assert (fake.get(RATIO), fake.get(bytes_path)) == ("0", "1000000")
        switch.to("set")
        assert (fake.get(RATIO), fake.get(bytes_path)) == ("30", "0")
    machine.restore()
    assert (fake.get(RATIO), fake.get(bytes_path)) == ("0", "1000000")


def test_what_moves_with_the_way_back_alone_goes_back_too(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    bytes_path = "/proc/sys/vm/dirty_bytes"
    write = Tunables.write

    def moving(self: Tunables, path: str, value: str | None) -> None:
        write(self, path, value)
        if (path, value) == (RATIO, "20"):
            write(self, bytes_path, "4096")

    machine, switch = switched(fake)
    monkeypatch.setattr(Tunables, "write", moving)
    switch.to("found")
    assert (fake.get(RATIO), fake.get(bytes_path)) == ("20", "0")
    monkeypatch.undo()
    machine.restore()
    assert fake.wrong() == {}


@pytest.mark.slow
def test_three_hundred_kills_on_a_fake_root(fake: FakeRoot) -> None:
    asked = fake_root.writes(
        [(path, str(number)) for number, path in enumerate(fake_root.SETTINGS)]
    )
    rng, phases = random.Random(SEED), set()
    for number in itertools.count(1):
        kill_once(rng, 0.03, lambda: to_and_fro(fake.machine(), asked, (), 8))
        phases.add(phase(fake.state))
        result = fake.machine().restore()
        assert (fake.wrong(), result.stuck, result.left_alone, fake.journal.exists()) == (
            {},
            {},
            {},
            False,
        ), number
        # On a busy machine some moment comes later.
        if number >= 300 and phases >= {"switching", "applied"}:
            break


@pytest.mark.usefixtures("kernel_unchanged")
def test_kills_on_the_real_kernel(tmp_path: Path) -> None:
    """Kill ten while settings switch, two of them coupled; compare the whole machine each time."""
    tunables = Tunables()
    pristine = tunables.snapshot()
    values = {
        "vm.swappiness": "11",
        "vm.dirty_ratio": "31",
        "vm.dirty_expire_centisecs": "2100",
        "net.core.somaxconn": "8191",
    }
    asked = [Write(sysctl_path(key), value, key) for key, value in values.items()]
    rng, phases = random.Random(SEED), list[str]()

    def begun() -> bool:
        """On a busy machine, most of the first kills come before the journal."""
        return len(phases) < 10 or any(tmp_path.glob("*.jsonl"))

    while len(phases) < 10 or ("switching" not in phases and len(phases) < 100):
        machine = Machine(folder=tmp_path)
        # its list of files is the parent's, so that a child is soon in the midst of it
        machine.tunables = tunables
        kill_once(rng, 0.25, functools.partial(to_and_fro, machine, asked, (), 200), begun)
        phases.append(phase(tmp_path))
        result = Machine(folder=tmp_path).restore()
        assert (result.stuck, result.left_alone, list(tmp_path.glob("*.jsonl"))) == ({}, {}, [])
        assert diff(pristine, tunables.snapshot()) == {}
    assert "switching" in phases
