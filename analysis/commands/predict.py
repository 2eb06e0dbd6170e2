"""Times, CPU and energy predicted from factors: held-out errors, intervals and what they cover. Each step is a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.steps import Steps, step
from analysis.terms import Refused
from analysis.wording import parse_percent

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer
    from analysis.studies.jobs.prediction.tables import By, FactorTable

GROUP = "study"
HELP = "predict times from factors: fit, cross-validate, show, give back to the scheduler"
EXAMPLE = """\
examples:
  python -m analysis predict cv data/runs/io_patterns_*.json
  python -m analysis predict show data/runs/io_patterns_*.json --at cache=warm read_threads=4
"""

MODELS = "a white box: amdahl, usl, work, roofline"
BOTH: tuple[By, ...] = ("configuration", "run")


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN|CSV", nargs="+", help="saved runs; CSV with a column of the response and one a factor")
    parser.add_argument(
        "--response", metavar="NAME", help="what to predict: a metric, service_s, response_s, cpu_s, energy_j, a column of telemetry"
    )
    parser.add_argument("--without", metavar="FACTOR", nargs="+", default=[], help="factors that models must not see")


def _table(args: argparse.Namespace) -> FactorTable:
    from analysis.studies.jobs.prediction.reading import read

    return read(args.runs, args.response, args.without)


def _add_cv(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.add_argument("--by", choices=BOTH, help="which groups are left out (both, one after the other)")
    parser.add_argument("--models", metavar="NAME", nargs="+", default=[], help="ridge, trees, gp, and white boxes by name (all there are)")
    parser.add_argument("--level", metavar="PERCENT", default="90%", help="what intervals promise to cover (90%%)")


@step(
    _add_cv,
    "cross-validate by configuration and by run",
    """\
examples:
  python -m analysis predict cv data/runs/io_patterns_*.json
  python -m analysis predict cv profile.csv --response cpu_s --by run --models ridge usl

Exit code 0: validated. 2: bad usage, too few groups, or nothing that varied.
""",
)
def cv(args: argparse.Namespace) -> Answer:
    """Held-out errors of models that predict times from factors, beside the mean of the training set; and what their intervals cover.

    `ridge` regression, boosted `trees` and a Gaussian process (`gp`) see coded factors: parameters of variants, tweak sets, monitors,
    levels of designs; classes, sizes and resources of jobs. White boxes stand beside where rows have replicas (`amdahl`, `usl`), `work`,
    or flop and bytes (`roofline`). Groups are left out whole: configurations (what does it say of one that nobody measured?) and runs
    (blocks, streams: what does it say of another day?). In CSV the columns `configuration` and `run` name them. Fewer than five groups are
    refused.
    """
    from analysis.studies.jobs.prediction.page import validated
    from analysis.studies.jobs.prediction.tables import TooFew
    from analysis.studies.jobs.prediction.validation import validate

    level = parse_percent(args.level)
    table = _table(args)
    validations, notes = [], []
    for by in BOTH if args.by is None else (args.by,):
        try:
            validations.append(validate(table, by, args.models, level))
        except TooFew as error:
            notes.append(str(error))
    if not validations:
        raise Refused(" ".join(notes))
    return validated(table, validations, notes)


def _add_fit(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.add_argument("--model", metavar="NAME", default="ridge", help=f"ridge (default), trees, gp, or {MODELS}")


@step(
    _add_fit,
    "what a model leans on, and how far it may be trusted",
    """\
examples:
  python -m analysis predict fit data/runs/io_patterns_*.json --model trees
  python -m analysis predict fit profile.csv --response energy_j

