"""Without root the job still runs: stock and what needs no root; what is left out is said with its reason."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.node.journal import ROOT_STATE_DIR
from tests.sessions import HOUSE, Place, another_swappiness

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.slow,
    pytest.mark.needs("root", "unshare"),
    pytest.mark.usefixtures("kernel_unchanged"),
]
NEEDED = (HOUSE, Path(sys.prefix), Path(sys.base_prefix))
# Nobody: what it can do, any user can.
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")


def as_nobody(hold: Path) -> tuple[str, ...]:
    """Run what follows as an ordinary user who sees this Python and this repository, even below root's own closed folders.

    In mounts of its own: each closed folder is covered by an empty one with only what is needed in it. The lock that these
    tests hold is out of sight too, for an ordinary user's run respects it.
    """
    commands = []
    for number, path in enumerate(NEEDED):
        commands += [f"mkdir -p {hold}/{number}", f"mount --bind {path} {hold}/{number}"]
    closed = {next((p for p in reversed(path.parents) if not p.stat().st_mode & 0o001), None) for path in NEEDED} - {None}
    commands += [f"mount -t tmpfs -o mode=755 none {folder}" for folder in sorted(map(str, closed))]
    for number, path in enumerate(NEEDED):
        if any(path.is_relative_to(str(folder)) for folder in closed):
            commands += [f"mkdir -p {path}", f"mount --bind {hold}/{number} {path}"]
    commands.append(f"mount -t tmpfs -o mode=755 none {ROOT_STATE_DIR}")
    return ("unshare", "--mount", "--propagation=private", "bash", "-ec", "; ".join([*commands, 'exec "$@"']), "bash", *AS_NOBODY)


@pytest.fixture
def place() -> Iterator[Place]:
    """A folder of nobody's own; pytest's are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="deeptweak-nobody-"))
    hold = Path(tempfile.mkdtemp(prefix="deeptweak-hold-"))
    shutil.chown(folder, 65534, 65534)
    yield Place(folder, before=as_nobody(hold), environment={"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"})
    shutil.rmtree(folder)
    shutil.rmtree(hold)


def test_stock_and_what_needs_no_root_is_measured_the_rest_is_skipped_with_the_reason(place: Place) -> None:
    typed = place.manifest("typed", sysctl=f"vm.swappiness = {another_swappiness()}")
    limited = place.manifest("limited", ulimit="nofile=256")
    done = place.run(f"--tweaks={typed},{limited},thp-never", "--blocks=1", "--steps=4", "--benchmark-save=one")
    assert done.code == 2, done.out  # two sets that were asked for by name were not measured
    saved = place.saved()
    cells = {c["tweakset"]: (c["outcome"], c["reason"]) for c in saved["deeptweak"]["cells"]}
    assert {name for name, (outcome, _) in cells.items() if outcome == "measured"} == {"stock", "stock-again", "limited"}
    assert cells["typed"] == ("skipped", "vm.swappiness: no permission to write it: run as root")
    assert cells["thp-never"] == ("skipped", "its scripts need root")
    assert done.lines("NOT MEASURED: thp-never: its scripts need root")
    assert saved["machine_info"]["deeptweak"]["is_root"] is False
    assert next(b["extra_info"] for b in saved["benchmarks"] if b["extra_info"]["tweakset"] == "limited")["limits"]["nofile"] == [256, 256]
    assert saved["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}


def test_with_all_sets_leaving_some_out_is_no_failure(place: Place) -> None:
    """`all` means what can be done here."""
    done = place.run("--tweaks=all", "--blocks=1", "--steps=2", "--benchmark-save=one")
    assert done.code == 0, done.out
    outcomes = [c["outcome"] for c in place.saved()["deeptweak"]["cells"]]
    assert set(outcomes) == {"measured", "skipped"}


def test_a_state_folder_without_permission_is_named_with_what_to_do(place: Place) -> None:
    place.state.mkdir(mode=0o755)
    done = place.run("--tweaks=thp-never", "--blocks=1", "--steps=2")
    assert done.code == 2
    assert done.lines(f"{place.state}: cannot be written (Permission denied). Set DEEPTWEAK_STATE_DIR to a folder on a local disk.")
    assert "Traceback" not in done.out
    assert place.files() == []


def test_results_that_may_not_be_written_are_refused_before_anything_runs(place: Place) -> None:
    """Not after an hour of measuring."""
    place.storage.mkdir(mode=0o755)
    done = place.run("--tweaks=thp-never", "--blocks=1", "--steps=2", "--benchmark-save=one")
    assert done.code == 2
    assert "Traceback" not in done.out
    assert done.lines(
        f"{place.storage}/progress: results cannot be stored (Permission denied). Give another folder: --benchmark-storage=PATH."
    )
    assert not done.lines("idle x stock")


def test_doctor_says_what_needs_root(place: Place) -> None:
    done = place.call(*place.before, sys.executable, "-m", "fixtures", "doctor")
    assert done.code == 0, done.out
    assert done.lines("not root: only stock and the sets that need no root can be measured")
    assert [line for line in done.lines("tweak set thp-never") if "its scripts need root" in line]
