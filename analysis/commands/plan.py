"""Plan how many blocks a run needs to find an effect, and how long it takes, from a pilot run."""

from __future__ import annotations

from dataclasses import replace

from analysis.answer import Answer
from analysis.files import damaged
from analysis.load import load, load_some
from analysis.subcommands import option, signature
from analysis.terms import Refused
from analysis.wording import parse_percent
from control.called import JUDGE

ANSWERS = True
GROUP = "design"
HELP = "blocks and time needed to find an effect, from a pilot's noise"
EXAMPLE = f"""\
example:
  pytest benchmarks/ --blocks=4 --benchmark-save=pilot
  {JUDGE} plan --effect 3% .benchmarks/*/0001_pilot.json
  {JUDGE} plan --effect 3% pilot.json --power 0.9
  {JUDGE} plan --effect 3% pilot.json --blocks 20     smallest effect found with 20 blocks
  {JUDGE} plan --evidence .benchmarks/                more blocks today, or another day?

Exit code 0: planned. 2: bad usage, the file cannot be used, or it has no replicates to plan from.
"""

LEAST_EFFECT = 0.0001


@signature
def run(
    pilot: str | None = option(
        "PILOT.json",
        "a saved run of the same workloads and tweak sets on the same machine",
        nargs="?",
    ),
    *,
    effect: str | None = option("PERCENT", "smallest change of speed that matters, such as 3%%"),
    power: float = option(
        "SHARE", "probability of finding it (default: %(default)s)", type=float, default=0.8
    ),
    blocks: int | None = option(
        "N", "smallest effect found with N blocks (default: the pilot's number)", type=int
    ),
    evidence: list[str] | None = option(
        "RUN",
        "for the effect pooled over these runs: more blocks today, or another day?",
        nargs="+",
    ),
) -> Answer:
    if evidence:
        if pilot or effect or blocks:
            raise Refused(
                "--evidence plans from its own runs: omit PILOT.json, --effect and --blocks."
            )
        return _next_hour(evidence)
    if pilot is None or effect is None:
        raise Refused(
            f"Name a pilot and the smallest effect that matters: {JUDGE} plan --effect 3% "
            "PILOT.json; or runs: --evidence RUN…."
        )
    from analysis.studies.plan.answer import answer
    from analysis.studies.plan.plan import Goal, plan

    if not 0.5 <= power <= 0.999:
        raise Refused(f"--power {power}: must be from 0.5 to 0.999.")
    if blocks is not None and blocks < 3:
        raise Refused(f"--blocks {blocks}: must be at least 3, the fewest that are compared.")
    run_of_pilot = load(pilot)
    goal = Goal(_effect(effect), power, blocks)
    with damaged(pilot, "planned from"):
        result = plan(run_of_pilot, goal)
    return answer(result, run_of_pilot)


arguments = run.arguments


def _next_hour(names: list[str]) -> Answer:
    from analysis.studies.evidence import next_hour
    from analysis.studies.evidence.evidence import gather

    refused: list[str] = []
    return replace(next_hour.answer(gather(load_some(names, refused))), refused=refused)


def _effect(text: str) -> float:
    share = parse_percent(text)
    if share < LEAST_EFFECT:
        raise Refused(
            f"--effect {text}: less than 0.01 %, too small for any machine's noise; name a larger "
            "effect."
        )
    return share
