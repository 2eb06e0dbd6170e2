"""`python -m analysis jobs hyper`: time to an accuracy by hyper-parameters.

The runs here are made.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from tests.analysis.answers import data, width
from tests.analysis.studies.jobs.profiles.made_cells import job, report, saved

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

Times = dict[tuple[str, str], "float | None"]
BATCHES, RATES = ("16", "128"), ("0.01", "0.1")


def learned(number: int, time_s: float | None) -> dict[str, Any]:
    result = {
        "accuracy": 0.5 if time_s is None else 0.96,
        "epochs": 9.0 if time_s is None else time_s,
        "loss": 0.1,
    }
    return job(
        number, result=result if time_s is None else {**result, "time_to_accuracy_s": time_s}
    )


def grid(
    folder: Path,
    time_s: Callable[[str, str, int, int], float | None],
    blocks: int = 4,
    jobs: int = 2,
) -> Path:
    told, params = {}, {}
    for batch, rate in product(BATCHES, RATES):
        name = f"job_stream:batch={batch}:lr={rate}"
        params[name] = {"batch": int(batch), "lr": float(rate), "classes": "hyper"}
        for block in range(1, blocks + 1):
            told[name, "stock", block] = report(
                [learned(at, time_s(batch, rate, block, at)) for at in range(jobs)]
            )
    return saved(folder, told, params=params)


def additive(batch: str, rate: str, block: int, at: int) -> float | None:
    """Batch 16 is twice as fast as 128, rate 0.1 four times as fast as 0.01; runs vary slightly."""
    return (
        8.0
        / (1 + (batch == "16"))
        / (1 + 3 * (rate == "0.1"))
        * (1 + 0.02 * block)
        * (1 + 0.01 * ((at + block * len(batch + rate)) % 5))
    )


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Callable[[Path], dict[str, Any]]:
    def ask(path: Path) -> dict[str, Any]:
        return dict(data(capsys, "jobs", "hyper", path))

    return ask


def test_effects_are_those_the_times_were_made_with(tmp_path: Path, asked: Any) -> None:
    found = asked(grid(tmp_path, additive))
    assert found["factors"] == ["batch", "lr"]
    gains = {
        term["label"]: term["gain"]
        for term in found["effects"]["terms"]
        if len(term["factors"]) == 1
    }
    assert sorted(gains.values()) == pytest.approx([1 / 2 - 1, 4 - 1], abs=0.05)
    assert found["best"]["levels"] == ["16", "0.1"]
    assert found["next"]["levels"] == ["128", "0.1"]
    assert found["times"]["value"] == pytest.approx(1 / 2, abs=0.02)
    assert found["times"]["n"] == 4


def test_a_point_that_loses_jobs_is_not_flattered_and_never_wins(
    tmp_path: Path, asked: Any
) -> None:
    """The fastest point loses a job in one run: its three whole runs count, and it does not win."""

    def one_never(batch: str, rate: str, block: int, at: int) -> float | None:
        lost = (batch, rate, block, at) == ("16", "0.1", 2, 1)
        return None if lost else additive(batch, rate, block, at)

    found = asked(grid(tmp_path, one_never))
    quick = next(one for one in found["points"] if one["levels"] == ["16", "0.1"])
    assert (quick["reached"], quick["jobs"]) == (7, 8)
    assert quick["time_s"]["value"] == pytest.approx(
        sum(additive("16", "0.1", block, at) or 0 for block in (1, 3, 4) for at in (0, 1)) / 6
    )
    assert found["best"]["levels"] == ["128", "0.1"]
    assert found["effects"]["observed"]["lost"]


def test_where_a_point_never_gets_there_no_effect_is_told(tmp_path: Path, asked: Any) -> None:
    found = asked(
        grid(tmp_path, lambda *said: None if said[:2] == ("128", "0.01") else additive(*said))
    )
    assert found["effects"] is None
    assert "lr 0.01" in found["why"]
    assert (
        next(one for one in found["points"] if one["levels"] == ["128", "0.01"])["time_s"] is None
    )


def test_pages_and_refusals(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    situations: dict[str, Callable[[], Path]] = {
        "four runs": lambda: grid(tmp_path, additive),
        "two runs": lambda: grid(tmp_path, additive, blocks=2),
        "nothing gets there": lambda: grid(tmp_path, lambda *_: None),
        "a point never gets there": lambda: grid(
            tmp_path, lambda *said: None if said[:2] == ("128", "0.01") else additive(*said)
        ),
        "half a grid": lambda: half_a_grid(tmp_path),
        "no accuracy": lambda: saved(tmp_path, {("job_stream", "stock", 1): report([job(0)])}),
        "nothing varied": lambda: saved(
            tmp_path, {("job_stream", "stock", 1): report([learned(0, 1.0)])}
        ),
    }
    for case, make in situations.items():
        code = main(["jobs", "hyper", make().name])
        out, err = capsys.readouterr()
        assert (code, bool(out)) in {(0, True), (2, False)}
        assert width(out) <= 100
        # Effects have a page of their own.
        assert (err or "\n\n".join(out.split("\n\n")[:2])) == snapshot(name=case)


def half_a_grid(folder: Path) -> Path:
    names = [("16", "0.01"), ("128", "0.1")]
    told = {
        (f"job_stream:batch={b}:lr={r}", "stock", at): report([learned(0, 1.0 + at)])
        for b, r in names
        for at in (1, 2, 3)
    }
    return saved(
        folder,
        told,
        params={
            f"job_stream:batch={b}:lr={r}": {"batch": int(b), "lr": float(r)} for b, r in names
        },
    )
