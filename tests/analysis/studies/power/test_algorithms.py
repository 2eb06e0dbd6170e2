"""Algorithms: the original's sequences to the last state (A7), and invariants of them all."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.studies.power import parameters
from analysis.terms import UnknownName
from control.power import algorithms
from control.power.algorithms.ladder import BatchDvfs, Morak, Rungs
from control.power.algorithms.pctodl import StepRange, Thermo, draw_of
from control.power.catalog import configured
from control.power.tables import partition_of
from control.power.terms import (
    Controller,
    Decision,
    Infeasible,
    Partition,
    Question,
    Seen,
    Settings,
    Unsupported,
)
from tests.analysis.studies.power.command import model_at
from tests.analysis.studies.power.made_control import CLOCKS, KNOBS, question, seen
from tests.analysis.studies.power.playing import reader, tables_for
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


PCTODL = REFERENCE / "pctodl"
reads_reference = pytest.mark.needs("reference")
LADDER = tuple(configured("morak", "any")["ladder"])
MODELLED = ("directcap", "pctodl", "steady")  # those that need a model


def golden(name: str) -> Any:
    return json.loads((PCTODL / f"golden_{name}.json").read_text())


# --- the original's own sequences


@reads_reference
def test_morak_and_batchdvfs_walk_as_the_original_does() -> None:
    """20 sequences of 30 steps: the same clock and batch after each."""
    walked = 0
    for said in golden("controllers"):
        if said["alg"] == "thermo":
            continue
        rungs = Rungs(KNOBS, (40.0, 40.0), LADDER, LADDER.index(said["steps"][0][-3]))
        morak = Morak(rungs, said["alpha"], said.get("beta", 0.0) * said.get("slo", 0.0))
        dvfs = BatchDvfs(rungs, said["alpha"], 15.0, said["cap"])
        for *told, mhz, batch, next_mhz, next_batch in said["steps"]:
            assert (CLOCKS[rungs.speed], LADDER[rungs.batch]) == (mhz, batch)
            if said["alg"] == "morak":
                latency, power = told
                morak.step(power, said["cap"], latency)
            else:
                dvfs.step(told[0], said["cap"])
            assert (CLOCKS[rungs.speed], LADDER[rungs.batch]) == (next_mhz, next_batch)
            walked += 1
    assert walked == 600


@reads_reference
def test_thermo_walks_as_the_original_does() -> None:
    """Four sequences of 15 steps, within 1e-6 MHz; the first step of each is the jump."""
    for said in golden("controllers"):
        if said["alg"] != "thermo":
            continue
        gpu = "A100" if "a100" in said["set"] else "3080Ti"
        model = model_at(PCTODL, said["model"], gpu, float(said["set"].rpartition("mem")[2]))
        anchor = model.anchor([Partition(tuple(map(float, said["p"])), tuple(said["b"]))])
        thermo = Thermo(draw_of(model, anchor), StepRange())
        assert len(said["steps"]) == 15
        for mhz, power_w, next_mhz in said["steps"]:
            assert thermo.next_mhz(mhz, power_w, said["cap"]) == pytest.approx(next_mhz, abs=1e-6)


@cache
def replay() -> dict[str, dict[str, dict[str, float]]]:
    return dict(golden("replay")) if PCTODL.is_dir() else {}


@reads_reference
@pytest.mark.parametrize("algorithm", ["batchdvfs", "morak", "pctodl"])
def test_whole_runs_on_the_predictor_match_the_originals(algorithm: str) -> None:
    """12 tasks of 30 iterations; power and images follow the settings at once, images split evenly.

    Throughput and power are means from iteration 15 on; above the cap counts in all.
    """
    for task in parameters.read_tasks():
        if str(task.id) not in replay():
            continue
        said = replay()[str(task.id)][algorithm]
        asked = Question(
            algorithm,
            task.gpu,
            task.model,
            task.caps,
            made_knobs(task.gpu),
            models=reader(str(PCTODL), task.model, task.gpu),
        )
        rows = walk(algorithms.at_work(asked), asked, 30)
        cap = asked.cap
        assert fmean(row[1] for row in rows[15:]) == pytest.approx(said["tput"], rel=1e-6), task.id
        assert fmean(row[2] for row in rows[15:]) == pytest.approx(said["P"], rel=1e-6), task.id
        assert fmean(row[2] > cap for row in rows) == pytest.approx(said["over"]), task.id
        assert fmean(row[2] > 1.02 * cap for row in rows) == pytest.approx(said["over2"]), task.id
        assert max(row[2] - cap for row in rows) == pytest.approx(said["maxover"], abs=1e-6), (
            task.id
        )
        assert rows[-1][0].sm_mhz == said["f"], task.id
        if said["b"] is not None:
            assert rows[-1][0].tenants[0].batch == said["b"], task.id


def made_knobs(gpu: str) -> Any:
    platform = tables_for(str(PCTODL), "resnet50", gpu).platform
    return replace(KNOBS, sm_mhz=platform.sm_mhz, mem_mhz=platform.searched_mem_mhz[::-1])


def walk(
    controller: Controller, asked: Question, iterations: int
) -> list[tuple[Settings, float, float]]:
    """Settings, images/s and watts of each iteration on the predictor itself."""
    tables = tables_for(str(PCTODL), asked.model, asked.gpu)
    decision, rows = controller.first(), []
    for at in range(iterations):
        now = decision.settings
        curve = tables.curve(now.mem_mhz or max(tables.models), partition_of(now.tenants))
        state = tables.platform.sm_mhz.index(now.sm_mhz or 0)
        images, power = float(curve.throughput_images_per_s[state]), float(curve.power_w[state])
        rows.append((now, images, power))
        latency = tuple(1000 * one.batch * len(now.tenants) / images for one in now.tenants)
        decision = controller.then(
            Seen(
                at, asked.cap, now, images, power, power, latency_ms=latency, latency_p95_ms=latency
            )
        )
    return rows


# --- every algorithm


def asked_of(name: str, place: Path) -> Question:
    return question(name, place if name in MODELLED else None)


def settable(decision: Decision) -> None:
    now, limits = decision.settings, KNOBS.power_limit_w
    assert limits is not None
    assert now.tenants
    assert len(now.tenants) <= KNOBS.most_processes
    assert all(one.batch in KNOBS.batches for one in now.tenants)
    assert sum(one.share_percent for one in now.tenants) <= 100
    assert now.sm_mhz is None or now.sm_mhz in CLOCKS
    assert now.mem_mhz is None or now.mem_mhz in (KNOBS.mem_mhz or ())
    assert now.power_limit_w is None or limits[0] <= now.power_limit_w <= limits[1]
    assert now.throttle is None


told = st.tuples(
    st.floats(20, 400),  # W
    st.one_of(st.none(), st.floats(1, 1000)),  # ms
    st.integers(0, 9).map(lambda one: one == 0),  # the first tenant runs out of memory
    st.sampled_from([200.0, 200.0, 200.0, 150.0, 260.0, 20.0]),  # the next cap
    st.booleans(),  # the clock is refused
)


@pytest.mark.parametrize("name", algorithms.names())
@given(st.lists(told, max_size=8))
@settings(max_examples=15, deadline=None)
def test_whatever_is_seen_what_is_asked_for_can_be_set(
    place: Path, name: str, story: list[tuple[float, float | None, bool, float, bool]]
) -> None:
    controller = algorithms.at_work(asked_of(name, place))
    decision = controller.first()
    settable(decision)
    for power, latency, full, cap, refused in story:
        now = decision.settings
        actual = replace(now, sm_mhz=CLOCKS[40]) if refused and now.sm_mhz is not None else now
        latencies = (latency,) * len(now.tenants)
        decision = controller.then(
            seen(
                actual,
                power,
                cap=cap,
                latency_ms=latencies,
                latency_p95_ms=latencies,
                oom=(0,) if full else (),
                refused=("sm_mhz: no.",) if refused else (),
            )
        )
        settable(decision)


@pytest.mark.parametrize("name", algorithms.names())
def test_a_tenant_that_runs_out_of_memory_gets_a_smaller_batch(place: Path, name: str) -> None:
    controller = algorithms.at_work(asked_of(name, place))
    first = controller.first().settings
    largest = max(one.batch for one in first.tenants)
    which = tuple(at for at, one in enumerate(first.tenants) if one.batch == largest)
    second = controller.then(seen(first, 100.0, oom=which)).settings
    assert max(one.batch for one in second.tenants) < largest


def test_a_cap_below_any_draw_is_answered_with_the_smallest_cap(place: Path) -> None:
    with pytest.raises(Infeasible) as refused:
        algorithms.at_work(question("steady", place, cap=30.0))
    smallest = refused.value.smallest_cap
    assert smallest is not None
    assert smallest > 30
    algorithms.at_work(question("steady", place, cap=smallest + 0.1)).first()


def test_refusals(place: Path, snapshot: SnapshotAssertion) -> None:
    def having(name: str, **knobs: Any) -> Question:
        return question(name, place, knobs=replace(KNOBS, **knobs))

    questions = {
        **{f"{name} without a model": question(name) for name in MODELLED},
        **{
            f"{name} without a power limit": having(name, power_limit_w=None)
            for name in ("directcap", "powercap")
        },
        **{
            f"{name} without a clock": having(name, sm_mhz=None)
            for name in ("batchdvfs", "morak", "steady")
        },
        "pctodl with few batches": having("pctodl", batches=(4, 8, 16)),
        "pctodl with one process": having("pctodl", most_processes=1),
        "pctodl without shares": having("pctodl", shares=False),
        "morak with a shadow": replace(question("morak"), shadow=True),
    }
    messages = {}
    for name, asked in questions.items():
        with pytest.raises(Unsupported) as refused:
            algorithms.at_work(asked)
        messages[name] = str(refused.value)
    with pytest.raises(UnknownName) as unknown:
        algorithms.load("thermos")
    assert {**messages, "thermos": str(unknown.value)} == snapshot


# --- what they are set to


def test_batchdvfs_opens_its_search_anew_under_a_new_cap() -> None:
    controller = BatchDvfs(Rungs(KNOBS, (100.0,), LADDER, 3), 0.98, 15.0, 200.0)
    controller.low, controller.high = 3, 4
    controller.then(seen(controller.first().settings, 100.0, cap=260.0))
    assert (controller.low, controller.high) == (3, len(LADDER) - 1)


def test_powercap_follows_the_cap_within_what_the_board_takes() -> None:
    controller = algorithms.at_work(question("powercap"))
    first = controller.first().settings
    assert (first.power_limit_w, first.sm_mhz, first.mem_mhz) == (200.0, None, None)
    assert controller.then(seen(first, 190.0, cap=60.0)).settings.power_limit_w == 100.0


def test_directcap_lowers_memory_after_5_readings_above_the_cap(place: Path) -> None:
    controller = algorithms.at_work(question("directcap", place))
    now = controller.first().settings
    assert now.mem_mhz == 9501.0
    asked: list[float | None] = [now.mem_mhz]
    for _ in range(5):
        now = controller.then(seen(now, 210.0)).settings
        asked.append(now.mem_mhz)
    assert asked == [9501.0] * 5 + [5001.0]


def test_settled_directcap_keeps_the_best_of_all_memory_clocks(place: Path) -> None:
    controller = algorithms.at_work(question("directcap", place))
    now = controller.first().settings
    asked: list[float | None] = []
    for power in [210.0, *[199.0] * 11]:
        gives = 900.0 if now.mem_mhz == 9501.0 else 1000.0
        now = controller.then(seen(now, power, throughput_images_per_s=gives)).settings
        asked.append(now.mem_mhz)
    assert asked == [9501.0, *[5001.0] * 5, *[9501.0] * 5, 5001.0]


@pytest.mark.parametrize("name", ["pctodl", "directcap"])
def test_a_new_cap_is_searched_at_once_or_keeps_the_partition(place: Path, name: str) -> None:
    controller = algorithms.at_work(question(name, place))
    second = controller.then(seen(controller.first().settings, 199.0, cap=150.0))
    assert "greedy" in second.why
    third = controller.then(seen(second.settings, 149.0, cap=20.0)).settings
    if name == "directcap":
        assert (second.settings.power_limit_w, third.power_limit_w, third.tenants) == (
            150.0,
            100.0,
            second.settings.tenants,
        )
    else:
        assert second.predicted is not None
        assert second.predicted.power_w <= 151
        assert third == second.settings


def test_steady_takes_smaller_batches_after_two_late_iterations(place: Path) -> None:
    controller = algorithms.at_work(replace(question("steady", place), slo_ms=400.0))
    first = controller.first().settings
    late = (600.0,) * len(first.tenants)
    once = controller.then(seen(first, 180.0, latency_ms=late, latency_p95_ms=late))
    assert once.settings.tenants == first.tenants
    second = controller.then(seen(once.settings, 180.0, latency_ms=late, latency_p95_ms=late))
    assert max(one.batch for one in second.settings.tenants) < max(
        one.batch for one in first.tenants
    )


def test_algorithms_are_set_up_as_in_the_study() -> None:
    """Ladders of batches by network; other networks get the default."""
    for network, rungs, top in (
        ("vgg19", 20, 256),
        ("resnet50", 32, 1024),
        ("efficientnet_v2_m", 25, 1024),
        ("mnasnet", 21, 512),
    ):
        ladder = configured("batchdvfs", network)["ladder"]
        assert (len(ladder), ladder[-1]) == (rungs, top)
        assert all(low < high for low, high in pairwise(ladder))
    splits = [
        configured("morak", network)["split_percent"] for network in ("alexnet", "densenet201")
    ]
    assert splits == [[40, 40], [60, 40]]
