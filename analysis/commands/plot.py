"""Draw saved runs: every picture that their data allow, one file each, with summary tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

from analysis.files import damaged, write_whole
from analysis.load import load_each
from analysis.terms import Refused, Run
from analysis.wording import ended, suggestion
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse

    from analysis.summary import Row

GROUP = "run"
HELP = "write pictures of saved runs and summary tables, one file each"
EXAMPLE = f"""\
example:
  {JUDGE} plot .benchmarks/*/0001_exp1.json
  {JUDGE} plot exp1.json --picture forest --picture run_order --format svg
  {JUDGE} plot data/runs/gpu-training_*.json --output gpu

Without --picture, everything possible is drawn, with the tables summary.csv and summary.md;
`--picture summary` writes only these. Pictures that cannot be drawn are listed with the reason.
Files with these names in the folder are replaced.

Exit code 0: something was written. 2: bad usage, or nothing could be read or written.
"""
FORMATS = ("png", "svg", "pdf")
SUMMARY = "summary"


class Written(NamedTuple):
    """A written file: its picture or table, and a sentence on its content."""

    picture: str
    path: str
    size_bytes: int
    answers: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="saved runs: files, quoted globs, folders, DeepTweak directories",
    )
    parser.add_argument(
        "--picture",
        action="append",
        default=[],
        metavar="NAME",
        help="draw only this picture (repeatable)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("plots"),
        metavar="DIR",
        help="folder to write to (default: %(default)s)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="png",
        help="format of the pictures (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    from analysis.render.text import for_stdout
    from analysis.summary import answer

    refused: list[str] = []
    runs = list({one.run_id: one for one in load_each(args.runs, refused)}.values())  # no copies
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if not runs:
        raise Refused(f"{', '.join(args.runs)}: no run could be read, so there is nothing to draw.")
    with damaged(", ".join(one.origin for one in runs), "drawn"):
        files, missing, rows = _write(runs, args)
    if not files:
        raise Refused("; ".join(f"{name}: {reason}" for name, reason in missing.items()))
    if args.json:
        written = {"files": [file._asdict() for file in files], "not_drawn": missing}
        data = written | {"summary": rows, "refused": refused}
        print(json.dumps(data, indent=2, allow_nan=False))
        return 0
    lines = [for_stdout(answer(rows))] if rows else []
    lines += [f"{file.path} ({file.size_bytes / 1000:.0f} kB)" for file in files]
    lines += [
        fill(f"not drawn: {name}: {reason}", 100, subsequent_indent="  ")
        for name, reason in missing.items()
    ]
    print("\n".join(lines), flush=True)
    return 0


def _write(
    runs: Sequence[Run], args: argparse.Namespace
) -> tuple[list[Written], dict[str, str], list[Row]]:
    from analysis.plots import fitting, pictures
    from analysis.plots.scene import NothingToDraw, scene_of
    from analysis.plots.style import written
    from analysis.render import csv, markdown
    from analysis.summary import answer, rows_of

    known = pictures() if args.picture else fitting(runs)
    unknown = [name for name in args.picture if name not in {*known, SUMMARY}]
    if unknown:
        raise Refused(
            f"no picture {unknown[0]!r}; available: "
            f"{', '.join([*known, SUMMARY])}.{suggestion(unknown[0], known)}"
        )
    scene = scene_of(runs)
    files: list[Written] = []
    missing: dict[str, str] = {}

    def save(name: str, form: str, content: bytes, answers: str) -> None:
        path = args.output / f"{name}.{form}"
        write_whole(path, content)
        files.append(Written(name, str(path), len(content), answers))

    names = dict.fromkeys(args.picture or [*known, SUMMARY])
    for name in (name for name in names if name != SUMMARY):
        try:
            save(
                name,
                args.format,
                written(known[name].draw(scene), args.format),
                known[name].ANSWERS,
            )
        except NothingToDraw as reason:
            missing[name] = ended(str(reason))
    rows = rows_of(runs) if SUMMARY in names else []
    if rows:
        text = "One row per tweak set and workload: throughput, step time, telemetry, parameters."
        save(SUMMARY, "csv", csv.render(answer(rows)).encode(), text)
        save(SUMMARY, "md", markdown.render(answer(rows)).encode(), text)
    return files, missing, rows
