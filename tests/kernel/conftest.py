"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fixtures.kernel.machine import Machine, Write
from fixtures.kernel.reach import Reach
from tests import fake_root


@pytest.fixture
def fake(tmp_path: Path) -> fake_root.FakeRoot:
    """A small machine made of files, and a folder for its journal."""
    return fake_root.make(tmp_path)


@pytest.fixture(scope="module", params=["first", "later"])
def application(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module twice: machines read every setting, or as later only what typed writes touch."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "later":
            patch.setattr(fake_root.FakeRoot, "machine", _knowing)
        yield request.param


def _knowing(fake: fake_root.FakeRoot) -> Machine:
    machine = Machine(fake.root, fake.state)
    machine._reach = _Knowing()
    machine._left = machine.tunables.snapshot()
    return machine


class _Knowing(Reach):
    """A reach with experience of any writes, which moved only what the known keys' table has."""

    def of(self, writes: Sequence[Write], settings: Sequence[str]) -> frozenset[str] | None:
        self.learn(writes, [write.path for write in writes])
        return super().of(writes, settings)
