"""Another's writes in a run, on a fake machine: cells that leave that key fail, not called ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from fixtures import cells
from fixtures.display import closing_lines
from fixtures.kernel import lock
from fixtures.kernel.machine import ChangeSet, Restored
from fixtures.options import Options
from fixtures.session import Baseline, Proof, Session, keys
from fixtures.targets.local import Local
from fixtures.terms import CellSpec, Order, Refused, Telemetry, TweakRefused, TweakSet
from tests.fake_root import FakeRoot
from tests.fake_root import make as make_root
from tests.test_declaration import STUDY, manifest

if TYPE_CHECKING:
    from fixtures.targets import Ran
    from fixtures.tweaks.local import Plan

SWAPPINESS, RATIO, BYTES = (
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_bytes",
)
OURS = {"vm.swappiness": "10", "vm.dirty_ratio": "40"}
SOMEBODY_ELSE = (
    "vm.swappiness was '33' {}, but '60' when the run began, and this cell leaves it as found: "
    "something else writes it "
    "(`python -m fixtures doctor` names candidates). Stop that, put '60' back, and measure this "
    "cell again."
)


class Shared(Local):
    """A machine in a folder, where another acts in the middle of a cell; unreadable if `deaf`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fake = make_root(folder)
        self.machine = self.fake.machine()
        self.meanwhile: Callable[[FakeRoot], None] = lambda _: None
        self.as_it_runs: Callable[[FakeRoot], None] = lambda _: None
        self.deaf = False

    def plan(self, tweakset: TweakSet) -> Plan:
        """Everybody is root in a folder of his own."""
        from fixtures.tweaks.local import plan

        return plan(tweakset, self.machine.tunables)

    def run(self, cell: CellSpec, order: Order) -> Ran:
        """Run the real workload, with another process active in its last second."""
        assert self._sampler is not None
        end = self._sampler.end

        def later(window: tuple[float, float] | None = None) -> Telemetry:
            self.as_it_runs(self.fake)
            return end(window)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._sampler, "end", later)
            ran = super().run(cell, order)
        self.meanwhile(self.fake)
        return ran

    def values(self, paths: Sequence[str]) -> dict[str, str | None]:
        if self.deaf:
            raise Refused("nobody answers")
        return super().values(paths)


class Harness:
    """A run whose cells are asked for by the name of their tweak set."""

    def __init__(self, folder: Path, **options: Any) -> None:
        given = Options(
            manifest(folder, "knobs", OURS),
            "idle",
            1,
            2,
            1,
            resume=False,
            folder=folder,
            design="factorial",
        )
        self.target = Shared(folder / "node")
        self.run = Session(replace(given, **options), self.target)
        self.run.choose(self.run.declare(STUDY))
        self.run.open()

    def cell(self, name: str, meanwhile: Callable[[FakeRoot], None] = lambda _: None) -> str | None:
        """One cell from beginning to end. Returns: why it failed, None where it was measured."""
        cell = next(one for one in self.run.cells.values() if one.tweakset == name)
        self.target.meanwhile = meanwhile
        self.run.begin(cell)
        try:
            self.run.apply(cell)
        except TweakRefused as error:
            return str(error)
        try:
            return self.run.measure(cell)
        finally:
            self.run.restore(cell)

    def named(self, *changed: str) -> str:
        """The point of the design that sets exactly these keys."""
        points = self.run.layout.points().values()
        return next(
            point.name
            for _, point in points
            if {k for k, v in point.levels.items() if v is not None} == set(changed)
        )


def swapping(value: str) -> Callable[[FakeRoot], None]:
    return lambda fake: fake.put(SWAPPINESS, value)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    monkeypatch.setattr(lock, "machine_held", lock.held)  # nothing of this machine is changed
    session = Harness(tmp_path)
    yield session
    session.run.close()


def test_a_key_left_as_found_is_checked_at_both_ends_of_a_cell(
    session: Harness,
) -> None:
    """In the cell of the write, in stock, and in later cells that leave it; the others stand."""
    ratio, swappiness = session.named("vm.dirty_ratio"), session.named("vm.swappiness")
    assert session.cell("stock") is None
    assert session.cell(ratio, meanwhile=swapping("33")) == SOMEBODY_ELSE.format(
        "when the workload ended"
    )
    for name in (ratio, "stock", "stock-again"):
        assert session.cell(name) == SOMEBODY_ELSE.format("when the cell began"), name
    assert session.cell(swappiness) is None
    session.target.fake.put(SWAPPINESS, "60")
    assert session.cell(ratio) is None


def test_a_write_undone_after_the_last_sample_is_not_seen(
    session: Harness,
) -> None:
    assert (
        session.cell(
            "stock", meanwhile=lambda fake: (swapping("33")(fake), swapping("60")(fake))[0]
        )
        is None
    )
    assert session.cell("stock-again") is None


