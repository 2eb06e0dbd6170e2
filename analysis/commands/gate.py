"""Fail a build on a regression: pass, regression or can't tell, with evidence. No default pass."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import render
from analysis.answer import Answer, command
from analysis.arms import ORDER_HELP, ORDERS, arms_in_order, read_arm, split
from analysis.files import complain, reason_of, resolved, say, write_whole
from analysis.load import files_of
from analysis.metrics import COLUMNS
from analysis.studies.gate import limits as limits_file
from analysis.studies.gate.ci import comment, junit, workflow_commands
from analysis.studies.gate.gate import EXIT, Gate, answer, judge
from analysis.terms import Refused, Run
from analysis.wording import parse_names, parse_percent, plan_command
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse

    from analysis.studies.gate.limits import Limits

UNTOLD = 2
FEWEST_RUNS = 3  # that `evidence` needs
ANSWERS = True
GROUP = "run"
HELP = "fail a build on a regression"
EXAMPLE = f"""\
BASELINE and CAND are PATH[:TWEAKSET], as for compare. Two runs at different times cannot isolate
the tweak: interleave both arms in one run, keep a folder of accepted runs as BASELINE, or gate
--relative-to a tweak set that both have.

examples:
  {JUDGE} gate exp1.json:stock exp1.json:my-tuning --max-regression 3%
  {JUDGE} gate baselines/ exp2.json --limits gate.yaml
  {JUDGE} gate base.json exp2.json:my-tuning --relative-to stock --junit gate.xml --comment gate.md

Exit code 0: pass. 1: regression. 2: bad usage, or a file cannot be used. 3: not comparable, or too
little data to decide.
In GitHub Actions, the gate also writes the step summary and annotations.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "baseline",
        metavar="BASELINE",
        help="the reference, which the candidate must not be slower than",
    )
    parser.add_argument("candidate", metavar="CAND", help="the candidate")
    parser.add_argument(
        "--max-regression", metavar="PERCENT", help="the largest loss allowed, such as 3%%"
    )
    parser.add_argument(
        "--limits", metavar="FILE", help="limits by workload and metric (YAML, see docs/ci.md)"
    )
    parser.add_argument(
        "--metric",
        action="append",
        metavar="NAME",
        help="judge this metric: primary (default), second, both, a name, or one of "
        f"{', '.join(COLUMNS)}",
    )
    parser.add_argument(
        "--workloads",
        metavar="NAMES",
        default="",
        help="only these workloads, separated by commas (default: all of BASELINE)",
    )
    parser.add_argument(
        "--relative-to",
        metavar="TWEAKSET",
        help="divide each cell by this tweak set's cell of the same run and block; `baseline`: the "
        "declared one",
    )
    parser.add_argument("--order", choices=ORDERS, help=ORDER_HELP)
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    parser.add_argument(
        "--comment", metavar="FILE", help="write the body of a pull-request comment (Markdown)"
    )
    parser.add_argument(
        "--comment-key",
        default="",
        metavar="KEY",
        help="distinguishes the comments of several gates on one pull request",
    )


def run(args: argparse.Namespace) -> int:
    limits = _limits(args)
    refused: list[str] = []
    base, candidate = (read_arm(name, refused) for name in (args.baseline, args.candidate))
    if refused:
        # An unread file cannot be judged: a gate that skipped a damaged file would pass by default.
        raise Refused(refused[0])
    runs = list({id(one): one for arm in (base, candidate) for one in arm.runs}.values())
    _must_not_be_inputs(args, runs)
    gate = judge(
        *arms_in_order(base, candidate, args.order),
        limits,
        args.relative_to,
        parse_names(args.workloads),
    )
    unwritten = _write(args, gate, runs)
    # The ruling stands whether or not it can be printed; an incompletely printed pass is not a
    # pass.
    code = EXIT[gate.ruling] or (UNTOLD if unwritten else 0)
    result = answer(gate)
    result = replace(result, next=_next(gate, args, runs), data={"exit_code": code, **result.data})
    reason = _say(args, gate, result)
    for line in unwritten + ([f"standard output cannot be written: {reason}."] if reason else []):
        complain(f"{line} The gate's ruling: {gate.ruling}.")
    return code or (UNTOLD if reason else 0)


def _say(args: argparse.Namespace, gate: Gate, result: Answer) -> str | None:
    commands = (
        "".join(f"{line}\n" for line in workflow_commands(gate))
        if os.environ.get("GITHUB_ACTIONS") == "true"
        else ""
    )
    if any(getattr(args, name) for name in render.FORMATS):
        # Standard output then belongs to the reading program; the runner reads both streams.
        say(commands, sys.stderr)
        commands = ""
    return say(commands + render.write(result, args))


def _next(gate: Gate, args: argparse.Namespace, runs: Sequence[Run]) -> tuple[str, ...]:
    """Suggest `plan` if undecided, `evidence` for several accepted runs, else `report`."""
    (baseline, _), (candidate, _) = split(args.baseline), split(args.candidate)
    more = [ruled.limit for ruled in gate.rulings if ruled.blocks_needed]
    if gate.ruling == "undecided" and more and Path(candidate).is_file():
        return plan_command(min(more), candidate)
    tuned = any(
        tweakset.requested or tweakset.scripts
        for run in runs
        for tweakset in run.tweaksets.values()
    )
    if tuned and len(runs) >= FEWEST_RUNS:
        return command("evidence", *dict.fromkeys([baseline, candidate]))
    return command("report", candidate)


def _must_not_be_inputs(args: argparse.Namespace, runs: Sequence[Run]) -> None:
    """Check in advance that no output replaces an input or another output. Raises: Refused."""
    taken = {resolved(path): f"the run {run.run_id}" for run in runs for path in files_of(run)}
    if args.limits:
        taken[resolved(args.limits)] = "the limits"
    for option, path in (("--junit", args.junit), ("--comment", args.comment)):
        if path:
            what = taken.setdefault(resolved(path), option)
            if what != option:
                raise Refused(f"{option} {path}: is also {what}; name another file.")


def _limits(args: argparse.Namespace) -> Limits:
    share = parse_percent(args.max_regression) if args.max_regression else None
    if args.limits:
        limits = limits_file.read(args.limits, share)
        if limits.baseline_run is not None:
            raise Refused(
                f"{args.limits}: names a baseline run, and so does the command; only `pytest "
                "--gate` reads that key, so remove it here."
            )
    elif share is None:
        raise Refused("the limit is missing: give --max-regression 3%, or --limits FILE.")
    else:
        limits = limits_file.Limits(share)
    return (
        replace(limits, metrics=limits_file.parse_metrics(args.metric)) if args.metric else limits
    )


def _write(args: argparse.Namespace, gate: Gate, runs: Sequence[Run]) -> list[str]:
    page = comment(gate, runs, args.comment_key)
    unwritten = []
    for path, text in ((args.junit, junit(gate)), (args.comment, page)):
        if path:
            try:
                write_whole(Path(path), text.encode("utf-8", "replace"))
            except Refused as error:
                unwritten.append(str(error))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
                file.write(f"{page}\n")
        except OSError as error:
            unwritten.append(f"{summary}: cannot be written: {reason_of(error)}.")
    return unwritten
