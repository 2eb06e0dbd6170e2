"""`job_stream`: its name gives the stream, its options the arms, its process each job's outcome."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from analysis.studies.jobs.queue_fits import columns, little, most_held
from analysis.studies.jobs.records import JobRun, Stream
from fixtures import studies, workloads
from fixtures.studies.jobs.workloads import job_stream
from fixtures.terms import BadInput, Metric, Study

HOUSE = Path(__file__).parents[2]
STUDY = Study(
    "cluster_queueing",
    "Which?",
    ("job_stream:rate_per_s=3:jobs=40:slots=1", "job_stream:rate_per_s=6:jobs=40:slots=2"),
    ("stock",),
    Metric("step_time_mean_s", "lower"),
)
Json = dict[str, Any]


def test_a_step_is_a_job() -> None:
    """Of a flood those of the flood too; it brings as many as it is large."""
    assert workloads.load("job_stream:jobs=40").params["steps"] == 40
    assert (
        workloads.load("job_stream:jobs=40:fault=flood:fault_at_s=1:fault_size=7").params["steps"]
        == 47
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("policy=lifo", r"policy=lifo: no such value. .*Available: fair_share, fifo"),
        ("engine=pol", r"engine=pol: no such value. Did you mean 'pool'\? Available: jobs, pool"),
        ("slots=2:nodes=3", "nodes=3: there are only 2 slots, so some nodes would have none"),
        ("patience_s=-1", "patience_s=-1: must be a number from 0"),
        ("slot=2", "no parameter 'slot'"),
        ("target_s=1:replicas=2", "contradicts replicas"),
        (
            "replicas=3",
            "slots=2: jobs of class sleep need 3 slots and could never start. Use slots=3",
        ),
    ],
)
def test_a_parameter_that_means_nothing_is_refused(name: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        workloads.load(f"job_stream:{name}")


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("jobs=600", 100),  # at 6 a second, as they come
        ("jobs=600:work=0.4", 120),  # which is more than two slots can do
        ("arrivals=closed:jobs=40", 4),  # of 0.2 s on two slots
        (
            "arrivals=closed:classes=federated:jobs=12:slots=1",
            2.4,
        ),  # of ten rounds, which are no seconds
        ("arrivals=fltk:lambda_min=1.5:jobs=40", 3600),  # a gap is minutes
        ("arrivals=trace:trace=ab:jobs=40", 60),  # unknown
    ],
)
def test_a_streams_duration_is_that_of_its_arrivals_or_its_work(name: str, seconds: float) -> None:
    """Beside 2 s of start-up."""
    assert workloads.of(f"job_stream:{name}").cell_s() == pytest.approx(2.0 + seconds)


@pytest.mark.parametrize(("bench", "minutes"), [("queueing", 38), ("scheduling", 20)])
def test_a_study_lasts_as_long_as_its_page_says(bench: str, minutes: int) -> None:
    study = importlib.import_module(f"benchmarks.bench_cluster_{bench}").STUDY
    lasts_s = study.blocks * sum(workloads.of(name).cell_s() for name in study.workloads)
    assert round(lasts_s / 60) == minutes
    page = (HOUSE / "docs/jobs.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{bench}.py` |")]
    assert f": {minutes} min |" in row


def under(**given: object) -> tuple[str, ...]:
    return tuple(
        workloads.load(one).id for one in studies.apply(given, STUDY, workloads=None).workloads
    )


def test_options_take_the_place_of_the_study_s_own_values() -> None:
    """Two rates and two policies are four arms; the study's streams differ only in rate: one."""
    assert set(under(rate="4, 8", policies="fifo,sjf", slots="2")) == {
        f"job_stream:rate_per_s={rate}:jobs=40{policy}"
        for rate in (4, 8)
        for policy in ("", ":policy=sjf")
    }


def test_a_fault_can_stand_beside_the_same_stream_without_it() -> None:
    """Both show its cost."""
    plain, killed = under(fault="none,kill:rate_per_s=0.5", slots="2", rate="4")
    assert killed == f"{plain}:fault=kill:fault_rate_per_s=0.5"


def test_classes_of_one_s_own_are_known_by_what_the_file_says(tmp_path: Path) -> None:
    """Its digest is in the name, and the process is given the file."""
    own = tmp_path / "own.yaml"
    own.write_text(
        "description: one\nclasses:\n  - {name: a, kind: sleep, size: {law: constant, mean: "
        "0.05}}\n"
    )
    given = {"classes": str(own), "slots": "2", "rate": "4"}
    (name,) = under(**given)
    assert "classes_file=" in name
    assert studies.files(given, STUDY.name) == {"classes_file": own}
    digest = workloads.load(name).params["classes_file"]
    with pytest.raises(AssertionError, match="has changed since the cells were declared"):
        run(f"--file=classes_file={own}", folder=tmp_path, jobs=3, classes_file=digest[::-1])
    rows = run(f"--file=classes_file={own}", folder=tmp_path, jobs=3, classes_file=digest)["job"]
    assert {row["class"] for row in rows} == {"a"}


TRACE = "submit_s,replicas\n0,1\n0.5,2\n0.75,1\n"


