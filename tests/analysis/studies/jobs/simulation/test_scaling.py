"""Replicas for jobs: speed-up laws recovered from times, and the number for equal durations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.__main__ import main
from control.scaling import Law, TimedJob, choose, fits, held_out, most_useful, time_s
from tests.analysis.answers import known, width
from tests.synthetic import Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


TRUE = Law(cost_s=600, serial=0.01, crosstalk=1e-4, startup_s=5)
REPLICAS, SIZES = (1, 2, 4, 8, 16, 32), (0.25, 1.0, 4.0)


def profile(law: Law, noise: float = 0.0, often: int = 2, seed: int = 1) -> list[TimedJob]:
    grid = [(n, size) for n in REPLICAS for size in SIZES for _ in range(often)]
    off = np.random.default_rng(seed).lognormal(0, noise, len(grid)).tolist()
    return [
        TimedJob(n, size, float(time_s(law, size, n)) * by)
        for (n, size), by in zip(grid, off, strict=True)
    ]


def test_times_by_hand() -> None:
    """Amdahl, a tenth serial: 100 s on one, 55 s on two, never under 10 s.

    With crosstalk 0.01 two take 100·(1 + 0.1 + 0.02)/2 = 56 s.
    """
    assert time_s(Law(100, 0.1), 1.0, [1, 2]).tolist() == pytest.approx([100, 55])
    assert float(time_s(Law(100, 0.1), 1.0, 10**9)) == pytest.approx(10)
    assert float(time_s(Law(100, 0.1, 0.01), 1.0, 2)) == pytest.approx(56)
    assert float(time_s(Law(100, 0.1, 0.01, 7), 3.0, 2)) == pytest.approx(7 + 3 * 56)


@given(
    cost_s=st.floats(0.01, 1e4),
    serial=st.floats(0.01, 0.5),
    crosstalk=st.floats(1e-3, 0.1),
    startup=st.floats(0.01, 1),
)
def test_a_law_is_found_again_in_times_without_noise(
    cost_s: float, serial: float, crosstalk: float, startup: float
) -> None:
    law = Law(cost_s, serial, crosstalk, startup * cost_s)
    found = fits(profile(law))[0]
    assert found.name == "usl"
    times_s = [
        (time_s(one, size, n)) for one in (law, found.law) for n in (3, 24) for size in (0.5, 3.0)
    ]
    assert np.array(times_s[:4]) == pytest.approx(np.array(times_s[4:]), rel=1e-3)


def test_intervals_hold_what_is_true_as_often_as_they_say() -> None:
    """40 profiles, 3 % noise: about 38 hold at 95 %; fewer than 33 has a chance of 1 in 1000."""
    law = Law(600, 0.05, 0.002, 20)
    inside = dict.fromkeys(("cost_s", "serial", "crosstalk", "startup_s"), 0)
    for seed in range(40):
        found = next(one for one in fits(profile(law, 0.03, seed=seed)) if one.name == "usl")
        for name, ends in found.intervals.items():
            inside[name] += known(ends)[0] <= getattr(law, name) <= known(ends)[1]
    assert min(inside.values()) >= 33


@pytest.mark.parametrize(
    "times_s",
    [(10, 10.1, 3, 3.1), (10, 10, 3, 3), (10, 6, 4, 3)],
    ids=["two configurations", "and equal times", "all on the law"],
)
def test_no_interval_is_claimed_where_nothing_is_left_over(times_s: Sequence[float]) -> None:
    """Amdahl with two parameters: (2, 4) + 8/n goes through 10, 6, 4 and 3 at 1, 2, 4 and 8."""
    replicas = (1, 1, 4, 4) if times_s[1] > 6 else (1, 2, 4, 8)
    (found,) = fits([TimedJob(n, 1.0, time_s) for n, time_s in zip(replicas, times_s, strict=True)])
    assert set(found.intervals.values()) == {None}
    assert "no interval" in found.notes[0]


def test_the_error_held_out_is_that_of_jobs_the_fit_never_saw() -> None:
    """3 % noise means 2.4 % either way; an odd configuration counts in full, an 18th of all."""
    points = profile(TRUE, 0.03)
    plain = known(held_out(points, fits(points)[0]))
    assert 0.015 < plain < 0.045
    odd = [
        replace(one, time_s=3 * one.time_s) if (one.replicas, one.work) == (8, 1.0) else one
        for one in profile(TRUE)
    ]
    away = known(held_out(odd, fits(odd)[0]))
    assert away > 0.6 / 18
    few = [TimedJob(n, 1.0, 100 / n) for n in (1, 2, 4, 8)]
    assert held_out(few, fits(few)[0]) is None


@given(work=st.floats(0.01, 100), target_s=st.floats(6, 1e4), most=st.integers(1, 200))
@example(work=98.5, target_s=1770.0, most=108)
def test_no_other_number_of_replicas_comes_nearer(work: float, target_s: float, most: int) -> None:
    """From 100 on (√(0.99/0.0001) = 99.5) jobs slow down: possibly nearer, but only dearer."""
    chosen = choose(TRUE, work, target_s, most)
    away = abs(np.log(chosen.predicted_s / target_s))
    assert (
        np.abs(np.log(time_s(TRUE, work, np.arange(1, min(most, 99) + 1)) / target_s))
        >= away - 1e-12
    ).all()
    assert chosen.within == (abs(chosen.predicted_s / target_s - 1) <= 0.1)


@given(serial=st.floats(0, 1), crosstalk=st.floats(0, 0.1), most=st.integers(1, 300))
def test_beyond_the_most_useful_number_a_job_takes_no_less_time(
    serial: float, crosstalk: float, most: int
) -> None:
    law = Law(1.0, serial, crosstalk)
    times_s = time_s(law, 1.0, np.arange(1, most + 1))
    assert times_s[most_useful(law, most) - 1] == pytest.approx(times_s.min(), rel=1e-9)


def csv_of(points: list[TimedJob]) -> str:
    return "replicas,work,time_s\n" + "".join(
        f"{one.replicas},{one.work},{one.time_s}\n" for one in points
    )


def test_from_times_to_a_law_to_replicas(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("profile.csv").write_text(csv_of(profile(TRUE, 0.02)))

    def out(words: str) -> str:
        assert main(["scale", *words.split()]) == 0
        return capsys.readouterr().out

    Path("law.json").write_text(out("fit profile.csv --json"))
    for words in ("fit profile.csv", "choose law.json --target-s 60 --work 0.01,1"):
        page = out(words)
        assert width(page) <= 100
        assert page == snapshot(name=words)
    choices = json.loads(out("choose law.json --target-s 60 --work 0.01,1 --json"))["choices"]
    assert [one["within"] for one in choices] == [False, True]


def test_times_come_out_of_saved_runs_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = saved_run(Made())
    jobs = [
        {
            "job": at,
            "replicas": one.replicas,
            "work": one.work,
            "start_s": 10.0,
            "end_s": 10.0 + one.time_s,
            "outcome": "done",
        }
        for at, one in enumerate(profile(TRUE))
    ]
    jobs.append(
        {
            "job": 99,
            "replicas": 2,
            "work": 1.0,
            "start_s": 1.0,
            "end_s": None,
            "outcome": "never ended",
        }
    )
    run["benchmarks"][0]["extra_info"]["report"] = {
        "job": jobs,
        "stream": [{"engine": "pool", "slots": 16}],
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert main(["scale", "fit", str(tmp_path / "run.json"), "--json"]) == 0
    out, _ = capsys.readouterr()
    assert json.loads(out)["fits"][0]["law"]["cost_s"] == pytest.approx(600, rel=1e-3)
    assert any("1 of 37" in line for line in json.loads(out)["refused"])


def test_what_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("law.json").write_text('{"cost_s": 600, "startup_s": 5}')
    files = {
        "profile.csv": (
            "replicas,work\n1,1\n",
            "replicas,time_s\n1,2\n0,3\n",
            "replicas,time_s\n1,2\n2,-3\n",
            "replicas,time_s\n1,nan\n",
            "replicas,time_s\n1.5,2\n",
            "replicas,time_s\n1\n",
            "replicas,time_s\n",
            "",
            "replicas,time_s\n" + "2,1\n" * 9,
            "replicas,time_s\n1,2\n2,1\n",
        ),
        "other.json": (
            '{"serial": 0.1}',
            "[]",
            '{"cost_s": 1, "serial": 2}',
            '{"cost_s": 0}',
        ),
    }
    requests = [("fit profile.csv", "profile.csv", text) for text in files["profile.csv"]]
    requests += [("choose other.json --work 1", "other.json", text) for text in files["other.json"]]
    requests += [
        (words, "", "")
        for words in (
            "choose law.json --work 1,x",
            "choose law.json --work 1 --most 0",
        )
    ]
    found = {}
    for words, name, text in requests:
        if name:
            Path(name).write_text(text)
        target = [] if words.startswith("fit") or "--target-s" in words else ["--target-s", "60"]
        assert main(["scale", *words.split(), *target]) == 2
        found[text or words] = capsys.readouterr().err
    assert found == snapshot
