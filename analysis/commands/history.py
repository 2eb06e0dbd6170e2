"""Look back over many saved runs: where each workload's speed changed to stay, by how much, and for better or worse."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.streams import complain, say
from analysis.terms import Refused

if TYPE_CHECKING:
    from analysis.studies.history.records import Change, History

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
NOT_JUDGED = 3
UNTOLD = 2
SHOWN_REFUSED = 5
FORMATS = (".png", ".svg", ".pdf")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="saved runs: files, quoted globs, folders")
    parser.add_argument("--metric", metavar="NAME", help="look at this metric (default: throughput and a low quantile of step time)")
    parser.add_argument("--relative-to", metavar="TWEAKSET", help="divide each cell by this tweak set's of its own block: drift cancels")
    parser.add_argument("--acknowledged", type=Path, metavar="FILE", help="changes that are known (YAML, see docs/history.md)")
    parser.add_argument("--fail-on-regression", action="store_true", help="exit 1 on a recent change for the worse")
    parser.add_argument("--recent", type=_count, default=20, metavar="N", help="recent: among a series' last N runs (default: %(default)s)")
    parser.add_argument("--plot", type=_picture, metavar="FILE", help="draw the series that changed: .png, .svg or .pdf")
    parser.add_argument("--all", action="store_true", help="list every change and every refused file")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} ends in none of {', '.join(FORMATS)}")
    return path


def run(asked: argparse.Namespace) -> int:
    """Print what changed, and answer with the exit code."""
    # numpy, which --help need not wait for.
    from analysis.studies.history.acknowledged import acknowledge, read  # noqa: PLC0415
    from analysis.studies.history.as_json import as_json  # noqa: PLC0415
    from analysis.studies.history.gather import gather  # noqa: PLC0415
    from analysis.studies.history.judge import is_judged, judge, regressions  # noqa: PLC0415

    entries = read(asked.acknowledged) if asked.acknowledged else []
    refused: list[str] = []
    gathered = gather(load_each(asked.runs, refused), asked.metric, asked.relative_to)
    _say_refused(refused, every=asked.all)
    if not gathered.runs:
        raise Refused(f"{', '.join(asked.runs)}: no run could be used, so there is no history.")
    history = acknowledge(judge(gathered, refused), entries)
    worse = regressions(history, asked.recent)
    code = NOT_JUDGED if not is_judged(history) else int(bool(worse and asked.fail_on_regression))
    said = as_json(history, worse, code) if asked.json else _as_text(history, asked)
    if asked.fail_on_regression and not asked.json and code != NOT_JUDGED:
        said += f"{_ruling(worse, asked.recent)}\n"
    unsaid = say(said)  # a reader that is gone changes no code
    if unsaid:
        complain(f"standard output cannot be written: {unsaid}.")
    if asked.plot:
        _draw(history, asked.plot)  # last: what was found is told even where it cannot be drawn
    return code or (UNTOLD if unsaid else 0)


def _say_refused(refused: list[str], *, every: bool) -> None:
    shown = refused if every else refused[:SHOWN_REFUSED]
    for line in shown:
        print("refused:", line, file=sys.stderr)
    if len(refused) > len(shown):
        print(f"refused: and {len(refused) - len(shown)} more files (--all).", file=sys.stderr)


def _draw(history: History, path: Path) -> None:
    from analysis.plots.history import draw  # noqa: PLC0415  # matplotlib, only for pictures
    from analysis.plots.scene import NothingToDraw  # noqa: PLC0415
    from analysis.plots.style import written  # noqa: PLC0415
    from analysis.saving import write_whole  # noqa: PLC0415

    try:
        figure = draw(history)
    except NothingToDraw as reason:
        raise Refused(f"{path}: not drawn: {reason}.") from None
    write_whole(path, written(figure, path.suffix.removeprefix(".")))


def _as_text(history: History, asked: argparse.Namespace) -> str:
    from analysis.render.text import wants_color  # noqa: PLC0415
    from analysis.studies.history.table import Look, render  # noqa: PLC0415  # --json has no need of rich

    try:
        "▁→…".encode(sys.stdout.encoding or "ascii")
        plain = False
    except UnicodeEncodeError:
        plain = True
    return render(history, Look(wants_color(sys.stdout), plain, asked.all))


def _ruling(worse: list[Change], recent: int) -> str:
    if not worse:
        return f"No change for the worse in the last {recent} runs that is not acknowledged."
    names = "; ".join(dict.fromkeys(change.series.name for change in worse[:SHOWN_REFUSED]))
    return f"Regression: {len(worse)} unacknowledged change{'s' if len(worse) > 1 else ''} in the last {recent} runs: {names}."
