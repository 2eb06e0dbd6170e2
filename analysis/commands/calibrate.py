"""Measure the decision rules themselves: how often each cries wolf, and how often it sees a real change.

Ours and those of other tools are put to the same simulated sessions, whose truth is known, and to the A/A cells (stock and
stock-again) of the saved runs that are named. docs/calibration.md holds what it prints with `--markdown`, and what follows from it.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer
from analysis.load import load
from analysis.subcommands import option, signature
from analysis.wording import whole
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse


ANSWERS = True
GROUP = "design"
HELP = "how often each rule, ours and others', is wrong"
REAL = "data/runs/2026-11-21_aa_amd-epyc-2cpu.json"
EXAMPLE = f"""\
example:
  {JUDGE} calibrate
  {JUDGE} calibrate {REAL}

Exit code 0: measured. 2: bad usage, or a file cannot be used.
"""
TRIALS = 2000
FEWEST_TRIALS = 100  # under which a rate of 5 % cannot be told from 0


@signature
def run(
    args: argparse.Namespace,
    runs: list[str] = option("RUN.json", "saved runs with stock and stock-again in at least 5 blocks", nargs="*"),
    *,
    trials: int = option("N", "sessions a scenario (default: %(default)s)", type=whole(FEWEST_TRIALS), default=TRIALS),
    seed: int = option("N", "the same seed gives the same tables (default: %(default)s)", type=whole(), default=1),
) -> Answer:
    from analysis.studies.calibration.answer import answer
    from analysis.studies.calibration.rates import calibrate
    from analysis.studies.calibration.real_noise import real_noise

    real = tuple(real_noise(load(name), seed, trials) for name in runs)
    result = answer(calibrate(seed, trials, real), rules=args.markdown)
    following = ("compare", runs[0]) if runs else ("calibrate", REAL) if Path(REAL).exists() else ()
    return replace(result, next=shlex.join([*JUDGE.split(), *following]) if following else "")


arguments = run.arguments
