"""Power-capped inference: partition, batch and clock under a cap, from traces to a verdict. Each step is a command of its own."""

from __future__ import annotations

from analysis.subcommands import Steps

GROUP = "study"
HELP = "power-capped inference: fit, predict, partition, simulate, report"
EXAMPLE = """\
example:
  python -m analysis power report .benchmarks/*/0001_cap.json
  python -m analysis power partition --help
"""
_STEPS = Steps("analysis.studies.power.commands")
arguments, run = _STEPS.arguments, _STEPS.run
