"""Steps, back-ends, columns and options in docs/power.md are those of the code."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

from analysis.studies.power.traces import COLUMNS, OURS
from analysis.subcommands import Subcommands
from fixtures.studies.power import backends

STEPS = Subcommands("analysis.commands.power")
HOUSE = Path(__file__).parents[4]
PAGE = (HOUSE / "docs/power.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
LINES = [line.partition("  #")[0].strip() for block in BLOCKS for line in block.splitlines()]
# Only two programs exchange these.
BETWEEN = {"decide", "plant"}


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose first column has this head."""
    (table,) = re.findall(rf"(?m)^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE)
    return [
        [cell.strip() for cell in row.strip().strip("|").split(" | ")] for row in table.splitlines()
    ]


def test_every_back_end_is_there() -> None:
    named = [
        name for row in rows("`--power-backend`") for name in re.findall(r"`([\w-]+)`", row[0])
    ]
    assert sorted(named) == sorted(backends.names())


def test_every_column_of_a_trace_is_explained() -> None:
    (paragraph,) = re.findall(r"(?m)^\*\*Traces\*\* .*$", PAGE)
    assert {*COLUMNS, *OURS} <= {*re.findall(r"`(\w+)`", paragraph)}


def test_every_step_that_a_person_takes_is_named() -> None:
    steps = {name.replace("_", "-") for name in STEPS.names} - BETWEEN
    assert {step for step in steps if f"power {step}" in PAGE} == steps


def test_a_step_of_the_page_can_be_asked_for() -> None:
    """Options exist and their values have the right type; named files need not exist."""
    parser = argparse.ArgumentParser()
    STEPS.arguments(parser)
    lines = [line for line in LINES if line.startswith("deeptweak power")]
    assert lines
    for line in lines:
        assert parser.parse_args(shlex.split(line)[2:]).step in STEPS.names


def test_options_of_tables_and_commands_exist_in_the_harness() -> None:
    asked = {
        name
        for line in LINES
        if line.startswith("pytest")
        for name in re.findall(r"--[a-z-]+", line)
    }
    asked |= {
        name
        for row in rows("`--power-backend`")
        for cell in row
        for name in re.findall(r"--[a-z-]+", cell)
    }
    command = [sys.executable, "-m", "pytest", "benchmarks/bench_power_cap.py", "--help"]
    said = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"--[a-z-]+", said))
    assert asked - known == set()