Exit code 0: fitted. 2: bad usage, too few groups, or nothing that varied.
""",
)
def fit(args: argparse.Namespace) -> Answer:
    """Fit one model to all rows: which factors it leans on, and how far it may be trusted where nobody measured.

    The error is that of groups left out, as `predict cv` has it: by configuration where there are five or more, else by run.
    """
    from analysis.studies.jobs.prediction.page import fitted
    from analysis.studies.jobs.prediction.predictions import by_of, leans_on
    from analysis.studies.jobs.prediction.validation import validate

    table = _table(args)
    validation = validate(table, by_of(table), [args.model])
    return fitted(table, args.model, leans_on(table, args.model), validation)


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_fit(parser)
    parser.add_argument(
        "--at", metavar="FACTOR=VALUE", nargs="+", action="append", default=[], help="one point; may be given several times"
    )
    parser.add_argument("--points", metavar="CSV", type=Path, help="many points: a column a factor")
    parser.add_argument("--level", metavar="PERCENT", default="90%", help="what intervals promise to cover (90%%)")


@step(
    _add_show,
    "predict points, with intervals, extrapolations named",
    """\
examples:
  python -m analysis predict show data/runs/io_patterns_*.json --at cache=warm format=png
  python -m analysis predict show profile.csv --model gp --points wanted.csv --level 80%

Exit code 0: predicted. 2: bad usage, or nothing that varied.
""",
)
def show(args: argparse.Namespace) -> Answer:
    """Predict points: `--at` says the factors of one, a CSV of `--points` those of many; every extrapolation is named.

    A factor that is not said has its commonest value among the rows that agree with the rest. Intervals are for a group that was never
    measured: the next configuration, or where there are fewer than five of these, the next run.
    """
    from analysis.studies.jobs.prediction.page import predicted as answer
    from analysis.studies.jobs.prediction.predictions import ModelChoice, by_of, filled, parsed, predicted
    from analysis.studies.jobs.prediction.reading import read_csv

    level = parse_percent(args.level)
    wanted = [*map(parsed, args.at), *(read_csv(args.points)[1] if args.points else [])]
    if not wanted:
        raise Refused("which points? --at says the factors of one (--at cache=warm), --points a CSV of many.")
    table = _table(args)
    choice = ModelChoice(args.model, by_of(table), level)
    predictions = predicted(table, choice, [filled(table, point) for point in wanted])
    return answer(table, choice, predictions)


def _add_service(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN|CSV", nargs="+", help="saved runs of streams of jobs; lists of jobs with class and work")
    parser.add_argument("--model", metavar="NAME", default="gp", help=f"gp (default), ridge, trees, or {MODELS}")
    parser.add_argument("--classes", metavar="FILE", type=Path, help="a file of classes, to be written with the predicted times")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="where to write it, a new file (default: printed instead of the page)"
    )


@step(
    _add_service,
    "predicted times by class, for the scheduler",
    """\
examples:
  python -m analysis predict service .benchmarks/*/0001_cluster_scheduling.json --model gp
  python -m analysis predict service runs/*.json --model trees --classes data/jobs/mixed.yaml -o predicted.yaml

Exit code 0: predicted. 2: bad usage, too few groups, or no jobs with class and work.
""",
)
def service(args: argparse.Namespace) -> Answer | int:
    """Predicted times back to the scheduler: seconds a unit of each class's work takes on one replica, by a model of saved runs.

    With `--classes`, a file of data/jobs, it is written anew with these as its `predicted_s_per_work`: what
    `job_stream:classes_file=…` and its policies (SJF, least slack) then go by. Errors are of groups left out.
    """
    from analysis.files import must_be_new, write_whole
    from analysis.studies.jobs.prediction.page import classes
    from analysis.studies.jobs.prediction.predictions import class_times, classes_of, written
    from analysis.studies.jobs.prediction.reading import rows_of

    if args.output and not args.classes:
        raise Refused("-o writes a file of classes anew; --classes says which.")
    if args.output:
        must_be_new(args.output, force=False, sources=[args.classes])
    document = classes_of(args.classes) if args.classes else None  # before the models, which take a while
    rows, notes = rows_of(args.runs, "service_s")
    times, validation = class_times(rows, args.model)
    text = written(args.classes, document, times) if document else ""
    if args.output:
        write_whole(args.output, text.encode())
    if text and not args.output and not args.json:
        print(text, end="")
        return 0
    return classes(args.model, times, validation, notes)


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
