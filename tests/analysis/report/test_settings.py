"""What was asked of the kernel, what it answered, what was put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.report.settings import asked
from tests.analysis.report.pages import SWAPPINESS, read
from tests.synthetic import STOCK, Arm, Made

if TYPE_CHECKING:
    from collections.abc import Callable

    from analysis.report.settings import Row
    from tests.synthetic import JSON


def rows(arm: Arm, change: Callable[[JSON], None] | None = None) -> tuple[Row, ...]:
    (one,) = asked(read(Made(arms=(STOCK, arm), blocks=3), change))
    assert one.tweakset.name == arm.name
    return one.rows


def cells(saved: JSON, tweakset: str) -> list[JSON]:
    return [one["extra_info"] for one in saved["benchmarks"] if one["extra_info"]["tweakset"] == tweakset]


def test_a_setting_in_force_and_put_back_is_held() -> None:
    (row,) = rows(Arm("tuned", requested=SWAPPINESS))
    assert (row.key, row.requested, row.before, row.observed, row.restored) == ("vm.swappiness", "1", ("0",), ("1",), ("0",))
    assert (row.state, row.says) == ("held", "in force in 3 of 3 measured cells, and put back.")


def test_one_that_stood_there_before_is_said_to_have_changed_nothing() -> None:
    (row,) = rows(Arm("tuned", requested=SWAPPINESS, already_in_force=["vm.swappiness"]))
    assert (row.state, row.says) == ("held", "in force before it was applied: nothing was changed.")


def test_another_answer_of_the_kernel_fails_and_is_quoted() -> None:
    (row,) = rows(Arm("tuned", requested=SWAPPINESS, observed={"vm.swappiness": "60"}))
    assert (row.state, row.says) == ("failed", "not in force: the kernel answered 60 (blocks 1, 2, 3).")


def test_a_value_that_was_not_read_back_fails() -> None:
    (row,) = rows(Arm("tuned", requested=SWAPPINESS, observed={}))
    assert (row.state, row.says, row.observed) == ("failed", "not read back (blocks 1, 2, 3).", ())


def test_a_value_that_was_not_put_back_fails_with_its_block() -> None:
    def leave(saved: JSON) -> None:
        next(one for one in cells(saved, "tuned") if one["block"] == 2)["tweak"]["restored"]["vm.swappiness"] = "1"

    (row,) = rows(Arm("tuned", requested=SWAPPINESS), leave)
    assert (row.state, row.says, row.restored) == ("failed", "not put back: left at 1 (block 2).", row.restored)
    assert set(row.restored) == {"0", "1"}


def test_equal_values_in_another_notation_are_no_failure() -> None:
    (row,) = rows(Arm("tuned", requested={"kernel.sched": "0x10"}, observed={"kernel.sched": "16"}))
    assert row.state == "held"


def test_what_a_script_changed_is_listed_by_path() -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    (row,) = rows(Arm("huge", scripts=1, side_effects={path: ["madvise", "always"]}))
    assert (row.kind, row.key, row.requested, row.before, row.observed) == ("side effect", path, "", ("madvise",), ("always",))
    assert row.says == "changed by its script, in 3 of 3 cells."


def test_a_file_that_a_setting_made_vanish_is_said_to_be_gone() -> None:
    (row,) = rows(Arm("none", scripts=1, side_effects={"/sys/block/vda/queue/iosched/depth": ["256", None]}))  # type: ignore[list-item]
    assert row.observed == ("not there",)


def test_a_script_that_changed_nothing_leaves_its_tweak_set_in_the_table() -> None:
    assert rows(Arm("idle", scripts=2)) == ()


def test_what_somebody_else_changed_meanwhile_fails() -> None:
    def meddle(saved: JSON) -> None:
        cells(saved, "tuned")[0]["tweak"]["left_alone"] = {"/proc/sys/vm/swappiness": ["30", "1"]}

    (_, row) = rows(Arm("tuned", requested=SWAPPINESS), meddle)
    assert (row.kind, row.key, row.state) == ("left alone", "/proc/sys/vm/swappiness", "failed")
    assert row.says.startswith("somebody else changed it meanwhile, so it was not put back (block ")


def test_a_boot_token_is_looked_for_in_the_command_line() -> None:
    def booted(saved: JSON) -> None:
        saved["machine_info"]["deeptweak"]["cmdline"] = "quiet isolcpus=2-11 splash"

    def other(saved: JSON) -> None:
        saved["machine_info"]["deeptweak"]["cmdline"] = "quiet isolcpus=2-111"

    arm = Arm("isolate", requested={"isolcpus": "2-11"}, kind="boot")
    assert [rows(arm, change)[0].state for change in (booted, other, None)] == ["held", "failed", "unknown"]


def test_a_limit_shows_what_the_workload_found() -> None:
    (row,) = rows(Arm("limits", requested={"memlock": "unlimited"}, kind="ulimit"))
    assert (row.state, row.observed) == ("held", ("8388608 8388608",))
    (row,) = rows(Arm("limits", requested={"nofile": "unlimited"}, kind="ulimit"))
    assert (row.state, row.says) == ("unknown", "the file does not say which value the workload found.")


def test_a_tweak_set_without_a_measured_cell_is_unknown_and_says_why() -> None:
    arm = Arm("tuned", requested=SWAPPINESS, broken=dict.fromkeys((1, 2, 3), ("skipped", "needs root")))
    (one,) = asked(read(Made(arms=(STOCK, arm), blocks=3)))
    assert (one.rows[0].state, one.rows[0].says) == ("unknown", "no cell of tuned was measured: not known to have been in force.")
    assert one.summary == "0 of 3 cells measured; manifest data/tweaks/tuned.yaml (sha256 000000000000…); skipped: needs root"


def test_the_untouched_machine_is_not_in_the_table() -> None:
    assert asked(read(Made())) == []
