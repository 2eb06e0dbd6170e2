"""Others' parameters as ours: a JSON file a network, GPU and memory clock, numbers alone, which every command and the benchmark read.

Read are the folder that PctoDL publishes (`fitting_results`: curves in .json, coefficients in .pth, regressors in .pkl) and its plain
arrays. Nothing in them is executed: a file that names more than numbers, tensors and trees need is refused. The commands read such folders
themselves as well; what is written here is small enough to keep beside a study.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

HELP = "PctoDL's own parameter files (.json, .pth, .pkl) → ours; nothing is unpickled"
EXAMPLE = """\
example:
  python -m analysis power convert PctoDL/fitting_results -o parameters/

Exit code 0: all were written. 2: bad usage, or a file cannot be read; then none was.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("parameters", metavar="DIR", type=Path, help="a folder of networks, or of one network")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, type=Path, help="where to write them")


def run(args: argparse.Namespace) -> int:
    """Read all, then write all. Raises: Refused."""
    from analysis.studies.power import parameters

    there = parameters.available(args.parameters)
    if not parameters.are_published(args.parameters):
        raise Refused(f"{args.parameters}: has parameters of ours, which need no conversion.")
    models = [read() for read in there.values()]
    args.output.mkdir(parents=True, exist_ok=True)
    files = [args.output / parameters.file_name(model) for model in models]
    for model, file in zip(models, files, strict=True):
        parameters.write(model, file, "reference")
    if args.json:
        from analysis.plain import printable_json

        print(printable_json({"files": list(map(str, files))}), end="")
    else:
        print(f"{len(files)} models of {len({model.network for model in models})} networks: {args.output}")
    return 0