@pytest.mark.parametrize(
    ("option", "text", "why"),
    [
        (
            "arrivals",
            "submit_s\n0\n2\n1\n",
            r"own: line 4: submit_s 1 is 1 s earlier than in line 3; sort the jobs",
        ),
        (
            "arrivals",
            "submit_s,class\n0,sleep\n1,slepe\n",
            "Job 1 of the trace has class 'slepe', which is not one of sleep",
        ),
        (
            "arrivals",
            TRACE,
            "slots=1: jobs of class sleep need 2 slots and could never start. Use slots=2",
        ),
        ("classes", "description: one\nclasses: [", r"own:\d+:\d+: "),
        (
            "classes",
            (
                "description: one\nclasses:\n  - {name: a, kind: slep, size: {law: constant, "
                "mean: 1}}\n"
            ),
            "kind.*'slep'",
        ),
    ],
)
def test_an_invalid_stream_file_is_refused_before_anything_runs(
    tmp_path: Path, option: str, text: str, why: str
) -> None:
    """It is read when the options are, not first in a cell."""
    own = tmp_path / "own"
    own.write_text(text)
    with pytest.raises(BadInput, match=why):
        under(slots="1", **{option: f"{own}"})


def test_a_trace_is_played_as_it_came_unless_a_rate_is_asked_for(tmp_path: Path) -> None:
    """Not as fast as the study's own arrivals: three jobs, the last after 0.75 s."""
    own = tmp_path / "own.csv"
    own.write_text(TRACE)
    assert [
        workloads.load(name).params["rate_per_s"] for name in under(arrivals=f"{own}", slots="2")
    ] == [4]
    assert [
        workloads.load(name).params["rate_per_s"]
        for name in under(arrivals=f"{own}", slots="2", rate="8")
    ] == [8]
    own.write_text("submit_s\n0\n0\n")
    assert {
        workloads.load(name).params["arrivals"] for name in under(arrivals=f"{own}", slots="2")
    } == {"trace"}


def run(*files: str, folder: Path, seed: int = 3, **values: object) -> dict[str, list[Json]]:
    """Return the process's reports by name; steps under `step`."""
    stream = workloads.case("job_stream", **values)
    plain = [
        "--warmup=0",
        f"--steps={stream.params['steps']}",
        f"--seed={seed}",
        f"--scratch={folder}",
        *files,
    ]
    command = [
        sys.executable,
        "-m",
        "fixtures.workloads.job_stream",
        *plain,
        f"--params={json.dumps(stream.params)}",
    ]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Json]] = {}
    for event in map(json.loads, done.stdout.splitlines()):
        found.setdefault(event.get("name", event["event"]), []).append(event.get("value", event))
    return found


def test_littles_law_holds_on_a_real_stream_to_the_last_digit(tmp_path: Path) -> None:
    """60 jobs of 20 ms at load 1 or so, on two slots of two nodes: each is a step, in end order."""
    told = run(folder=tmp_path, jobs=60, rate_per_s=80, work=0.02, nodes=2)
    rows, (stream,) = told["job"], told["stream"]
    assert sorted(row["job"] for row in rows) == list(range(60))
    assert {row["outcome"] for row in rows} == {"done"}
    jobs = tuple(
        JobRun(row["job"], row["submit_s"], row["admit_s"], row["start_s"], row["end_s"], "done")
        for row in rows
    )
    found = columns(Stream("s", "g", jobs, stream["slots"]))
    law = little(found)
    assert law is not None
    assert law.jobs == 60
    assert max(one.off for one in law.laws) < 1e-9
    assert most_held(found) <= 2
    assert not found.findings
    assert all(row["submit_s"] >= row["planned_submit_s"] for row in rows)
    took = [row["end_s"] - row["submit_s"] for row in rows]
    assert [step["wall_s"] for step in told["step"]] == pytest.approx(took, abs=2e-6)
    assert stream["arrivals"] == {"kind": "poisson", "rate_per_s": 80, "jobs": 60, "seed": 3}
    assert (stream["engine"], stream["policy"], stream["nodes"], stream["fault"]) == (
        "pool",
        "fifo",
        2,
        None,
    )
    assert [one["attempt"] for one in told["attempt"]] == [1] * 60
    assert told["ready"][0]["facts"]["steps_overlap"] is True


def test_killed_jobs_are_tried_again_from_their_checkpoints(tmp_path: Path) -> None:
    """Jobs of 0.3 s are killed 5 times per second; work since the 20 ms checkpoint is lost."""
    fault: dict[str, Any] = {
        "fault": "kill",
        "fault_rate_per_s": 5,
        "checkpoint_s": 0.02,
        "retries": 1000,
    }
    told = run(folder=tmp_path, jobs=6, arrivals="closed", work=0.3, classes="sleep", **fault)
    assert {row["outcome"] for row in told["job"]} == {"done"}
    assert told["fault"]
    again = [row for row in told["attempt"] if row["attempt"] > 1]
    assert (
        len(again)
        == sum(row["outcome"] == "killed" for row in told["attempt"])
        == sum(row["attempts"] - 1 for row in told["job"])
    )


def test_jobs_that_never_end_are_reported_after_the_patience(
    tmp_path: Path,
) -> None:
    """Patience of 0.5 s, jobs of hours on two slots; the step lasts as long as the wait."""
    told = run(folder=tmp_path, jobs=3, rate_per_s=100, work=10000, patience_s=0.5)
    outcomes = sorted(row["outcome"] for row in told["job"])
    assert outcomes[2] == "never started"
    # Whether the first two began in time the machine decides.
    assert set(outcomes[:2]) <= {"never ended", "never started"}
    assert all(row["end_s"] is None for row in told["job"])
    assert all(0.5 <= step["wall_s"] < 10000 for step in told["step"])
    assert job_stream.JobStream.summary({"job": told["job"]}).endswith("3 of 3 jobs not done")
