"""Judge the choice of `deeptweak tune`: the settings to keep, and their gain in fresh blocks."""

from __future__ import annotations

import argparse
from pathlib import Path

from analysis.answer import Answer
from analysis.subcommands import EXIT_CODES, option, picture_file, signature
from control.called import JUDGE

ANSWERS = True
GROUP = "design"
HELP = "the settings that a tune chose, and their gain in fresh blocks"
EXAMPLE = f"""\
`deeptweak tune` ends with this answer (docs/tune.md).

example:
  {JUDGE} tuned .benchmarks/tune/train-py-1f0c2a3b.json --plot race.png

{EXIT_CODES} 130: the tune was interrupted.
"""


@signature
def run(
    _args: argparse.Namespace,
    record: str = option("FILE", "the record of a tune: tune/NAME.json beside the saved runs"),
    *,
    plot: Path | None = option(
        "FILE", "draw the race and the confirmation: .png, .svg or .pdf", type=picture_file
    ),
) -> Answer:
    from analysis.studies.tune.answer import answer
    from analysis.studies.tune.tune import read

    tuning = read(Path(record))
    result = answer(tuning)
    if plot:
        from analysis.plots.style import draw_file
        from analysis.studies.tune.pictures import draw

        draw_file(plot, lambda: draw(tuning))
    return result


arguments = run.arguments
