"""What a training's input did: accelerator utilisation and throughput, and whether they may be believed.

Reads runs of bench_io_patterns and result folders of DLIO, and says of each figure whether its first step is in it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.io.asked import Found

HELP = "input of a training: utilisation, throughput, DLIO results"
EXAMPLE = """\
example:
  python -m analysis io .benchmarks/*/0001_io.json
  python -m analysis io results/              DLIO's result folders in it, and a published table
  python -m analysis io results/ --plot io/   pictures too; those of a saved run are in its report and in `plot` as well
  python -m analysis io results/ --mlperf     what they lack to be a submission to MLPerf Storage

Exit code 0: analysed. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN|DIR", nargs="+", help="saved runs, DLIO result folders or folders of them, published tables")
    parser.add_argument("--mlperf", action="store_true", help="say what each setting lacks to be a submission to MLPerf Storage v2.0")
    parser.add_argument("--plot", metavar="DIR", type=Path, help="draw every picture of input into this folder")
    parser.add_argument("--exclude-start", metavar="N", type=steps, help="steps left out of steady figures at an epoch's start")
    parser.add_argument("--exclude-end", metavar="N", type=steps, help="the same at its end; otherwise as each run says (1 and 0)")


def steps(text: str) -> int:
    """Read a count of steps. Raises: ValueError, which argparse says."""
    if not text.isdecimal() or len(text) > 9:
        raise ValueError
    return int(text)


def run(asked: argparse.Namespace) -> int:
    """Print what the runs say, each source by itself."""
    from analysis.studies.io.asked import gathered  # noqa: PLC0415  # scipy takes a second to import
    from analysis.studies.io.dlio_study import Excluded  # noqa: PLC0415  # as above

    found = gathered(asked.runs, Excluded(asked.exclude_start, asked.exclude_end), mlperf=asked.mlperf)
    if found.dlio is None and not found.saved:
        raise Refused(found.refused[0] if found.refused else f"{', '.join(asked.runs)}: no run that reports what its input did.")
    for line in found.refused:
        print("refused:", line, file=sys.stderr)
    drawn = _pictures(found, asked.plot) if asked.plot is not None else {}
    if asked.json:
        from analysis.studies.io.as_json import as_json  # noqa: PLC0415  # only for programs

        print(as_json(found, drawn), end="")
    else:
        print(_text(found), end="")
        print(*(f"{name}: {said}" for name, said in drawn.items()), sep="\n", end="\n" if drawn else "")
    return 0


def _pictures(found: Found, folder: Path) -> dict[str, str]:
    """Draw what can be drawn; answers each picture's file, or why there is none."""
    from analysis.studies.io.pictures import write  # noqa: PLC0415  # matplotlib, which takes a second to import

    runs = [one.run for each in found.saved for one in each.cells]
    runs += [one.run for one in found.dlio.judged] if found.dlio is not None else []
    files, missing = write(runs, folder)
    return {path.stem: str(path) for path in files} | {name: f"not drawn: {reason}" for name, reason in missing.items()}


def _text(found: Found) -> str:
    from analysis.render.text import wants_color  # noqa: PLC0415
    from analysis.studies.io import dlio_page, mlperf_page, page  # noqa: PLC0415  # --json has no need of rich

    color = wants_color(sys.stdout)
    made = [page.render(one, color=color) for one in found.saved]
    made += [dlio_page.render(found.dlio, color=color)] if found.dlio is not None else []
    made += [mlperf_page.render(found.submissions, color=color)] if found.submissions else []
    return "\n".join(made)
