"""Times, CPU and energy predicted from factors: held-out errors, intervals and what they cover. Each step is a command."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, then
from analysis.subcommands import Steps, option, step
from analysis.terms import Refused
from analysis.wording import parse_percent
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.prediction.tables import By

GROUP = "study"
HELP = "predict times from factors: fit, cross-validate, show, give back to the scheduler"
EXAMPLE = f"`{JUDGE} predict STEP --help` says the rest."

MODELS = "a white box: amdahl, work"
BOTH: tuple[By, ...] = ("configuration", "run")
FACTOR_RUNS = option("RUN|CSV", "saved runs; CSV with a column of the response and one a factor", nargs="+")
RESPONSE = option("NAME", "what to predict: a metric, service_s, response_s, cpu_s, energy_j, a column of telemetry")
WITHOUT = option("FACTOR", "factors that models must not see", nargs="+", default=[])
LEVEL = option("PERCENT", "what intervals promise to cover (90%%)", type=parse_percent, default="90%")


@step(
    "cross-validate by configuration and by run",
    f"""\
examples:
  {JUDGE} predict cv data/runs/io_patterns_*.json
""",
)
def cv(
    runs: list[str] = FACTOR_RUNS,
    *,
    response: str | None = RESPONSE,
    without: list[str] = WITHOUT,
    by: By | None = option("", "which groups are left out (both, one after the other)", choices=BOTH),
    models: list[str] = option("NAME", "ridge, trees, and white boxes by name (all there are)", nargs="+", default=[]),
    level: float = LEVEL,
) -> Answer:
    """Held-out errors of models that predict times from factors, beside the mean of the training set; and what their intervals cover.

    `ridge` regression and boosted `trees` see coded factors: parameters of variants, tweak sets, monitors, levels of designs; classes,
    sizes and resources of jobs. White boxes stand beside where rows have replicas (`amdahl`) or `work`. Groups are left out whole:
    configurations (what does it say of one that nobody measured?) and runs (blocks, streams: what does it say of another day?). In CSV the
    columns `configuration` and `run` name them. Fewer than five groups are refused.
    """
    from analysis.studies.jobs.prediction.predictions import validated
    from analysis.studies.jobs.prediction.reading import read
    from analysis.studies.jobs.prediction.tables import TooFew
    from analysis.studies.jobs.prediction.validation import validate

    table = read(runs, response, without)
    validations, notes = [], []
    for group in BOTH if by is None else (by,):
        try:
            validations.append(validate(table, group, models, level))
        except TooFew as error:
            notes.append(str(error))
    if not validations:
        raise Refused(" ".join(notes))
    best = min(validations[0].scored[1:], key=lambda scored: math.inf if scored.typical is None else scored.typical)
    return then(validated(table, validations, notes), "predict fit", *runs, f"--response={table.response}", f"--model={best.model}")


@step(
    "what a model leans on, and how far it may be trusted",
    f"""\
examples:
  {JUDGE} predict fit data/runs/io_patterns_*.json --model trees
""",
)
def fit(
    runs: list[str] = FACTOR_RUNS,
    *,
    response: str | None = RESPONSE,
    without: list[str] = WITHOUT,
    model: str = option("NAME", f"ridge (default), trees, or {MODELS}", default="ridge"),
) -> Answer:
    """Fit one model to all rows: which factors it leans on, and how far it may be trusted where nobody measured.

    The error is that of groups left out, as `predict cv` has it: by configuration where there are five or more, else by run.
    """
    from analysis.studies.jobs.prediction.predictions import by_of, filled, fitted, leans_on
    from analysis.studies.jobs.prediction.reading import read
    from analysis.studies.jobs.prediction.validation import validate

    table = read(runs, response, without)
    validation = validate(table, by_of(table), [model])
    point = [f"{name}={level}" if isinstance(level, str) else f"{name}={level:g}" for name, level in filled(table, {}).items()]
    options = [f"--response={table.response}", f"--model={model}", "--at", *point]
    return then(fitted(table, model, leans_on(table, model), validation), "predict show", *runs, *options)


@step(
    "predict points, with intervals, extrapolations named",
    f"""\
examples:
  {JUDGE} predict show data/runs/io_patterns_*.json --at cache=warm format=png
""",
)
def show(
    runs: list[str] = FACTOR_RUNS,
    *,
    response: str | None = RESPONSE,
    without: list[str] = WITHOUT,
    model: str = option("NAME", f"ridge (default), trees, or {MODELS}", default="ridge"),
    at: list[list[str]] = option("FACTOR=VALUE", "one point; may be given several times", nargs="+", action="append", default=[]),
    points: Path | None = option("CSV", "many points: a column a factor", type=Path),
    level: float = LEVEL,
) -> Answer:
    """Predict points: `--at` says the factors of one, a CSV of `--points` those of many; every extrapolation is named.

    A factor that is not said has its commonest value among the rows that agree with the rest. Intervals are for a group that was never
    measured: the next configuration, or where there are fewer than five of these, the next run.
    """
    from analysis.studies.jobs.prediction.predictions import ModelChoice, by_of, filled, parsed, predicted, shown
    from analysis.studies.jobs.prediction.reading import read, read_csv

    requested = [*map(parsed, at), *(read_csv(points)[1] if points else [])]
    if not requested:
        raise Refused("which points? --at says the factors of one (--at cache=warm), --points a CSV of many.")
    table = read(runs, response, without)
    choice = ModelChoice(model, by_of(table), level)
    answer = shown(table, choice, predicted(table, choice, [filled(table, point) for point in requested]))
    return then(answer, "predict cv", *runs, f"--response={table.response}")


@step(
    "predicted times by class, for the scheduler",
    f"""\
examples:
  {JUDGE} predict service .benchmarks/*/0001_cluster_scheduling.json
""",
)
def service(
    args: argparse.Namespace,
    runs: list[str] = option("RUN|CSV", "saved runs of streams of jobs; lists of jobs with class and work", nargs="+"),
    *,
    model: str = option("NAME", f"trees (default), ridge, or {MODELS}", default="trees"),
    classes: Path | None = option("FILE", "a file of classes, to be written with the predicted times", type=Path),
    output: Path | None = option(
        "FILE", "where to write it, a new file (default: printed instead of the page)", "-o", "--output", type=Path
    ),
) -> Answer | int:
    """Predicted times back to the scheduler: seconds a unit of each class's work takes on one replica, by a model of saved runs.

    With `--classes`, a file of data/jobs, it is written anew with these as its `predicted_s_per_work`: what
    `job_stream:classes_file=…` and its policies (SJF, least slack) then go by. Errors are of groups left out.
    """
    from analysis.files import must_be_new, write_whole
    from analysis.studies.jobs.prediction.predictions import class_times, classes_of, written
    from analysis.studies.jobs.prediction.predictions import classes as answer
    from analysis.studies.jobs.prediction.reading import rows_of

    if output and not classes:
        raise Refused("-o writes a file of classes anew; --classes says which.")
    if output and classes:
        must_be_new(output, [classes])
    document = classes_of(classes) if classes else None  # before the models, which take a while
    rows, notes = rows_of(runs, "service_s")
    times, validation = class_times(rows, model)
    text = written(classes, document, times) if classes and document else ""
    if output:
        write_whole(output, text.encode())
    if text and not output and not args.json:
        print(text, end="")
        return 0
    return then(answer(model, times, validation, notes), "predict cv", *runs, "--response=service_s")


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
