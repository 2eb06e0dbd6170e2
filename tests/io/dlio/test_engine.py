"""The engine DLIO: output is reported, a failure is one line, and nothing is left behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fixtures.studies.io import dlio, dlio_engine, parameters
from fixtures.studies.io.dataset import DataSpec, ensure
from fixtures.targets import _process
from fixtures.terms import BadInput, Order, Refused
from fixtures.workloads import load
from fixtures.workloads._protocol import Done, Request
from tests.io.dlio.recorded import COPY, program
from tests.waiting import until

# Parameters of the recorded runs.
GIVEN = {
    "engine": "dlio", "epochs": "2", "num_files_train": "24", "batch_size": "2",
    "read_threads": "1", "record_length_bytes": "65536", "record_length_bytes_stdev": "16384",
    "record_length_bytes_resize": "4096", "computation_time": "0.02", "cache": "as_found",
}  # fmt: skip
Reports = dict[str, list[dict[str, Any]]]


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the engine with a DLIO that leaves what a recorded run left, or does what `act` says."""

    def run(
        recording: str, act: str = COPY, steps: int | None = None, **more: str
    ) -> tuple[list[Done], Reports, dict[str, object]]:
        here = program(tmp_path, recording, act)
        monkeypatch.setattr(dlio, "find", lambda: here)
        params = parameters.complete({**GIVEN, **more})
        ensure([DataSpec.of(params)], tmp_path / "sets", lambda _: None)
        scratch = tmp_path / "a folder, with signs={of hydra}"
        scratch.mkdir(exist_ok=True)
        asked = Request(steps or params["steps"], 0, 1, scratch, data=tmp_path / "sets")
        try:
            with dlio_engine.prepare(asked, params) as job:
                done = [job.step(index) for index in range(asked.total)]
        finally:
            assert not list(scratch.iterdir())
        reports: Reports = {}
        for name, value in asked.reported:
            reports.setdefault(name, []).append(dict(value))
        return done, reports, dict(job.facts)

    return run


def test_steps_epochs_and_what_its_summary_said_are_reported(replay: Any) -> None:
    done, reports, facts = replay("1")
    assert [one.samples for one in done] == [2] * 24
    assert all(one.timed and one.timed[1] > 0 for one in done)
    (io,) = reports["io"]
    assert (io["engine"], io["engine_version"]) == ("dlio", "2.0.0")
    assert (
        io["model"],
        io["processes"],
        io["batch_size"],
        io["steps_per_epoch"],
        io["epochs"],
    ) == ("unet3d_h100", 1, 2, 12, 2)
    assert io["dataset"]["files"] == 24
    assert io["reported"]["train_au_mean_percentage"] == pytest.approx(86.757, abs=1e-3)
    epochs = reports["epochs"]
    assert [
        (one["epoch"], one["rank"], len(one["load_s"]), one["barrier_s"]) for one in epochs
    ] == [(1, 0, 12, None), (2, 0, 12, None)]
    # The block's own stamps: 17.020701 s to 17.595230 s.
    assert epochs[0]["end_monotonic_s"] - epochs[0]["start_monotonic_s"] == pytest.approx(
        0.574529, abs=2e-6
    )
    assert facts["dlio"] == "2.0.0"


