"""`python -m analysis scale decide`: replicas for somebody else's jobs, over lines of JSON, by a law fitted to a profile of them."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.__main__ import main
from analysis.scaling.deciding import serve
from analysis.scaling.laws import time_s
from analysis.scaling.terms import Law

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

LAW = Law(cost_s=4.0, serial=0.05, startup_s=0.2)
PROFILE = [
    {"replicas": n, "work": size, "time_s": float(time_s(LAW, size, n))} for n in (1, 2, 4, 8) for size in (0.5, 1.5) for _ in range(2)
]
HELLO = {"hello": 1, "target_s": 2.0, "most": 8, "classes": {"train": PROFILE}}


def answers(*said: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    serve((json.dumps(one) if not isinstance(one, str) else one for one in said), found.append)
    return found


def test_the_law_is_found_and_each_size_gets_the_replicas_that_take_the_target() -> None:
    """0.2 + 4·1·(1 + 0.05·(n - 1))/n is 2.3 with 2 replicas, 1.67 with 3: 2 are nearer as a ratio, and not within a tenth."""
    both = {"jobs": [{"class": "train", "work": 1.0}, {"class": "train", "work": 2.4}]}
    ready, chosen, again = answers(HELLO, both, both)
    assert chosen == again
    assert ready["ready"] is True
    assert ready["laws"]["train"]["law"]["cost_s"] == pytest.approx(4, rel=1e-3)
    assert ready["laws"]["train"]["points"] == len(PROFILE)
    assert ready["laws"]["train"]["held_out"] < 0.01
    first, second = chosen["choices"]
    assert (first["replicas"], first["within"]) == (2, False)
    assert first["predicted_s"] == pytest.approx(2.3, rel=1e-3)
    assert (second["replicas"], second["within"]) == (7, True)


def test_no_more_are_chosen_than_there_are() -> None:
    _, chosen = answers({**HELLO, "most": 3}, {"jobs": [{"class": "train", "work": 100.0}]})
    assert chosen["choices"][0]["replicas"] == 3


def test_what_cannot_be_used_ends_it_with_a_sentence(snapshot: SnapshotAssertion) -> None:
    empty_time: dict[str, Any] = {"replicas": 1, "work": 1, "time_s": None}
    lines: dict[str, list[object]] = {
        "version": [{"hello": 2}],
        "no JSON": ["garbage"],
        "deep": ["[" * 100_000],
        "target 0": [{**HELLO, "target_s": 0}],
        "most 1.5": [{**HELLO, "most": 1.5}],
        "no classes": [{**HELLO, "classes": {}}],
        "two points": [{**HELLO, "classes": {"train": PROFILE[:2]}}],
        "no time": [{**HELLO, "classes": {"train": [empty_time]}}],
        "unknown field": [{**HELLO, "policy": "sjf"}],
        "unknown class": [HELLO, {"jobs": [{"class": "infer", "work": 1}]}],
        "work true": [HELLO, {"jobs": [{"class": "train", "work": True}]}],
        "no list": [HELLO, {"jobs": 3}],
    }
    found = {}
    for case, some in lines.items():
        said = answers(*some, {"jobs": []})
        assert len(said) == len(some)
        found[case] = said[-1]["error"]
    assert found == snapshot


@settings(max_examples=5)  # each fits a law anew
@given(
    st.lists(st.one_of(st.text(), st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)), max_size=3)
)
def test_no_line_makes_it_fail_otherwise(lines: list[str]) -> None:
    found: list[dict[str, Any]] = []
    assert serve([json.dumps(HELLO), *lines], found.append) in {0, 2}
    assert "error" in found[-1] or not lines


def test_it_is_a_command_that_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(HELLO) + "\n"))
    assert main(["scale", "decide"]) == 0
    assert json.loads(capsys.readouterr().out)["ready"] is True
