"""Calibration judges on arrays; every word it counts is the one that `analysis.compare` and `analysis.studies.gate.gate` say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.compare import compare
from analysis.load import from_json
from analysis.robust import opinion
from analysis.stats import adjust, many
from analysis.stats.simulate import Sessions
from analysis.studies.gate.gate import gate
from analysis.studies.gate.limits import Limits
from tests.synthetic import STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.stats.simulate import Floats
    from analysis.terms import Comparison, Run

SETTING = {"vm.swappiness": "1"}
# Two workloads, one judged by throughput and one by a quantile, and true effects on either side of the margin: all words occur.
MADE = Made(
    arms=(STOCK, *(Arm(f"arm{gain:+}", gain, SETTING) for gain in (-0.08, -0.04, 0.0, 0.03, 0.06))),
    workloads=("cnn_train", "ddp_train"),
    primaries={"ddp_train": ("step_time_p10_s", "lower")},
    steps=7,
    run_cv=0.02,
)
QUANTILES = {"throughput_samples_per_s": None, "step_time_p10_s": 0.10}


def gains_on_arrays(run: Run, comparisons: Sequence[Comparison]) -> Floats:
    """The contrasts of one run as one family of arrays, straight from its steps."""
    wall_s = {(cell.workload, cell.tweakset, cell.block): cell.steps.wall_s[cell.steps.warmup :] for cell in run.cells if cell.steps}
    gains = []
    for one in comparisons:
        arms = ((one.workload, one.baseline), (one.workload, one.tweakset))
        steps_s = [[[wall_s[*arm, block] for arm in arms] for block in range(1, run.design.blocks + 1)]]
        gains.append(many.log_gains(Sessions(np.array(steps_s)), QUANTILES[one.primary_metric.name]))
    return np.stack(gains, axis=1)


@pytest.mark.parametrize("made", [MADE, replace(MADE, run_cv=0.005), replace(MADE, drift=0.05, blocks=10)], ids=["noisy", "quiet", "drift"])
def test_arrays_say_word_for_word_what_compare_and_gate_say(made: Made) -> None:
    verdicts, rulings = set(), set()
    for seed in range(10):
        run = from_json(saved_run(replace(made, seed=seed)), "trial")
        comparisons = compare(run)
        gains = gains_on_arrays(run, comparisons)
        effects = many.paired_effects(gains, made.margin)
        words = [many.WORDS[at] for at in many.words(effects)[0]]
        assert words == [one.verdict for one in comparisons]
        assert effects.p[0] == pytest.approx([one.primary.p if one.primary else None for one in comparisons], rel=1e-9)
        ranks = many.signed_rank_p(gains)
        assert ranks[0] == pytest.approx([opinion(one.primary).p for one in comparisons if one.primary], rel=1e-9)
        ruled = [many.RULINGS[at] for at in many.rulings(effects, 0.03)[0]]
        assert ruled == [one.ruling for one in gate(comparisons, Limits(0.03), ("stock", "all")).rulings]
        verdicts |= set(words)
        rulings |= set(ruled)
    assert verdicts == set(many.WORDS)
    assert rulings == set(many.RULINGS)


FAMILIES = st.integers(1, 8).flatmap(lambda m: st.lists(st.lists(st.floats(0, 1), min_size=m, max_size=m), min_size=1, max_size=4))


@given(FAMILIES)
def test_families_on_arrays_are_adjusted_as_lists_are(families: list[list[float]]) -> None:
    ps = np.array(families)
    assert many.holm(ps) == pytest.approx(np.array([adjust.holm(family) for family in families]))
    assert many.benjamini_hochberg(ps) == pytest.approx(np.array([adjust.benjamini_hochberg(family) for family in families]))


def test_the_first_contrasts_of_families_made_side_by_side() -> None:
    """Contrasts come one after the other, each for all families; families are the last axis."""
    one, other = (many.paired_effects(np.random.default_rng(seed).normal(0, 1, (5, 6)), 0.03) for seed in (1, 2))
    both = many.side_by_side([one, other])
    assert both.p.shape == (5, 2)
    assert (both.p[:, 1] == other.p).all()
    assert (many.first(both, 1).log_gain[:, 0] == one.log_gain).all()
