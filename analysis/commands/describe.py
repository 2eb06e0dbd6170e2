"""What is inside runs: steps, whether they settled, energy, GPU use, noise of blocks and of steps.

It describes runs; a verdict on a tweak is `compare`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.answer import Answer
from analysis.load import load_each
from analysis.subcommands import option, signature
from analysis.terms import Refused, Run
from control.called import JUDGE

if TYPE_CHECKING:
    from analysis.studies.describe.describe import Described

ANSWERS = True
GROUP = "run"
HELP = "what is inside runs: steps, stationarity, energy, noise"
EXAMPLE = f"""\
example:
  {JUDGE} describe .benchmarks/*/0001_exp1.json
  {JUDGE} describe data/one_node_one_gpu --json       a DeepTweak directory

Exit code 0: described. 2: bad usage, or no file can be used.
"""


@signature
def run(
    runs: list[str] = option("RUN", "saved runs, quoted globs, folders of them, DeepTweak directories", nargs="+"),
) -> Answer:
    from analysis.studies.describe.answer import answer
    from analysis.studies.describe.describe import describe

    refused: list[str] = []
    result: list[tuple[Run, list[Described]]] = []
    for one in load_each(runs, refused):
        try:
            result.append((one, describe(one)))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # What the reader let through and arithmetic choked on: the file's fault to the user, and named for whoever mends the reader.
            refused.append(f"{one.origin}: cannot be described ({type(error).__name__}: {error}); the file is damaged or was edited.")
    if not result:
        raise Refused(refused[0])
    return answer(result, refused)


arguments = run.arguments
