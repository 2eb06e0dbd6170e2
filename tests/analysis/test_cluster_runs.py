"""The committed runs of job streams: Erlang waits, Little's law, policies, faults, learning.

Names give the machines; only the saved data are judged here.
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
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.load import load
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


@pytest.mark.parametrize(
    "path", sorted(RUNS.glob(f"cluster-*_{MACHINE}")), ids=lambda path: path.name.split("_")[0]
)
def test_an_answer_leads_in_3_lines_and_ends_with_a_command(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = printed(capsys, "show", path)
    assert 1 <= len(page.split("\n\n")[0].splitlines()) <= 3
    *command, name = shlex.split(page.splitlines()[-1])[:5]
    assert command == ["next:", "python", "-m", "analysis"]
    parser = argparse.ArgumentParser()
    add_parser(parser, import_module(f"analysis.commands.{name}"))
    parser.parse_args(shlex.split(page.splitlines()[-1])[5:])


@pytest.mark.parametrize("kind", ["kubernetes", "scheduling"])
def test_littles_law_is_exact_on_every_stream(kind: str) -> None:
    """Integrated event by event, over an interval that starts and ends empty."""
    for stream in jobs(kind):
        moments = sorted(
            [(job["submit_s"], 1) for job in stream] + [(job["end_s"], -1) for job in stream]
        )
        area, inside, before_s = 0.0, 0, moments[0][0]
        for at_s, change in moments:
            area += inside * (at_s - before_s)
            inside, before_s = inside + change, at_s
        assert inside == 0
        assert area == pytest.approx(
            math.fsum(job["end_s"] - job["submit_s"] for job in stream), rel=1e-9
        )


def test_sjf_waits_less_than_fifo_on_the_same_jobs() -> None:
    (place,) = said("schedule", "report", str(RUNS / f"cluster-scheduling_{MACHINE}"))["places"]
    (judged,) = [
        one
        for one in place["policies"]["contrasts"]
        if (one["arm"], one["metric"]) == ("sjf", "mean_wait_s")
    ]
    assert judged["high"] < 1  # its mean wait over that of fifo
    assert judged["p_adjusted"] < 0.05


def test_a_lost_node_costs_time_and_no_job() -> None:
    """Killed pods run again, and the queue clears a while after the node is back, 30 s later."""
    (node,) = [
        arm
        for arm in said("depend", "report", str(RUNS / f"cluster-kubernetes_{MACHINE}"))["arms"]
        if arm["fault"] == "node"
    ]
    assert node["slowdown"]["low"] > 1
    assert node["outcomes"].keys() == {"done"}
    assert node["figures"]["recovery_s"]["value"] > 30
    assert node["hit"] > 0
