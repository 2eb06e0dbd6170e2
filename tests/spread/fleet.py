"""A target of several nodes in folders: each worker of `-n` has a fake /proc and /sys to change.

The workloads are real processes, and so are the sessions that the tests start. `FLEET` names the
folder; `FLEET_NODES` how many nodes are free (default: as many as are asked for), `FLEET_HALT` a
file: while it is there, the cells that its lines name stay as they are before their workload
begins, with their settings in force. A line is a pattern of `<tweak set> b<block> #<place in the
run>`; the file's name with `.there` is made when the first of them is reached.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixtures.distributed import started_as
from fixtures.targets.local import Local
from fixtures.terms import CellSpec, Order, Refused, TweakSet
from fixtures.tweaks.local import Plan, plan
from tests.fake_root import FakeRoot
from tests.fake_root import make as make_root
from tests.waiting import until

if TYPE_CHECKING:
    import pytest

    from fixtures.kernel.machine import Restored
    from fixtures.targets import Ran

DESCRIPTION = "folders of this machine, for tests"
FLEET, FLEET_NODES = "DEEPTWEAK_TEST_FLEET", "DEEPTWEAK_TEST_FLEET_NODES"
FLEET_HALT = "DEEPTWEAK_TEST_FLEET_HALT"


def add_options(group: pytest.OptionGroup) -> None:
    """Take none."""
    del group


def make(config: pytest.Config, folder: Path) -> Fleet:
    """The node of this worker."""
    del config, folder
    return Fleet((started_as() or {"number": 0})["number"])


class Fleet(Local):
    """One node of it."""

    name = "fleet"

    def __init__(self, number: int) -> None:
        self._number = number
        place = Path(os.environ[FLEET]) / f"node-{number}"
        super().__init__(place)
        self.node = place.name
        self.fake = FakeRoot(place) if place.exists() else make_root(place)
        self.machine = self.fake.machine()

    def plan(self, tweakset: TweakSet) -> Plan:
        """Everybody is root on a folder of his own."""
        return plan(tweakset, self.machine.tunables)

    def open(
        self, run_id: str, cells: Sequence[CellSpec], tweaksets: Mapping[str, TweakSet]
    ) -> Restored:
        """Hold it, and leave a note of who does."""
        if self._number >= int(os.environ.get(FLEET_NODES, "99")):
            raise Refused(f"no node is free for run {run_id}: wait for one, or give a smaller -n.")
        (self.fake.path / "pid").write_text(str(os.getpid()))
        return super().open(run_id, cells, tweaksets)

    def run(self, cell: CellSpec, order: Order) -> Ran:
        """Run it, not before the test has done what it wants to do in the middle of it."""
        halt, name = (
            Path(os.environ.get(FLEET_HALT, "/nowhere")),
            f"{cell.tweakset} b{cell.block} #{cell.order}",
        )
        if halt.exists() and any(fnmatchcase(name, line) for line in halt.read_text().splitlines()):
            halt.with_name(f"{halt.name}.there").touch()
            until(lambda: not halt.exists(), "the test is gone")
        return super().run(cell, order)

    def facts(self) -> dict[str, Any]:
        """Those of this machine, under the node's name."""
        return super().facts() | {"hostname": self.node}
