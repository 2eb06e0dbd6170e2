"""Which setting did it: the effects of a design over keys, with intervals, what varied with what, and the answer in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer
from analysis.arms import must_have
from analysis.files import damaged
from analysis.load import load
from analysis.plain import one_line
from analysis.switched import is_switched
from analysis.terms import Refused, Run, UnknownName
from analysis.wording import joined_names, parse_names, suggestion
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse

    from analysis.studies.keys.terms import Effects

ANSWERS = True
GROUP = "design"
HELP = "which key did it: effects, intervals, ANOVA, and a sentence"
EXAMPLE = f"""\
RUN is a saved run of any design, or a table of another study: a .csv file with a column a factor and a row a cell.

examples:
  pytest benchmarks/ --design=ablation --tweaks=training-host --benchmark-save=which
  {JUDGE} effects .benchmarks/*/0001_which.json
  {JUDGE} effects which.json --effect vm.swappiness:vm.dirty_ratio
  {JUDGE} effects results.csv --response au --factors format,workers --block day

Exit code 0: analysed, whatever was found. 2: bad usage, a file cannot be used, or an effect asked for cannot be told from others.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a saved run, or a .csv table")
    parser.add_argument("--workload", metavar="NAMES", default="", help="only these workloads, separated by commas")
    parser.add_argument("--metric", metavar="NAME", help="another metric than the one declared before the run")
    parser.add_argument(
        "--effect",
        metavar="A:B",
        action="append",
        default=[],
        help="only this effect; refused where the design cannot tell it (repeatable)",
    )
    table = parser.add_argument_group("for a .csv table")
    table.add_argument("--response", metavar="COLUMN", help="what was measured")
    table.add_argument("--factors", metavar="COLUMNS", help="what was varied, separated by commas")
    table.add_argument("--block", metavar="COLUMN", help="what was held equal in turn: a day, a machine, a block")
    table.add_argument("--better", choices=["lower", "higher"], help="which way is good (with --log: gains)")
    table.add_argument("--log", action="store_true", help="analyse ratios: where the spread grows with the mean")


def run(args: argparse.Namespace) -> Answer:
    path = Path(args.run)
    with damaged(args.run, "analysed"):
        if path.suffix.lower() == ".csv" and not path.is_dir():
            saved, result = None, _of_table(path, args)
        else:
            saved = load(path)
            result = _of_run(saved, args)
        from analysis.studies.keys.answers import answer

        return answer(result, saved)


def _of_table(path: Path, args: argparse.Namespace) -> list[Effects]:
    from analysis.studies.keys.effects import of_table
    from analysis.studies.keys.table import Columns, read_table

    for option in ("workload", "metric"):
        if getattr(args, option):
            raise Refused(f"--{option} is for saved runs; of {path} name --response and --factors.")
    if not args.response or not args.factors:
        raise Refused(f"{path}: say which columns are what: --response COLUMN --factors COLUMN,COLUMN.")
    factors = tuple(filter(None, (name.strip() for name in args.factors.split(","))))
    seen = read_table(path, Columns(args.response, factors, args.block, args.better, args.log))
    requested = [_effect(text, {factor.name: factor.letter for factor in seen.factors}, str(path)) for text in args.effect]
    return _only(of_table(seen, requested), requested)


def _of_run(saved: Run, args: argparse.Namespace) -> list[Effects]:
    from analysis.studies.keys.effects import effects_of
    from analysis.studies.keys.observed import letters

    for option in ("response", "factors", "block", "better", "log"):
        if getattr(args, option):
            raise Refused(f"--{option} is for .csv tables: {saved.origin} is a saved run, which says itself what was varied.")
    if is_switched(saved):
        raise Refused(f"{saved.origin}: settings were switched inside a process, no key was taken apart; see `{JUDGE} compare`.")
    workloads = joined_names(parse_names(args.workload), saved.workloads)
    must_have(saved, "workload", workloads, saved.workloads)
    if args.metric:
        must_have(saved, "metric", [args.metric], {name for cell in saved.cells for name in cell.metrics})
    known: dict[str, str] = {}
    for profile in dict.fromkeys(factor.tweakset for factor in saved.design.factors):
        names = [factor.name for factor in saved.design.factors if factor.tweakset == profile]
        known |= dict(zip(names, letters(len(names)), strict=True))
    if args.effect and not known:
        raise Refused(
            f"{saved.origin}: a {saved.design.kind} of whole tweak sets: no key of them was varied by itself. See --design=ablation."
        )
    requested = [_effect(text, known, saved.origin) for text in args.effect]
    result = [effects for effects in effects_of(saved, args.metric, requested) if not workloads or effects.observed.workload in workloads]
    if not result:
        raise Refused(f"{saved.origin}: holds no cell to take an effect of.")
    return _only(result, requested)


def _effect(text: str, known: dict[str, str], origin: str) -> tuple[str, ...]:
    """Take an effect apart into its factors: by names, which may hold colons themselves, or by letters.

    Raises: UnknownName, with the factors there are.
    """
    by_letter = {letter: name for name, letter in known.items()}
    result: list[str] = []
    parts = text.split(":")
    while parts:
        for size in range(len(parts), 0, -1):
            name = ":".join(parts[:size]).strip()
            if name in known or name in by_letter:
                result.append(name if name in known else by_letter[name])
                parts = parts[size:]
                break
        else:
            there = f"there are {one_line(', '.join(known))}.{suggestion(parts[0], known)}"
            raise UnknownName(f"{origin}: no factor {parts[0]!r} in --effect {one_line(text)}; {there}")
    if len(set(result)) < len(result):
        raise Refused(f"--effect {text}: names a factor twice; an interaction is of different ones.")
    return tuple(result)


def _only(result: Iterable[Effects], requested: Sequence[tuple[str, ...]]) -> list[Effects]:
    from dataclasses import replace

    if not requested:
        return list(result)
    from analysis.studies.keys.sentence import sentence_of

    sets = [frozenset(entry) for entry in requested]
    return [
        replace(
            effects,
            terms=tuple(term for term in effects.terms if frozenset(term.factors) in sets),
            sentence=sentence_of(effects, requested),
        )
        for effects in result
    ]
