"""Compare algorithms on a simulated GPU that differs from its model: off by a factor, late and noisy. Says nothing of a real one.

The factor is up or down by the whole of --gain-error, for power and throughput, as the seed has it. For each task and algorithm: images per
second, watts, and the part of the readings above 1.02 of the cap, over the second half of each phase of the caps; then our own controller
(steady) against each, seed by seed, with 95 % intervals.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused
from analysis.wording import parse_percent

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer
    from analysis.studies.power.simulation import SimulationPlan
    from control.power.tasks import Task

MOST = 1e6  # W of noise, s of lag: far above any board's, far below where sums of them overflow
ANSWERS = True
HELP = "algorithms compared on a simulated GPU that differs from its model"
EXAMPLE = """\
examples:
  python -m analysis power simulate parameters/
  python -m analysis power simulate parameters/ --task-id 6,13 --algorithms steady,pctodl --seeds 5
  python -m analysis power simulate parameters/ --partition-error 4% --json

Exit code 0: simulated, whatever came of it. 2: bad usage, or no parameters.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument(
        "parameters", metavar="PATH", type=Path, help="a folder of parameters: both what controllers know and the plant is made of"
    )
    parser.add_argument("--task-id", metavar="ID,…", help="tasks of the matrix (default: all that there are parameters for)")
    parser.add_argument("--tasks", metavar="FILE", type=Path, help="a matrix of your own in place of data/power/tasks.yaml")
    parser.add_argument("--algorithms", metavar="NAME,…", help="what to compare (default: all there are)")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="plants of each task (default: %(default)s)")
    parser.add_argument(
        "--iterations", type=int, default=60, metavar="N", help="iterations of each, where the cap stays (default: %(default)s)"
    )
    parser.add_argument(
        "--gain-error", default="8%", metavar="PERCENT", help="how far the plant is off, up or down (default: %(default)s%%)"
    )
    parser.add_argument(
        "--partition-error", default="0%", metavar="PERCENT", help="and each partition by itself, sd (default: %(default)s%%)"
    )
    parser.add_argument("--noise-w", type=float, default=2.0, metavar="W", help="of each reading, sd (default: %(default)s)")
    parser.add_argument("--lag-s", type=float, default=2.0, metavar="S", help="time constant of the power (default: %(default)s)")
    parser.add_argument("--shadow", action="store_true", help="PctoDL with its shadow optimiser too, as an arm of its own")


def run(args: argparse.Namespace) -> Answer:
    """Say what came of it. Raises: Refused."""
    from analysis.answer import of_parts
    from analysis.studies.power import simulation as study

    wanted = _wanted(args)
    result, copied = study.outcomes(wanted), study.copies(wanted)
    return of_parts(study.document(wanted, result, copied), study.parts(wanted, result, copied))


def _wanted(args: argparse.Namespace) -> SimulationPlan:
    from analysis.studies.power import parameters
    from analysis.studies.power.simulation import SimulationPlan
    from control.power import algorithms
    from control.power.plant import Mismatch
    from control.power.tasks import SHIPPED

    names = tuple(args.algorithms.split(",")) if args.algorithms else algorithms.names()
    for name in names:
        algorithms.load(name)
    if args.seeds < 1 or args.iterations < 2:
        raise Refused("--seeds is 1 or more, --iterations 2 or more.")
    for option, value in (("--noise-w", args.noise_w), ("--lag-s", args.lag_s)):
        if not 0 <= value <= MOST:
            raise Refused(f"{option} {value:g}: it is a number from 0 to {MOST:g}.")
    mismatch = Mismatch(
        gain_error=_part("--gain-error", args.gain_error),
        partition_error=_part("--partition-error", args.partition_error),
        noise_w=args.noise_w,
        lag_s=args.lag_s,
    )
    matrix = parameters.read_tasks(args.tasks or SHIPPED)
    chosen = _known(_chosen(matrix, args.task_id) if args.task_id else matrix, args.parameters)
    return SimulationPlan(str(args.parameters), chosen, names, args.seeds, mismatch, args.iterations, args.shadow)


def _part(option: str, text: str) -> float:
    part = 0.0 if text.rstrip("%").strip() == "0" else parse_percent(text)
    if part > 0.5:
        raise Refused(f"{option} {text}: more than half is no error of a model.")
    return part


def _chosen(matrix: list[Task], text: str) -> list[Task]:
    ids = {f"{task.id}": task for task in matrix}
    unknown = [one for one in text.split(",") if one not in ids]
    if unknown:
        raise Refused(f"--task-id: no task {unknown[0]!r}; there are {', '.join(ids)}.")
    return [ids[fromkey] for fromkey in dict.fromkeys(text.split(","))]


def _known(wanted: list[Task], path: Path) -> tuple[Task, ...]:
    """The tasks of which there are parameters; what runs on any GPU, on each. Raises: Refused, where there are of none."""
    from analysis.studies.power import parameters
    from control.power.tasks import ANY

    there = sorted({key[:2] for key in parameters.available(path)})
    result = tuple(replace(task, gpu=gpu) for task in wanted for model, gpu in there if model == task.model and task.gpu in {gpu, ANY})
    if not result:
        raise Refused(f"{path}: has parameters of no such task; there are {'; '.join(f'{model} on {gpu}' for model, gpu in there)}.")
    return result
