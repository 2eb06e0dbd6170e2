"""Which waiting job is next: policies compared on identical arrivals. Each step is a command."""

from __future__ import annotations

from analysis.steps import Steps

GROUP = "study"
HELP = "policies for waiting jobs: simulate, report"
EXAMPLE = """\
example:
  python -m analysis schedule simulate --slots 2 --load 0.8
  python -m analysis schedule simulate --help
"""
_STEPS = Steps("analysis.studies.jobs.schedulers.commands")
arguments, run = _STEPS.arguments, _STEPS.run
