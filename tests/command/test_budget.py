"""Steps of a command's cell when time is short, and the budget that would do."""

from __future__ import annotations

import re

import pytest

from fixtures import options
from fixtures.studies.command.budget import FEWEST, ROOM, Constraints, Pace, fit
from fixtures.studies.command.spec import CALLS, LINES, RUNS
from fixtures.terms import BadInput

TEN_MIN = 600.0


@pytest.mark.parametrize(
    ("trial", "limits", "steps", "warmup"),
    [
        # 3 blocks x 3 cells x (1 + 2 + 23 x 1 s) = 234 s of 510
        (Pace(2, 1), Constraints(LINES, 3, TEN_MIN), 20, 3),
        # 56.7 s a cell: 1 + 2 + 17 x 3 s = 54 s
        (Pace(2, 3), Constraints(LINES, 3, TEN_MIN), 14, 3),
        (Pace(2, 3), Constraints(CALLS, 3, TEN_MIN), 14, 3),
        # 1 + 2 + 6 x 8.9 s = 56.4 s: one warm-up step, and the fewest that count
        (Pace(2, 8.9), Constraints(LINES, 3, TEN_MIN), 5, 1),
        (Pace(0, 13), Constraints(RUNS, 3, TEN_MIN), 3, 1),
        (Pace(0, 18), Constraints(RUNS, 3, TEN_MIN), 2, 1),
        # what was asked for stays, and the rest gives way
        (Pace(2, 3), Constraints(LINES, 3, TEN_MIN, steps=16), 16, 1),
        (Pace(2, 3), Constraints(LINES, 3, TEN_MIN, warmup=9), 8, 9),
        (Pace(0, 60), Constraints(RUNS, 3, None, blocks=8), 3, 1),
        # fewer blocks than a verdict takes need less room
        (Pace(0, 50), Constraints(RUNS, 3, TEN_MIN, blocks=1), 2, 1),
        # arms that take turns have whole slices of 4 steps, and lose a step at each
        (Pace(1, 2), Constraints(LINES, 5, TEN_MIN, takes_turns=True), 8, 3),
    ],
)
def test_steps_are_given_up_before_warmup(
    trial: Pace, limits: Constraints, steps: int, warmup: int
) -> None:
    fitted = fit(trial, limits)
    assert (fitted.steps, fitted.warmup) == (steps, warmup)


def test_a_cell_takes_its_start_and_steps_and_a_second() -> None:
    assert fit(Pace(2, 0.5), Constraints(LINES, 3, TEN_MIN)).cell_s == 1 + 2 + 0.5 * 23
    turns = fit(Pace(2, 0.5), Constraints(LINES, 3, TEN_MIN, takes_turns=True))
    assert turns.cell_s == 1 + 2 + 0.5 * (23 + 5)


def test_only_a_cut_is_told() -> None:
    assert fit(Pace(2, 1), Constraints(LINES, 3, TEN_MIN)).note == ""
    assert fit(Pace(2, 3), Constraints(LINES, 3, TEN_MIN)).note == (
        "The budget of 10 min has room for 3 blocks of 3 cells with 3 + 14 steps each, not 3 + "
        "20. A larger --budget keeps all of them."
    )


@pytest.mark.parametrize(
    ("trial", "limits", "ways"),
    [
        # 3 x 3 x (1 + 3 x 60 s) / 0.85 = 32 min
        (Pace(0, 60), Constraints(RUNS, 3, TEN_MIN), "--budget=35m"),
        (Pace(0, 0.2), Constraints(LINES, 52, TEN_MIN, steps=100), "--budget=1h15m"),
        (Pace(0, 60), Constraints(RUNS, 3, TEN_MIN, blocks=8), "--budget=35m"),
        (Pace(0, 3), Constraints(RUNS, 3, 20), "--budget=1m50s"),
    ],
)
def test_where_nothing_fits_a_sufficient_budget_is_named(
    trial: Pace, limits: Constraints, ways: str
) -> None:
    with pytest.raises(BadInput, match=re.escape(f"Use {ways}, or fewer tweak sets (--tweaks).")):
        fit(trial, limits)


@pytest.mark.parametrize("arms", [3, 7, 52])
@pytest.mark.parametrize("kind", list(FEWEST))
@pytest.mark.parametrize("step_s", [0.01, 0.9, 17.0, 400.0])
def test_the_budget_that_is_named_would_do(kind: str, arms: int, step_s: float) -> None:
    trial = Pace(30, step_s)
    with pytest.raises(BadInput) as refusal:
        fit(trial, Constraints(kind, arms, 1.0))
    named = re.search(r"--budget=(\w+)", str(refusal.value))
    assert named is not None
    budget_s = options.seconds(named[1])
    fitted = fit(trial, Constraints(kind, arms, budget_s))
    assert 3 * arms * fitted.cell_s <= ROOM * budget_s
    assert fitted.steps >= FEWEST[kind]
