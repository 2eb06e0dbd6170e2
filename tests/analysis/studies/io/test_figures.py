"""Figures of a run: formulas on small numbers, invariants, and conditions for refusal."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.io.figures import judge
from analysis.studies.io.terms import GIB, MIB, Checkpoint, Epoch, IoRun
from tests.dlio_like import epoch, io_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

LOADS = [1.0, *[0.01] * 19]  # 20 steps of 0.1 s computation; the first batch takes a second


def value(run: IoRun, name: str) -> float:
    """Return the formula's result, valid or not."""
    return fmean(judge(run).responses[name].per_epoch)


def why(run: IoRun, name: str) -> str:
    response = judge(run).responses[name]
    assert response.value is None
    return response.why_missing or ""


def test_why_there_is_no_figure(snapshot: SnapshotAssertion) -> None:
    """Each beside the figures that stand.

    10 steps leave 9; of 20 must follow 19 do; S - 2 of one step is -1.
    """
    unread = io_run(epoch(LOADS), epoch(LOADS, rank=1, rchar_bytes=5))
    idle = io_run(epoch([0.1] * 20, [0.0] * 20), computation_time_s=0.0)
    reasons = {
        "ten steps": why(
            io_run(epoch([0.5] * 10), read_threads=0, prefetch_factor=2), "au_steady_percent"
        ),
        "five readers": why(
            io_run(epoch([0.5] * 20), read_threads=5, prefetch_factor=2), "au_steady_percent"
        ),
        "two steps": why(io_run(epoch([0.5] * 2)), "samples_per_s_dlio"),
        "one step": why(io_run(epoch([0.5])), "samples_per_s_dlio"),
        "nothing computed": why(idle, "au_whole_percent"),
        "more computation than time": why(
            io_run(Epoch(1, 0, 0.0, 1.9, (0.0,) * 20, (0.1,) * 20)), "samples_per_s_whole"
        ),
        "no time": why(
            io_run(Epoch(1, 0, 5.0, 5.0, (0.1,) * 20, (0.1,) * 20)), "samples_per_s_whole"
        ),
        "no checkpoint": why(unread, "checkpoint_gb_per_s"),
        "checkpoint without size": why(
            io_run(epoch(LOADS), checkpoints=(Checkpoint(None, 1.0),)), "checkpoint_gb_per_s"
        ),
    } | {
        name: why(unread, name) for name in ("mb_per_s_read", "mb_per_s_fetched", "device_mb_per_s")
    }
    assert reasons == snapshot
    assert judge(idle).value("samples_per_s_whole") == pytest.approx(4 / 0.1)


SIZE = int(80 * MIB)
READ: dict[str, Any] = {"rchar_bytes": SIZE, "read_bytes": 0}
# Each formula on numbers small enough for the head: what a run is, the figures by hand.
BY_HAND: dict[str, tuple[IoRun, dict[str, float]]] = {
    # T = 1.0 + 19 x 0.01 + 20 x 0.1 = 3.19 s. Steady: 1.9 s of computation in 3.19 - 1.1 = 2.09 s.
    # Whole: 2.0 in 3.19. Batch 4: 19 steps in 2.09 s, all 20 in 3.19 s, and DLIO's 18 in the 2.09 s
    # that hold 19. Records of 1 MiB make MiB/s of it.
    "one rank": (
        io_run(epoch(LOADS)),
        {"au_steady_percent": 100 * 1.9 / 2.09, "au_whole_percent": 100 * 2.0 / 3.19}
        | {f"{rate}_steady": 19 * 4 / 2.09 for rate in ("samples_per_s", "mb_per_s_nominal")}
        | {f"{rate}_whole": 20 * 4 / 3.19 for rate in ("samples_per_s", "mb_per_s_nominal")}
        | {f"{rate}_dlio": 18 * 4 / 2.09 for rate in ("samples_per_s", "mb_per_s_nominal")},
    ),
    "DLIO 2.0.0 counts all steps over all time": (
        io_run(epoch(LOADS), dlio_counts_all=True),
        {"samples_per_s_dlio": 20 * 4 / 3.19},
    ),
    # Two left out at the start and three at the end: 15 steps of 0.11 s remain.
    "other steps left out": (
        io_run(
            epoch([1.0, 0.5, *[0.01] * 15, 2.0, 2.0, 2.0]),
            excluded_start_steps=2,
            excluded_end_steps=3,
        ),
        {"au_steady_percent": 100 * 0.1 / 0.11, "samples_per_s_steady": 4 / 0.11},
    ),
    # 0.5 s beyond load and computation: 0.5 of 3.69 s is neither, and both utilisations fall.
    "barriers and the readers' end": (
        io_run(epoch(LOADS, over_s=0.5)),
        {
            "barrier_share": 0.5 / 3.69,
            "au_steady_percent": 100 * 1.9 / 2.59,
            "first_step_share": 1.0 / 3.69,
        },
    ),
    # Rank 1 waits 0.1 s for every batch: 50 % of the time of its retained steps. Utilisation is
    # averaged, samples are added.
    "two ranks": (
        io_run(epoch(LOADS), epoch([1.0, *[0.1] * 19], rank=1)),
        {
            "au_steady_percent": (100 * 1.9 / 2.09 + 50) / 2,
            "samples_per_s_steady": 76 / 2.09 + 76 / 3.8,
        },
    ),
    # A checkpoint by steps: 20 steps at 90.909 %, then 10 at 100 x 0.9 / 1.8: weighted by their
    # steps.
    "two blocks": (
        io_run(epoch(LOADS), epoch([1.0, *[0.1] * 9], block=2)),
        {
            "au_steady_percent": (20 * 100 * 1.9 / 2.09 + 10 * 50) / 30,
            "au_whole_percent": 100 * 3.0 / (3.19 + 2.9),
            "samples_per_s_whole": 30 * 4 / (3.19 + 2.9),
        },
    ),
    # Each rank 80 MiB in 3.19 s; rank 0 alone looked at the device, which gave 40 MiB to everybody.
    "bytes": (
        io_run(epoch(LOADS, device_read_bytes=SIZE // 2, **READ), epoch(LOADS, rank=1, **READ)),
        {"mb_per_s_read": 2 * 80 / 3.19, "mb_per_s_fetched": 0.0, "device_mb_per_s": 40 / 3.19},
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_each_formula_by_hand(case: str) -> None:
    run, figures = BY_HAND[case]
    assert {name: value(run, name) for name in figures} == pytest.approx(figures)


def test_checkpoints_are_all_bytes_over_all_time() -> None:
    """1 GiB in 1 s and 1 GiB in 3 s are 0.5 GiB/s; a mean of the two rates would say 0.67."""
    marks = (Checkpoint(GIB, 1.0), Checkpoint(GIB, 3.0))
    assert judge(io_run(epoch(LOADS), checkpoints=marks)).value(
        "checkpoint_gb_per_s"
    ) == pytest.approx(0.5)


TIMES = st.floats(0, 100)
STEPS = st.lists(st.tuples(TIMES, st.floats(0.001, 10)), min_size=3, max_size=60)


@given(STEPS, TIMES, st.integers(1, 400))
def test_throughput_is_utilisation_by_another_name(
    steps: list[tuple[float, float]], over_s: float, batch: int
) -> None:
    run = io_run(
        epoch([load for load, _ in steps], [compute for _, compute in steps], over_s=over_s),
        batch_size=batch,
    )
    assert judge(run).identity.measured == pytest.approx(1, rel=1e-6)
