"""What the committed runs of streams of jobs carry: waits against Erlang, Little's law, policies, faults, learning.

Each was measured on the machine that its name says; here only what was saved is judged.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import jsonschema
import pytest

from analysis.__main__ import main
from analysis.load import load, parsed
from analysis.studies.jobs.queue_formulas import erlang_c
from analysis.subcommands import add_parser
from tests.analysis.answers import printed

HOUSE = Path(__file__).parents[2]
RUNS = HOUSE / "data" / "runs"
MACHINE = "2026-11-22_amd-epyc-2cpu.json"


@cache
def said(*command: str) -> Any:
    with redirect_stdout(StringIO()) as stdout:
        assert main([*command, "--json"]) == 0
    return json.loads(stdout.getvalue())


@cache
def jobs(kind: str) -> list[list[dict[str, Any]]]:
    run = load(str(RUNS / f"cluster-{kind}_{MACHINE}"))
    streams = [[dict(job) for job in cell.report["job"]] for cell in run.cells]
    assert streams
    return streams


@pytest.mark.parametrize("path", sorted(RUNS.glob(f"cluster-*_{MACHINE}")), ids=lambda path: path.name.split("_")[0])
def test_an_answer_leads_in_three_lines_and_ends_with_a_command_that_can_be_pasted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "show", path)
    assert 1 <= len(page.split("\n\n")[0].splitlines()) <= 3
    *command, name = shlex.split(page.splitlines()[-1])[:5]
    assert command == ["next:", "python", "-m", "analysis"]
    parser = argparse.ArgumentParser()
    add_parser(parser, import_module(f"analysis.commands.{name}"))
    parser.parse_args(shlex.split(page.splitlines()[-1])[5:])


def test_every_run_obeys_the_schema() -> None:
    schema = jsonschema.Draft202012Validator(json.loads((HOUSE / "data" / "run.schema.json").read_text(encoding="utf-8")))
    paths = list(RUNS.glob(f"cluster-*_{MACHINE}"))
    assert len(paths) >= 11
    for path in paths:
        schema.validate(parsed(path))


def test_mean_wait_of_600_jobs_at_two_slots_is_erlangs_within_three_standard_errors_of_runs() -> None:
    """Poisson arrivals of 6 a second, exponential jobs of 0.2 s: load 0.6, C = 0.45, Wq = C·s / (c(1 − load)) = 112.5 ms."""
    waits_s = [fmean(job["admit_s"] - job["submit_s"] for job in stream) for stream in jobs("queueing")]
    assert [len(stream) for stream in jobs("queueing")] == [600] * 6
    expected_s = erlang_c(2, 1.2) * 0.2 / (2 * 0.4)
    assert expected_s == pytest.approx(0.1125)
    standard_error_s = stdev(waits_s) / math.sqrt(len(waits_s))
    assert abs(fmean(waits_s) - expected_s) < 3 * standard_error_s


@pytest.mark.parametrize("kind", ["queueing", "scheduling"])
def test_littles_law_is_exact_on_every_stream(kind: str) -> None:
    """Integrated event by event, over an interval that starts and ends empty."""
    for stream in jobs(kind):
        moments = sorted([(job["submit_s"], 1) for job in stream] + [(job["end_s"], -1) for job in stream])
        area, inside, before_s = 0.0, 0, moments[0][0]
        for at_s, change in moments:
            area += inside * (at_s - before_s)
            inside, before_s = inside + change, at_s
        assert inside == 0
        assert area == pytest.approx(math.fsum(job["end_s"] - job["submit_s"] for job in stream), rel=1e-9)


def test_shortest_job_first_waits_less_than_first_come_first_served_on_the_same_jobs() -> None:
    (place,) = said("schedule", "report", str(RUNS / f"cluster-scheduling_{MACHINE}"))["places"]
    (sjf,) = [arm for arm in place["arms"] if arm["policy"] == "sjf"]
    judged = sjf["against"]["mean_wait_s"]
    assert judged["effect"]["low"] > 0  # the gain: fifo's mean wait over its own, less 1
    assert judged["p"] < 0.05


def test_one_percent_of_packet_loss_slows_training() -> None:
    lines = said("depend", "network", str(RUNS / f"cluster-network_{MACHINE}"))["lines"]
    for line in lines:
        (one,) = [loss for loss in line["losses"] if loss["loss"] == pytest.approx(0.01)]
        assert one["slowdown"]["low"] > 1


def test_more_jobs_take_the_target_time_where_replicas_are_chosen_for_each() -> None:
    (found,) = said("scale", "report", str(RUNS / f"cluster-scaling_{MACHINE}"))["reports"]
    others = [arm for arm in found["arms"] if arm["more_within"] is not None]
    assert len(others) == 3
    for other in others:
        _, low, _ = other["more_within"]  # points more, with its interval
        assert low > 0


def test_optimiser_and_rate_decide_when_an_accuracy_is_reached_and_hang_together() -> None:
    """Adam is sooner; what a larger rate gives momentum, it does not give Adam."""
    found = said("jobs", "hyper", str(RUNS / f"cluster-hyper_{MACHINE}"))
    assert all(point["reached"] == point["jobs"] == 20 for point in found["points"])
    verdicts = {term["label"]: term["verdict"] for term in found["effects"]["terms"]}
    assert verdicts["optimiser"] == verdicts["lr"] == "improved"
    assert verdicts["lr:optimiser"] == "interacts"


def test_two_busy_threads_are_no_isolated_neighbour_and_jobs_without_memory_have_no_slowdown() -> None:
    arms = {arm["fault"]: arm for arm in said("depend", "report", str(RUNS / f"cluster-neighbours_{MACHINE}"))["arms"]}
    assert arms["cpu_hog"]["slowdown"]["low"] > 1.1
    assert (arms["cpu_hog"]["isolation"], arms["io_hog"]["isolation"]) == ("not isolated", "isolated")
    assert arms["few_cores"]["slowdown"]["low"] > 2  # a quarter of two CPUs
    assert "done" not in arms["little_memory"]["outcomes"]
    assert arms["little_memory"]["slowdown"] is None


@pytest.mark.parametrize(("kind", "away_s"), [("faults", 6), ("kubernetes", 30)])
def test_a_lost_node_costs_time_and_no_job(kind: str, away_s: float) -> None:
    """Processes of one machine, and pods of a cluster: what ran there runs again, and the queue is gone a while after the node is back."""
    (node,) = [arm for arm in said("depend", "report", str(RUNS / f"cluster-{kind}_{MACHINE}"))["arms"] if arm["fault"] == "node"]
    assert node["slowdown"]["low"] > 1
    assert node["outcomes"].keys() == {"done"}
    assert node["recovery_s"]["value"] > away_s
    assert node["hit"] > 0


def test_a_flood_is_felt_whoever_is_next_and_less_with_fair_share() -> None:
    found = said("depend", "report", str(RUNS / f"cluster-faults_{MACHINE}"))
    floods = [arm for arm in found["arms"] if arm["fault"] == "flood"]
    (fair,) = found["policies"]
    assert fair["response"]["high"] < 1
    assert len(floods) == 2
    assert all(arm["slowdown"]["low"] > 1 and arm["isolation"] == "not isolated" for arm in floods)
