"""Estimate the effect of each setting from a design over keys, with intervals and aliases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer
from analysis.arms import must_have
from analysis.files import damaged
from analysis.load import load
from analysis.plain import one_line
from analysis.terms import Refused, Run, UnknownName
from analysis.wording import joined_names, parse_names, suggestion
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse

    from analysis.studies.keys.terms import Effects

    Factors = tuple[str, ...]  # names of an effect's factors

ANSWERS = True
GROUP = "design"
HELP = "the effect of each key: intervals, ANOVA, and a sentence"
EXAMPLE = f"""\
RUN is a saved run of any design, or another study's table: a .csv file with a column per factor and
a row per cell.

examples:
  pytest benchmarks/ --design=ablation --tweaks=training-host --benchmark-save=which
  {JUDGE} effects .benchmarks/*/0001_which.json
  {JUDGE} effects which.json --effect vm.swappiness:vm.dirty_ratio
  {JUDGE} effects results.csv --response au --factors format,workers --block day

Exit code 0: analysed, whatever was found. 2: bad usage, a file cannot be used, or a requested
effect is aliased with others.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a saved run, or a .csv table")
    parser.add_argument(
        "--workloads", metavar="NAMES", default="", help="only these workloads, separated by commas"
    )
    parser.add_argument(
        "--metric", metavar="NAME", help="use this metric instead of the declared one"
    )
    parser.add_argument(
        "--effect",
        metavar="A:B",
        action="append",
        default=[],
        help="only this effect; refused if the design cannot estimate it (repeatable)",
    )
    table = parser.add_argument_group("for a .csv table")
    table.add_argument("--response", metavar="COLUMN", help="the measured column")
    table.add_argument(
        "--factors", metavar="COLUMNS", help="the varied columns, separated by commas"
    )
    table.add_argument(
        "--block", metavar="COLUMN", help="the blocking column: a day, a machine, a block"
    )
    table.add_argument(
        "--better", choices=["lower", "higher"], help="the better direction (with --log: gains)"
    )
    table.add_argument(
        "--log", action="store_true", help="analyse ratios, if the spread grows with the mean"
    )


def run(args: argparse.Namespace) -> Answer:
    from analysis.studies.keys.answers import answer
    from analysis.studies.keys.sentence import only

    path = Path(args.run)
    is_table = path.suffix.lower() == ".csv" and not path.is_dir()
    for option in (
        ("workloads", "metric") if is_table else ("response", "factors", "block", "better", "log")
    ):
        if getattr(args, option):
            use = (
                "saved runs; name --response and --factors"
                if is_table
                else ".csv tables: a saved run records its factors"
            )
            raise Refused(f"{args.run}: --{option} applies only to {use}.")
    with damaged(args.run, "analysed"):
        saved = None if is_table else load(path)
        result, requested = _of_table(path, args) if saved is None else _of_run(saved, args)
        return answer(only(result, requested) if requested else result, saved)


def _of_table(path: Path, args: argparse.Namespace) -> tuple[list[Effects], list[Factors]]:
    from analysis.studies.keys.effects import of_table
    from analysis.studies.keys.table import read_table

    factors = parse_names(args.factors or "")
    if not args.response or not factors:
        raise Refused(f"{path}: name the columns: --response COLUMN --factors COLUMN,COLUMN.")
    seen = read_table(path, args.response, factors, args.block, better=args.better, log=args.log)
    requested = [
        _effect(text, {factor.name: factor.letter for factor in seen.factors}, str(path))
        for text in args.effect
    ]
    return of_table(seen), requested


def _of_run(saved: Run, args: argparse.Namespace) -> tuple[list[Effects], list[Factors]]:
    from analysis.studies.keys.effects import effects_of
    from analysis.studies.keys.observed import letters

    if saved.is_switched:
        raise Refused(
            f"{saved.origin}: settings were switched in a process, and keys not varied "
            f"separately; see `{JUDGE} compare`."
        )
    workloads = joined_names(parse_names(args.workloads), saved.workloads)
    must_have(saved, "workload", workloads, saved.workloads)
    if args.metric:
        must_have(
            saved, "metric", [args.metric], {name for cell in saved.cells for name in cell.metrics}
        )
    known: dict[str, str] = {}
    for profile in dict.fromkeys(factor.tweakset for factor in saved.design.factors):
        names = [factor.name for factor in saved.design.factors if factor.tweakset == profile]
        known |= dict(zip(names, letters(len(names)), strict=True))
    if args.effect and not known:
        raise Refused(
            f"{saved.origin}: a {saved.design.kind} of whole tweak sets: no key was varied "
            "separately. See --design=ablation."
        )
    requested = [_effect(text, known, saved.origin) for text in args.effect]
    result = [
        effects
        for effects in effects_of(saved, args.metric)
        if not workloads or effects.observed.workload in workloads
    ]
    if not result:
        raise Refused(f"{saved.origin}: has no cell from which an effect could be estimated.")
    return result, requested


def _effect(text: str, known: dict[str, str], origin: str) -> Factors:
    """Split an effect into its factors: names, which may contain colons, or letters.

    Raises: UnknownName, with the available factors.
    """
    names = {letter: name for name, letter in known.items()} | {name: name for name in known}
    factors: list[str] = []
    parts = text.split(":")
    while parts:
        sizes = (
            size for size in range(len(parts), 0, -1) if ":".join(parts[:size]).strip() in names
        )
        size = next(sizes, 0)
        if not size:
            listed = f"available: {one_line(', '.join(known))}.{suggestion(parts[0], known)}"
            raise UnknownName(
                f"{origin}: no factor {parts[0]!r} in --effect {one_line(text)}; {listed}"
            )
        factors.append(names[":".join(parts[:size]).strip()])
        parts = parts[size:]
    if len(set(factors)) < len(factors):
        raise Refused(
            f"--effect {text}: names a factor twice; an interaction needs different factors."
        )
    return tuple(factors)
