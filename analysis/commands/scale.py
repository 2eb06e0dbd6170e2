"""Replicas of a job: laws of speed-up from measured times, and jobs of any size that take equally long. Each step is a command."""

from __future__ import annotations

from analysis.steps import Steps

GROUP = "study"
HELP = "replicas for jobs: fit laws of speed-up, choose, simulate"
EXAMPLE = """\
example:
  python -m analysis scale fit profile.csv
  python -m analysis scale simulate --help
"""
_STEPS = Steps("analysis.studies.jobs.scaling.commands")
arguments, run = _STEPS.arguments, _STEPS.run
