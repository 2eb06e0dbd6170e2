"""A finished cell in the saved JSON, field by field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics import metrics_of
from analysis.terms import Steps
from fixtures import record
from fixtures.kernel.machine import ChangeSet, Restored, Write
from fixtures.targets.local import Local
from fixtures.terms import (
    CellSpec,
    Script,
    Segment,
    Step,
    Tweak,
    TweakSet,
    WorkloadRun,
)
from fixtures.tweaks.local import Plan

SWAPPINESS, RMEM, THP = (
    "/proc/sys/vm/swappiness",
    "/proc/sys/net/ipv4/tcp_rmem",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
PLAN = Plan(
    (
        Write(SWAPPINESS, "10", "vm.swappiness"),
        Write(RMEM, "4096 131072 6291456", "net.ipv4.tcp_rmem"),
    )
)
# tcp_rmem stood there already; THP changed without being asked for by name.
BEFORE = {SWAPPINESS: "60", RMEM: "4096\t131072\t6291456", THP: "always [madvise] never"}
EFFECTS = ChangeSet(
    BEFORE,
    {SWAPPINESS: ("60", "10"), THP: ("always [madvise] never", "[always] madvise never")},
    0.0012345678,
)
POSITIVE = st.floats(1e-6, 1e3)


def opened() -> dict[str, Any]:
    return record.opened(
        CellSpec("study", "idle", "one", 1, 2, 3), Local(Path()), "2026-01-01T00:00:00+00:00"
    )


def applied() -> dict[str, Any]:
    found = opened()
    record.applied(found, PLAN, EFFECTS)
    return found


def step(
    index: int, wall_s: float, *, warmup: bool = False, samples: int = 8, tokens: int = 0
) -> Step:
    return Step(index, 100.0 + index, wall_s, 1.5 * wall_s, samples, tokens, 0.5, warmup)


def ran(
    steps: Sequence[Step], error: str | None = None, last_lines: tuple[str, ...] = ()
) -> dict[str, Any]:
    found = opened()
    record.steps(
        found,
        WorkloadRun(tuple(steps), {"device": "cpu"}, {"nofile": (1, 2)}, 7, error, last_lines),
    )
    return found


@pytest.mark.parametrize("first", ["failed", "skipped"])
def test_the_first_bad_word_about_a_cell_stays(first: str) -> None:
    """Its teardown goes well, or fails as a consequence: neither is why the cell has no result."""
    found = opened()
    record.close(found, "failed" if first == "failed" else "skipped", "it hung", 1.0)
    record.close(found, "measured", None, 2.0)
    record.close(found, "failed", "later", 3.0)
    assert (found["outcome"], found["reason"], found["duration_s"]) == (first, "it hung", 1.0)


def test_a_measured_cell_can_still_fail_in_its_teardown() -> None:
    found = opened()
    record.close(found, "measured", None, 1.0)
    record.close(found, "failed", "not put back", 2.0)
    assert (found["outcome"], found["reason"]) == ("failed", "not put back")


@pytest.mark.parametrize(
    ("result", "now"),
    [
        (
            Restored(back={SWAPPINESS: ("10", "61")}),
            "61",
        ),  # the kernel rounds some values: what stands there, not what was meant
        (Restored(left_alone={SWAPPINESS: ("33", "10")}), "33"),  # another's
        (Restored(stuck={SWAPPINESS: "Invalid argument"}), None),
    ],
)
def test_what_did_not_come_back_is_not_said_to_be_restored(
    result: Restored, now: str | None
) -> None:
    found = applied()
    record.restored(found, result)
    assert found["tweak"]["restored"].get("vm.swappiness") == now
    assert found["tweak"].get("left_alone", {}) == (
        {SWAPPINESS: ["33", "10"]} if result.left_alone else {}
    )


def test_throughput_is_all_samples_over_all_time() -> None:
    """1 sample in 1 s and 1 in 3 s are 0.5 per second; the mean of the rates would be 0.67."""
    metrics = ran([step(0, 100.0, warmup=True), step(1, 1.0, samples=1), step(2, 3.0, samples=1)])[
        "metrics"
    ]
    assert metrics["throughput_samples_per_s"] == 0.5


@given(
    st.lists(st.tuples(POSITIVE, st.integers(1, 64), st.integers(1, 4096)), min_size=1, max_size=30)
)
def test_metrics_are_sums_and_quantiles_of_the_measured_steps(
    rows: list[tuple[float, int, int]],
) -> None:
    """Computed the slow way, by definition (quantile: linear, Hyndman & Fan type 7)."""
    wall_s, samples, tokens = (
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
    )
    found = record.metrics(wall_s, [2 * w for w in wall_s], samples, tokens)
    total_s = math.fsum(wall_s)

    def quantile(share: float) -> float:
        ordered, place = sorted(wall_s), share * (len(wall_s) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    assert found == pytest.approx(
        {
            "throughput_samples_per_s": sum(samples) / total_s,
            "throughput_tokens_per_s": sum(tokens) / total_s,
            "step_time_p10_s": quantile(0.1),
            "step_time_median_s": quantile(0.5),
            "step_time_mean_s": total_s / len(rows),
            "cpu_s_per_step": 2 * total_s / len(rows),
        }
    )


def test_a_told_rate_is_a_column_and_its_median_a_metric() -> None:
    rates = enumerate((900.0, 10.0, 40.0, 20.0))
    found = ran([replace(step(n, 1.0, warmup=n == 0), rate_per_s=rate) for n, rate in rates])
    assert found["steps"]["rate_per_s"] == [900.0, 10.0, 40.0, 20.0]
    assert found["metrics"]["rate_median_per_s"] == 20.0
    columns = {
        name: tuple(values) for name, values in found["steps"].items() if isinstance(values, list)
    }
    read = Steps(
        columns["wall_s"], columns["samples"], None, None, 1, rate_per_s=columns["rate_per_s"]
    )
    assert metrics_of(read)["rate_median_per_s"] == 20.0  # as the other side makes it


def test_a_failed_run_keeps_steps_and_last_lines_but_no_metrics() -> None:
    found = ran([step(0, 1.0)], error="it died", last_lines=("Traceback", "MemoryError"))
    assert found["last_lines"] == ["Traceback", "MemoryError"]
    assert "metrics" not in found
    assert record.index_entry({**found, "outcome": "failed", "reason": "it died"}, "f")[
        "last_lines"
    ] == ["Traceback", "MemoryError"]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_rounding_keeps_what_a_sensor_means(value: float, count: int) -> None:
    rounded = record.rounded_columns({"x": [value, None], "n": [count]})
    assert rounded["x"][0] == pytest.approx(value, rel=1e-8, abs=1e-300)
    assert rounded["x"][1] is None
    assert rounded["n"] == [count]


def test_a_tweak_set_is_recorded_with_the_hash_of_each_script() -> None:
    """sha256 of "true": `printf true | sha256sum`."""
    known = TweakSet(
        "one",
        "one.yaml",
        "0" * 64,
        "about",
        (Tweak("sysctl", "k", "v", "p"),),
        (Script("p", "apply", "true"),),
        ("odd",),
    )
    assert record.tweakset(known) == {
        "path": "one.yaml",
        "sha256": "0" * 64,
        "description": "about",
        "requested": [{"kind": "sysctl", "key": "k", "value": "v", "package": "p"}],
        "scripts": [
            {
                "package": "p",
                "stage": "apply",
                "sha256": "b5bea41b6c623f7c09f1bf24dcae58ebab3c0cdd90ad966bc43a45b44867e12b",
            }
        ],
        "warnings": ["odd"],
    }


def test_with_turns_a_cell_counts_only_steps_under_its_set() -> None:
    """Two counted steps after a settle step, in each arm: under the set, 16 samples in 4 + 6 s."""
    walls = [9.0, 7.0, 2.0, 2.0, 7.0, 4.0, 6.0]
    segments = (Segment(1, "found", 1, 1, 2), Segment(1, "set", 4, 1, 2))
    steps = tuple(step(index, wall_s, warmup=index == 0) for index, wall_s in enumerate(walls))
    found = opened()
    record.steps(found, WorkloadRun(steps, {}, {}, 7, segments=segments))
    assert found["segments"][1] == {"pair": 1, "arm": "set", "first": 4, "settle": 1, "steps": 2}
    assert record.rounds_s(found) == [4.0, 6.0]
    assert found["metrics"]["throughput_samples_per_s"] == pytest.approx(1.6)
    assert found["metrics"]["step_time_mean_s"] == 5.0
    assert record.rounds_s(ran(steps)) == walls[1:]
