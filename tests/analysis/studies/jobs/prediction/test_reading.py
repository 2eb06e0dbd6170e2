"""Rows: cells by variants, tweak sets and designs; jobs by streams and classes; lines of CSV."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analysis.studies.jobs.prediction.reading import read, rows_of
from analysis.terms import Unreadable
from tests.analysis.studies.jobs.prediction.made import streams
from tests.made_designs import Keys, designed_file, factorial
from tests.made_monitoring import MadeMonitoring, monitored_run
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    JSON = dict[str, Any]


def saved(folder: Path, made: Made, change: Callable[[JSON], None] = lambda _: None) -> str:
    told = saved_run(made)
    change(told)
    path = folder / "run.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return str(path)


def test_a_cell_is_a_row_and_an_untouched_copy_counts_as_stock(tmp_path: Path) -> None:
    made = read(
        [saved(tmp_path, Made(arms=(STOCK, AGAIN, Arm("tuned", gain=0.1)), blocks=3))], None
    )
    assert made.response == "throughput_samples_per_s"
    assert {str(one) for one in made.points["tweakset"]} == {"stock", "tuned"}
    assert (len(made.measured), len(set(made.configurations)), len(set(made.runs))) == (9, 2, 3)


def test_a_design_gives_the_levels_of_its_settings(tmp_path: Path) -> None:
    path = designed_file(
        tmp_path, "factorial", Keys({"vm.swappiness": 0.1, "vm.dirty_ratio": 0.0}), factorial(2)
    )
    made = read([str(path)], None)
    assert set(made.points["vm.swappiness"].tolist()) == {"as found", "1"}
    assert "tweakset" not in made.points


def test_monitors_are_split_into_their_kind_and_their_interval(tmp_path: Path) -> None:
    path = tmp_path / "monitored.json"
    path.write_text(json.dumps(monitored_run(MadeMonitoring(blocks=2))), encoding="utf-8")
    made = read([str(path)], "cpu_s")
    assert {"none", "sampler", "psutil_thread"} <= set(made.points["monitor"].tolist())
    assert np.nanmin(made.points["monitor.interval_s"]) == 0.01


def test_a_job_is_a_row_under_its_stream_its_class_and_itself(tmp_path: Path) -> None:
    made = read([streams(tmp_path)], None)
    assert made.response == "service_s"
    assert (len(made.measured), len(set(made.runs))) == (180, 6)
    assert not any(" work=" in one for one in made.configurations)
    assert len(set(made.configurations)) == 2  # the classes
    assert made.copies["class"] == ("replicas", "kind", "lr")


def test_streams_of_the_same_jobs_are_one_run(tmp_path: Path) -> None:
    """Three arms in three blocks, a job each: nine times, three runs, two configurations."""

    def tell(told: JSON) -> None:
        for at, benchmark in enumerate(told["benchmarks"]):
            job = {"job": 0, "work": 1.0, "start_s": 1.0, "end_s": 2.0 + at / 10, "outcome": "done"}
            report = {"job": [job], "stream": [{"engine": "pool", "slots": 2}]}
            benchmark["extra_info"]["report"] = report

    made = Made(arms=(STOCK, AGAIN, Arm("tuned")), blocks=3)
    rows, _, _ = rows_of([saved(tmp_path, made, tell)], None)
    assert sorted(row.value for row in rows) == pytest.approx([1 + at / 10 for at in range(9)])
    assert (len({row.configuration for row in rows}), len({row.run for row in rows})) == (2, 3)


def test_endless_jobs_and_backward_clocks_are_out_and_counted(tmp_path: Path) -> None:
    path = Path(streams(tmp_path, runs=1))
    told = json.loads(path.read_text())
    jobs = told["benchmarks"][0]["extra_info"]["report"]["job"]
    jobs[0] |= {"outcome": "never ended", "end_s": None}
    jobs[1]["end_s"] = jobs[1]["start_s"] - 1
    jobs[2]["cpu_s"] = None
    jobs[3]["start_s"] = jobs[3]["submit_s"] - 0.5
    path.write_text(json.dumps(told), encoding="utf-8")
    found, _, notes = rows_of([str(path)], "service_s")
    assert len(found) == 28
    assert "2 of 30" in notes[0]
    assert len(rows_of([str(path)], "cpu_s")[0]) == 28
    waits = [row.value for row in rows_of([str(path)], "wait_s")[0]]
    assert (len(waits), min(waits) >= 0) == (28, True)


def test_a_list_of_jobs_gives_times_and_configuration_names(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job,configuration,class,submit_s,start_s,end_s\n0,x,a,0,1,4\n1,y,b,1,2,\n2,y,b,1,2,3\n",
        encoding="utf-8",
    )
    made = read([str(path)], "response_s")
    assert (made.measured.tolist(), made.configurations.tolist()) == ([4, 2], ["x", "y"])
    assert "1 of 3" in made.notes[0]


def test_csv_that_is_none_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    found = {}
    for text in ("", "a,a\n1,2\n", "a,time_s\n1,2\n1\n", 'a,time_s\n1,"2\n'):
        Path("made.csv").write_text(text, encoding="utf-8")
        with pytest.raises(Unreadable) as refused:
            read(["made.csv"], "time_s")
        found[text] = str(refused.value)
    assert found == snapshot
