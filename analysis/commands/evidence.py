"""Pool a tweak set's effects over runs from several days and machines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from analysis.answer import Answer, command
from analysis.load import load_some
from analysis.studies.evidence.answer import answer
from analysis.studies.evidence.evidence import COLUMNS, MetaAnalysis, gather
from analysis.subcommands import EXIT_CODES, option, picture_file, signature
from analysis.terms import Refused, Run, UnknownName
from analysis.wording import joined_names, parse_names, suggestion
from control.called import JUDGE

ANSWERS = True
GROUP = "run"
HELP = "does a tweak set help in general: an effect pooled over several days and machines"
EXAMPLE = f"""\
A run is the unit: its effect and standard error are those of `compare`. At least three runs are
needed. The answer estimates the variation between days, and predicts the next run. Effects are
judged together, whichever are shown.
Statistical basis: docs/evidence.md.

examples:
  {JUDGE} evidence .benchmarks/
  {JUDGE} evidence 'nightly/*.json' --tweaks tcp-cubic --plot evidence.png
  {JUDGE} evidence fleet/ --by machine

{EXIT_CODES}
"""


@signature
def run(
    args: argparse.Namespace,
    runs: list[str] = option("RUN", "saved runs: files, quoted globs, folders", nargs="+"),
    *,
    tweaks: tuple[str, ...] = option(
        "NAMES", "show only these tweak sets, separated by commas", type=parse_names, default=()
    ),
    workloads: tuple[str, ...] = option(
        "NAMES", "show only these workloads, separated by commas", type=parse_names, default=()
    ),
    by: str | None = option(
        "", "group runs by this column, such as days on one machine", choices=[*COLUMNS]
    ),
    plot: Path | None = option(
        "FILE", "draw a forest of runs for each effect: .png, .svg or .pdf", type=picture_file
    ),
) -> Answer:
    refused: list[str] = []
    loaded = load_some(runs, refused)
    gathered = gathered_of(loaded, tweaks, workloads, by or "")
    if plot:
        from analysis.plots.style import draw_file
        from analysis.studies.evidence.pictures import draw

        draw_file(plot, lambda: draw(gathered))
    pooled = answer(gathered, every=args.all)
    outlook = (
        command("plan", "--evidence", *runs) if any(one.over for one in gathered.evidence) else ()
    )
    return replace(pooled, refused=refused, next=outlook)


arguments = run.arguments


def gathered_of(
    runs: Sequence[Run], tweaks: Sequence[str], workloads: Sequence[str], by: str
) -> MetaAnalysis:
    """Pool runs for the command and the Python door. Raises: Refused, without effects to pool."""
    sets = _known("tweak set", tweaks, {name for run in runs for name in run.tweaksets})
    names = _known("workload", workloads, {name for run in runs for name in run.workloads})
    if by and by not in COLUMNS:
        raise UnknownName(
            f"no column {by!r}; available: {', '.join(COLUMNS)}.{suggestion(by, COLUMNS)}"
        )
    return gather(runs, sets, names, by)


def _known(noun: str, pieces: Sequence[str], known: set[str]) -> tuple[str, ...]:
    names = joined_names(pieces, known)
    if unknown := [name for name in names if name not in known]:
        raise Refused(f"No run has a {noun} {unknown[0]!r}.{suggestion(unknown[0], sorted(known))}")
    return names
