"""Others apply a tweak set (an operator's pods): record the machine first, then undo changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.kernel.journal import Journal
from fixtures.terms import Refused, TweakRefused
from tests.fake_root import CONFIG, SETTINGS, FakeRoot, plain, writes

SWAPPINESS, RATIO = "/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_ratio"
LEFT_BEHIND = (
    "/etc/sysctl.d/999-tuning-tuning.conf"  # what Skyhook's tuning package leaves on a node
)
DROP_IN = "/etc/systemd/system/containerd.service.d/999-tuning-tuning.conf"


def kinds(fake: FakeRoot) -> list[str]:
    return [record["record"] for record in Journal(fake.state).read()]


def operator(fake: FakeRoot) -> None:
    """A package's effects on a node: live values, and files that set them at the next boot."""
    fake.put(SWAPPINESS, "10")
    fake.put(LEFT_BEHIND, "vm.swappiness=10\n")
    fake.put(DROP_IN, "[Service]\nLimitNOFILE=1048576\n")
    fake.put("/etc/sysctl.conf", "# rewritten\n")
    fake.put("/etc/security/limits.d/90.conf", None)


def test_how_it_was_is_on_disk_before_anybody_is_let_in(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both records are synced when `watch` returns, and nothing was written by it."""
    synced: list[str] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        sync(handle)
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)

    monkeypatch.setattr(os, "fsync", noted)
    record = fake.machine().watch("x", writes([(SWAPPINESS, "10")]))
    assert (kinds(fake), synced) == (
        ["begin", "scripts"],
        [".journal", ".journal", fake.state.name, "journal.jsonl"],
    )
    assert plain(record["before"]) == {**SETTINGS, **CONFIG}
    assert Journal(fake.state).read()[0] == record
    assert fake.wrong() == {}


def test_what_an_operator_changed_is_seen_and_put_back(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.watch("x")
    operator(fake)
    effects = machine.observed()
    assert plain(effects.before) == {**SETTINGS, **CONFIG}
    assert plain(effects.changed) == {
        SWAPPINESS: ("60", "10"),
        LEFT_BEHIND: (None, "vm.swappiness=10\n"),
        DROP_IN: (None, "[Service]\nLimitNOFILE=1048576\n"),
        "/etc/sysctl.conf": (CONFIG["/etc/sysctl.conf"], "# rewritten\n"),
        "/etc/security/limits.d/90.conf": (CONFIG["/etc/security/limits.d/90.conf"], None),
    }
    assert kinds(fake) == ["begin", "scripts", "applied"]
    result = machine.restore()
    assert (result.back.keys(), result.stuck, result.left_alone, result.label) == (
        effects.changed.keys(),
        {},
        {},
        "x",
    )
    fake.must_be_as_found()


@pytest.mark.parametrize("observed", [False, True])
def test_whoever_dies_the_next_one_puts_it_back(fake: FakeRoot, *, observed: bool) -> None:
    machine = fake.machine()
    machine.watch("x")
    operator(fake)
    if observed:
        machine.observed()
    assert fake.machine().restore().stuck == {}
    fake.must_be_as_found()


def test_what_changes_after_it_was_observed_is_somebody_else_s(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.watch("x")
    operator(fake)
    machine.observed()
    fake.put(SWAPPINESS, "77")
    fake.put(RATIO, "40")
    result = machine.restore()
    assert (result.left_alone, result.elsewhere) == (
        {SWAPPINESS: ("77", "10")},
        {RATIO: ("20", "40")},
    )
    assert fake.wrong() == {SWAPPINESS: "77", RATIO: "40"}


def test_an_operator_that_goes_on_can_be_observed_again(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.watch("x")
    operator(fake)
    machine.observed()
    fake.put(SWAPPINESS, "20")
    assert fake.machine().observed().changed[SWAPPINESS] == ("60", "20")
    assert machine.restore().left_alone == {}
    assert fake.wrong() == {}


def test_after_the_operator_s_reboot_its_files_go(fake: FakeRoot) -> None:
    fake.machine().watch("x")
    operator(fake)
    fake.reboot()
    fake.put(SWAPPINESS, "10")
    assert plain(fake.machine().observed().changed)[LEFT_BEHIND] == (None, "vm.swappiness=10\n")
    result = fake.machine().restore()
    assert (result.stuck, SWAPPINESS in result.back, fake.journal.exists()) == ({}, False, False)
    assert any(
        "this boot may have started with the changed files: reboot once more" in note
        for note in result.notes
    )
    fake.reboot()
    assert fake.wrong() == {
        "/proc/sys/kernel/random/boot_id": "6a1f0d5e-0000-4000-8000-000000000002"
    }


def test_a_disk_that_fills_up_lets_nobody_in(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Journal.add

    def full(self: Journal, record: dict[str, object], *, sync: bool = False) -> None:
        if record["record"] == "scripts":
            raise OSError(28, "No space left on device")
        add(self, record, sync=sync)

    monkeypatch.setattr(Journal, "add", full)
    with pytest.raises(TweakRefused, match=r"No space left on device; nothing was changed"):
        fake.machine().watch("x")
    assert not fake.journal.exists()


def test_what_was_not_begun_is_neither_carried_out_nor_observed(fake: FakeRoot) -> None:
    """Other processes cannot carry out a begun change; a watched change is the operator's."""
    for verb in (fake.machine().carry_out, fake.machine().observed):
        with pytest.raises(Refused, match=r"nothing to carry out|nothing is being watched"):
            verb()
    fake.machine().begin("x", writes([(SWAPPINESS, "10")]))
    with pytest.raises(Refused, match="nothing to carry out"):
        fake.machine().carry_out()
    fake.machine().restore()
    machine = fake.machine()
    machine.watch("x", writes([(SWAPPINESS, "10")]))
    with pytest.raises(Refused, match="nothing to carry out"):
        machine.carry_out()
    assert machine.restore().back == {}
    assert fake.wrong() == {}


def test_begun_and_not_carried_out_is_nothing_to_put_back(fake: FakeRoot) -> None:
    """Between the two the journal's first record is on its way to a second, safer place."""
    machine = fake.machine()
    machine.begin("x", writes([(SWAPPINESS, "10")]))
    assert (kinds(fake), fake.wrong()) == (["begin"], {})
    assert fake.machine().restore().back == {}
    assert not fake.journal.exists()
    machine = fake.machine()
    machine.begin("x", writes([(SWAPPINESS, "10"), (RATIO, "5")]))
    assert machine.carry_out().changed == {SWAPPINESS: ("60", "10"), RATIO: ("20", "5")}
    machine.restore()
    assert fake.wrong() == {}