@pytest.mark.parametrize(("name", "found"), [("knobs", "10"), ("stock", "60")])
def test_a_temporary_change_during_a_cell_fails_it(session: Harness, name: str, found: str) -> None:
    """In cells that set the key and in cells that leave it as found.

    A second is ten looks; it is this machine in the folder that is looked at.
    """

    def for_a_second(fake: FakeRoot) -> None:
        fake.put(SWAPPINESS, "33")
        time.sleep(1.0)
        fake.put(SWAPPINESS, found)

    session.target.as_it_runs = for_a_second
    why = session.cell(name)
    session.target.as_it_runs = lambda _: None
    assert str(why).startswith(
        f"{SWAPPINESS} was temporarily '33' while the workload ran, not '{found}': something else "
        "writes it"
    )
    assert session.cell(name) is None


def test_what_putting_back_took_is_in_the_record_once(
    session: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod ended by force, a failed undo script: recorded for good, though every value is back."""
    restore = session.target.restore
    monkeypatch.setattr(
        session.target, "restore", lambda: replace(restore(), notes=("pod p was deleted by force",))
    )
    assert session.cell("knobs") is None
    session.run.close()
    assert session.run.document()["machine_check"] == {
        "changed": {},
        "restored": True,
        "notes": ["pod p was deleted by force"],
    }


def test_a_foreign_change_in_a_cell_without_the_key_is_not_ours(session: Harness) -> None:
    """Ours had been put back and read before: `restore` would have nothing to do."""
    assert session.cell("knobs") is None
    assert session.cell("stock", meanwhile=swapping("33")) is not None
    session.run.close()
    assert session.run.machine_check == {"changed": {SWAPPINESS: ["60", "33"]}, "restored": True}


def test_nor_is_what_was_found_so_and_set_to_and_fro_since(session: Harness) -> None:
    session.cell("stock", meanwhile=swapping("33"))
    assert session.cell("knobs") is None
    session.run.close()
    assert session.run.machine_check == {"changed": {SWAPPINESS: ["60", "33"]}, "restored": True}


def test_nor_is_what_was_written_over_ours(session: Harness) -> None:
    assert session.cell("knobs", meanwhile=swapping("33")) == (
        f"{SWAPPINESS} was '33' when the workload ended, not '10': something else writes it "
        "(`python -m fixtures doctor` names candidates)."
    )
    session.run.close()
    assert session.run.machine_check == {"changed": {SWAPPINESS: ["60", "33"]}, "restored": True}


def test_a_key_unread_after_restore_is_not_called_foreign(
    session: Harness,
) -> None:
    cell = next(one for one in session.run.cells.values() if one.tweakset == "knobs")
    session.run.begin(cell)
    session.run.apply(cell)
    session.target.deaf = True
    session.run.restore(cell)
    session.target.deaf = False
    session.target.fake.put(SWAPPINESS, "33")
    session.run.close()
    assert session.run.machine_check == {"changed": {SWAPPINESS: ["60", "33"]}, "restored": False}
    config = cast(
        "pytest.Config", SimpleNamespace(_benchmarksession=SimpleNamespace(storage=None, json=None))
    )
    (told,) = [line for line in closing_lines(session.run, config) if "NOT PUT BACK" in line]
    assert "by hand" in told
    assert "fixtures restore" not in told  # which would find nothing to do


def test_a_cell_on_a_machine_that_cannot_be_read_fails(session: Harness) -> None:
    cell = next(one for one in session.run.cells.values() if one.tweakset == "stock")
    session.run.begin(cell)
    session.target.deaf = True
    with pytest.raises(
        TweakRefused,
        match="Could not check whether the machine is as it was found: nobody answers",
    ):
        session.run.apply(cell)
    session.target.deaf = False


def test_stock_in_a_matrix_must_have_every_set_key_as_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "machine_held", lock.held)
    sets = [
        manifest(tmp_path, "one", {"vm.swappiness": "10"}),
        manifest(tmp_path, "two", {"vm.dirty_ratio": "40"}),
    ]
    session = Harness(tmp_path, tweaks=",".join(sets), design=None)
    try:
        assert session.cell("stock", meanwhile=swapping("33")) == SOMEBODY_ELSE.format(
            "when the workload ended"
        )
        assert session.cell("two") == SOMEBODY_ELSE.format("when the cell began")
        assert session.cell("one") is None
    finally:
        session.run.close()


def test_with_turns_every_cell_must_find_every_key_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "machine_held", lock.held)
    session = Harness(tmp_path, design="switch")
    session.target.fake.put(SWAPPINESS, "33")
    try:
        assert session.cell("knobs") == SOMEBODY_ELSE.format("when the cell began")
    finally:
        session.run.close()


# -- the parts


def test_a_key_moved_by_the_kernel_is_not_a_foreign_change() -> None:
    """dirty_bytes sets dirty_ratio to 0; before it is written both stand as found."""
    found = Baseline({RATIO: "vm.dirty_ratio", BYTES: "vm.dirty_bytes"}, {RATIO: "20", BYTES: "0"})
    assert found.left_alone([BYTES]) == [RATIO]
    assert found.left_alone([BYTES], applied=True) == []
    assert found.left_alone(applied=True) == [BYTES, RATIO]


def test_a_respelled_value_is_unchanged_but_a_lost_file_is_not() -> None:
    found = Baseline(
        {SWAPPINESS: "vm.swappiness", RATIO: "vm.dirty_ratio"}, {SWAPPINESS: "60", RATIO: None}
    )
    assert found.left_alone() == [SWAPPINESS]  # the other's earlier value is unknown
    assert found.differs({SWAPPINESS: " 0x3c\n", RATIO: "7"}, "now") is None
    assert "vm.swappiness was None now, but '60'" in str(found.differs({SWAPPINESS: None}, "now"))


def test_a_run_that_is_gone_on_with_began_with_its_first_session() -> None:
    found = Baseline({SWAPPINESS: "vm.swappiness"}, {SWAPPINESS: "33"})
    failed = {"outcome": "failed", "node": "a", "tweak": {"before": {"vm.swappiness": "2"}}}
    first = {
        "outcome": "measured",
        "node": "a",
        "tweak": {"before": {"vm.swappiness": "60", "vm.dirty_ratio": "20"}},
    }
    later = {"outcome": "measured", "node": "a", "tweak": {"before": {"vm.swappiness": "50"}}}
    found.measured_before([failed, {"outcome": "skipped"}, first, later])
    assert found.left_alone() == [SWAPPINESS]
    assert "but '60' when the run began" in str(found.differs({SWAPPINESS: "33"}, "now"))


def test_a_run_goes_on_after_a_reboot_with_equal_keys() -> None:
    found = Baseline({SWAPPINESS: "vm.swappiness"}, {SWAPPINESS: "60"})
    cell = {"outcome": "measured", "tweak": {"before": {"vm.swappiness": "0x3c"}}}
    found.must_agree([cell])
    other = {"outcome": "measured", "tweak": {"before": {"vm.swappiness": "33"}}}
    with pytest.raises(Refused, match=r"vm\.swappiness is '60', but was '33'"):
        found.must_agree([other])


def test_every_sysctl_of_every_set_is_known_by_its_file() -> None:
    from fixtures.terms import Tweak, TweakSet

    one = TweakSet(
        "one",
        tweaks=(
            Tweak("sysctl", "net/core/rmem_max", "1"),
            Tweak("ulimit", "nofile", "1"),
            Tweak("sysctl", "a/../b", "1"),
        ),
    )
    assert keys([cells.STOCK, one]) == {"/proc/sys/net/core/rmem_max": "net/core/rmem_max"}


def test_what_was_once_not_proved_stays_so() -> None:
    """The next cell put back and read what the first had left: that proves nothing of the first."""
    proof = Proof()
    proof.applied(ChangeSet({SWAPPINESS: "60"}, {SWAPPINESS: ("60", "10")}, 0.0), [SWAPPINESS])
    proof.restored(Restored(), {SWAPPINESS: "10"})
    proof.applied(ChangeSet({SWAPPINESS: "10"}, {SWAPPINESS: ("10", "5")}, 0.0), [SWAPPINESS])
    proof.restored(Restored(), {SWAPPINESS: "10"})
    assert proof.missing == {SWAPPINESS}


def test_what_nobody_has_heard_to_be_put_back_is_not_proved() -> None:
    proof = Proof()
    proof.applied(ChangeSet({SWAPPINESS: "60"}, {SWAPPINESS: ("60", "10")}, 0.0), [SWAPPINESS])
    proof.applied(ChangeSet({RATIO: "20"}, {RATIO: ("20", "5")}, 0.0), [RATIO])
    proof.restored(Restored(), {RATIO: "20"})
    assert proof.missing == {SWAPPINESS}


def test_what_is_stuck_is_not_proved_whatever_is_read() -> None:
    proof = Proof()
    proof.applied(ChangeSet({SWAPPINESS: "60"}, {}, 0.0), [SWAPPINESS])
    assert proof.awaited == [SWAPPINESS]
    proof.restored(Restored(stuck={SWAPPINESS: "no"}), {SWAPPINESS: "60"})
    assert proof.missing == {SWAPPINESS}


def test_what_a_run_cannot_show_is_said_when_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "machine_held", lock.held)
    session = Harness(
        tmp_path, tweaks=manifest(tmp_path, "same", {"vm.swappiness": "60"}), design="matrix"
    )
    assert list(session.run.without_effect()) == [
        "same changes nothing here; already in force: vm.swappiness=60."
    ]
    assert list(session.run.few_blocks()) == [
        "--blocks=1: no verdict is possible; it needs 3 blocks."
    ]
    session.run.close()
