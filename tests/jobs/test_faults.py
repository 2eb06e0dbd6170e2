"""Faults of streams of jobs: when they strike, what they hit, and that nothing of them is left."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.jobs import faults
from fixtures.studies.jobs.faults import Faults, Hogs
from fixtures.studies.jobs.terms import JobClass, Planned, Size
from fixtures.terms import BadInput, Refused
from tests.jobs.made_jobs import Made
from tests.waiting import alive, cpu_s, doomed, until

HOUSE = Path(__file__).parents[2]
CLASS = JobClass("small", "sleep", Size("constant", 1.0), cores=1.0)


class Engine(Made):
    """Two nodes with a job each, and what was asked of them."""

    def __init__(self, nodes: Sequence[str] = ("a", "b")) -> None:
        super().__init__(nodes)
        self.asked = list[tuple[str, object]]()
        self._running = {7: "a", 3: "b"}

    def kill(self, job: int) -> bool:
        self.asked.append(("kill", job))
        return self._running.pop(job, None) is not None

    def lose(self, node: str) -> None:
        self.asked.append(("lose", node))

    def back(self, node: str) -> None:
        self.asked.append(("back", node))


def planned(count: int = 10, **changes: Any) -> list[Planned]:
    return [
        Planned(number, replace(CLASS, **changes), float(number), 1.0 + number, seed=number)
        for number in range(count)
    ]


def went(fault: Faults, until_s: float) -> list[dict[str, Any]]:
    """Its rows, by a clock that stands where it is asked to."""
    rows = []
    while (due_s := fault.due_s()) is not None and due_s <= until_s:
        rows += fault.act(due_s)
    return rows


@pytest.mark.parametrize(
    ("given_params", "sentence"),
    [
        (
            {"fault": "kil"},
            r"fault=kil: no such value\. Did you mean 'kill'\? Available: cpu_hog, .*, none\.",
        ),
        ({"fault": "kill"}, "fault=kill needs fault_at_s, fault_rate_per_s"),
        (
            {"fault": "kill", "fault_at_s": 1, "fault_size": 3},
            "fault=kill takes fault_rate_per_s, fault_at_s, not fault_size",
        ),
        ({"fault": "kill", "fault_rate_per_s": 0}, "fault_rate_per_s=0: must be a number above 0"),
        ({"fault": "node", "fault_at_s": -1}, "fault_at_s=-1: must be a number from 0 to"),
        ({"fault": "flood", "fault_size": "inf"}, "fault_size=inf: must be a number above 0"),
        (
            {"fault": "kill", "fault_rate_per_s": 1e9},
            r"fault_rate_per_s=1000000000.0: must be a number above 0 and at most 1000",
        ),
        (
            {"fault": "cpu_hog", "fault_size": 2.5},
            r"fault_size=2.5: fault=cpu_hog needs a whole number",
        ),
    ],
)
def test_what_is_written_wrongly_is_said(given_params: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        faults.complete(given_params)


@pytest.mark.parametrize(
    ("given_params", "engine", "sentence"),
    [
        ({"fault": "cpu_hog"}, "jobs", "engine=jobs, only by pool"),
        ({"fault": "memory_hog", "fault_size": 1e9}, "pool", "at most half of"),
        ({"fault": "io_hog", "fault_size": 1e12}, "pool", "at most half of"),
        ({"fault": "cpu_hog", "fault_size": 1e6}, "pool", " per CPU"),
        ({"fault": "flood", "fault_size": 1e7}, "pool", "at most 1000000 jobs"),
        ({"fault": "few_cores", "fault_size": 0.001}, "pool", "at least 0.01 cores"),
    ],
)
def test_what_an_engine_or_a_machine_cannot_have_is_said(
    given_params: dict[str, object], engine: str, sentence: str
) -> None:
    assert sentence in (faults.unavailable_reason(faults.complete(given_params), engine) or "")


def test_a_kill_hits_one_of_those_that_run() -> None:
    engine = Engine()
    rows = went(
        Faults(
            faults.complete({"fault": "kill", "fault_at_s": 2, "fault_rate_per_s": 1}), 5, engine
        ),
        60,
    )
    assert rows[0]["at_s"] == 2
    assert {row["job"] for row in rows[:2]} == {3, 7}
    assert rows[0]["node"] == {3: "b", 7: "a"}[rows[0]["job"]]
    assert all(row["job"] is None and row["detail"] == "nothing was running" for row in rows[2:])
    assert engine.asked == [("kill", row["job"]) for row in rows[:2]]


def test_a_node_is_lost_and_comes_back() -> None:
    engine = Engine()
    fault = Faults(faults.complete({"fault": "node", "fault_at_s": 3, "fault_for_s": 4}), 1, engine)
    assert (fault.act(2.9), fault.due_s()) == ([], 3)
    assert fault.act(3.2) == []
    assert fault.due_s() == pytest.approx(7.2), "counted from when it was really lost"
    (row,) = fault.act(7.3)
    assert (row["at_s"], row["until_s"], row["detail"]) == (3.2, 7.3, "lost")
    assert engine.asked == [("lose", row["node"]), ("back", row["node"])]
    assert (row["fault"], row["fault_for_s"]) == ("node", 4)
    assert fault.due_s() is None


def test_a_node_that_is_away_is_not_lost_again() -> None:
    engine = Engine()
    fault = Faults(
        faults.complete(
            {"fault": "node", "fault_at_s": 0, "fault_rate_per_s": 1, "fault_for_s": 1000}
        ),
        1,
        engine,
    )
    went(fault, 20)
    assert sorted(engine.asked) == [("lose", "a"), ("lose", "b")]
    rows = fault.close()
    assert {row["detail"] for row in rows} == {
        "lost",
        "lost, the last one left",
        "no node was left to lose",
    }
    assert all(row["until_s"] is None for row in rows)
    assert sorted(engine.asked[2:]) == [("back", "a"), ("back", "b")]


def test_the_only_node_must_come_back() -> None:
    """Without it nothing could end; with a time it may be lost, and that is said."""
    with pytest.raises(Refused, match="a is the only node and never returns without fault_for_s"):
        Faults(faults.complete({"fault": "node", "fault_at_s": 1}), 1, Engine(["a"]))
    (row,) = went(
        Faults(
            faults.complete({"fault": "node", "fault_at_s": 1, "fault_for_s": 2}), 1, Engine(["a"])
        ),
        9,
    )
    assert row["detail"] == "lost, the last one left"


@pytest.mark.parametrize("for_s", [0, 5])
def test_what_struck_is_told_even_where_it_cannot_be_ended(for_s: float) -> None:
    """A fault of 0 s ends at once; one of 5 s outlasts the stream, and its node stays lost."""

    class Without(Engine):
        def back(self, node: str) -> None:
            super().back(node)
            if for_s:
                raise Refused(f"{node}: nobody answers there")

    engine = Without()
    fault = Faults(
        faults.complete({"fault": "node", "fault_at_s": 1, "fault_for_s": for_s}), 1, engine
    )
    (row,) = [*fault.act(1), *fault.close()]
    assert engine.asked == [("lose", row["node"]), ("back", row["node"])]
    assert (row["until_s"], row["detail"]) == (
        (None, f"lost; not ended: {row['node']}: nobody answers there") if for_s else (1, "lost")
    )


def test_a_flood_leaves_all_others_as_they_were() -> None:
    own = planned()
    found = faults.changed(
        faults.complete({"fault": "flood", "fault_at_s": 2.5, "fault_for_s": 2, "fault_size": 30}),
        1,
        own,
    )
    assert [one for one in found if one.class_.tenant != "flood"] == own
    burst = [one for one in found if one.class_.tenant == "flood"]
    assert [one.job for one in burst] == list(range(10, 40))
    assert all(2.5 <= one.submit_s <= 4.5 for one in burst)
    assert len({one.seed for one in burst}) == 30
    assert {one.work for one in burst} <= {one.work for one in own}
    assert [one.submit_s for one in found] == sorted(one.submit_s for one in found)
    assert (
        faults.changed(
            faults.complete(
                {"fault": "flood", "fault_at_s": 2.5, "fault_for_s": 2, "fault_size": 30}
            ),
            1,
            own,
        )
        == found
    )


@given(own=st.none() | st.floats(0.01, 64), size=st.floats(0.01, 64))
def test_a_careless_limit_is_never_above_the_jobs_own(own: float | None, size: float) -> None:
    changed = faults.changed(
        faults.complete({"fault": "few_cores", "fault_size": size}), 1, planned(cores=own)
    )
    assert changed == planned(cores=min(size, own or math.inf))


@pytest.mark.parametrize(("name", "size"), [("cpu_hog", 2), ("memory_hog", 8), ("io_hog", 1)])
def test_a_neighbour_is_gone_when_its_time_is_over(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Hogs] = []

    def start(what: Sequence[tuple[str, int]]) -> Hogs:
        started.append(Hogs(what))
        return started[-1]

    monkeypatch.setattr(faults, "Hogs", start)
    fault = Faults(
        faults.complete({"fault": name, "fault_at_s": 0, "fault_for_s": 1, "fault_size": size}),
        1,
        Engine(),
    )
    assert fault.act(0) == []
    pids = started[0].pids
    assert len(pids) == (size if name == "cpu_hog" else 1)
    assert all(alive(pid) for pid in pids)
    (row,) = fault.act(1)
    assert "had already ended" not in row["detail"]
    assert not any(alive(pid) for pid in pids)


def test_a_neighbour_that_ended_by_itself_is_told() -> None:
    hogs = Hogs([("cpu", 0), ("cpu", 0)])
    os.kill(hogs.pids[0], signal.SIGKILL)
    os.waitid(os.P_PID, hogs.pids[0], os.WEXITED | os.WNOWAIT)
    assert hogs.end() == "1 of 2 had already ended, with -9"


@pytest.mark.parametrize("kind", ["cpu", "memory", "io"])
def test_no_neighbour_outlives_whoever_started_it(kind: str) -> None:
    """Even where that one had no time to say goodbye."""
    program = (
        f"from fixtures.studies.jobs.faults import Hogs; print(*Hogs([({kind!r}, 4)]).pids, "
        "flush=True); input()"
    )
    with doomed(program) as (_, pid):
        assert working(pid)
    until(lambda: not alive(pid))


def working(pid: int) -> bool:
    """Return whether it works, after a tenth of a second of CPU time."""
    until(lambda: not alive(pid) or cpu_s(pid) > 0.1)
    return alive(pid)
