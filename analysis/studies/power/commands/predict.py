"""What a partition gives by a model: SM and memory utilisation, images/s and watts, at one clock or many.

The settings are typed, or are the rows of a file of traces (one prediction a row, whether it was measured or not). Utilisation is NVML's,
percent of time. What lies outside what the model was fitted on is said below the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer
    from analysis.studies.power.prediction import PredictionQuestion

ANSWERS = True
HELP = "what partitions, batches and clocks give by a model"
EXAMPLE = """\
examples:
  python -m analysis power predict parameters/ --network resnet50 --gpu 3080Ti --mem 5001 --shares 50,25 --batches 16,16 --sm 1950
  python -m analysis power predict parameters/ --gpu A100 --network resnet50 --shares 40,20 --batches 64,32 --sm 810,1110,1410
  python -m analysis power predict parameters/ --gpu 3080Ti --rows traces.csv --json

Exit code 0: predicted. 2: bad usage, or no such model.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("parameters", metavar="PATH", type=Path, help="a folder of parameters, or one file")
    parser.add_argument("--network", metavar="NAME", help="the network that all processes run (default: the only one there, or the row's)")
    parser.add_argument("--gpu", metavar="NAME", help="the GPU (default: the only one there)")
    parser.add_argument("--mem", metavar="MHZ", type=float, help="the memory clock (default: the only one there, or the row's)")
    parser.add_argument("--shares", metavar="P,P,…", type=numbers, help="percent of the SMs, one per process")
    parser.add_argument("--batches", metavar="B,B,…", type=wholes, help="images, one per process")
    parser.add_argument("--sm", metavar="MHZ,…", type=numbers, help="SM clocks; one prediction each")
    parser.add_argument("--rows", metavar="CSV", type=Path, help="in their place a file of traces: p_list, b_list, sm_freq, mem_freq")


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers with commas between them. Raises: ValueError, which argparse says."""
    return tuple(float(part) for part in text.split(","))


def wholes(text: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them. Raises: ValueError, which argparse says."""
    return tuple(int(part) for part in text.split(","))


def run(args: argparse.Namespace) -> Answer:
    """Predict. Raises: Refused."""
    from analysis.answer import of_parts
    from analysis.studies.power.prediction import copies, document, parts, predicted

    settings = _settings(args)
    result = predicted(args.parameters, settings)
    return of_parts(document(args.parameters, settings, result), parts(settings, result, copies(args.parameters, settings, result)))


def _settings(args: argparse.Namespace) -> list[PredictionQuestion]:
    from analysis.studies.power import prediction as asking
    from control.power.terms import Partition

    typed = {"--shares": args.shares, "--batches": args.batches, "--sm": args.sm}
    if args.rows is not None:
        extra = [name for name, value in typed.items() if value is not None]
        if extra:
            raise Refused(f"{extra[0]} is what --rows says; give either.")
        from analysis.studies.power import traces

        return asking.of_rows(args.parameters, traces.read(args.rows), args.network, args.gpu, args.mem)
    missing = [name for name, value in typed.items() if value is None]
    if missing:
        raise Refused(
            f"{', '.join(missing)}: missing; a setting is typed with --shares, --batches and --sm, or its rows are a file's with --rows."
        )
    network, gpu = asking.only(args.parameters, args.network, args.gpu)
    return [asking.PredictionQuestion(network, gpu, Partition(args.shares, args.batches), clock, args.mem) for clock in args.sm]
