"""Tasks: the matrix as data, one's own in the same form, and workload names with all of a task."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.power.catalog import Task, cap_at
from fixtures import workloads
from fixtures.studies.power import options, tasks
from fixtures.studies.power.tasks import chosen, read, shipped
from fixtures.terms import BadInput
from tests.sessions import HOUSE


def file(folder: Path, *tasks: str, more: str = "") -> Path:
    path = folder / "tasks.yaml"
    path.write_text("\n".join([more, "tasks:", *(f"  - {{{one}}}" for one in tasks)]) + "\n")
    return path


def test_the_matrix_has_thirty_tasks_and_two_change_their_cap() -> None:
    """200 W at first, 160 from iteration 50 on, 120 from 100 on."""
    assert list(shipped()) == list(range(1, 31))
    assert shipped()[6].caps == ((0, 130.0),)
    assert [cap_at(shipped()[29].caps, number) for number in (0, 49, 50, 99, 100, 149)] == [
        200,
        200,
        160,
        160,
        120,
        120,
    ]
    assert shipped()[29].iterations == 150
    assert shipped()[1].torchvision == "mnasnet1_0"


def test_tasks_for_cpus_have_a_cap_on_activity() -> None:
    found = read(HOUSE / "data" / "power" / "tasks_cpu.yaml")
    assert {task.cap_unit for task in found.values()} == {"cpu_s_per_s"}
    assert not found.keys() & shipped().keys()


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ("6", [6]),
        ("1-3,29", [1, 2, 3, 29]),
        ("29, 6", [6, 29]),
        ("28-", [28, 29, 30]),
        ("2,29-", [2, 29, 30]),
        (None, [*range(1, 31)]),
    ],
)
def test_ids_and_ranges_name_tasks(ids: str | None, expected: list[int]) -> None:
    assert [task.id for task in chosen(shipped(), ids)] == expected


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("31", "no task 31. Available: 1, 2, 3"),
        ("7-3", "'7-3' is neither an id nor a range"),
        ("six", "'six' is neither an id"),
        (",", "no id given"),
        ("31-", "--task-id=31-: no task 31."),
    ],
)
def test_ids_that_name_no_task_are_refused_with_those_that_exist(ids: str, said: str) -> None:
    with pytest.raises(BadInput, match=said.replace(".", r"\.")):
        chosen(shipped(), ids)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ("cap_w: 1, cap_cpu_s_per_s: 1", "task 1 needs exactly one of"),
        ("cap_w: -5", "> 0"),
        ("caps_w: [[5, 100]]", "ascending order from 0"),
        ("caps_w: [[0, 100], [0, 90]]", "ascending order"),
        ("cap_w: 5, model: ../m", "regex"),
        ("cap_w: 5, iterations: 1", "iterations"),
        ("cap_w: 5, power: 1", "unknown field `power`"),
        ("cap_w: 5}\n  - {id: 1, gpu: A100, model: m, dataset: d, cap_w: 5", "occurs twice"),
    ],
)
def test_a_task_that_is_wrong_is_named_with_what_is(tmp_path: Path, one: str, said: str) -> None:
    model = "" if "model: .." in one else "model: m, "
    with pytest.raises(BadInput, match=r"tasks\.yaml: .*" + said):
        read(file(tmp_path, f"id: 1, gpu: A100, {model}dataset: d, {one}"))


@pytest.mark.parametrize("task", shipped().values(), ids=lambda task: f"{task.id}")
def test_a_task_of_the_matrix_is_all_said_by_its_number(task: Task) -> None:
    """`capped_inference:task=13:algorithm=morak` and nothing more, and it is read back whole."""
    name = workloads.case(options.WORKLOAD, **{**tasks.said(task), "algorithm": "morak"}).id
    assert name == (
        "capped_inference:algorithm=morak"
        if task.id == 6
        else f"capped_inference:task={task.id}:algorithm=morak"
    )
    assert options.task_of(workloads.load(name).params) == task


def test_a_task_of_ones_own_is_in_the_name_as_a_whole(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "id: 7, gpu: cpu, model: tiny, dataset: random, caps_cpu_s_per_s: [[0, 1.5], [9, 0.75]], "
        "iterations: 20, slo_ms: 80",
    )
    (task,) = read(path).values()
    name = workloads.case(
        options.WORKLOAD, **{**tasks.said(task), "backend": "cpu", "algorithm": "morak"}
    ).id
    assert ":cap_cpu_s_per_s=0-1.5+9-0.75:" in name
    assert options.task_of(workloads.load(name).params) == task


@given(
    st.lists(
        st.tuples(st.integers(1, 500), st.floats(0.5, 900)),
        max_size=4,
        unique_by=lambda pair: pair[0],
    ),
    st.floats(0.5, 900),
)
def test_caps_that_are_written_into_a_name_are_read_as_they_were(
    later: list[tuple[int, float]], first: float
) -> None:
    caps = ((0, first), *sorted(later))
    found = tasks.caps(tasks.written(caps))
    assert [begins for begins, _ in found] == [begins for begins, _ in caps]
    assert [cap for _, cap in found] == pytest.approx([cap for _, cap in caps], rel=1e-5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"task": "99"}, "needs gpu, model, dataset, exactly one of cap_w"),
        ({"task": "x"}, "the id must be a whole number"),
        ({"cap_w": "0"}, "caps must be above 0"),
        ({"cap_w": "much"}, "is not a cap"),
        ({"cap_w": "5", "cap_cpu_s_per_s": "1"}, "needs exactly one of"),
        ({"iterations": "1"}, "of at least 2"),
        ({"algorithm": "moraq"}, "Did you mean 'morak'"),
        ({"backend": "gpu"}, "Available: cpu, gpu-full, gpu-readonly, replay"),
        ({"shadow": "on"}, "has no shadow optimiser; only pctodl has"),
        ({"backend": "cpu", "noise_w": "3"}, "noise_w: only for backend=replay"),
        ({"refuse_clocks": "210+x"}, "refuse_clocks=x"),
    ],
)
def test_parameters_that_cannot_be_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said.replace("(", r"\(")):
        options.complete(given)
