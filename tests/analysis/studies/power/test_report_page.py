"""The step `power report`: text of 100 columns, full JSON, and a section on a run's page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.render.text import render
from analysis.studies.power.report import answer
from analysis.studies.power.study import sides
from tests.analysis.studies.power.made_capped import (
    ALGORITHMS,
    POWERCAP,
    STEADY,
    Algorithm,
    MadeCapped,
    capped_run,
)
from tests.synthetic import saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from tests.analysis.studies.power.command import Power

SMALL = MadeCapped(blocks=4, iterations=10)
LONG = Algorithm(
    "batchdvfs",
    10.0,
    1.3,
    40.0,
    broken={2: ("failed", "Iteration 3: no process inferred a single image. " * 6)},
)


def saved(folder: Path, made: MadeCapped = SMALL) -> str:
    path = folder / "cap.json"
    path.write_text(json.dumps(capped_run(made)), encoding="utf-8")
    return str(path)


def test_a_page(tmp_path: Path, power: Power, snapshot: SnapshotAssertion) -> None:
    shadow = replace(
        ALGORITHMS[3],
        shadow=True,
        refused=("sm_mhz: the driver refused 1410 MHz and left 1380 MHz in force",),
    )
    made = replace(
        SMALL,
        algorithms=(*ALGORITHMS, LONG, shadow),
        tasks={6: ((0, 130.0),), 29: ((0, 2000.0), (5, 1600.0))},
    )
    assert power("report", saved(tmp_path, made), "--all").page == snapshot


def test_json_has_all_of_it(tmp_path: Path, power: Power) -> None:
    document = power("report", saved(tmp_path), "--baseline", "steady", "--json").json
    (run,) = document["runs"]
    (side,) = run["backends"]
    assert side["baseline"] == "steady"
    assert side["backend"] == "replay"
    assert {"answer", "groups", "together", "power_source", "unit", "family"} <= side.keys()
    (found,) = [one for one in side["groups"][0]["arms"] if one["name"] == "morak"]
    assert found["holds"] == "no"
    assert found["rate"]["high"] < 0.02
    (other,) = [
        one
        for one in side["against"]
        if (one["task"], one["arm"], one["metric"]) == ("task=6", "morak", "power_mean")
    ]
    assert 0 < other["low"] < other["value"] < other["high"]
    assert found["verdict"] in {
        "improved",
        "regressed",
        "equivalent",
        "inconclusive",
        "not comparable",
    }
    assert document["steady"]


def test_names_out_of_a_file_are_shown_and_not_obeyed() -> None:
    made = capped_run(
        replace(SMALL, algorithms=(POWERCAP, replace(STEADY, lost=("\x1b[31mred\nline",))))
    )
    run = from_json(made, "made.json")
    text = render(answer(run, sides(run, [])))
    assert "\x1b" not in text
    assert "\\x1b[31mred line" in text


def test_another_run_is_refused_and_the_others_are_shown(tmp_path: Path, power: Power) -> None:
    other = saved_file(tmp_path, name="other.json")
    alone, among = power("report", other), power("report", other, saved(tmp_path))
    assert (alone.code, "bench_power_cap" in alone.err) == (2, True)
    assert "refused:" in among.err
    assert "steady" in among.page


@pytest.mark.slow
def test_the_html_report_has_section_and_pictures() -> None:
    from analysis.report.page import page_of

    html = page_of(
        [from_json(capped_run(replace(SMALL, tasks={6: ((0, 130.0),)})), "made.json")], "again"
    ).html.replace("\u00a0", " ")
    _, _, answer = html.partition('<h2 id="answer">')
    assert "SIMULATED: back-end replay" in answer.partition("<h2")[0]
    assert '<a href="#power">' in html
    for name in ("power_forest", "power_trace"):
        assert f'id="picture-{name}"' in html or f'alt="{name}' in html
    # The page's own, named by its hash in the policy; none out of a file.
    assert html.lower().count("<script") == 1


def test_figures_are_metrics_of_each_cell(tmp_path: Path) -> None:
    import deeptweak

    content = capped_run(SMALL)
    content["benchmarks"][0]["extra_info"]["report"]["iteration"][0]["cap"] = -1
    path = tmp_path / "cap.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    frame = deeptweak.load(path).cells()
    known = frame.dropna(subset="above_102_share")
    assert len(frame) - len(known) == 1
    assert (
        known.groupby("param.algorithm")["above_102_share"].mean()[["steady", "morak"]] > 0.05
    ).tolist() == [False, True]
