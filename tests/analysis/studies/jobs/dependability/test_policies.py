"""What a policy spares a stream's own jobs under a fault that fifo met too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.answer import of_parts
from analysis.render import text
from analysis.studies.jobs.dependability.page import report_page
from analysis.studies.jobs.dependability.study import LOST, spared
from analysis.studies.jobs.records import Fault, Stream
from tests.analysis.studies.jobs.dependability.made_streams import job, stream

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

FAIR = ":policy=fair_share"
FLOODED = [Fault("flood", 1, 2)]


def met(block: int, response_s: float, policy: str = "", *, done: int = 3) -> Stream:
    """Three jobs of its own, so many of which are done, and two of the flood, which take ten times as long if the policy is not fifo."""
    own = [job(at, at, at + response_s, "done" if at < done else "failed") for at in range(3)]
    floods = [job(at, 1, 1 + (100 if policy else 10)) for at in (3, 4)]
    made = stream(own + floods, faults=FLOODED, fault="flood", block=block)
    return replace(made, workload=made.workload + policy)


def quiet(block: int, policy: str = "") -> Stream:
    made = stream([job(at, at, at + 1) for at in range(3)], block=block)
    return replace(made, workload=made.workload + policy)


def test_jobs_of_the_flood_have_no_part_in_what_the_own_ones_gain(snapshot: SnapshotAssertion) -> None:
    """Own jobs take 4 s under fifo and 1.8 to 2.2 s under fair share; those of the flood, 10 and 100 s, count for neither."""
    streams = [one for block, took_s in enumerate((1.8, 2.0, 2.2)) for one in (met(block, 4), met(block, took_s, FAIR), quiet(block))]
    (one,) = spared(streams)
    assert (one.policy, one.label, one.blocks) == ("fair_share", "flood", 3)
    assert one.response is not None
    assert one.response.value == pytest.approx((1.8 * 2.0 * 2.2) ** (1 / 3) / 4)
    assert one.p == one.response.p is not None
    assert text.render(of_parts({}, report_page((), [one], (), 0.1))) == snapshot


def test_p_is_holms_over_all_policies_and_faults() -> None:
    took = {"": (4, 4, 4), FAIR: (1.8, 2.0, 2.2), ":policy=sjf": (3.0, 4.1, 4.0)}
    streams = [met(block, float(some[block]), policy) for policy, some in took.items() for block in range(3)]
    fair, sjf = spared([*streams, *(quiet(block) for block in range(3))])
    assert fair.response is not None
    assert fair.response.p is not None
    assert fair.p == pytest.approx(2 * fair.response.p)
    assert sjf.p == sjf.response.p if sjf.response else False


def test_a_policy_that_lost_other_jobs_is_not_compared() -> None:
    streams = [one for block in range(3) for one in (met(block, 4), met(block, 2, FAIR, done=2), quiet(block))]
    (one,) = spared(streams)
    assert (one.response, one.p, one.why) == (None, None, LOST)
    assert LOST in " ".join(text.render(of_parts({}, report_page((), [one], (), 0.1))).split())


@pytest.mark.parametrize(
    "other", [quiet(1, FAIR), met(2, 2, FAIR), met(1, 2), replace(met(1, 2, FAIR), workload=f"job_stream{FAIR}:fault_size=7")]
)
def test_only_the_same_fault_in_the_same_block_is_compared(other: Stream) -> None:
    assert spared([met(1, 4), other]) == []
