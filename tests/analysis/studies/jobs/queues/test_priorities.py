"""Who goes first waits less, and by how much: Cobham's queues, and those in which others are pushed aside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.queues.formulas import Inputs, mg1, mmc
from analysis.studies.jobs.queues.priorities import PriorityClass, non_preemptive, preemptive

TWO = (PriorityClass(1, 0.3, 1.0), PriorityClass(2, 0.5, 1.0))
LOADS = st.lists(st.floats(0.01, 0.3), min_size=1, max_size=3)
VARIATIONS = st.floats(0, 5)


def test_two_priorities_by_hand() -> None:
    """W₀ = (.3 + .5)·2/2 = .8; first .8/(1 · .7), second .8/(.7 · .2)."""
    first, second = non_preemptive(TWO)
    assert first.wait_s == pytest.approx(0.8 / 0.7)
    assert second.wait_s == pytest.approx(0.8 / 0.14)
    assert first.response_s == pytest.approx(0.8 / 0.7 + 1)
    assert (first.load, second.load) == pytest.approx((0.3, 0.8))


def test_two_priorities_of_whom_the_first_push_aside_by_hand() -> None:
    """First: alone, 1/.7. Second: 1/.7 + .8/(.7 · .2)."""
    first, second = preemptive(TWO)
    assert first.response_s == pytest.approx(1 / 0.7)
    assert second.response_s == pytest.approx(1 / 0.7 + 0.8 / 0.14)


@given(loads=LOADS, scv=VARIATIONS)
def test_one_priority_is_no_priority(loads: list[float], scv: float) -> None:
    """However many kinds there are in it: an M/G/1 of their sum."""
    kinds = [PriorityClass(1, load, 1.0, scv) for load in loads]
    wait = mg1(Inputs(sum(loads), 1.0, scv_service=scv)).wait_s
    assert [one.wait_s for one in non_preemptive(kinds)] == pytest.approx([wait] * len(kinds))
    assert [one.wait_s for one in preemptive(kinds)] == pytest.approx([wait] * len(kinds))


@given(loads=LOADS, service=st.floats(0.1, 10), scv=VARIATIONS)
def test_what_one_priority_gains_others_lose(loads: list[float], service: float, scv: float) -> None:
    """Kleinrock's conservation law: ΣU_k·W_k is that of first come, first served."""
    kinds = [PriorityClass(at, load / service, service, scv) for at, load in enumerate(loads)]
    waits = [one.wait_s or 0.0 for one in non_preemptive(kinds)]
    whole = mg1(Inputs(sum(loads) / service, service, scv_service=scv)).wait_s * sum(loads)
    assert sum(load * wait for load, wait in zip(loads, waits, strict=True)) == pytest.approx(whole)
    assert waits == sorted(waits)


@given(loads=LOADS, servers=st.integers(1, 8))
def test_several_servers_are_one_queue_in_all(loads: list[float], servers: int) -> None:
    """The mean wait over all jobs of equal service is that of the M/M/c, pushed aside or not."""
    kinds = [PriorityClass(at, load * servers, 1.0) for at, load in enumerate(loads)]
    whole = mmc(Inputs(sum(loads) * servers, 1.0, servers)).wait_s
    for served in (non_preemptive(kinds, servers), preemptive(kinds, servers)):
        mean = sum(load * (one.wait_s or 0.0) for load, one in zip(loads, served, strict=True)) / sum(loads)
        assert mean == pytest.approx(whole)
    assert preemptive(kinds, servers)[0].wait_s == pytest.approx(mmc(Inputs(loads[0] * servers, 1.0, servers)).wait_s)


@pytest.mark.parametrize("servers", [1, 2])
def test_those_before_the_ones_that_ask_for_too_much_still_have_a_wait(servers: int) -> None:
    """Servers never rest then: who goes first waits for the next of c to be done, s/c, over 1 - its load."""
    first, second = non_preemptive([PriorityClass(1, 0.4 * servers, 1.0), PriorityClass(2, 0.9 * servers, 1.0)], servers)
    assert first.wait_s == pytest.approx(1 / servers / 0.6)
    assert (second.wait_s, second.response_s) == (None, None)
    aside = preemptive([PriorityClass(1, 0.4 * servers, 1.0), PriorityClass(2, 0.9 * servers, 1.0)], servers)
    assert aside[0].wait_s == pytest.approx(mmc(Inputs(0.4 * servers, 1.0, servers)).wait_s)
    assert aside[1].wait_s is None


def test_the_order_in_which_kinds_are_named_does_not_matter() -> None:
    assert [one.wait_s for one in non_preemptive(TWO[::-1])] == [one.wait_s for one in non_preemptive(TWO)][::-1]
