"""Workloads with parameters: their names, and what a workload that can be varied promises."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import workloads
from fixtures.parameters import Parameter, canonical, spelled
from fixtures.terms import BadInput, Metric
from fixtures.workloads import Workload
from tests.workloads.made import beside

ROOT = Path(__file__).parents[2]
SIZES = {"small": 8, "large": 64}


class Made(Workload):
    """A workload whose batch follows from its size, and whose readers do not apply if small."""

    __module__ = "fixtures.workloads.made"
    description = "made up"
    primary = Metric("step_time_p10_s", "lower")
    parameters = {
        "size": Parameter("small", "how much", words=tuple(SIZES)),
        "readers": Parameter(0, "how many", int),
        "batch": Parameter(None, "how much at once", usual="the size's"),
    }

    @classmethod
    def complete(cls, given: Mapping[str, str]) -> dict[str, Any]:
        params = {"steps": 10, "warmup_steps": 0, **super().complete(given)}
        if params["size"] == "small" and params["readers"]:
            raise BadInput("readers: a small one is read by itself")
        return {**params, "batch": float(params["batch"] or SIZES[params["size"]])}

    def cell_s(self) -> float:
        return float(self.params["batch"] / 2)

    def unavailable_reason(self) -> str | None:
        return "no" if self.params["readers"] else None


@pytest.fixture(autouse=True)
def _one_more() -> Iterator[None]:
    with beside(Made):
        yield


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("made", "made"),
        ("made:size=large", "made:size=large"),
        ("made:readers=2:size=large", "made:size=large:readers=2"),
        ("made:size=small", "made"),
        ("made:batch=64:size=large", "made:size=large"),
        ("made:batch=64", "made:batch=64.0"),
    ],
    ids=lambda text: text,
)
def test_a_variant_has_one_name(written: str, name: str) -> None:
    """Parameters in the workload's order of declaration, without those that the others imply."""
    assert workloads.load(written).id == name
    assert workloads.load(name).id == name
    assert workloads.load(name).params == workloads.load(written).params


def test_what_makes_another_parameter_possible_stays_in_the_name() -> None:
    """Without its size, `readers` would be refused: nothing is left out that cannot be."""
    assert workloads.load("made:size=large:readers=1").id == "made:size=large:readers=1"


def test_of_two_that_imply_each_other_the_first_declared_is_said() -> None:
    def either(chosen: Mapping[str, str]) -> dict[str, object]:
        return (
            {"kind": "tar", "code": 7}
            if {"kind", "code"} & chosen.keys()
            else {"kind": "raw", "code": 1}
        )

    said, params = canonical({"code": "7", "kind": "tar"}, ["kind", "code"], either)
    assert (said, params) == ({"kind": "tar"}, {"kind": "tar", "code": 7})


def test_all_parameters_are_known_and_what_follows_from_them() -> None:
    known = workloads.load("made:size=large")
    assert known.params == {
        "steps": 10,
        "warmup_steps": 0,
        "size": "large",
        "readers": 0,
        "batch": 64.0,
    }
    assert (known.module, workloads.of(known).cell_s()) == ("made", 32.0)
    reasons = [
        workloads.of(name).unavailable_reason()
        for name in ("made", "made:size=large:readers=1", "idle")
    ]
    assert reasons == [None, "no", None]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "made:sise=large",
            (
                r"'made:sise=large': no parameter 'sise'. Did you mean 'size'\? Available: size, "
                r"readers, batch"
            ),
        ),
        ("made:size=huge", "'made:size=huge': size=huge: no such value. Available: small, large"),
        ("made:size", r"'size' is not a parameter with a value: write made:NAME=VALUE"),
        ("made:", "is not a parameter with a value"),
        ("made:size=large:size=small", "size is given twice"),
        ("cnn_train:batch=2", "'cnn_train:batch=2': it has no parameters"),
        ("mode:size=large", "Did you mean 'made'"),
        ("_protocol:size=large", "No workload '_protocol'"),
    ],
)
def test_what_is_no_variant_is_answered_with_what_is(name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        workloads.load(name)


@given(st.text(max_size=30))
def test_whatever_is_written_it_is_a_workload_or_refused(text: str) -> None:
    for name in (text, f"made:{text}", f"idle:wait_s={text}"):
        try:
            known = workloads.load(name)
        except BadInput:
            continue
        assert workloads.load(known.id).id == known.id


@pytest.mark.parametrize("value", ["a b", "1/2", "a:b", "a=b", "a,b", ""])
def test_a_value_that_would_break_a_name_is_refused(value: str) -> None:
    with pytest.raises(BadInput, match="cannot be part of a name"):
        spelled(value)


@pytest.mark.parametrize(
    ("pattern", "name", "meant"),
    [
        ("made", "made:size=large", True),
        ("made:size=large", "made:size=large:readers=2", True),
        ("made:size=small", "made", True),
        ("made:size=large", "made", False),
        ("made:size=large:readers=0", "made:size=large", True),
        ("made", "idle:wait_s=0.5", False),
        ("cnn_train", "cnn_train", True),
        ("a model that a cluster serves", "a model that a cluster serves", True),
    ],
)
def test_a_pattern_means_the_variants_that_have_its_parameters(
    pattern: str, name: str, *, meant: bool
) -> None:
    assert workloads.matches(pattern, name) is meant


def test_data_sets_of_all_variants_are_asked_for_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def data_sets(
        _made: Workload,
        variants: list[Mapping[str, object]],
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        say("made")
        asked.append(([one["size"] for one in variants], folder))

    monkeypatch.setattr(Made, "data_sets", data_sets)
    monkeypatch.setattr(Made, "reads_data", True)
    said: list[str] = []
    workloads.provide(
        map(workloads.load, ["made", "idle", "made:size=large"]), tmp_path, said.append
    )
    assert (asked, said) == ([(["small", "large"], tmp_path)], ["made"])


def test_a_process_is_given_all_its_parameters_or_has_its_own() -> None:
    """As its target starts it; what is given was checked before, and is not checked again."""

    def started(*options: str) -> list[str]:
        fixed = ("--steps=2", "--warmup=0", "--seed=1", "--scratch=/somewhere")
        command = (sys.executable, "-m", "fixtures.workloads.idle", *fixed, *options)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return [json.loads(line)["event"] for line in done.stdout.splitlines()]

    assert (
        started()
        == started('--params={"wait_s": 0.001}')
        == ["ready", "step", "step", "report", "end"]
    )
