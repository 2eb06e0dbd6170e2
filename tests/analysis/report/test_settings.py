"""Settings requested from the kernel, its answers, and the values put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from analysis.report.settings import SettingRow, rows_of
from tests.analysis.report.pages import SWAPPINESS, read
from tests.synthetic import JSON, STOCK, Arm, Made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
DEPTH = "/sys/block/vda/queue/iosched/depth"
ISOLATE = Arm("tuned", requested={"isolcpus": "2-11"}, kind="boot")
UNMEASURED = Arm(
    "tuned", requested=SWAPPINESS, broken=dict.fromkeys((1, 2, 3), ("skipped", "needs root"))
)


def tuned(saved: JSON, block: int) -> JSON:
    """The settings in the tweak set's cell of one block."""
    extra = (one["extra_info"] for one in saved["benchmarks"])
    found: JSON = next(
        one["tweak"] for one in extra if (one["tweakset"], one["block"]) == ("tuned", block)
    )
    return found


def leave(saved: JSON) -> None:
    tuned(saved, 2)["restored"]["vm.swappiness"] = "1"


def meddle(saved: JSON) -> None:
    tuned(saved, 1)["left_alone"] = {"/proc/sys/vm/swappiness": ["30", "1"]}


def meddle_again(saved: JSON) -> None:
    tuned(saved, 1)["left_alone"] = {HUGE: ["never", "always"]}


def started_with(cmdline: str) -> Callable[[JSON], None]:
    return lambda saved: saved["machine_info"]["deeptweak"].update(cmdline=cmdline)


# Case → the tweak set, what is changed in its file, and the state of its last row.
CASES: dict[str, tuple[Arm, Callable[[JSON], None] | None, str]] = {
    "in force and put back": (Arm("tuned", requested=SWAPPINESS), None, "held"),
    "in force before": (
        Arm("tuned", requested=SWAPPINESS, already_in_force=["vm.swappiness"]),
        None,
        "held",
    ),
    "another answer": (
        Arm("tuned", requested=SWAPPINESS, observed={"vm.swappiness": "60"}),
        None,
        "failed",
    ),
    "not read back": (Arm("tuned", requested=SWAPPINESS, observed={}), None, "failed"),
    "not put back in one block": (Arm("tuned", requested=SWAPPINESS), leave, "failed"),
    "another notation": (
        Arm("tuned", requested={"kernel.sched": "0x10"}, observed={"kernel.sched": "16"}),
        None,
        "held",
    ),
    "changed by a script": (
        Arm("tuned", scripts=1, side_effects={HUGE: ["madvise", "always"]}),
        None,
        "held",
    ),
    "changed by a script and by others": (
        Arm("tuned", scripts=1, side_effects={HUGE: ["madvise", "always"]}),
        meddle_again,
        "failed",
    ),
    "changed along": (
        Arm("tuned", requested=SWAPPINESS, side_effects={HUGE: ["madvise", "always"]}),
        None,
        "held",
    ),
    # nothing there
    "gone after a script": (
        Arm("tuned", scripts=1, side_effects={DEPTH: ["256", None]}),
        None,
        "held",
    ),
    "changed by somebody else": (Arm("tuned", requested=SWAPPINESS), meddle, "failed"),
    "started with it": (ISOLATE, started_with("quiet isolcpus=2-11 splash"), "held"),
    "started with another": (ISOLATE, started_with("quiet isolcpus=2-111"), "failed"),
    "started with what nobody knows": (ISOLATE, None, "unknown"),
    "a limit": (Arm("tuned", requested={"memlock": "unlimited"}, kind="ulimit"), None, "held"),
    "a limit that was not looked at": (
        Arm("tuned", requested={"nofile": "unlimited"}, kind="ulimit"),
        None,
        "unknown",
    ),
    "no cell was measured": (UNMEASURED, None, "unknown"),
}


def rows(case: str) -> tuple[SettingRow, ...]:
    arm, change, _ = CASES[case]
    run = read(Made(arms=(STOCK, arm), blocks=3), change)
    return tuple(
        rows_of(
            run, run.tweaksets[arm.name], [cell for cell in run.cells if cell.tweakset == arm.name]
        )
    )


def test_what_a_script_does_not_name_moved_along() -> None:
    """Two files changed under a set of one script, which names the first of them."""

    def known(saved: JSON) -> None:
        for one in saved["benchmarks"]:
            tweak = one["extra_info"]["tweak"]
            tweak["by_scripts"] = [HUGE] if tweak["side_effects"] else []

    changes = {HUGE: ["madvise", "always"], DEPTH: ["256", "128"]}
    run = read(Made(arms=(STOCK, Arm("tuned", scripts=1, side_effects=changes)), blocks=3), known)
    found = rows_of(
        run, run.tweaksets["tuned"], [one for one in run.cells if one.tweakset == "tuned"]
    )
    assert [(row.key, row.kind) for row in found] == [
        (HUGE, "by its script"),
        (DEPTH, "side effect"),
    ]


def test_a_row_says_what_came_of_a_setting(snapshot: SnapshotAssertion) -> None:
    found = {case: rows(case)[-1] for case in CASES}
    assert {case: row.state for case, row in found.items()} == {
        case: state for case, (_, _, state) in CASES.items()
    }
    assert {case: f"{row.kind} {row.key}: {row.says}" for case, row in found.items()} == snapshot


def test_values_are_those_of_the_cells() -> None:
    """Columns: requested, before, in force, put back; values of cells stand side by side."""

    def values(case: str) -> tuple[str, ...]:
        row = rows(case)[0]
        return (
            row.requested,
            *(" ".join(sorted(column)) for column in (row.before, row.observed, row.restored)),
        )

    wanted = {
        "in force and put back": ("1", "0", "1", "0"),
        "another answer": ("1", "0", "60", "0"),
        "not read back": ("1", "0", "", "0"),
        "not put back in one block": ("1", "0", "1", "0 1"),
        "changed by a script": ("", "madvise", "always", "madvise"),
        "gone after a script": ("", "256", "not there", "256"),
        "changed by a script and by others": ("", "madvise", "always", "madvise"),
        "a limit": ("unlimited", "", "8388608 8388608", ""),
    }
    assert {case: values(case) for case in wanted} == wanted