def test_each_rank_has_its_epochs_and_checkpoints_their_bytes(replay: Any) -> None:
    write = (
        '(Path(said["workload.checkpoint.checkpoint_folder"]) / '
        '"model-1-6-0.pt").write_bytes(bytes(3000))'
    )
    act = f"{COPY}\n{write}"
    _, reports, _ = replay(
        "2",
        act,
        processes="2",
        checkpoint="on",
        epochs_between_checkpoints="1",
        model_size_bytes="1000",
    )
    assert [(one["rank"], one["epoch"]) for one in reports["epochs"]] == [
        (0, 1),
        (0, 2),
        (1, 1),
        (1, 2),
    ]
    assert {one["rchar_bytes"] for one in reports["epochs"]} == {None}
    assert [
        (one["epoch"], one["step"], one["bytes"], one["fsync_s"]) for one in reports["checkpoints"]
    ] == [
        (1, 6, 1500, None),
        (2, 6, 1500, None),
    ]


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (
            'print("Exception: Not enough training dataset is found"); sys.exit(1)',
            r"DLIO failed \(mpirun ended with exit code 1\)\. Its output: Exc",
        ),
        ("pass", r"DLIO wrote no 0_output\.json below"),
        (f"{COPY}\n(output / 'summary.json').unlink()", r"DLIO wrote no summary\.json"),
        (
            f"{COPY}\n(output / '0_output.json').unlink()",
            r"DLIO wrote no 0_output\.json below",
        ),
        (f"{COPY}\nsys.exit(3)", r"DLIO failed \(mpirun ended with exit code 3\)"),
        (
            f"{COPY}\nsys.exit(137)",
            (
                r"exit code 137: a rank was killed by SIGKILL; if you did not kill it, the machine "
                r"probably ran out of memory"
            ),
        ),
    ],
)
def test_a_run_that_failed_or_left_nothing_is_an_error_in_a_line(
    replay: Any, act: str, says: str
) -> None:
    with pytest.raises(Refused, match=says) as refused:
        replay("1", act)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "act", ["import time; time.sleep(900)", "import signal, time; signal.pause()"]
)
def test_sigterm_ends_dlio_and_leaves_nothing(replay: Any, act: str, tmp_path: Path) -> None:
    """As any error does: its scratch folder is gone too, which `replay` looks at.

    It comes when DLIO is at work.
    """

    def terminate() -> None:
        until((tmp_path / "seen.txt").exists)
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=terminate).start()
    with pytest.raises(Refused, match=r"SIGTERM ended the workload\."):
        replay("1", act)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_last_epoch_that_would_be_shorter_is_refused(replay: Any) -> None:
    with pytest.raises(
        BadInput,
        match=r"--steps=15: all DLIO epochs have the same length; use a multiple of 12, or fewer "
        r"than 12",
    ):
        replay("1", steps=15)


def unavailable_reason(given: Mapping[str, str]) -> str | None:
    return dlio_engine.unavailable_reason(parameters.complete({"engine": "dlio", **given}))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"epochs": "2", "cache": "cold"},
            "DLIO does not pause between epochs, so only the first can be cold",
        ),
    ],
)
def test_what_dlio_cannot_do_is_said_before_it_runs(
    given: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = program(tmp_path)
    monkeypatch.setattr(dlio, "find", lambda: here)
    assert unavailable_reason({"cache": "warm"}) is None
    assert says in str(unavailable_reason(given))


@pytest.mark.slow
@pytest.mark.needs("dlio")
@pytest.mark.parametrize("processes", [1, 2])
def test_dlio_itself_reads_a_cold_data_set(processes: int, tmp_path: Path) -> None:
    """The real one, through the real protocol: what it fetched from the device is the data set."""
    given = {
        "engine": "dlio",
        "num_files_train": "24",
        "batch_size": "2",
        "read_threads": "1",
        "record_length_bytes": "1Mi",
        "cache": "cold",
    }
    name = ":".join(
        [
            "io_train",
            *(f"{key}={value}" for key, value in {**given, "processes": processes}.items()),
        ]
    )
    params = parameters.complete({**given, "processes": f"{processes}"})
    ensure([DataSpec.of(params)], tmp_path / "sets", lambda _: None)
    ran = _process.run(
        Order(
            load(name), params["steps"], 0, 1, tmp_path / "a folder, {so}=", data=tmp_path / "sets"
        )
    )
    assert ran.error is None, (ran.error, ran.last_lines)
    assert len(ran.steps) == 24 // 2 // processes
    (io,) = ran.report["io"]
    size = io["dataset"]["bytes"]  # type: ignore[index]
    assert len(ran.report["epochs"]) == processes
    assert int(str(ran.report["epochs"][0]["device_read_bytes"])) == pytest.approx(size, rel=0.1)
    assert float(str(ran.report["epochs"][0]["resident_before"])) <= 0.01
    assert float(str(ran.report["epochs"][0]["resident_after"])) >= 0.9


@pytest.mark.parametrize(("steps", "told"), [(12, ("1", "-1")), (24, ("2", "-1")), (5, ("1", "5"))])
def test_so_many_steps_as_were_asked_for(
    replay: Any, tmp_path: Path, steps: int, told: tuple[str, str]
) -> None:
    """The recorded run had 24: of fewer only what DLIO is told is looked at."""
    try:
        replay("1", steps=steps)
    except Refused as error:
        assert steps == 5 and "has 12 steps instead of 5" in str(error)  # noqa: PT017, PT018
    said = dict(
        line.split("=", 1)
        for line in (tmp_path / "seen.txt").read_text().splitlines()
        if "=" in line
    )
    assert (said["++workload.train.epochs"], said["++workload.train.total_training_steps"]) == told
