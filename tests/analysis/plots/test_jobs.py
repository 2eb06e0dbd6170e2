"""Pictures of job streams: drawn from streams with known truth, and left out without streams."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.load import from_json
from analysis.plots import (
    fitting,
    jobs_faults,
    jobs_policies,
    pictures,
)
from analysis.plots.scene import Scene, scene_of
from analysis.studies.jobs import pictures_faults as faults
from analysis.studies.jobs import pictures_queues as queues
from analysis.studies.jobs.pictures_streams import holds, lanes, last_moment, waiting
from analysis.studies.jobs.queue_formulas import Inputs, mmc
from tests.analysis.plots.reading import faults as wrong
from tests.analysis.plots.reading import lines_of, points, refusal, said
from tests.analysis.studies.jobs.streams.made_runs import faulty_run, queueing_run, scheduling_run
from tests.synthetic import saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


NAMES = [name for name, one in pictures().items() if "job" in getattr(one, "REPORTS", ())]

DRAWN = ["jobs_over_time", "jobs_waits", "jobs_policies", "jobs_faults"]


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Seven queue settings, four policies, kills at four checkpoint intervals; 5 streams each."""
    return scene_of([queueing_run(count=150), scheduling_run(count=80), faulty_run()])


@pytest.fixture(scope="module")
def drawings(scene: Scene) -> dict[str, Figure]:
    """Every picture of streams that these runs allow."""
    return {name: pictures()[name].draw(scene) for name in DRAWN}


def test_nothing_is_cut_and_nothing_lies_over_anything_else(
    drawings: dict[str, Figure], scene: Scene
) -> None:
    assert {name: wrong(figure) for name, figure in drawings.items()} == {
        name: [] for name in DRAWN
    }
    assert not {"steps", "run_order"} & fitting(scene.runs).keys(), (
        "response times are no speeds of steps"
    )


def test_what_cannot_be_drawn_says_why() -> None:
    """No streams, one policy, faults without a fault-free stream for comparison."""
    run = from_json(saved_run(), "plain.json")
    assert not set(NAMES) & fitting([run]).keys()
    for name in NAMES:
        assert re.search("job|stream|fault", refusal(pictures()[name], scene_of([run])))
    assert "no two policies" in refusal(
        jobs_policies, scene_of([scheduling_run(("fifo",), count=60)])
    )
    faulty = faulty_run((0.0, 0.5), blocks=2, count=30)
    alone = replace(faulty, cells=tuple(cell for cell in faulty.cells if "fault=" in cell.workload))
    assert "nothing to compare the faults with" in refusal(jobs_faults, scene_of([alone]))


def test_waits_stand_at_their_load_beside_the_curve_of_the_model(
    drawings: dict[str, Figure],
) -> None:
    """Poisson arrivals at two slots, without faults; the curve is W_q/E[S] = C/(c(1 - U))."""
    axes = drawings["jobs_waits"].axes[1]
    marks = [point for line in lines_of(axes, "o") for point in points(line)]
    assert [round(load, 1) for load, _ in sorted(marks)] == [0.3, 0.4, 0.6, 0.8, 0.8]
    curve = next(
        line for line in axes.lines if line.get_color() == "#1a1a1a" and len(points(line)) > 100
    )
    load, wait = points(curve)[120]
    assert wait == pytest.approx(mmc(Inputs(2 * load, 1.0, 2)).wait_s)


def test_policies_stand_with_their_paired_ratio_the_least_first(
    drawings: dict[str, Figure], scene: Scene
) -> None:
    (_, place), *_ = queues.places_of(scene)
    rows = queues.rows_of(place, "mean_wait_s")
    ratio = next(one for one in place.policies.waits if one.arm == rows[0].name)
    ratios = [row.marks[0].ends for row in rows]
    assert ratios[0][:2] == pytest.approx((ratio.value, ratio.low))
    assert [ratio for ratio, *_ in ratios] == sorted(ratio or 0.0 for ratio, *_ in ratios)
    assert rows[0].marks[0].texts[0] in said(drawings["jobs_policies"])


def test_jobs_never_share_a_lane_and_each_slot_has_a_lane(scene: Scene) -> None:
    for one in scene.streams:
        for stream in one.streams:
            held = holds(stream)
            placed = lanes(held, last_moment(stream, held))
            assert max(lane for _, lane in placed) + 1 <= (stream.slots or 0)
            for lane in {lane for _, lane in placed}:
                mine = [job for job, its in placed if its == lane]
                assert all(
                    (job.end_s or 0.0) <= later.begin_s + 1e-9 for job, later in pairwise(mine)
                )


def test_the_queue_is_counted_from_submission_to_the_slot(scene: Scene) -> None:
    """Its integral over time is the sum of all waits; jobs without a slot wait to the end."""
    stream = scene.streams[0].streams[0]
    times, counts = waiting(stream)
    waited = sum((job.admit_s or 0.0) - (job.submit_s or 0.0) for job in stream.jobs)
    assert float((counts[:-1] * np.diff(times)).sum()) == pytest.approx(waited)
    jobs = tuple(
        replace(job, admit_s=None, start_s=None, end_s=None, outcome="never started")
        for job in stream.jobs
    )
    assert waiting(replace(stream, jobs=jobs))[1][-1] == len(jobs)


def test_an_earlier_end_due_to_lost_jobs_is_not_drawn_as_faster(scene: Scene) -> None:
    arm = faults.arms_of(scene)[0]
    assert arm.slowdown is not None
    quick = replace(arm, slowdown=arm.slowdown._replace(value=0.5, p_adjusted=0.001))
    assert [faults.verdict(replace(quick, lost_jobs=lost)) for lost in (0, 9)] == [
        "faster",
        "lost jobs",
    ]
    assert faults.words(replace(arm, slowdown=None)) == "no job done"
