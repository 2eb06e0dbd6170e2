"""Predict times, CPU and energy from factors: held-out errors, intervals and their coverage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, then
from analysis.subcommands import Subcommands, option, step
from analysis.terms import Refused
from analysis.wording import parse_percent

if TYPE_CHECKING:
    import argparse

GROUP = "study"
HELP = "predict times from factors: fit, cross-validate, show, pass to the scheduler"

MODELS = "a white box: amdahl, work"
FACTOR_RUNS = option(
    "RUN|CSV", "saved runs; CSV with a column for the response and one for each factor", nargs="+"
)
RESPONSE = option(
    "NAME",
    "the response: a metric, service_s, response_s, cpu_s, energy_j, or a column of telemetry",
)
WITHOUT = option("FACTOR", "factors to hide from models", nargs="+", default=[])
LEVEL = option("PERCENT", "nominal coverage of intervals (90%%)", type=parse_percent, default="90%")
MODEL = option("NAME", f"ridge (default), trees, or {MODELS}", default="ridge")


@step(
    "cross-validate by configuration and by run",
    "data/runs/io_readahead_*.json",
)
def cv(
    runs: list[str] = FACTOR_RUNS,
    *,
    response: str | None = RESPONSE,
    without: list[str] = WITHOUT,
    models: list[str] = option(
        "NAME", "ridge, trees, or white boxes by name (default: all)", nargs="+", default=[]
    ),
    level: float = LEVEL,
) -> Answer:
    """Cross-validate models that predict times from factors: held-out errors and interval coverage.

    Errors are compared with those of the training set's mean. `ridge` regression and boosted
    `trees` use coded factors: parameters of variants, tweak sets, monitors, levels of designs;
    classes, sizes and resources of jobs. White boxes are added if rows have replicas (`amdahl`) or
    `work`. Whole groups are held out: configurations (how well is an unmeasured one predicted?) and
    runs (blocks, streams of the same jobs: how well is another day predicted?). In CSV the columns
    `configuration` and `run` name them. Fewer than five groups are refused.
    """
    from analysis.studies.jobs.prediction.models import GROUPS, TooFew
    from analysis.studies.jobs.prediction.predictions import validated
    from analysis.studies.jobs.prediction.reading import read
    from analysis.studies.jobs.prediction.validation import validate

    table = read(runs, response, without)
    validations, notes = [], []
    for group in GROUPS:
        try:
            validations.append(validate(table, group, models, level))
        except TooFew as error:
            notes.append(str(error))
    if not validations:
        raise Refused(" ".join(notes))
    best = validations[0].best
    model = [] if best is None else [f"--model={best.model}"]
    answer = validated(table, validations, notes)
    return then(answer, "predict fit", *runs, f"--response={table.response}", *model)


@step(
    "the factors that a model uses, and its error",
    "data/runs/io_readahead_*.json --model trees",
)
def fit(
    runs: list[str] = FACTOR_RUNS,
    *,
    response: str | None = RESPONSE,
    without: list[str] = WITHOUT,
    model: str = MODEL,
) -> Answer:
    """Fit one model to all rows: the factors that it uses, and its error for unmeasured groups.

    The error is that of held-out groups, as in `predict cv`: by configuration if there are five or
    more, else by run.
    """
    from analysis.studies.jobs.prediction.predictions import by_of, filled, fitted, leans_on
    from analysis.studies.jobs.prediction.reading import read, spelled
    from analysis.studies.jobs.prediction.validation import validate

    table = read(runs, response, without)
    validation = validate(table, by_of(table), [model])
    point = [spelled(*factor) for factor in filled(table, {}).items()]
    options = [f"--response={table.response}", f"--model={model}", "--at", *point]
    return then(
        fitted(table, model, leans_on(table, model), validation), "predict show", *runs, *options
    )


@step(
    "predict points, with intervals, extrapolations named",
    "data/runs/io_readahead_*.json --at cache=warm tweakset=stock",
)
def show(
    runs: list[str] = FACTOR_RUNS,
    *,
    response: str | None = RESPONSE,
    without: list[str] = WITHOUT,
    model: str = MODEL,
    at: list[list[str]] = option(
        "FACTOR=VALUE", "one point (repeatable)", nargs="+", action="append", required=True
    ),
    level: float = LEVEL,
) -> Answer:
    """Predict points, each given by the factors of an `--at`; extrapolations are named.

    A missing factor takes its commonest value among the rows that agree with the other factors.
    Intervals are for an unmeasured group: the next configuration, or the next run if there are
    fewer than five configurations.
    """
    from analysis.studies.jobs.prediction.predictions import filled, parsed, predicted, shown
    from analysis.studies.jobs.prediction.reading import read

    requested = [*map(parsed, at)]
    table = read(runs, response, without)
    predictions = predicted(table, model, level, [filled(table, point) for point in requested])
    return then(
        shown(table, model, level, predictions), "predict cv", *runs, f"--response={table.response}"
    )


@step(
    "predicted times by class, for the scheduler",
    ".benchmarks/*/0001_cluster_scheduling.json",
)
def service(
    args: argparse.Namespace,
    runs: list[str] = option(
        "RUN|CSV", "saved runs of streams of jobs; lists of jobs with class and work", nargs="+"
    ),
    *,
    model: str = option("NAME", f"trees (default), ridge, or {MODELS}", default="trees"),
    classes: Path | None = option(
        "FILE", "a file of classes to extend with the predicted times", type=Path
    ),
    output: Path | None = option(
        "FILE", "the new file (default: print it instead of the page)", "-o", "--output", type=Path
    ),
) -> Answer | int:
    """Pass predicted times to the scheduler: seconds per unit of each class's work on one replica.

    With `--classes`, a file of data/jobs, write a new file with these times as
    `predicted_s_per_work`. Policies that use predicted times (SJF, least slack) read them from
    there (`job_stream:classes_file=…`). Errors are those of held-out groups.
    """
    from analysis.files import must_be_new, write_whole
    from analysis.studies.jobs.prediction.predictions import class_times, written
    from analysis.studies.jobs.prediction.predictions import classes as answer
    from analysis.studies.jobs.prediction.reading import rows_of
    from analysis.studies.jobs.simulation import document_of

    if output and not classes:
        raise Refused("-o writes a file of classes; name the input file with --classes.")
    if output and classes:
        must_be_new(output, [classes])
    document = document_of(classes) if classes else None  # before the models, which take longer
    rows, _, notes = rows_of(runs, "service_s")
    times, validation = class_times(rows, model)
    text = written(classes, document, times) if classes and document else ""
    if output:
        write_whole(output, text.encode())
    if text and not output and not args.json:
        print(text, end="")
        return 0
    return then(
        answer(model, times, validation, notes), "predict cv", *runs, "--response=service_s"
    )


EXAMPLE, arguments, run = Subcommands(__name__).page
