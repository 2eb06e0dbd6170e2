"""Look back over many saved runs: where each workload's speed changed to stay, by how much, and for better or worse."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.streams import complain
from analysis.terms import Refused
from analysis.wording import whole

if TYPE_CHECKING:
    from analysis.answer import Answer
    from analysis.studies.history.history import History

ANSWERS = True
GROUP = "run"
HELP = "change points in many saved runs over time"
EXAMPLE = """\
A run is one value in each series: the geometric mean over its blocks. A series has one workload, tweak set, metric and kind of
machine, and needs 10 runs. What is called a change, and how often noise is taken for one: docs/history.md.

examples:
  python -m analysis history .benchmarks/
  python -m analysis history 'nightly/*.json' --relative-to stock --plot history.png
  python -m analysis history nightly/ --acknowledged known.yaml --fail-on-regression --recent 10

Exit code 0: judged. 1: with --fail-on-regression, a recent change for the worse that nobody acknowledged. 2: bad usage, or a file
cannot be used. 3: no series is long enough to be judged.
"""
NOT_DRAWN = 2
SHOWN_REFUSED = 5
FORMATS = (".png", ".svg", ".pdf")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="saved runs: files, quoted globs, folders")
    parser.add_argument("--metric", metavar="NAME", help="look at this metric (default: throughput and a low quantile of step time)")
    parser.add_argument("--relative-to", metavar="TWEAKSET", help="divide each cell by this tweak set's of its own block: drift cancels")
    parser.add_argument("--acknowledged", type=Path, metavar="FILE", help="changes that are known (YAML, see docs/history.md)")
    parser.add_argument("--fail-on-regression", action="store_true", help="exit 1 on a recent change for the worse")
    parser.add_argument(
        "--recent", type=whole(1), default=20, metavar="N", help="recent: among a series' last N runs (default: %(default)s)"
    )
    parser.add_argument("--plot", type=_picture, metavar="FILE", help="draw the series that changed: .png, .svg or .pdf")
    parser.add_argument("--all", action="store_true", help="list every change and every refused file")


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} ends in none of {', '.join(FORMATS)}")
    return path


def run(args: argparse.Namespace) -> Answer:
    # numpy, which --help need not wait for.
    from analysis.studies.history.answer import acknowledge, answer, read
    from analysis.studies.history.history import gather, judge, regressions

    entries = read(args.acknowledged) if args.acknowledged else []
    refused: list[str] = []
    gathered = gather(load_each(args.runs, refused), args.metric, args.relative_to)
    if not gathered.runs:
        for line in _shown(refused, every=args.all):
            print("refused:", line, file=sys.stderr)
        raise Refused(f"{', '.join(args.runs)}: no run could be used, so there is no history.")
    history = acknowledge(judge(gathered, refused), entries)
    worse, recent = regressions(history, args.recent), args.recent if args.fail_on_regression else None
    result = answer(history, worse, recent=recent, every=args.all, plain=_only_ascii())
    exit_code = result.exit_code
    if args.plot:
        try:
            _draw(history, args.plot)
        except Refused as error:  # what was found is told even where it cannot be drawn
            complain(error)
            exit_code = NOT_DRAWN
    return replace(result, refused=refused if args.json else _shown(refused, every=args.all), exit_code=exit_code)


def _shown(refused: list[str], *, every: bool) -> list[str]:
    shown = refused if every else refused[:SHOWN_REFUSED]
    return shown if len(shown) == len(refused) else [*shown, f"and {len(refused) - len(shown)} more files (--all)."]


def _only_ascii() -> bool:
    try:
        "▁→…".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return True
    return False


def _draw(history: History, path: Path) -> None:
    from analysis.files import write_whole
    from analysis.plots.history import draw
    from analysis.plots.scene import NothingToDraw
    from analysis.plots.style import written

    try:
        figure = draw(history)
    except NothingToDraw as reason:
        raise Refused(f"{path}: not drawn: {reason}.") from None
    write_whole(path, written(figure, path.suffix.removeprefix(".")))
