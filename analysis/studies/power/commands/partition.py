"""The partition, batches and clocks that are predicted to give most images/s under a cap, out of a model's parameters.

Our own search by default: everything that was profiled and mixes of it, at every supported clock, never above the cap in prediction. With
--greedy the original's search, defects included. What the quality gate finds in the models is said below; ! marks what a fit would refuse.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer
    from analysis.studies.power.partition import PartitionQuestion

ANSWERS = True
HELP = "the best partition, batches and clocks under a cap"
EXAMPLE = """\
examples:
  python -m analysis power partition parameters/ --network resnet50 --gpu 3080Ti --cap 130
  python -m analysis power partition parameters/ --task 6                  network, GPU and cap of data/power/tasks.yaml
  python -m analysis power partition parameters/ --task 6 --greedy fast    as the original does it
  python -m analysis power partition parameters/ --network resnet50 --gpu 3080Ti --front

Exit code 0: answered. 2: bad usage, no such model, or a cap that nothing keeps; the smallest that something keeps is then said.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("parameters", metavar="PATH", type=Path, help="a folder of parameters, or one file")
    parser.add_argument("--network", metavar="NAME", help="the network that all processes run (default: the only one there)")
    parser.add_argument("--gpu", metavar="NAME", help="the GPU (default: the only one there)")
    under = parser.add_mutually_exclusive_group(required=True)
    under.add_argument("--cap", metavar="W", type=float, help="the cap on the board's power, W, or on what the models have in its place")
    under.add_argument("--task", metavar="ID", type=int, help="a task: its network, GPU and every cap of its schedule")
    under.add_argument("--front", action="store_true", help="no cap: what more power buys, from the smallest cap that can be kept on")
    parser.add_argument("--tasks", metavar="FILE", type=Path, help="tasks of your own (default: data/power/tasks.yaml)")
    parser.add_argument(
        "--clocks", metavar="F,F,…", type=numbers, help="clocks (or duties) that can be set (default: the GPU's, of data/power/gpus.yaml)"
    )
    parser.add_argument("--margin", metavar="W", type=float, default=0.0, help="keep so much of the cap free")
    parser.add_argument("--sds", metavar="K", type=float, default=0.0, help="keep K standard deviations of the predicted power free too")
    parser.add_argument("--most-processes", metavar="N", type=int, help="no more processes than this (default: as many as were profiled)")
    parser.add_argument("--profiled-only", action="store_true", help="only partitions that were profiled, no mixes")
    parser.add_argument("--greedy", choices=("fast", "slow"), help="the original's search: with clocks rounded down, or as they come out")


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers above 0 with commas between them. Raises: ValueError, which argparse says."""
    result = tuple(float(part) for part in text.split(","))
    if not all(0 < value < float("inf") for value in result):
        raise ValueError
    return result


def run(args: argparse.Namespace) -> Answer:
    """Answer what was asked. Raises: Refused."""
    from analysis.answer import of_parts
    from analysis.studies.power import partition as asking

    _check(args)
    limits = {"margin_w": args.margin, "sds": args.sds, "max_processes": args.most_processes, "mixes": not args.profiled_only}
    request: PartitionQuestion
    if args.task is not None:
        request = asking.of_task(args.parameters, args.task, args.tasks, args.gpu, args.clocks)
    else:
        request = asking.of_names(args.parameters, args.network, args.gpu, args.cap, args.clocks)
    answers = asking.answers(request, greedy_mode=args.greedy, limits=limits)
    return of_parts(asking.document(request, answers), asking.parts(request, answers))


def _check(args: argparse.Namespace) -> None:
    """Refuse numbers that mean nothing, and options that have nothing to say to what was asked. Raises: Refused."""
    for name in ("cap", "margin", "sds"):
        value = getattr(args, name)
        if value is not None and not 0 <= value < float("inf"):
            raise Refused(f"--{name} {value:g}: it is a number of 0 or more.")
    if args.most_processes is not None and args.most_processes < 1:
        raise Refused(f"--most-processes {args.most_processes}: at least one process runs.")
    if args.tasks is not None and args.task is None:
        raise Refused("--tasks is a file of tasks; say which one of them with --task.")
    if args.task is not None and args.network is not None:
        raise Refused("--network is what the task says; leave it, or give --cap in place of --task.")
    if args.greedy and (args.sds or args.most_processes is not None or args.profiled_only or args.front):
        raise Refused("--greedy knows --cap, --task and --margin; --sds, --most-processes, --profiled-only, --front are our own search's.")
