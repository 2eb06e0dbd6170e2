"""Jobs as workloads: where their time goes on which system, and which hyper-parameters learn soonest. Each step is a command."""

from __future__ import annotations

from analysis.steps import Steps

GROUP = "study"
HELP = "jobs by class and system: profile, hyper-parameters"
EXAMPLE = """\
example:
  python -m analysis jobs profile .benchmarks/*/0001_profile.json
  python -m analysis jobs hyper --help
"""
_STEPS = Steps("analysis.studies.jobs.profiles.commands")
arguments, run = _STEPS.arguments, _STEPS.run
