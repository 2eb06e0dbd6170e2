"""`python -m analysis schedule report` on synthetic runs: streams compared and simulated."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from analysis.studies.jobs.policies import simulate
from analysis.studies.jobs.simulation import Coming, Played, figures, jobs, play
from tests.analysis.answers import data, width
from tests.analysis.studies.jobs.simulation.made_jobs import coming, source
from tests.synthetic import STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    Reported = Callable[..., dict[str, Any]]


SLOTS, JOBS, OVERHEAD_S = 2, 150, 0.05


@cache
def played(policy: str, seed: int) -> tuple[list[Coming], Played]:
    coming = jobs(source(SLOTS, 0.8), JOBS, seed)
    return coming, play(coming, SLOTS, policy)


def measured(policy: str, seed: int) -> tuple[list[Coming], Played]:
    """Each job as it was played, and `OVERHEAD_S` later."""
    coming, simulated = played(policy, seed)
    return coming, replace(
        simulated, start_s=simulated.start_s + OVERHEAD_S, end_s=simulated.end_s + OVERHEAD_S
    )


def contrast(
    place: dict[str, Any], policy: str = "sjf", metric: str = "mean_wait_s"
) -> dict[str, Any]:
    (found,) = (
        row
        for row in place["policies"]["contrasts"]
        if (row["arm"], row["metric"]) == (policy, metric)
    )
    return dict(found)


def stream(policy: str, seed: int) -> dict[str, list[dict[str, Any]]]:
    coming, simulated = played(policy, seed)
    rows = [
        {
            "job": one.job.number,
            "class": "job",
            "priority": 0,
            "replicas": 1,
            "work": None,
            "due_s": None,
            "predicted_s": one.job.predicted_s,
            "planned_submit_s": one.job.submit_s,
            "submit_s": one.job.submit_s,
            "admit_s": start_s + OVERHEAD_S,
            "start_s": start_s + OVERHEAD_S,
            "end_s": end_s + OVERHEAD_S,
            "outcome": "done",
            "attempts": 1,
        }
        for one, start_s, end_s in zip(
            coming, simulated.start_s.tolist(), simulated.end_s.tolist(), strict=True
        )
    ]
    about = {
        "arrivals": {"kind": "poisson", "rate_per_s": 1.6, "seed": seed},
        "engine": "pool",
        "slots": SLOTS,
        "policy": policy,
    }
    return {"job": rows, "stream": [about]}


def saved(folder: Path, *reports: dict[str, Any]) -> Path:
    run = saved_run(Made(arms=(STOCK,), blocks=max(1, len(reports))))
    for benchmark, report in zip(run["benchmarks"], reports, strict=False):
        benchmark["extra_info"]["report"] = report
    if reports:
        run["benchmarks"] = run["benchmarks"][: len(reports)]
        kept = {benchmark["extra_info"]["id"] for benchmark in run["benchmarks"]}
        run["deeptweak"]["cells"] = [
            cell for cell in run["deeptweak"]["cells"] if cell["id"] in kept
        ]
    path = folder / "run.json"
    path.write_text(json.dumps(run))
    return path


@pytest.fixture
def reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reported:
    def report(*reports: dict[str, Any]) -> dict[str, Any]:
        (place,) = data(capsys, "schedule", "report", saved(tmp_path, *reports))["places"]
        return dict(place)

    return report


def test_policies_are_paired_by_their_arrivals(reported: Reported) -> None:
    place = reported(
        *(stream(policy, seed) for seed in (1, 2, 3, 4) for policy in ("sjf", "fifo")),
        stream("sjf", 5),
    )
    assert (place["engine"], place["slots"], place["streams"]) == ("pool", SLOTS, 4)
    # Whose arrivals not every policy had.
    assert [note.partition(" ")[0] for note in place["notes"]] == ["1"]
    fifo, sjf = (
        [figures(*measured(policy, seed)).mean_wait_s for seed in (1, 2, 3, 4)]
        for policy in ("fifo", "sjf")
    )
    assert [row["policy"] for row in place["policies"]["figures"]] == ["fifo", "sjf"]
    ratio = contrast(place)
    assert ratio["value"] == pytest.approx(
        geometric_mean(own / base for own, base in zip(sjf, fifo, strict=True))
    )
    assert (ratio["n"], ratio["high"] < 1) == (4, True)


def test_engine_time_is_the_wait_beyond_that_of_the_simulation(reported: Reported) -> None:
    """Made with 50 ms per job, unknown to the simulator."""
    (replay,) = reported(*(stream("fifo", seed) for seed in (1, 2, 3)))["replays"]
    assert replay["streams"] == 3
    assert replay["longer_s"]["value"] == pytest.approx(OVERHEAD_S)


def broken(what: dict[str, Any], row: int = 3) -> dict[str, Any]:
    made = stream("fifo", 1)
    made["job"][row] |= what
    return made


def given_up(policy: str, seed: int, jobs: int) -> dict[str, Any]:
    made = stream(policy, seed)
    longest = sorted(made["job"], key=lambda row: row["submit_s"] - row["admit_s"])[:jobs]
    for row in longest:
        row |= {"outcome": "never started", "admit_s": None, "start_s": None, "end_s": None}
    return made


def test_a_policy_that_loses_the_slow_jobs_is_no_better_for_it(reported: Reported) -> None:
    """All are fifo streams; as "sjf" they lose the thirty longest waits, as "priority" none."""
    told = [stream("fifo", seed) for seed in (1, 2, 3)]
    lossy = [given_up("fifo", seed, 30) for seed in (1, 2, 3)]
    for one in lossy:
        one["stream"][0]["policy"] = "sjf"
    whole = [stream("fifo", seed) for seed in (1, 2, 3)]
    for one in whole:
        one["stream"][0]["policy"] = "priority"
    place = reported(*told, *lossy, *whole)
    assert "sjf is not compared with fifo" in place["notes"][-1]
    fifo, priority = place["policies"]["figures"]
    assert priority == fifo | {"policy": "priority"}


def test_streams_with_and_without_a_tweak_set_are_not_paired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = saved_run(Made(arms=(STOCK, Arm("tuned")), blocks=3))
    for one in run["benchmarks"]:
        info = one["extra_info"]
        info["report"] = stream("fifo" if info["tweakset"] == "stock" else "sjf", info["block"])
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run))
    found = data(capsys, "schedule", "report", path)
    assert [len(place["policies"]["figures"]) for place in found["places"]] == [1]
    assert len(found["refused"]) == 1


def test_pages_and_refusals(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    fifo, sjf = stream("fifo", 1), stream("sjf", 1)
    without_slots = stream("fifo", 2) | {"node": [{"node": "node-1", "at_s": 1.0, "what": "lost"}]}
    situations: dict[str, list[dict[str, Any]]] = {
        "a job lost, a stream alone": [
            broken({"outcome": "never ended", "end_s": None}),
            sjf,
            stream("sjf", 2),
        ],
        "lost under the baseline": [broken({"outcome": "failed"}), sjf],
        "lost under the other": [fifo, given_up("sjf", 1, 30)],
        "slots lost": [fifo, without_slots],
        "no stream": [],
        "no baseline": [sjf],
        "other arrivals": [sjf, stream("fifo", 2)],
        "ended before it came": [broken({"end_s": -5.0})],
        "never admitted": [broken({"start_s": None, "admit_s": None})],
        "never came": [broken({"submit_s": None})],
        "came before the stream": [broken({"submit_s": -1.0})],
        "a number twice": [broken({"job": 4})],
        "end late": [broken({"end_s": "late"})],
        "no row of the stream": [fifo | {"stream": []}],
        "nine jobs": [fifo | {"job": fifo["job"][:9]}],
    }
    for case, reports in situations.items():
        saved(tmp_path, *reports)
        code = main(["schedule", "report", "run.json"])
        out, err = capsys.readouterr()
        assert (code, bool(out)) in {(0, True), (2, False)}
        assert width(out) <= 100
        # The answer and what was left out.
        assert (err or out.split("\n\n")[:2]) == snapshot(name=case)


FAST = ["--jobs", "400", "--seeds", "5"]
CLASSES = """\
classes:
  - {name: train, probability: 0.3, mean_s: 4, tenant: a, due_factor: 10, priority: 1}
  - {name: serve, probability: 0.7, mean_s: 3, tenant: b, due_factor: 4, replicas: 2}
