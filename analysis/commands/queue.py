"""Jobs that wait for slots: fit a stream, predict its waits, hold predictions against what was measured. Each step is its own command."""

from __future__ import annotations

from analysis.steps import Steps

GROUP = "study"
HELP = "streams of jobs: fit, predict, validate, closed systems"
EXAMPLE = """\
example:
  python -m analysis queue fit .benchmarks/*/0001_queueing.json
  python -m analysis queue predict --rate 6 --service 0.2 --servers 2
  python -m analysis queue validate --help
"""
_STEPS = Steps("analysis.studies.jobs.queues.commands")
arguments, run = _STEPS.arguments, _STEPS.run
