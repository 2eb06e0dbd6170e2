"""`contrasts`: any column against its baseline, paired by block, as scipy has it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.contrasts import contrasts
from analysis.terms import Refused, UnknownName

WAITS_S = {"fifo": [4.0, 5.0, 6.5, 3.9], "sjf": [2.0, 2.9, 3.1, 2.2], "fair": [4.4, 4.9, 6.6, 4.1]}


def frame(values: dict[str, list[float]] = WAITS_S) -> pd.DataFrame:
    rows = [
        {
            "run": "r",
            "block": block,
            "policy": policy,
            "load": 0.8,
            "wait_s": value,
            "late": value > 4.5,
        }
        for policy, own in values.items()
        for block, value in enumerate(own, 1)
    ]
    return pd.DataFrame(rows).astype({"late": float})


def row(result: pd.DataFrame, arm: str, metric: str = "wait_s") -> pd.Series:
    (found,) = (
        one for _, one in result[(result["arm"] == arm) & (result["metric"] == metric)].iterrows()
    )
    return found


def test_a_ratio_is_the_geometric_mean_of_pairs_with_students_t() -> None:
    found = row(contrasts(frame(), "policy", "fifo", {"wait_s": "log"}), "sjf")
    changes = np.log(np.array(WAITS_S["sjf"]) / np.array(WAITS_S["fifo"]))
    expected = stats.ttest_1samp(changes, 0)
    for level, ends in ((0.95, ("low", "high")), (0.90, ("low90", "high90"))):
        interval = expected.confidence_interval(level)
        assert [math.log(found[end]) for end in ends] == pytest.approx(
            [interval.low, interval.high]
        )
    assert found["p"] == pytest.approx(expected.pvalue)
    assert found["value"] == pytest.approx(
        stats.gmean(WAITS_S["sjf"]) / stats.gmean(WAITS_S["fifo"])
    )
    assert (found["n"], found["missing"]) == (4, "")
    assert [found["baseline"], found["candidate"]] == pytest.approx(
        [stats.gmean(WAITS_S[name]) for name in ("fifo", "sjf")]
    )


def test_a_difference_keeps_the_unit_and_bears_zeros() -> None:
    values = {"off": [0.0, 0.1, 0.0, 0.2], "on": [0.3, 0.2, 0.4, 0.2]}
    found = row(contrasts(frame(values), "policy", "off", {"wait_s": "raw"}), "on")
    expected = stats.ttest_rel(values["on"], values["off"])
    assert [found["value"], found["p"]] == pytest.approx([0.2, expected.pvalue])


def test_holm_counts_a_family() -> None:
    result = contrasts(frame(), "policy", "fifo", {"wait_s": "log", "late": "raw"})
    ps = sorted(result.loc[result["metric"] == "wait_s", "p"])
    assert list(
        result.loc[result["metric"] == "wait_s", "p_adjusted"].sort_values()
    ) == pytest.approx([2 * ps[0], max(2 * ps[0], ps[1])])
    together = contrasts(
        frame(), "policy", "fifo", {"wait_s": "log", "late": "raw"}, family=("load",), by=("load",)
    )
    assert together["p_adjusted"].min() > result["p_adjusted"].min()


def test_pairs_of_one_unit_count_once() -> None:
    first = frame()
    jobs = pd.concat(
        [first.assign(job=number, wait_s=first["wait_s"] + number) for number in (0, 1)]
    )
    result = contrasts(
        jobs, "policy", "fifo", {"wait_s": "raw"}, within=("block", "job"), unit=("block",)
    )
    alone = contrasts(frame(), "policy", "fifo", {"wait_s": "raw"}, within=("block",))
    assert row(result, "sjf")[["n", "value", "p"]].tolist() == pytest.approx(
        row(alone, "sjf")[["n", "value", "p"]].tolist()
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"fifo": [1.0, 2.0], "sjf": [1.1, 2.3]}, "fewer than 3 blocks: no interval"),
        (
            {"fifo": [1.0, 2.0, 3.0], "sjf": [1.1, 0.0, 3.3]},
            "0 in at least one block, so no ratio can be computed",
        ),
        ({"fifo": [1.0, 2.0, 4.0], "sjf": [2.0, 4.0, 8.0]}, "the same in every block: no interval"),
        ({"fifo": [1.0, math.nan], "sjf": [math.nan, 2.0]}, "no block has both"),
    ],
)
def test_what_carries_no_interval_says_why(values: dict[str, list[float]], why: str) -> None:
    found = row(contrasts(frame(values), "policy", "fifo", {"wait_s": "log"}), "sjf")
    assert (found["missing"], math.isnan(found["p_adjusted"])) == (why, True)


@pytest.mark.parametrize(
    ("arm", "baseline", "metric", "error", "named"),
    [
        ("polycy", "fifo", "wait_s", UnknownName, "policy"),
        ("policy", "fifu", "wait_s", UnknownName, "fifo"),
        ("policy", "fifo", "waits_s", UnknownName, "wait_s"),
        ("load", 0.8, "wait_s", Refused, "load"),
    ],
)
def test_what_does_not_exist_is_answered_with_the_nearest(
    arm: str, baseline: object, metric: str, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        contrasts(frame(), arm, baseline, {metric: "log"})
