"""An ordinary user, or a container's root: what needs no right is measured, the rest explained."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox import NOBODY, as_nobody, sandboxed
from tests.sessions import Place, another_swappiness

pytestmark = [
    pytest.mark.needs("namespaces"),
    pytest.mark.usefixtures("kernel_unchanged"),
]


@pytest.fixture
def place() -> Iterator[Place]:
    """A folder owned by the user nobody; pytest's are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="deeptweak-nobody-"))
    hold = Path(tempfile.mkdtemp(prefix="deeptweak-hold-"))
    shutil.chown(folder, NOBODY, NOBODY)
    yield Place(
        folder,
        before=as_nobody(hold),
        environment={"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    shutil.rmtree(folder)
    shutil.rmtree(hold)


def test_without_root_only_what_needs_no_root_is_measured(
    place: Place,
) -> None:
    typed = place.manifest("typed", sysctl=f"vm.swappiness = {another_swappiness()}")
    limited = place.manifest("limited", ulimit="nofile=256")
    done = place.run(
        f"--tweaks={typed},{limited},thp-never", "--blocks=1", "--steps=4", "--benchmark-save=one"
    )
    assert done.code == 2, done.out  # two sets that were asked for by name were not measured
    saved = place.saved()
    cells = {c["tweakset"]: (c["outcome"], c["reason"]) for c in saved["deeptweak"]["cells"]}
    assert {name for name, (outcome, _) in cells.items() if outcome == "measured"} == {
        "stock",
        "stock-again",
        "limited",
    }
    assert (
        cells["typed"]
        == cells["thp-never"]
        == ("skipped", "kernel settings cannot be written by this user; run as root")
    )
    for told in ("Left out", "NOT MEASURED"):
        assert done.lines(
            f"{told}: kernel settings cannot be written by this user: 2 of 3 tweak sets (typed, "
            "thp-never); run as root"
        )
    assert saved["machine_info"]["deeptweak"]["is_root"] is False
    assert next(
        b["extra_info"] for b in saved["benchmarks"] if b["extra_info"]["tweakset"] == "limited"
    )["limits"]["nofile"] == [256, 256]
    assert saved["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}


def test_an_unwritable_state_folder_is_named_with_advice(place: Place) -> None:
    place.state.mkdir(mode=0o755)
    done = place.run("--tweaks=thp-never", "--blocks=1", "--steps=2")
    assert done.code == 2
    assert done.lines(
        f"{place.state}: cannot be written (Permission denied). Set DEEPTWEAK_STATE_DIR to a "
        "folder on a local disk."
    )
    assert "Traceback" not in done.out
    assert place.files() == []


def test_an_unwritable_results_folder_is_refused_before_a_run(place: Place) -> None:
    place.storage.mkdir(mode=0o755)
    done = place.run("--tweaks=thp-never", "--blocks=1", "--steps=2", "--benchmark-save=one")
    assert done.code == 2
    assert "Traceback" not in done.out
    assert done.lines(
        f"{place.storage}/progress: results cannot be stored (Permission denied). Use another "
        "folder: --benchmark-storage=PATH."
    )
    assert not done.lines("idle x stock")


def test_root_in_a_container_skips_what_it_cannot_write(
    tmp_path: Path,
) -> None:
    """By value or by any script: nothing is tried, each cell has its reason, each cause a line."""
    place = Place(tmp_path, before=sandboxed())
    tried = tmp_path / "tried"
    scripts = {
        "named": "echo 1 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
        "any": "for disk in /sys/block/*; do echo 64 > $disk/queue/nr_requests; done",
        "by-sysctl": "sysctl -w vm.swappiness=1",
        "unknown": "tune-this-machine",
    }
    sets = [place.manifest(name, apply=f"touch {tried}; {text}") for name, text in scripts.items()]
    sets.append(place.manifest("typed", sysctl=f"vm.swappiness = {another_swappiness()}"))
    sets.append(place.manifest("limited", ulimit="nofile=256"))
    done = place.run(
        f"--tweaks={','.join(sets)}", "--blocks=2", "--steps=4", "--benchmark-save=one"
    )
    cells = {
        c["tweakset"]: (c["outcome"], c["reason"]) for c in place.saved()["deeptweak"]["cells"]
    }
    assert {name for name, (outcome, _) in cells.items() if outcome == "measured"} == {
        "stock",
        "stock-again",
        "limited",
    }, done.out
    assert {outcome for outcome, _ in cells.values()} == {"measured", "skipped"}
    for name in ("by-sysctl", "typed"):
        assert str(cells[name][1]).startswith("/proc/sys is read-only")
    for name in ("named", "any"):
        assert str(cells[name][1]).startswith("/sys is read-only")
    assert len(done.lines("Left out: ")) == len(done.lines("NOT MEASURED: ")) == 2
    assert not tried.exists()
    assert done.code == 2  # six sets were asked for by name
