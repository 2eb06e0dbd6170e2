"""Write one self-contained HTML page on saved runs: verdicts, pictures, what was asked of the kernel, provenance, the data."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.files import damaged
from analysis.load import load_each
from analysis.terms import Refused, Run
from analysis.wording import spoken
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse

    from analysis.report.page import Page

GROUP = "run"
HELP = "one HTML page with verdicts, pictures, provenance and data"
EXAMPLE = f"""\
example:
  {JUDGE} report .benchmarks/*/0001_exp1.json --output report.html
  {JUDGE} report before.json after.json --output both.html
  {JUDGE} report data/one_node_one_gpu/ --output gpu.html
  {JUDGE} report .benchmarks/ --output index.html

A folder of several runs gives an index: newest first, what changed over time, and a link to each run's report, written beside it.
The page needs no network and no script; an earlier report of that name is replaced, nothing else ever is.
Exit code 0: written, whatever was found. 2: bad usage, or nothing could be read or written.
"""
MOST_RUNS = 10  # beside each other on one page; `history` is for more


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="saved runs: files, quoted globs, folders, DeepTweak directories")
    parser.add_argument("--output", type=Path, default=Path("report.html"), metavar="FILE", help="where to write (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    from analysis.report.saving import must_be_replaceable, save

    must_be_replaceable(args.output)
    refused: list[str] = []
    runs = _distinct(load_each(args.runs, refused), refused)
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if not runs:
        raise Refused(f"{', '.join(args.runs)}: no run could be read, so there is nothing to report.")
    command = shlex.join([*JUDGE.split(), "report", *args.runs, "--output", str(args.output)])
    if len(args.runs) == 1 and len(runs) > 1 and Path(args.runs[0]).is_dir():
        return _index(args, runs, command, refused)
    if len(runs) > MOST_RUNS:
        raise Refused(f"{len(runs)} runs: a report holds at most {MOST_RUNS} beside each other; `history` is for more.")
    with damaged(", ".join(one.origin for one in runs), "reported"):
        page = _page(runs, command, refused)
    size = save(page.html, args.output)
    print(_as_json(page, args.output, size, refused) if args.json else _as_text(page, args.output, size))
    return 0


def _index(args: argparse.Namespace, runs: Sequence[Run], command: str, refused: Sequence[str]) -> int:
    from analysis.report.index import write_index

    size, lines = write_index(runs, Path(args.runs[0]), args.output, command, refused)
    if args.json:
        print(json.dumps({"path": str(args.output), "size_bytes": size, "runs": [asdict(line) for line in lines]}, indent=2))
        return 0
    print(f"{args.output}: {size / 1000:.0f} kB, {len(lines)} runs, each with a report beside it")
    for line in lines:
        verdicts = ", ".join(f"{count} {spoken(word)}" for word, count in line.verdicts.items()) or line.nothing
        print(f"{line.started}  {line.name}: {verdicts}{''.join(f'; {word}: {change}' for word, change in line.changes)}")
    return 0


def _distinct(runs: Iterable[Run], refused: list[str]) -> list[Run]:
    """Leave out copies: a run beside itself would look like a second measurement that agrees."""
    known: dict[str, Run] = {}
    for one in runs:
        first = known.setdefault(one.run_id, one)
        if first is not one:
            refused.append(f"{one.origin}: is the same run as {first.origin} ({one.run_id}); it is in the report once.")
    return list(known.values())


def _page(runs: Sequence[Run], command: str, refused: Sequence[str]) -> Page:
    from analysis.report.page import page_of

    return page_of(runs, command, refused)


def _as_text(page: Page, path: Path, size: int) -> str:
    drawn = sum(reason is None for reason in page.pictures.values())
    lines = [f"{path}: {size / 1000:.0f} kB, {drawn} picture{'s' if drawn != 1 else ''}"]
    for view in page.views:
        found = [*(part.answer for part in view.told if part.answer), *filter(None, [view.headline])]
        found += [
            f"{answer.workload}: {', '.join(f'{count} {spoken(word)}' for word, count in answer.verdicts.items())}"
            for answer in view.answers
        ]
        found += [f"{key.workload}, {key.profile}: {key.sentence}" for key in view.keys]
        lines += [f"{Path(view.origin).name}:", *(f"  {line}" for line in found or [view.nothing])]
    if page.between:
        words = ", ".join(f"{count} {spoken(word)}" for word, count in page.between.verdicts.items())
        lines.append(f"between the runs: {page.between.refused or words}")
    return "\n".join(lines)


def _as_json(page: Page, path: Path, size: int, refused: Sequence[str]) -> str:
    """Report the same for programs: `size_bytes`, verdicts counted by word, why pictures are missing (null: drawn).

    `effects` has a sentence for each tweak set that was taken apart: which key, how much, how sure; all of them stand in `effects --json`.

    `between_runs` is null for one run; its verdicts are those of each later run against the first.
    """
    data = {
        "path": str(path),
        "size_bytes": size,
        "runs": [
            {
                "run_id": view.name,
                "origin": view.origin,
                "workloads": [
                    {"workload": answer.workload, "verdicts": answer.verdicts, "answer": answer.sentence} for answer in view.answers
                ],
                "effects": [{"workload": key.workload, "tweakset": key.profile, "answer": key.sentence} for key in view.keys],
                "warnings": list(view.warnings),
            }
            for view in page.views
        ],
        "between_runs": page.between and {"verdicts": page.between.verdicts, "refused": page.between.refused},
        "pictures": page.pictures,
        "refused": list(refused),
    }
    return json.dumps(data, indent=2, allow_nan=False)
