"""Designs over keys on the real kernel: what a plan says of it, and its last word on a level."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures import design_file
from tests.sessions import Place, swappiness
from tests.test_design_endings import KNOBS
from tests.test_design_sessions import file_of, outcomes

pytestmark = pytest.mark.usefixtures("kernel_unchanged")


def test_a_level_that_the_kernel_refuses_costs_only_its_points(place: Place) -> None:
    """On the real kernel, in the middle of the design; the file says what the kernel answered."""
    place.manifest("over", sysctl="vm.swappiness = 999\nvm.dirty_writeback_centisecs = 503")
    asked = [
        f"--tweaks={place.folder}/over.yaml",
        "--design=ablation",
        "--blocks=2",
        "--steps=3",
        f"--design-file={file_of(place)}",
    ]
    done = place.run(*asked, "--benchmark-save=one")
    assert done.code == 2
    failed = {"over", "over.no-vm.dirty_writeback_centisecs"}
    assert {name for name, outcome in outcomes(place.saved()).items() if outcome == "failed"} == {
        f"{one} {b}" for one in failed for b in (1, 2)
    }
    assert done.lines(
        "NOT MEASURED: over.no-vm.dirty_writeback_centisecs (vm.swappiness=999): vm.swappiness: "
    )
    assert done.lines("Machine: as it was found")
    reasons = {
        row.tweakset: row.reason for row in design_file.read(file_of(place)).rows if row.run == "F"
    }
    assert reasons.keys() == failed
    assert all("vm.swappiness" in reason and "999" in reason for reason in reasons.values())


def test_a_plan_fits_a_page_and_shows_what_scripts_write(place: Place) -> None:
    place.manifest(
        "knobs", sysctl=KNOBS, apply="# none\necho long > /proc/sys/kernel/printk_devkmsg"
    )
    done = place.run(
        f"--tweaks={place.folder}/knobs.yaml", "--design=factorial", "--blocks=2", "--plan"
    )
    assert done.code == 0, done.out
    plan = done.out[done.out.index("factorial over the 4 keys of knobs:") :].splitlines()
    assert (
        max(
            map(
                len, plan[: next(at for at, line in enumerate(plan) if line.startswith("Expected"))]
            )
        )
        <= 100
    )
    now = Path("/proc/sys/kernel/printk_devkmsg").read_text().strip()
    assert (
        len(done.lines("runs script/apply.sh"))
        == len(done.lines(f"      /proc/sys/kernel/printk_devkmsg: {now} -> long"))
        == 8
    )
    assert re.search(rf"vm.swappiness +as found \({swappiness()}\), 10", done.out)
