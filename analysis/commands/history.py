"""Find lasting changes of speed in many saved runs: which workload, how much, better or worse."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

from analysis.answer import Answer, command
from analysis.arms import ORDER_HELP, ORDER_HINT, ORDERS, in_order
from analysis.files import complain
from analysis.load import load_each
from analysis.metrics import COLUMNS
from analysis.subcommands import option, picture_file, signature
from analysis.terms import Refused
from analysis.wording import whole
from control.called import JUDGE

ANSWERS = True
GROUP = "run"
HELP = "change points in many saved runs over time"
EXAMPLE = f"""\
A run is one value per series: the geometric mean over its blocks. A series has one workload, tweak
set, metric and kind of machine, and needs 10 runs. Definition of a change and false-alarm rate:
docs/ci.md.

examples:
  {JUDGE} history .benchmarks/
  {JUDGE} history 'nightly/*.json' --relative-to stock --plot history.png
  {JUDGE} history nightly/ --since 2026-11-03 --fail-on-regression

Exit code 0: judged. 1: with --fail-on-regression, a recent regression. 2: bad usage, or a file
cannot be used. 3: no series is long enough to be judged.
"""
NOT_DRAWN = 2
SHOWN_REFUSED = 5


def day(text: str) -> date:
    """Parse a day. Raises: ArgumentTypeError."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a day: write a day, such as 2026-11-03"
        ) from None


@signature
def run(
    args: argparse.Namespace,
    runs: list[str] = option("RUN", "saved runs: files, quoted globs, folders", nargs="+"),
    *,
    metric: str | None = option(
        "NAME",
        "use this metric: a name, or min, median, mean, ops (default: throughput and a low "
        "quantile of step time)",
    ),
    relative_to: str | None = option(
        "TWEAKSET", "divide each cell by this tweak set's cell of the same block: drift cancels"
    ),
    since: date | None = option(
        "DATE", "omit runs before this day (UTC), such as 2026-11-03", type=day
    ),
    fail_on_regression: bool = option("", "exit 1 on a recent regression"),
    recent: int = option(
        "N", "recent: among a series' last N runs (default: %(default)s)", type=whole(1), default=20
    ),
    order: str | None = option("", ORDER_HELP, choices=ORDERS),
    plot: Path | None = option(
        "FILE", "draw the series that changed: .png, .svg or .pdf", type=picture_file
    ),
) -> Answer:
    from analysis.studies.history.answer import answer
    from analysis.studies.history.history import UNDATED, gather, judge, regressions

    refused: list[str] = []
    loaded = list(load_each(runs, refused))
    if since is not None:
        loaded = [
            run for run in loaded if not run.started_utc or run.started_utc >= since.isoformat()
        ]
    name = metric and COLUMNS.get(metric, metric)
    gathered = gather(in_order(loaded, order) if order else loaded, name, relative_to)
    if not gathered.runs:
        for line in _shown(refused, every=args.all):
            print("refused:", line, file=sys.stderr)
        hint = f" {ORDER_HINT}" if any(UNDATED in note for note in gathered.notes) else ""
        reasons = " ".join(gathered.notes)
        raise Refused(
            f"{', '.join(runs)}: no run could be used, so there is no history. "
            f"{reasons}{hint}".rstrip()
        )
    history = judge(gathered, refused)
    worse = regressions(history, recent)
    result = answer(history, worse, recent=recent if fail_on_regression else None)
    exit_code = result.exit_code
    if plot:
        from analysis.plots.style import draw_file
        from analysis.studies.history.pictures import draw

        try:
            draw_file(plot, lambda: draw(history))
        except Refused as error:  # print the findings even if the picture fails
            complain(error)
            exit_code = NOT_DRAWN
    changes = history.changes
    files = (
        [mark.origin for mark in (changes[0].last_before, changes[0].first)] if changes else runs
    )
    following = command("compare" if changes else "report", *files)
    return replace(
        result,
        next=following,
        refused=refused if args.json else _shown(refused, every=args.all),
        exit_code=exit_code,
    )


arguments = run.arguments


def _shown(refused: list[str], *, every: bool) -> list[str]:
    shown = refused if every else refused[:SHOWN_REFUSED]
    return (
        shown
        if len(shown) == len(refused)
        else [*shown, f"and {len(refused) - len(shown)} more files (--all)."]
    )
