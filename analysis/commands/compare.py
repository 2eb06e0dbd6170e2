"""Compare runs or tweak sets: effect, 95 % interval, adjusted p, detectable effect, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.answer import Answer
from analysis.arms import (
    MONITOR,
    ORDER_HELP,
    ORDERS,
    TWEAKSET,
    WORKLOAD,
    Arm,
    arms_in_order,
    on_one_side,
    read_arm,
)
from analysis.compare import CompareOptions, compare, compare_arms
from analysis.compare_answer import answer_of
from analysis.files import damaged
from analysis.pairing import metric_named
from analysis.stats.effect import ADJUSTMENTS
from analysis.subcommands import option, signature
from analysis.terms import Comparison, Refused, UnknownName
from analysis.wording import parse_names
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse


ANSWERS = True
GROUP = "run"
HELP = "saved runs, or tweak sets inside one: effects and verdicts"
EXAMPLE = f"""\
BASE and CAND are PATH[:TWEAKSET]. PATH is a saved run of DeepTweak or pytest-benchmark, a DeepTweak
directory (DIR:exp1 or DIR/exp1 is one of its tweak sets), or a quoted glob or folder of saved runs
that are replicates of one arm. With BASE alone its tweak sets are compared inside the run.

examples:
  {JUDGE} compare .benchmarks/*/0001_exp1.json           tweak sets of one run with its stock
  {JUDGE} compare exp1.json --baseline thp-never         … with another tweak set
  {JUDGE} compare exp1.json:stock exp1.json:thp-always   two tweak sets
  {JUDGE} compare before.json after.json                 tweak sets with their namesakes in another
  {JUDGE} compare before.json after.json --relative-to stock   … without drift between the runs
  {JUDGE} compare 'runs/old-*.json' 'runs/new-*.json'    several runs per arm
  {JUDGE} compare jobs.json --arm policy --baseline fifo       levels of a parameter
  {JUDGE} compare 'runs/*.json' --arm workload --baseline 'sort a'  commands in hyperfine files
  {JUDGE} compare DIR/base DIR/exp1                      two tweak sets of a DeepTweak directory

Exit code 0: compared, whatever was found. 2: bad usage, or a file cannot be used.
"""


@signature
def run(
    args: argparse.Namespace,
    base: str = option("BASE", "what to compare with"),
    candidates: list[str] = option("CAND", "what to compare", nargs="*", default=[]),
    *,
    baseline: str | None = option(
        "NAME",
        "inside one run: compare with this tweak set (default: stock, or as declared), or this "
        "level of --arm",
    ),
    tweaks: tuple[str, ...] = option(
        "NAMES", "only these tweak sets, separated by commas", type=parse_names, default=()
    ),
    workloads: tuple[str, ...] = option(
        "NAMES", "only these workloads, separated by commas", type=parse_names, default=()
    ),
    relative_to: str | None = option(
        "TWEAKSET",
        "divide each cell by this tweak set's cell of the same run and block; `baseline`: the "
        "declared one",
    ),
    adjust: str = option(
        "",
        "for many contrasts: holm (default) if they were declared before the run, bh for a screen "
        "to be followed up",
        choices=list(ADJUSTMENTS),
        default="holm",
    ),
    arm: str = option(
        "COLUMN",
        "what to compare inside BASE: workload, node, or a parameter such as policy or "
        "batch_size; default: tweakset",
        default=TWEAKSET,
    ),
    metric: str | None = option("NAME", "with --arm: judge by this metric (default: as declared)"),
    order: str | None = option("", ORDER_HELP, choices=ORDERS),
) -> Answer:
    refused: list[str] = []
    base_arm, arms = read_arm(base, refused), _read_candidates(candidates, refused)
    if order and len(arms) == 1:
        base_arm, arms[0] = arms_in_order(base_arm, arms[0], order)
    elif order:
        raise Refused("--order needs one BASE and one CAND.")
    options = CompareOptions(adjust, (), relative_to, tweaks, workloads)
    compared = answer(base_arm, arms, arm, baseline, metric, options, every=args.all, source=base)
    return replace(compared, refused=refused)


arguments = run.arguments


def answer(
    base: Arm,
    candidates: Sequence[Arm],
    column: str = TWEAKSET,
    baseline: str | None = None,
    metric: str | None = None,
    options: CompareOptions = CompareOptions(),
    *,
    every: bool = True,
    source: str = "",
) -> Answer:
    """Compare arms, or the levels of a column inside one, for the command and the Python door.

    `every`: one row per contrast. `source`: the file for the suggested next command.

    Raises: Refused, if they cannot be compared. UnknownName, if a run lacks a given name.
    """
    if options.adjustment not in ADJUSTMENTS:
        raise UnknownName(
            f"no adjustment {options.adjustment!r}; available: {', '.join(ADJUSTMENTS)}."
        )
    if column == MONITOR and all(run.is_monitored for run in base.runs):
        column = TWEAKSET  # a monitor takes a tweak set's place
    notes: list[str] = []
    if column != TWEAKSET:
        if candidates:
            raise Refused(f"--arm={column} compares inside BASE: name no CAND.")
        from analysis.arm_column import by_column

        judged_by = metric_named(metric) if metric else None
        base, levels, notes, doubted = by_column(
            base, column, baseline, judged_by, options.workloads
        )
        candidates, baseline = [levels], None
        kept = () if column == WORKLOAD else options.workloads
        options = replace(options, workloads=kept, doubted=doubted)
    elif metric:
        raise Refused(
            "--metric needs --arm: tweak sets are judged by the metric declared before the run."
        )
    with damaged(source or base.label, "compared"):
        comparisons = _compare(base, candidates, baseline, options)
        runs = list({one.run_id: one for arm in (base, *candidates) for one in arm.runs}.values())
        apart = [line for candidate in candidates for line in on_one_side(base, candidate)]
        lines = list(dict.fromkeys([*notes, *apart]))
        compared = answer_of(comparisons, runs, every=every, source=source)
    known = compared.data["warnings"]
    if not lines or (options.workloads and not notes) or not isinstance(known, list):
        return compared
    data = {**compared.data, "warnings": [*known, *lines]}
    return replace(compared, warnings=(*compared.warnings, *lines), data=data)


def _read_candidates(names: Sequence[str], refused: list[str]) -> list[Arm]:
    result: list[Arm] = []
    for name in names:
        try:
            result.append(read_arm(name, refused))
        except UnknownName:
            raise
        except Refused as error:
            refused.append(str(error))
    if names and not result:
        raise Refused(refused[-1])
    return result


def _compare(
    base: Arm, candidates: Sequence[Arm], baseline: str | None, options: CompareOptions
) -> list[Comparison]:
    if candidates:
        if baseline is not None:
            raise Refused("--baseline needs a single run; for several runs, write BASE:TWEAKSET.")
        return compare_arms(base, candidates, options)
    if len(base.runs) > 1:  # without a designated baseline
        raise Refused(
            f"{base.label} has {len(base.runs)} runs: name a CAND to compare them with, or see "
            f"`{JUDGE} history`."
        )
    return compare(base.runs[0], baseline or base.tweakset, options)
