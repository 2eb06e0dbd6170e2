"""Predicted times back to the scheduler: seconds a unit of each class's work takes on one replica, by a model of saved runs.

With `--classes`, a file of data/jobs, it is written anew with these as its `predicted_s_per_work`: what `job_stream:classes_file=…` and its
policies (SJF, least slack) then go by. Errors are of groups left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

HELP = "predicted times by class, for the scheduler"
EXAMPLE = """\
examples:
  python -m analysis predict service .benchmarks/*/0001_cluster_scheduling.json --model gp
  python -m analysis predict service runs/*.json --model trees --classes data/jobs/mixed.yaml -o predicted.yaml

Exit code 0: predicted. 2: bad usage, too few groups, or no jobs with class and work.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN|CSV", nargs="+", help="saved runs of streams of jobs; lists of jobs with class and work")
    parser.add_argument(
        "--model", metavar="NAME", default="gp", help="gp (default), ridge, trees, or a white box: amdahl, usl, work, roofline"
    )
    parser.add_argument("--classes", metavar="FILE", type=Path, help="a file of classes, to be written with the predicted times")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="where to write it, a new file (default: printed instead of the page)"
    )


def run(asked: argparse.Namespace) -> int:
    """Print the predicted times, or write them. Raises: Refused."""
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.saving import must_be_new, write_whole  # noqa: PLC0415  # as above
    from analysis.studies.jobs.prediction import page  # noqa: PLC0415  # scikit-learn takes seconds to import
    from analysis.studies.jobs.prediction.predictions import (
        classes_of,  # as above
        served,  # as above
        written,  # as above
    )
    from analysis.studies.jobs.prediction.reading import rows_of  # noqa: PLC0415  # as above

    if asked.output and not asked.classes:
        raise Refused("-o writes a file of classes anew; --classes says which.")
    if asked.output:
        must_be_new(asked.output, force=False, sources=[asked.classes])
    document = classes_of(asked.classes) if asked.classes else None  # before the models, which take a while
    rows, notes = rows_of(asked.runs, "service_s")
    found, validation = served(rows, asked.model)
    text = written(asked.classes, document, found) if document else ""
    if asked.output:
        write_whole(asked.output, text.encode())
    if asked.json:
        print(page.served_json(asked.model, found, validation, notes), end="")
    elif text and not asked.output:
        print(text, end="")
    else:
        print(page.served(asked.model, found, validation, notes, color=wants_color(sys.stdout)), end="")
    return 0
