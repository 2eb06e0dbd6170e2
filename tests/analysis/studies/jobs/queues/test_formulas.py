"""Queue formulas: textbook figures, limits that must agree, and loads without a solution."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.studies.jobs import queue_formulas as formulas
from analysis.studies.jobs.queue_formulas import (
    Inputs,
    PriorityClass,
    Unstable,
    allen_cunneen,
    erlang_b,
    erlang_c,
    kingman,
    mg1,
    mmc,
    non_preemptive,
    response_quantile,
    sakasegawa,
    wait_quantile,
)
from analysis.terms import Refused

RATES = st.floats(0.01, 100)
SERVERS = st.integers(1, 60)
LOADS = st.floats(0.01, 0.99)


def test_the_gateway_of_jain_an_m_m_1() -> None:
    """Example 31.1: 125 packets/s of 2 ms each.

    Load .25, E[n] = .25/.75, E[R] = 2/.75 ms, 90 % within -E[R]·ln .1.
    """
    found = mmc(Inputs(125, 0.002))
    assert found.load == 0.25
    assert found.inside == pytest.approx(1 / 3, rel=1e-12)
    assert found.response_s == pytest.approx(0.002 / 0.75, rel=1e-12)
    assert found.wait_s == pytest.approx(0.25 * 0.002 / 0.75, rel=1e-12)
    assert response_quantile(found, 0.9) == pytest.approx(6.1402e-3, rel=1e-5)


def test_the_five_terminals_of_jain_an_m_m_5() -> None:
    """10 an hour, 20 minutes each: a = 10/3. In minutes."""
    asked = Inputs(10 / 60, 20, 5)
    found = mmc(asked)

    assert found.p_wait == pytest.approx(0.3266693, rel=1e-6)
    assert found.waiting == pytest.approx(0.6533386, rel=1e-6)
    assert found.inside == pytest.approx(3.9866719, rel=1e-6)
    assert (found.wait_s, found.response_s) == pytest.approx((3.920031, 23.920031), rel=1e-6)
    assert wait_quantile(found, 0.9) == pytest.approx(14.2053, rel=1e-5)
    assert wait_quantile(found, 0.6) == 0.0  # two thirds do not wait


@pytest.mark.parametrize(
    ("servers", "offered", "blocked", "waits", "wait"),
    [
        (1, 0.8, 0.444444, 0.8, 4),
        (2, 1, 0.2, 0.333333, 0.333333),
        (2, 1.6, 0.329897, 0.711111, 1.777778),
        (3, 2, 0.210526, 0.444444, 0.444444),
        (10, 8, 0.121661, 0.409180, 0.204590),
    ],
)
def test_erlang_b_and_c_and_the_wait_in_service_times(
    servers: int, offered: float, blocked: float, waits: float, wait: float
) -> None:
    assert erlang_b(servers, offered) == pytest.approx(blocked, abs=1e-6)
    assert erlang_c(servers, offered) == pytest.approx(waits, abs=1e-6)
    assert mmc(Inputs(offered, 1, servers)).wait_s == pytest.approx(wait, abs=1e-6)


def test_a_thousand_servers_overflow_nothing() -> None:
    """990 Erlang by sums in logarithms: the c-th term/(1 - .99) over itself and all before."""
    terms = [k * math.log(990) - math.lgamma(k + 1) for k in range(1001)]
    top = max(terms)
    last = math.exp(terms[-1] - top) / (1 - 0.99)
    assert erlang_c(1000, 990) == pytest.approx(
        last / (math.fsum(math.exp(term - top) for term in terms[:-1]) + last), rel=1e-9
    )


@pytest.mark.parametrize(("scv", "wait"), [(0, 2), (0.5, 3), (1, 4), (4, 10)])
def test_an_m_g_1_of_pollaczek_and_khinchine(scv: float, wait: float) -> None:
    asked = Inputs(0.8, 1, scv_service=scv)
    assert mg1(asked).wait_s == pytest.approx(wait, rel=1e-12)
    assert kingman(asked).wait_s == pytest.approx(wait, rel=1e-12)


def test_g_g_c_of_allen_and_cunneen() -> None:
    assert allen_cunneen(Inputs(1.6, 1, 2, 1, 0)).wait_s == pytest.approx(0.888889, abs=1e-6)
    assert erlang_c(3, 2.7) == pytest.approx(0.8170610, rel=1e-6)
    assert allen_cunneen(Inputs(2.7, 1, 3, 1, 4)).wait_s == pytest.approx(6.808842, rel=1e-6)


@pytest.mark.parametrize(
    ("servers", "offered", "factor"), [(2, 1.6, 1.809131), (3, 2, 0.476464), (10, 8, 0.219448)]
)
def test_sakasegawas_factor(servers: int, offered: float, factor: float) -> None:
    assert sakasegawa(Inputs(offered, 1, servers)).wait_s == pytest.approx(factor, rel=1e-6)


@given(rate=RATES, load=LOADS)
def test_all_models_meet_where_their_assumptions_do(rate: float, load: float) -> None:
    """One server, Poisson, exponential: an M/M/1 by every formula."""
    asked = Inputs(rate, load / rate)
    wait = load**2 / (1 - load) / rate
    assert [
        model(asked).wait_s for model in (mmc, mg1, kingman, allen_cunneen, sakasegawa)
    ] == pytest.approx([wait] * 5, rel=1e-9)


def test_a_thousand_servers_for_one_job_wait_for_nobody() -> None:
    found = mmc(Inputs(1, 1, 1000))
    assert (found.p_wait, found.wait_s) == (0, 0)
    assert response_quantile(found, 0.9) == pytest.approx(math.log(10))
    assert wait_quantile(found, 0.9999) == 0


def test_what_would_be_enough_is_said() -> None:
    """10 · 0.2 = 2 Erlang: two servers never catch up."""
    for rate, service_s in ((2.5, 1), (10, 0.2)):
        with pytest.raises(Unstable, match="3 servers"):
            mmc(Inputs(rate, service_s, 2))


@given(rate=RATES, load=LOADS, servers=st.integers(1, 20), share=st.floats(0.01, 0.999))
def test_percentiles_of_waits_and_responses_return_their_share(
    rate: float, load: float, servers: int, share: float
) -> None:
    service = load * servers / rate
    found = mmc(Inputs(rate, service, servers))
    assume(found.p_wait > 1e-12)  # else nobody waits, and its tail has no digits
    leaves = (servers - load * servers) / service
    wait = wait_quantile(found, share)
    assert wait == 0.0 or 1 - found.p_wait * math.exp(-leaves * wait) == pytest.approx(
        share, rel=1e-9
    )
    response = response_quantile(found, share)
    assert response >= wait
    steps = 4000
    middle = [(at + 0.5) * response / steps for at in range(steps)]
    waited = (
        math.fsum(
            leaves * math.exp(-leaves * one) * -math.expm1(-(response - one) / service)
            for one in middle
        )
        * response
        / steps
    )
    assert (1 - found.p_wait) * -math.expm1(
        -response / service
    ) + found.p_wait * waited == pytest.approx(share, abs=2e-3)


def test_an_m_m_1_with_room_for_two() -> None:
    """Weights 1, ½, ¼: loss 1/7; admitted λ·6/7; one waits 1/7 of the time: W_q = 1/3."""
    found = formulas.mmck(Inputs(0.5, 1), 2)
    assert found.loss == pytest.approx(1 / 7)
    assert found.wait_s == pytest.approx(1 / 3)
    assert found.p_wait == pytest.approx(1 / 3)
    assert found.inside == pytest.approx((1 * 2 + 2 * 1) / 7)


def test_too_much_work_is_turned_away_and_has_a_steady_state() -> None:
    found = formulas.mmck(Inputs(10, 1), 1000)
    assert found.loss == pytest.approx(0.9)
    assert found.rate_per_s == pytest.approx(1)


def test_mean_values_of_two_users_and_two_stations_by_hand() -> None:
    """D = 1, 2, no think time. n = 1: R = 1, 2, Q = 1/3, 2/3. n = 2: R = 4/3, 10/3, X = 3/7."""
    found = formulas.mva({"cpu": 1.0, "disk": 2.0}, 2)
    assert found.rate_per_s == pytest.approx(3 / 7)
    assert found.response_s == pytest.approx(14 / 3)
    assert found.jobs == pytest.approx({"cpu": 4 / 7, "disk": 10 / 7})
    assert found.utilisation == pytest.approx({"cpu": 3 / 7, "disk": 6 / 7})


@given(
    demands=st.lists(st.floats(0.01, 10), min_size=1, max_size=4),
    users=st.integers(1, 60),
    think=st.floats(0, 50),
)
def test_closed_systems_keep_their_bounds_and_laws(
    demands: list[float], users: int, think: float
) -> None:
    found = formulas.mva(
        {f"station {at}": demand for at, demand in enumerate(demands)}, users, think
    )
    assert found.rate_per_s <= found.most_per_s * (1 + 1e-9)
    assert found.response_s >= found.least_s * (1 - 1e-9)
    assert sum(found.jobs.values()) + found.rate_per_s * think == pytest.approx(users)
    assert found.rate_per_s == pytest.approx(users / (found.response_s + think))
    assert max(found.utilisation.values()) <= 1 + 1e-9


@pytest.mark.parametrize(
    "ask",
    [
        lambda: mmc(Inputs(0, 1)),
        lambda: mmc(Inputs(math.nan, 1)),
        lambda: mmc(Inputs(1, math.inf)),
        lambda: mmc(Inputs(0.5, 1, 0)),
        lambda: mmc(Inputs(0.5, 1, 1, -1)),
        lambda: formulas.mmck(Inputs(1, 1, 3), 2),
        lambda: formulas.mva({}, 1),
        lambda: formulas.mva({"a": 0.0}, 1),
        lambda: formulas.mva({"a": 1.0}, 0),
        lambda: formulas.mva({"a": 1.0}, 1, -1.0),
        lambda: non_preemptive([]),
        lambda: non_preemptive([PriorityClass(1, -1, 1.0)]),
    ],
)
def test_what_no_formula_answers_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(Refused):
        ask()


TWO = (PriorityClass(1, 0.3, 1.0), PriorityClass(2, 0.5, 1.0))
LOADS_OF_KINDS = st.lists(st.floats(0.01, 0.3), min_size=1, max_size=3)
VARIATIONS = st.floats(0, 5)


def test_two_priorities_by_hand() -> None:
    """W₀ = (.3 + .5)·2/2 = .8; first .8/(1 · .7), second .8/(.7 · .2)."""
    first, second = non_preemptive(TWO)
    assert first.wait_s == pytest.approx(0.8 / 0.7)
    assert second.wait_s == pytest.approx(0.8 / 0.14)
    assert first.response_s == pytest.approx(0.8 / 0.7 + 1)
    assert (first.load, second.load) == pytest.approx((0.3, 0.8))


@given(loads=LOADS_OF_KINDS, scv=VARIATIONS)
def test_one_priority_is_no_priority(loads: list[float], scv: float) -> None:
    """However many kinds there are in it: an M/G/1 of their sum."""
    kinds = [PriorityClass(1, load, 1.0, scv) for load in loads]
    wait = mg1(Inputs(sum(loads), 1.0, scv_service=scv)).wait_s
    assert [one.wait_s for one in non_preemptive(kinds)] == pytest.approx([wait] * len(kinds))


@given(loads=LOADS_OF_KINDS, service=st.floats(0.1, 10), scv=VARIATIONS)
def test_what_one_priority_gains_others_lose(
    loads: list[float], service: float, scv: float
) -> None:
    """Kleinrock's conservation law: ΣU_k·W_k is that of first come, first served."""
    kinds = [PriorityClass(at, load / service, service, scv) for at, load in enumerate(loads)]
    waits = [one.wait_s or 0.0 for one in non_preemptive(kinds)]
    whole = mg1(Inputs(sum(loads) / service, service, scv_service=scv)).wait_s * sum(loads)
    assert sum(load * wait for load, wait in zip(loads, waits, strict=True)) == pytest.approx(whole)
    assert waits == sorted(waits)


@given(loads=LOADS_OF_KINDS, servers=st.integers(1, 8))
def test_several_servers_are_one_queue_in_all(loads: list[float], servers: int) -> None:
    """The mean wait over all jobs of equal service is that of the M/M/c."""
    kinds = [PriorityClass(at, load * servers, 1.0) for at, load in enumerate(loads)]
    whole = mmc(Inputs(sum(loads) * servers, 1.0, servers)).wait_s
    waits = [one.wait_s or 0.0 for one in non_preemptive(kinds, servers)]
    mean = sum(load * wait for load, wait in zip(loads, waits, strict=True)) / sum(loads)
    assert mean == pytest.approx(whole)


@pytest.mark.parametrize("servers", [1, 2])
def test_classes_before_an_overloading_one_still_have_a_wait(servers: int) -> None:
    """Servers never rest then: the first class waits s/c for a free server, over 1 - its load."""
    first, second = non_preemptive(
        [PriorityClass(1, 0.4 * servers, 1.0), PriorityClass(2, 0.9 * servers, 1.0)], servers
    )
    assert first.wait_s == pytest.approx(1 / servers / 0.6)
    assert (second.wait_s, second.response_s) == (None, None)
