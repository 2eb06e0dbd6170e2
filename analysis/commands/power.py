"""Analyse power-capped inference: partition, batch and clock under a cap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.answer import Answer
from analysis.subcommands import Subcommands, option, runs_of, step
from analysis.terms import Refused

GROUP = "study"
HELP = "power-capped inference: fit, predict, partition, report"


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _clocks(text: str) -> tuple[float, ...]:
    clocks = _numbers(text)
    if not all(0 < clock < float("inf") for clock in clocks):
        raise ValueError
    return clocks


PARAMETERS = option("PATH", "a folder of parameters, or a single file", type=Path)
OUTPUT = option("DIR", "folder for the files", "-o", "--output", required=True, type=Path)
NETWORK = option("NAME", "the network that all processes run (default: the only one)")
GPU = option("NAME", "the GPU (default: the only one)")
TASKS = option("FILE", "your own tasks (default: data/power/tasks.yaml)", type=Path)


@step(
    "saved profiles → files of traces (CSV)",
    ".benchmarks/*/0001_profile.json -o traces/    existing files are replaced",
)
def traces(
    runs: list[str] = runs_of("saved runs of bench_power_profile, grouped by device"),
    *,
    output: Path = OUTPUT,
) -> Answer:
    """Convert saved profiles to files of traces, for `quality`, `fit` and other tools.

    Writes a CSV per network, in a folder per back-end. A failed point has an outcome and no
    numbers; skipped points are omitted.
    """
    from analysis.studies.power.traces import saved_profiles

    return saved_profiles(runs, output)


@step(
    "defects of traces or parameters",
    "traces.csv sweep.csv parameters/",
)
def quality(
    paths: list[Path] = option(
        "PATH", "files of traces (.csv), folders or files of parameters", type=Path, nargs="+"
    ),
) -> Answer:
    """Find impossible values in traces or parameters: zero rows, curves falling with the clock."""
    from analysis.studies.power.quality import answer

    return answer(paths)


@step(
    "traces → parameters, with errors on held-out rows",
    "anchors.csv sweep.csv static.csv --gpu 3080Ti -o parameters/",
    "traces/ --gpu A100 -o parameters/ --as original    formulas and boosted trees",
)
def fit(
    traces: list[Path] = option(
        "CSV|DIR", "files of traces, or folders of them", nargs="+", type=Path
    ),
    *,
    gpu: str = option(
        "NAME", "the measured device: a name in data/power/gpus.yaml, or another", required=True
    ),
    output: Path = OUTPUT,
    network: str | None = option("NAME", "fit only this network (default: all)"),
    kind: str = option(
        "", "the kind of model (default: own)", "--as", choices=("own", "original"), default="own"
    ),
) -> Answer:
    """Fit models to traces, one per network and memory clock, with errors on held-out rows.

    Traces are CSV files: anchors (many partitions at one clock), clock series, and idle rows of
    `static`. Failed rows are omitted and reported.
    """
    from analysis.studies.power import fit as fits

    return fits.answer(traces, gpu, output, kind=kind, network=network)


@step(
    "PctoDL's own parameter files (.json, .pth, .pkl) → ours; nothing is unpickled",
    "PctoDL/fitting_results -o parameters/",
)
def convert(
    folder: Path = option("DIR", "a folder of networks, or of one network", type=Path),
    *,
    output: Path = OUTPUT,
) -> Answer:
    """Convert others' parameters to ours: a JSON file per network, GPU and memory clock.

    Reads the folder that PctoDL publishes (`fitting_results`) and its plain arrays. Nothing in them
    is executed: a file that names more than numbers, tensors and trees need is refused.
    """
    from analysis.answer import of_parts
    from analysis.studies.power import parameters

    models = [read() for read in parameters.available(folder).values()]
    output.mkdir(parents=True, exist_ok=True)
    files = [output / parameters.file_name(model) for model in models]
    for model, file in zip(models, files, strict=True):
        parameters.write(model, file)
    networks = {model.network for model in models}
    return of_parts(
        {"files": list(map(str, files))},
        [f"{len(files)} models of {len(networks)} networks: {output}"],
    )


@step(
    "a model's predictions for partitions, batches and clocks",
    "parameters/ --network resnet50 --gpu 3080Ti --mem 5001 "
    "--shares 50,25 --batches 16,16 --sm 1950",
)
def predict(
    parameters: Path = PARAMETERS,
    *,
    network: str | None = NETWORK,
    gpu: str | None = GPU,
    mem: float | None = option("MHZ", "the memory clock (default: the only one)", type=float),
    shares: tuple[float, ...] = option(
        "P,P,…", "percent of the SMs, one per process", type=_numbers, required=True
    ),
    batches: tuple[int, ...] = option(
        "B,B,…", "batch sizes, one per process", type=_wholes, required=True
    ),
    sm: tuple[float, ...] = option(
        "MHZ,…", "SM clocks; one prediction each", type=_numbers, required=True
    ),
) -> Answer:
    """Predict SM and memory utilisation, images/s and watts of a partition, at one or more clocks.

    Utilisation is NVML's, percent of time. What lies outside the fitted range is listed below the
    table.
    """
    from analysis.studies.power import prediction
    from control.power.terms import Partition

    return prediction.answer(parameters, network, gpu, mem, Partition(shares, batches), sm)


@step(
    "the best partition, batches and clocks under a cap",
    "parameters/ --network resnet50 --gpu 3080Ti --cap 130",
    "parameters/ --task 6    network, GPU and cap from data/power/tasks.yaml",
)
def partition(  # options exclude each other
    parameters: Path = PARAMETERS,
    *,
    network: str | None = NETWORK,
    gpu: str | None = GPU,
    cap: float | None = option(
        "W", "the cap on the board's power, W, or on the models' substitute", type=float
    ),
    task: int | None = option(
        "ID", "a task: its network, GPU and all caps of its schedule", type=int
    ),
    tasks: Path | None = TASKS,
    clocks: tuple[float, ...] | None = option(
        "F,F,…",
        "settable clocks or duties (default: the GPU's, in data/power/gpus.yaml)",
        type=_clocks,
    ),
    margin: float = option("W", "keep this much of the cap free", type=float, default=0.0),
    greedy: str | None = option(
        "",
        "the original search: with clocks rounded down, or unrounded",
        choices=("fast", "slow"),
        default=None,
    ),
) -> Answer:
    """Find the partition, batches and clocks with the most predicted images/s under a cap.

    By default, every profiled partition is searched at every supported clock; predicted power times
    the model's guard band must not exceed the cap. --greedy is the original search, including its
    defects.
    """
    from analysis.studies.power import prediction

    if (cap is None) == (task is None):
        raise Refused("Give exactly one of --cap and --task.")
    for name, value in (("cap", cap), ("margin", margin)):
        if value is not None and not 0 <= value < float("inf"):
            raise Refused(f"--{name} {value:g}: must be a number of at least 0.")
    if tasks is not None and task is None:
        raise Refused("--tasks needs --task, which selects a task in that file.")
    if task is not None and network is not None:
        raise Refused("--task sets the network; omit --network, or give --cap instead of --task.")
    where = (network, gpu) if task is None else prediction.task_of(task, tasks, gpu)
    return prediction.best_setting(
        parameters, where, cap, clocks=clocks, greedy_mode=greedy, margin_w=margin
    )


@step(
    "algorithms under a cap: throughput, violations, energy, latency",
    ".benchmarks/*/0001_cap.json",
)
def report(
    runs: list[str] = runs_of("saved runs of bench_power_cap"),
    *,
    baseline: str | None = option(
        "ALGORITHM", "the reference for the others (powercap, or the first with figures)"
    ),
) -> Answer:
    """Compare algorithms under a power cap: throughput, violations, energy and latency, by block.

    Each is compared with a baseline. Back-ends are never mixed; without a sensor there is no
    statement on the cap.
    """
    from analysis.answer import together
    from analysis.load import load_each, read_each
    from analysis.studies.power.figures import RULE
    from analysis.studies.power.report import answer
    from analysis.studies.power.study import sides

    refused: list[str] = []
    read = read_each(
        load_each(runs, refused), lambda run: answer(run, sides(run, refused, baseline)), refused
    )
    answers = [each for _, each in read]
    return replace(
        together(answers),
        data={"steady": RULE, "runs": [each.data for each in answers]},
        refused=refused,
    )


EXAMPLE, arguments, run = Subcommands(__name__).page
