"""The first screen: what is claimed, in verdict words, and what is not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.compare import compare
from analysis.load import from_json, load
from analysis.report.answers import answers, control, nothing_compared, trust
from analysis.terms import Comparison
from tests.analysis.report.pages import SWAPPINESS, read
from tests.deeptweak_like import SYSCTLS, Like, directory
from tests.stock_files import benchmark, document, times
from tests.synthetic import AGAIN, STOCK, Arm, Made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


FASTER, SLOWER = Arm("faster", 0.12, SWAPPINESS), Arm("slower", -0.12, SWAPPINESS)
IGNORED = [Arm(name, requested=SWAPPINESS, observed={"vm.swappiness": "60"}) for name in ("ignored", "unheard", "refused")]
UNCLEAR = [Arm(name, 0.0, SWAPPINESS) for name in ("unclear", "also")]


def said(*arms: Arm, **how: object) -> tuple[str, list[Comparison]]:
    """The sentence on the one workload of a run, and what it stands on."""
    run = read(Made(arms=(STOCK, AGAIN, *arms), **{"blocks": 8, "run_cv": 0.005, "step_cv": 0.005, **how}))  # type: ignore[arg-type]
    comparisons = compare(run)
    (answer,) = answers(run, comparisons)
    return answer.sentence, comparisons


def test_what_is_said_of_a_workload(snapshot: SnapshotAssertion) -> None:
    """A regression is told before an improvement."""
    found = {
        "a gain and a loss": said(FASTER, SLOWER)[0],
        "two unclear": said(*UNCLEAR, run_cv=0.08)[0],
        "no difference": said(Arm("same", 0.0, SWAPPINESS))[0],
        "three not in force": said(*IGNORED)[0],
        "four": said(*(Arm(f"same-{at}", 0.0, SWAPPINESS) for at in range(4)))[0],
    }
    assert found == snapshot


def test_verdicts_are_counted_without_the_control() -> None:
    run = read(Made(arms=(STOCK, AGAIN, FASTER, SLOWER), blocks=8))
    (answer,) = answers(run, compare(run))
    assert answer.verdicts == {"regressed": 1, "improved": 1}


def test_what_is_said_of_the_control(snapshot: SnapshotAssertion) -> None:
    """Of its two checks the worse one is told; where it could not be compared nobody is reassured."""
    quiet, differs = read(Made(arms=(STOCK, AGAIN))), read(Made(arms=(STOCK, Arm("stock-again", 0.2))))
    short, none = read(Made(arms=(STOCK, AGAIN), blocks=2)), read(Made(arms=(STOCK, FASTER)))
    two = read(Made(arms=(STOCK, AGAIN), workloads=("cnn_train", "idle")))
    found = {
        "no difference": control(quiet, compare(quiet)),
        "under two workloads": control(two, compare(two)),
        "differs": control(differs, compare(differs)),
        "differs by the effects' own check": control(quiet, compare(quiet), ["cnn_train"]),
        "two blocks": control(short, compare(short)),
        "none was run": control(none, compare(none)),
    }
    assert found == snapshot


def test_what_is_said_where_no_tweak_set_was_compared(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    stock, control_only = read(Made(arms=(STOCK,))), read(Made(arms=(STOCK, AGAIN)))
    alone = from_json(document([benchmark("test_sort", times(1))]), "0001_x.json")
    foreign = load(directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS, run_effect=0.1)))
    assert answers(control_only, compare(control_only)) == []
    assert (compare(alone), control(foreign, compare(foreign))) == ([], None)
    found = {
        "stock alone": nothing_compared(stock, []),
        "stock and its control": nothing_compared(control_only, compare(control_only)),
        "one configuration in a file": nothing_compared(alone, []),
        "one run each": [one.sentence for one in answers(foreign, compare(foreign))],
    }
    assert found == snapshot


@pytest.mark.parametrize(("drift", "low", "high", "tone"), [(0.0, -2.0, 2.0, "good"), (0.05, -12.0, -7.0, "open")])
def test_the_baselines_drift_is_told_with_its_interval(drift: float, low: float, high: float, tone: str) -> None:
    """Times that go from 5 % below to 5 % above their level are a speed that falls by 1 - 0.95/1.05 = 9.5 %."""
    run = read(Made(arms=(STOCK, AGAIN, FASTER), blocks=20, run_cv=0.005, step_cv=0.005, drift=drift))
    (told,) = (one for one in trust(run, compare(run)) if one.name == "Drift of the baseline")
    gain, begin, end = (float(text) for text in re.findall(r"[-+]\d+\.\d", told.says))
    assert low < begin < gain < end < high
    assert (begin < 0 < end) == (drift == 0)
    assert told.tone == tone


def test_a_baseline_that_never_varied_has_no_drift() -> None:
    run = read(Made(arms=(STOCK, FASTER), blocks=6))
    still = [replace(one, primary=one.primary and replace(one.primary, values_baseline=(2.0,) * 6)) for one in compare(run)]
    assert "Drift of the baseline" not in {one.name for one in trust(run, still)}
