"""A run that saw nothing says why, before anything else: its noise, what it could have seen, how long it would take."""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

import pytest

from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.load import from_json
from analysis.render.text import render
from analysis.studies.plan.plan import DAY_S, Goal, plan
from analysis.unseen import unseen
from tests.analysis.answers import printed
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.terms import Run
    from analysis.unseen import Unseen

MINE = Arm("mine", requested={"vm.swappiness": "1"})
NOISY = Made(arms=(STOCK, AGAIN, MINE), workloads=("cnn_train", "lora_finetune"), run_cv=0.1, baseline=("stock", "stock-again"))


def read(made: Made) -> Run:
    return from_json(saved_run(made), "made up")


def of(made: Made) -> Unseen | None:
    return unseen(compare(read(made)), read(made))


def test_what_it_says_is_what_compare_and_plan_say() -> None:
    found, run = of(NOISY), read(NOISY)
    comparisons = compare(run)
    assert found is not None
    assert (found.contrasts, found.blocks, found.margin) == (2, 6, 0.03)
    assert found.mde == median(one.mde for one in comparisons if one.mde and not one.guard)
    assert found.aa_log_sd == median(one.primary.log_sd for one in comparisons if one.guard and one.primary)
    planned = plan(run, Goal(0.03))
    assert (found.plan_blocks, found.plan_s, found.on_this_machine) == (planned.blocks, planned.total_s, True)
    assert found.others is None  # made-up telemetry knows no process


def test_it_is_the_first_line() -> None:
    run = read(NOISY)
    found = of(NOISY)
    assert found is not None
    assert " ".join(render(answer_of(compare(run), [run])).split()).startswith(" ".join(found.sentence.split()))


@pytest.mark.parametrize(
    "made",
    [
        replace(NOISY, arms=(STOCK, AGAIN, replace(MINE, gain=2.0))),  # improved
        replace(NOISY, run_cv=0.001, step_cv=0.001),  # equivalent
        replace(NOISY, arms=(STOCK, AGAIN)),  # an A/A run is to see nothing
    ],
)
def test_where_anything_is_decided_or_nothing_was_changed_it_says_nothing(made: Made) -> None:
    assert of(made) is None


def test_what_could_not_be_compared_is_the_reason() -> None:
    found = of(replace(NOISY, blocks=1))
    assert found is not None
    assert (found.mde, found.plan_blocks, found.on_this_machine) == (None, None, None)
    assert found.reason == compare(read(replace(NOISY, blocks=1)))[1].reason


def test_what_takes_longer_than_a_day_is_not_for_this_machine() -> None:
    """Blocks of 6 cells, 1.5 s each, that scatter by 300 %."""
    found = of(replace(NOISY, run_cv=3.0))
    assert found is not None
    assert found.plan_s is None or found.plan_s > DAY_S
    assert found.on_this_machine is False


def test_json_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = [
        json.loads(printed(capsys, "compare", saved_file(tmp_path, made), "--json"))["unseen"]
        for made in (NOISY, replace(NOISY, run_cv=0.001, step_cv=0.001))
    ]
    assert (said[0]["contrasts"], said[1]) == (2, None)
