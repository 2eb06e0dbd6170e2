"""The steps of `python -m analysis jobs`; what takes long to import waits until one runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.answer import of_parts
from analysis.steps import Step, takes_runs

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer


def profile(args: argparse.Namespace) -> Answer:
    """Where the time of jobs goes, class by class and system by system, and which system runs each class soonest.

    Reads saved runs of streams of jobs; cells of equal workload and tweak set are one system, and blocks of a run its replicates. Response
    time is divided into waiting for a slot, start-up, computing, held back by the CPU limit, and neither (other processes, disks, other
    replicas).
    """
    from analysis.studies.jobs.replicates import replicates_of

    from .page import profile_document, profile_page
    from .profile import profile as profiled

    refused: list[str] = []
    rows, best = profiled(replicates_of(args.runs, refused))
    return of_parts(profile_document(rows, best), profile_page(rows, best), refused)


def hyper(args: argparse.Namespace) -> Answer:
    """How soon jobs that learn reach their accuracy, by hyper-parameters: every point of the grid, the best one, and effects.

    Reads saved runs of streams of `train` jobs with an `accuracy`, over which some parameters were varied (--vary batch=16,64). A point
    whose jobs do not all reach the accuracy has no mean time to it, and never wins. Effects and their analysis of variance are of ratios.
    """
    from analysis.answer import together
    from analysis.studies.jobs.replicates import replicates_of

    from .hyper import hyper as analysed
    from .page import hyper_document, hyper_effects, hyper_page

    refused: list[str] = []
    result = analysed(replicates_of(args.runs, refused))
    points = of_parts(hyper_document(result), hyper_page(result), refused)
    if result.effects is None:
        return points
    return replace(together([points, hyper_effects(result.effects)]), data=points.data, refused=refused)


STEPS = (
    Step(
        hyper,
        takes_runs("saved runs of streams of jobs that learn"),
        "time to an accuracy by hyper-parameters: points, the best, effects",
        """\
example:
  python -m analysis jobs hyper .benchmarks/*/0001_hyper.json

Exit code 0: analysed, whatever was found. 2: bad usage, or no job that learns.
""",
    ),
    Step(
        profile,
        takes_runs("saved runs of streams of jobs"),
        "where the time of jobs goes, by class and system; the best system",
        """\
example:
  python -m analysis jobs profile .benchmarks/*/0001_profile.json

Exit code 0: profiled, whatever was found. 2: bad usage, or no job that was done.
""",
    ),
)
