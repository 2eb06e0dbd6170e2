"""The first screen: what is claimed, in verdict words, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.compare import compare
from analysis.load import from_json, load
from analysis.report.answers import answers, control, joined, nothing_compared
from analysis.verdict import ONE_RUN
from analysis.wording import interval, percent, unsigned
from tests.analysis.report.pages import SWAPPINESS, read
from tests.deeptweak_like import SYSCTLS, Like, directory
from tests.stock_files import benchmark, document, times
from tests.synthetic import AGAIN, STOCK, Arm, Made

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.terms import Comparison


def said(*arms: Arm, **how: object) -> tuple[str, list[Comparison]]:
    """The sentence on the one workload of a run, and what it stands on."""
    run = read(Made(arms=(STOCK, AGAIN, *arms), **{"blocks": 8, "run_cv": 0.005, "step_cv": 0.005, **how}))  # type: ignore[arg-type]
    comparisons = compare(run)
    (answer,) = answers(run, comparisons)
    return answer.sentence, comparisons


def test_an_improvement_is_named_with_its_size_and_interval() -> None:
    sentence, comparisons = said(Arm("faster", 0.12, SWAPPINESS))
    effect = comparisons[-1].primary
    assert effect is not None
    assert sentence == f"Improved by faster ({percent(effect.gain)} in speed, 95 % interval {interval(effect)})."


def test_a_regression_is_told_before_an_improvement() -> None:
    sentence, _ = said(Arm("faster", 0.12, SWAPPINESS), Arm("slower", -0.12, SWAPPINESS))
    assert sentence.startswith("Regressed by slower (-")
    assert "; improved by faster (+" in sentence


def test_inconclusive_says_that_nothing_is_claimed_and_what_may_have_been_missed() -> None:
    sentence, comparisons = said(Arm("unclear", 0.0, SWAPPINESS), Arm("also", 0.0, SWAPPINESS), run_cv=0.08)
    low, high = sorted(one.mde or 0.0 for one in comparisons[1:])
    missed = f"a difference below {unsigned(low).removesuffix(' %')} to {unsigned(high)} may have been missed"
    assert sentence == f"Nothing is claimed: inconclusive for unclear and also ({missed})."


def test_equivalent_names_the_margin() -> None:
    sentence, _ = said(Arm("same", 0.0, SWAPPINESS))
    assert sentence == "Equivalent to stock within 3 %: same."


def test_not_comparable_points_to_its_reason() -> None:
    sentence, _ = said(Arm("ignored", requested=SWAPPINESS, observed={"vm.swappiness": "60"}))
    assert sentence == "No verdict: not comparable for ignored, for the reason in the table."


def test_verdicts_are_counted_without_the_control() -> None:
    run = read(Made(arms=(STOCK, AGAIN, Arm("faster", 0.12, SWAPPINESS), Arm("slower", -0.12, SWAPPINESS)), blocks=8))
    (answer,) = answers(run, compare(run))
    assert answer.verdicts == {"regressed": 1, "improved": 1}


def test_a_control_that_finds_nothing_is_said_to() -> None:
    run = read(Made(arms=(STOCK, AGAIN)))
    assert control(run, compare(run)) == "Control: stock-again changes nothing, and no difference from stock was found under cnn_train."


def test_a_control_that_differs_takes_the_trust_away() -> None:
    run = read(Made(arms=(STOCK, Arm("stock-again", 0.2))))
    assert control(run, compare(run)) == (
        "Control: stock-again changes nothing and differs all the same under cnn_train: trust no verdict there."
    )


def test_of_two_checks_of_the_control_the_worse_one_is_told() -> None:
    """What `compare` does not call after its adjustment, the effects' own check may: then there is no reassurance."""
    run = read(Made(arms=(STOCK, AGAIN)))
    assert control(run, compare(run), ["cnn_train"]) == (
        "Control: stock-again changes nothing and differs all the same under cnn_train: trust no verdict there."
    )


def test_a_control_that_could_not_be_compared_is_no_reassurance() -> None:
    run = read(Made(arms=(STOCK, AGAIN), blocks=2))
    assert control(run, compare(run)) == "Control: stock-again could not be compared; see the table."


def test_a_run_without_control_says_nothing_of_one() -> None:
    run = read(Made(arms=(STOCK, Arm("faster", 0.1, SWAPPINESS))))
    assert control(run, compare(run)) is None


def test_a_run_of_stock_alone_has_nothing_to_compare() -> None:
    assert nothing_compared(read(Made(arms=(STOCK,))), []) == "Nothing was compared: the run has no measured cell beside those of stock."


def test_a_run_of_stock_and_its_control_has_no_tweak_set() -> None:
    run = read(Made(arms=(STOCK, AGAIN)))
    assert answers(run, compare(run)) == []
    assert nothing_compared(run, compare(run)) == "The run has no tweak set: stock, the untouched machine, was compared with itself."


def test_a_file_of_one_configuration_is_inconclusive() -> None:
    run = from_json(document([benchmark("test_sort", times(1))]), "0001_x.json")
    assert compare(run) == []
    assert nothing_compared(run, []).startswith(f"Inconclusive: {ONE_RUN}.")


def test_foreign_configurations_side_by_side_are_inconclusive_with_the_reason(tmp_path: Path) -> None:
    run = load(directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS, run_effect=0.1)))
    (answer,) = answers(run, compare(run))
    assert answer.sentence == f"Nothing is claimed: inconclusive for exp1 ({ONE_RUN})."
    assert control(run, compare(run)) is None


def test_names_are_joined_as_in_a_sentence() -> None:
    assert [joined(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
