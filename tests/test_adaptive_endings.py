"""How a session of an adaptive design ends where what it asked for could not be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sessions import HOUSE, Place
from tests.spread.fleet import FLEET

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize(
    ("design", "said"),
    [("bisect", "Nothing can be said of the keys of knobs: 5 of 20 cells were measured"), ("search", "Nothing can be said of knobs: ")],
)
def test_what_could_not_conclude_for_want_of_measurements_ends_with_2(tmp_path: Path, design: str, said: str) -> None:
    """A machine that has neither key: stock alone runs."""
    place = Place(tmp_path, environment={FLEET: str(tmp_path / "fleet"), "PYTHONPATH": str(HOUSE)})
    place.manifest("knobs", sysctl="vm.swapiness = 10\nvm.dirty_rati = 40")
    fleet = ("-p", "tests.spread.plugin", "-p", "tests.designs.plugin", "--target=fleet", "--steps=4", "--benchmark-save=one")
    done = place.run(*fleet, f"--tweaks={place.folder}/knobs.yaml", f"--design={design}")
    assert done.code == 2, done.out
    assert said in " ".join(done.out.split())
    assert place.saved()["deeptweak"]["design"]["conclusion"]["unmeasured"] is True
