"""Job classes as data: a file's meaning holds, and each fault is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.studies.jobs import classes, stream
from fixtures.studies.jobs.terms import JobClass, Size
from fixtures.terms import BadInput

ONE = {"name": "one", "kind": "sleep", "size": {"law": "constant", "mean": 1}}


def parse(*listed: Any) -> tuple[JobClass, ...]:
    return classes.parse({"classes": list(listed)}, "file")


@pytest.mark.parametrize("name", classes.names())
def test_every_catalogue_file_can_be_planned_and_is_described(name: str) -> None:
    jobs = stream.plan(classes.complete({"classes": name, "jobs": "50"}), 1)
    assert {job.class_.name for job in jobs} <= {one.name for one in classes.shipped(name)}
    assert classes.description(name)


def test_all_that_can_be_said_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        """\
description: all of it
classes:
  - name: one
    kind: train
    probability: 1
    size: {law: hyperexponential, mean: 2, scv: 4}
    priorities: [{priority: 5, probability: 0.25}, {priority: -1, probability: 0.75}]
    params: {batch: 8, net: mlp, deep: true}
    cores: 0.5
    memory_mib: 64
    replicas: 2
    tenant: north
    predicted_s_per_work: 0.1
    prediction_scv: 0.2
    due_factor: 3
"""
    )
    assert classes.read(path) == (
        JobClass(
            "one",
            "train",
            Size("hyperexponential", 2.0, 4.0),
            1.0,
            ((-1, 0.75), (5, 0.25)),
            {"batch": 8, "net": "mlp", "deep": True},
            0.5,
            64.0,
            2,
            "north",
            0.1,
            0.2,
            3.0,
        ),
    )


WRONG: list[tuple[Any, str]] = [
    ({**ONE, "nam": 1}, r"file: classes\[0\]: unknown key 'nam'. Did you mean 'name'"),
    ({**ONE, "probability": 0.5}, "the classes: `probability` must sum to 1, not 0.5"),
    (
        {**ONE, "size": {"law": "exponential", "mean": 1, "scv": 2}},
        "`scv` of exponential is always 1; remove it, or use hyperexp",
    ),
    (
        {**ONE, "size": {"law": "hyperexponential", "mean": 1, "scv": 0.5}},
        "size.scv of hyperexponential is 0.5; it must be at least 1",
    ),
    (
        {**ONE, "size": {"law": "lognormal", "mean": 1, "scv": 0}},
        "size.scv is 0; must be a number above 0",
    ),
    ({**ONE, "priorities": []}, "priorities: `probability` must sum to 1, not 0"),
    (
        {**ONE, "priorities": [{"priority": 0, "probability": 0.4}]},
        "priorities: `probability` must sum to 1, not 0.4",
    ),
    (
        {**ONE, "priorities": [{"priority": 0, "probability": 0.5}] * 2},
        "each `priority` must be unique",
    ),
    ({**ONE, "replicas": 0}, "replicas is 0; must be a whole number from 1 to 10000"),
    ({**ONE, "due_factor": 2}, "`due_factor` needs `predicted_s_per_work`"),
    ({**ONE, "prediction_scv": 2}, "`prediction_scv` needs `predicted_s_per_work`"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_a_class_cannot_be_is_refused_with_its_place(wrong: object, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        parse(wrong)
    assert str(refused.value).startswith("file")


def test_classes_have_names_of_their_own_and_shares() -> None:
    with pytest.raises(BadInput, match="class one occurs 2 times"):
        parse({**ONE, "probability": 0.5}, {**ONE, "probability": 0.5})
    with pytest.raises(
        BadInput, match=r"classes\[1\] \(two\): `probability`, its share of the jobs, is missing"
    ):
        parse({**ONE, "probability": 0.5}, {**ONE, "name": "two"})
