"""Times, CPU and energy predicted from factors: held-out errors, intervals and what they cover. Each step is a command."""

from __future__ import annotations

from analysis.steps import Steps

GROUP = "study"
HELP = "predict times from factors: fit, cross-validate, show, give back to the scheduler"
EXAMPLE = """\
examples:
  python -m analysis predict cv data/runs/io_patterns_*.json
  python -m analysis predict show data/runs/io_patterns_*.json --at cache=warm read_threads=4
"""
_STEPS = Steps("analysis.studies.jobs.prediction.commands")
arguments, run = _STEPS.arguments, _STEPS.run
