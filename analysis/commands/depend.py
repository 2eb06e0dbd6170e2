"""What faults cost: recovery, lost work, isolation, checkpoint intervals, packet loss. Each step is its own command."""

from __future__ import annotations

from analysis.steps import Steps

GROUP = "study"
HELP = "faults: report, checkpoint intervals, packet loss, simulate"
EXAMPLE = """\
example:
  python -m analysis depend report .benchmarks/*/0001_faults.json
  python -m analysis depend checkpoint --cost-s 300 --mtbf-s 86400
  python -m analysis depend network --help
"""
_STEPS = Steps("analysis.studies.jobs.dependability.commands")
arguments, run = _STEPS.arguments, _STEPS.run
