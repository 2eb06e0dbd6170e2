"""Power-capped inference: partition, batch and clock under a cap, from traces to a verdict. Each step is a command of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.answer import Answer
from analysis.subcommands import Steps, option, runs_of, step
from analysis.terms import Refused
from control.called import JUDGE

GROUP = "study"
HELP = "power-capped inference: fit, predict, partition, report"
EXAMPLE = f"`{JUDGE} power STEP --help` says the rest."


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _clocks(text: str) -> tuple[float, ...]:
    clocks = _numbers(text)
    if not all(0 < clock < float("inf") for clock in clocks):
        raise ValueError
    return clocks


PARAMETERS = option("PATH", "a folder of parameters, or one file", type=Path)
OUTPUT = option("DIR", "where to write the files", "-o", "--output", required=True, type=Path)
NETWORK = option("NAME", "the network that all processes run (default: the only one there)")
GPU = option("NAME", "the GPU (default: the only one there)")
TASKS = option("FILE", "tasks of your own (default: data/power/tasks.yaml)", type=Path)


@step(
    "saved profiles → files of traces (CSV)",
    f"""\
example:
  {JUDGE} power traces .benchmarks/*/0001_profile.json -o traces/

Files of these names in the folder are replaced.
""",
)
def traces(
    runs: list[str] = runs_of("saved runs of bench_power_profile; those of one device belong together"), *, output: Path = OUTPUT
) -> Answer:
    """Turn saved profiles into files of traces, which `quality` and `fit` read and others' tools too.

    There is a CSV a network, in a folder a back-end.
    A point that failed is a row that says so (oom, failed, refused) and has no numbers; what was skipped was never tried and is in no file.
    """
    from analysis.studies.power.traces import saved_profiles

    return saved_profiles(runs, output)


@step(
    "what is wrong with traces or parameters",
    f"""\
examples:
  {JUDGE} power quality traces.csv sweep.csv parameters/
""",
)
def quality(paths: list[Path] = option("PATH", "files of traces (.csv), folders or files of parameters", type=Path, nargs="+")) -> Answer:
    """What traces or parameters show that no device does: rows stored as zeros, and curves that fall with the clock."""
    from analysis.studies.power.quality import answer

    return answer(paths)


@step(
    "traces → parameters, with errors on held-out rows",
    f"""\
examples:
  {JUDGE} power fit anchors.csv sweep.csv static.csv --gpu 3080Ti -o parameters/
  {JUDGE} power fit traces/ --gpu A100 -o parameters/ --as original    the original's formulas and boosted trees
""",
)
def fit(
    traces: list[Path] = option("CSV|DIR", "files of traces, or folders of them", nargs="+", type=Path),
    *,
    gpu: str = option("NAME", "what they were measured on: a name of data/power/gpus.yaml, or another", required=True),
    output: Path = OUTPUT,
    network: str | None = option("NAME", "fit this one alone (default: all there are)"),
    kind: str = option("", "which model (default: own)", "--as", choices=("own", "original"), default="own"),
) -> Answer:
    """Fit models to traces, one a network and memory clock, and say how wrong they are on rows they were not shown.

    Traces are CSV files: anchors (many partitions at one clock), clock series, idle rows of `static`, in one file or several. What is
    written is a folder of JSON files that `predict` and `partition` take. Rows that failed are left out, and said.
    """
    from analysis.studies.power import fit as fits

    return fits.answer(traces, gpu, output, kind=kind, network=network)


@step(
    "PctoDL's own parameter files (.json, .pth, .pkl) → ours; nothing is unpickled",
    f"""\
example:
  {JUDGE} power convert PctoDL/fitting_results -o parameters/
""",
)
def convert(folder: Path = option("DIR", "a folder of networks, or of one network", type=Path), *, output: Path = OUTPUT) -> Answer:
    """Others' parameters as ours: a JSON file a network, GPU and memory clock, numbers alone, which every command and the benchmark read.

    Read are the folder that PctoDL publishes (`fitting_results`: curves in .json, coefficients in .pth, regressors in .pkl) and its plain
    arrays. Nothing in them is executed: a file that names more than numbers, tensors and trees need is refused. The commands read such
    folders themselves as well; what is written here is small enough to keep beside a study.
    """
    from analysis.answer import of_parts
    from analysis.studies.power import parameters

    readers = parameters.available(folder)
    if not parameters.are_published(folder):
        raise Refused(f"{folder}: has parameters of ours, which need no conversion.")
    models = [read() for read in readers.values()]
    output.mkdir(parents=True, exist_ok=True)
    files = [output / parameters.file_name(model) for model in models]
    for model, file in zip(models, files, strict=True):
        parameters.write(model, file)
    networks = {model.network for model in models}
    return of_parts({"files": list(map(str, files))}, [f"{len(files)} models of {len(networks)} networks: {output}"])


@step(
    "what partitions, batches and clocks give by a model",
    f"""\
examples:
  {JUDGE} power predict parameters/ --network resnet50 --gpu 3080Ti --mem 5001 --shares 50,25 --batches 16,16 --sm 1950
  {JUDGE} power predict parameters/ --gpu 3080Ti --rows traces.csv --json
""",
)
def predict(
    parameters: Path = PARAMETERS,
    *,
    network: str | None = NETWORK,
    gpu: str | None = GPU,
    mem: float | None = option("MHZ", "the memory clock (default: the only one there, or the row's)", type=float),
    shares: tuple[float, ...] | None = option("P,P,…", "percent of the SMs, one per process", type=_numbers),
    batches: tuple[int, ...] | None = option("B,B,…", "images, one per process", type=_wholes),
    sm: tuple[float, ...] | None = option("MHZ,…", "SM clocks; one prediction each", type=_numbers),
    rows: Path | None = option("CSV", "in their place a file of traces: p_list, b_list, sm_freq, mem_freq", type=Path),
) -> Answer:
    """What a partition gives by a model: SM and memory utilisation, images/s and watts, at one clock or many.

    The settings are typed, or are the rows of a file of traces (one prediction a row, whether it was measured or not). Utilisation is
    NVML's, percent of time. What lies outside what the model was fitted on is said below the table.
    """
    from analysis.studies.power import prediction
    from control.power.terms import Partition

    typed = {"--shares": shares, "--batches": batches, "--sm": sm}
    if rows is not None:
        extra = [name for name, value in typed.items() if value is not None]
        if extra:
            raise Refused(f"{extra[0]} is what --rows says; give either.")
        from analysis.studies.power.traces import read

        return prediction.answer(parameters, gpu, prediction.of_rows(read(rows), network, mem))
    if shares is None or batches is None or sm is None:
        missing = ", ".join(name for name, value in typed.items() if value is None)
        raise Refused(f"{missing}: missing; a setting is typed with --shares, --batches and --sm, or its rows are a file's with --rows.")
    partition = Partition(shares, batches)
    return prediction.answer(parameters, gpu, [(network, mem, partition, clock) for clock in sm])


@step(
    "the best partition, batches and clocks under a cap",
    f"""\
examples:
  {JUDGE} power partition parameters/ --network resnet50 --gpu 3080Ti --cap 130
  {JUDGE} power partition parameters/ --task 6                  network, GPU and cap of data/power/tasks.yaml
""",
)
def partition(  # what goes with what
    parameters: Path = PARAMETERS,
    *,
    network: str | None = NETWORK,
    gpu: str | None = GPU,
    cap: float | None = option("W", "the cap on the board's power, W, or on what the models have in its place", type=float),
    task: int | None = option("ID", "a task: its network, GPU and every cap of its schedule", type=int),
    tasks: Path | None = TASKS,
    clocks: tuple[float, ...] | None = option(
        "F,F,…", "clocks (or duties) that can be set (default: the GPU's, of data/power/gpus.yaml)", type=_clocks
    ),
    margin: float = option("W", "keep so much of the cap free", type=float, default=0.0),
    greedy: str | None = option(
        "", "the original's search: with clocks rounded down, or as they come out", choices=("fast", "slow"), default=None
    ),
) -> Answer:
    """The partition, batches and clocks that are predicted to give most images/s under a cap, out of a model's parameters.

    Our own search by default: every profiled partition at every supported clock, never above the cap in prediction. A model with a guard
    band is held to the cap with its predicted power times the band.
    With --greedy the original's search, defects included. Curves of the models that fall with the clock are named below.
    """
    from analysis.studies.power import partition as partitions

    if (cap is None) == (task is None):
        raise Refused("One of --cap and --task is required, and only one.")
    for name, value in (("cap", cap), ("margin", margin)):
        if value is not None and not 0 <= value < float("inf"):
            raise Refused(f"--{name} {value:g}: it is a number of 0 or more.")
    if tasks is not None and task is None:
        raise Refused("--tasks is a file of tasks; say which one of them with --task.")
    if task is not None and network is not None:
        raise Refused("--network is what the task says; leave it, or give --cap in place of --task.")
    where = (network, gpu) if task is None else partitions.task_of(task, tasks, gpu)
    return partitions.answer(parameters, where, cap, clocks=clocks, greedy_mode=greedy, margin_w=margin)


@step(
    "what algorithms make of a cap: throughput, violations, energy, latency",
    f"""\
example:
  {JUDGE} power report .benchmarks/*/0001_cap.json
  {JUDGE} plot .benchmarks/*/0001_cap.json     controllers' traces, fronts, predictions
""",
)
def report(
    runs: list[str] = runs_of("saved runs of bench_power_cap"),
    *,
    baseline: str | None = option("ALGORITHM", "what the others are held against (powercap, or the first that has figures)"),
) -> Answer:
    """What algorithms make of a power cap: throughput, how far the cap is held, energy and latency, each against a baseline by block.

    Reads runs of bench_power_cap. Back-ends are never mixed; without a sensor nothing is said of a cap; what a plant gave is called
    simulated.
    """
    from analysis.answer import together
    from analysis.load import load_each, read_each
    from analysis.studies.power.figures import RULE
    from analysis.studies.power.report import answer
    from analysis.studies.power.study import sides

    refused: list[str] = []
    read = read_each(load_each(runs, refused), lambda run: answer(run, sides(run, refused, baseline)), refused)
    answers = [each for _, each in read]
    return replace(together(answers), data={"steady": RULE, "runs": [each.data for each in answers]}, refused=refused)


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