"""


def test_shortest_first_halves_the_mean_wait_at_a_load_of_0_8() -> None:
    """Two slots, predictions right: the interval shows this.

    With predictions off by half the gain is smaller, and still there.
    """
    ratio = {}
    for error in (0.0, 0.5):
        (found,) = simulate(
            replace(source(2, 0.8), error=error), ("fifo", "sjf"), many=1000, seeds=6
        ).waits
        assert found.high < 1
        ratio[error] = found.value
    assert ratio[0.0] == pytest.approx(0.5, abs=0.06)
    assert ratio[0.0] < ratio[0.5] < 1


def test_figures_by_hand() -> None:
    """Jobs arrive 1 s apart, take 2 s on one slot: waits 0 (not counted), 1 … 9; two tenants."""
    stream = [coming(at, float(at), 2.0, tenant="ab"[at % 2], due_s=at + 5.0) for at in range(10)]
    found = figures(stream, play(stream, 1, "fifo"))
    assert found.mean_wait_s == 5
    assert found.mean_response_s == 7
    assert found.p95_wait_s == pytest.approx(8.6)
    assert found.slowdown == 3.5
    assert found.busy == 1
    assert found.late == pytest.approx(6 / 9)  # those that waited 4 s and more
    assert (found.inside_half, found.inside_end) == (4, 6)
    assert found.jain == pytest.approx((3.5 + 3.5) ** 2 / (2 * (3.5**2 + 3.5**2)))


def test_a_policy_under_which_the_queue_grows_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """At load 0.97, jobs of two slots leave one idle before each; shortest first fills it."""
    monkeypatch.chdir(tmp_path)
    Path("classes.yaml").write_text(CLASSES)
    options = "--slots 3 --classes classes.yaml --jobs 600 --seeds 6 --load 0.97"
    asked = ["schedule", "simulate", *options.split()]
    asked += ["--policies", "fifo,sjf", "--prediction-error", "0.3"]
    assert main(asked) == 0
    page = capsys.readouterr().out
    assert width(page) <= 100
    assert page == snapshot
    assert "fifo" in data(capsys, *asked)["growing"]


def test_what_cannot_be_compared_is_refused(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    found = {}
    for more in (
        "--load 1",
        "--policies fifo,lifo",
        "--policies sjf",
        "--jobs 3",
        "--prediction-error -1",
        "--classes nothing.yaml",
    ):
        assert main(["schedule", "simulate", "--slots", "2", *FAST, *more.split()]) == 2
        found[more] = capsys.readouterr().err
    assert found == snapshot
