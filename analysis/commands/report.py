"""Write a self-contained HTML page on saved runs: answers, pictures, settings, provenance."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, Line, Section, command
from analysis.arms import distinct
from analysis.files import damaged
from analysis.load import load_each
from analysis.subcommands import option, signature
from analysis.terms import Refused
from analysis.wording import counted
from control.called import JUDGE

if TYPE_CHECKING:
    from analysis.report.page import HtmlPage
    from analysis.terms import Run

ANSWERS = True
GROUP = "run"
HELP = "one HTML page with answers, pictures and provenance"
EXAMPLE = f"""\
example:
  {JUDGE} report .benchmarks/*/0001_exp1.json --output report.html
  {JUDGE} report before.json after.json --output both.html
  {JUDGE} report data/runs/gpu-training_*.json --output gpu.html
  {JUDGE} report .benchmarks/ --output index.html

A folder of several runs gives an index: newest first, changes over time, and a link to each run's
report, written beside it.
The page needs no network and no script. Only an earlier report is ever replaced.
Exit code 0: written, whatever was found. 2: bad usage, or nothing could be read or written.
"""
MOST_RUNS = 10  # compared on one page; `history` reads more


@signature
def run(
    runs: list[str] = option(
        "RUN", "saved runs: files, quoted globs, folders, DeepTweak directories", nargs="+"
    ),
    *,
    output: Path = option(
        "FILE", "output file (default: %(default)s)", type=Path, default=Path("report.html")
    ),
) -> Answer:
    from analysis.report.saving import must_be_replaceable

    must_be_replaceable(output)
    refused: list[str] = []
    loaded = distinct(load_each(runs, refused), refused)
    if not loaded:
        for line in refused:
            print("refused:", line, file=sys.stderr)
        raise Refused(f"{', '.join(runs)}: no run could be read, so there is nothing to report.")
    return write(loaded, runs, output, refused)


arguments = run.arguments


def write(runs: Sequence[Run], names: Sequence[str], output: Path, refused: list[str]) -> Answer:
    """Write the page of some runs, for the command and the Python door.

    `names` are the paths as given: one folder with several runs gets an index.

    Raises: Refused, if there are too many runs, or the file cannot be written.
    """
    from analysis.report.saving import must_be_replaceable, save

    must_be_replaceable(output)
    again = shlex.join(command("report", *names, "--output", str(output)))
    if len(names) == 1 and len(runs) > 1 and Path(names[0]).is_dir():
        from analysis.report.index import write_index

        return write_index(runs, Path(names[0]), output, again, refused)
    if len(runs) > MOST_RUNS:
        raise Refused(
            f"{len(runs)} runs: a report compares at most {MOST_RUNS}; use `history` for more."
        )
    from analysis.report import page

    with damaged(", ".join(one.origin for one in runs), "reported"):
        written = page.page_of(runs, again, refused)
    return _answer(written, output, save(written.html, output), refused)


def _answer(page: HtmlPage, path: Path, size: int, refused: Sequence[str]) -> Answer:
    """Return the page's path, and the findings at its top.

    In JSON: `runs` with the answers of each, `between_runs` (null for one run), and why pictures
    are missing (null: drawn).
    """
    sections, told = [], []
    for one, answers in page.told:
        sections.append(
            Section(
                Path(one.origin).name, [line for said in answers for line in _lines(said.answer)]
            )
        )
        told.append(
            {
                "run_id": one.run_id,
                "origin": one.origin,
                "answers": [
                    {"study": said.study, "said": [line.text for line in _lines(said.answer)]}
                    for said in answers
                ],
                "warnings": list(
                    dict.fromkeys(line for said in answers for line in said.answer.warnings)
                ),
            }
        )
    between = list(_lines(page.between)) if page.between else []
    drawn = sum(reason is None for reason in page.pictures.values())
    return Answer(
        title=f"{path}: {size / 1000:.0f} kB, {counted(drawn, 'picture')}",
        sections=[*sections, *([Section("Between the runs", between)] if between else [])],
        data={
            "path": str(path),
            "size_bytes": size,
            "runs": told,
            "between_runs": [line.text for line in between] or None,
            "pictures": page.pictures,
        },
        refused=refused,
    )


def _lines(answer: Answer) -> Iterable[Line]:
    return [*([Line(answer.title)] if answer.title else []), *answer.findings]
