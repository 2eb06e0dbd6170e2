"""What a study of input says in sentences, the same on a terminal and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.studies.keys.observed import SETS

from .sentences import STEADY, answers, reversals, tweaks, untouched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.plots.scene import Scene

    from .study import Study

LABELS = {
    "au_whole_percent": "AU whole",
    "au_steady_percent": "AU steady",
    "samples_per_s_whole": "samples/s",
    "mb_per_s_read": "MiB/s read",
    "first_step_share": "1st %",
    "barrier_share": "barrier + readers' end %",
}


def of_factors(found: Study) -> list[str]:
    """What is known of each factor; of the utilisation without the first step only where it tells another story."""
    known = [one for one in found.analyses if not one.sets and not one.refusal]
    lines = [f"{LABELS.get(one.response, one.response)}: {line}" for one in known if one.response != STEADY for line in answers(one)]
    return [*lines, *reversals(known)]


def of_tweak_sets(found: Study) -> list[str]:
    """What the copy of stock shows, and what each tweak set did."""
    lines = [line for one in found.analyses if one.sets for line in answers(one)]
    return [untouched(found.contrasts), *tweaks(found.contrasts), *(line for line in lines if SETS in line.partition(":")[0])]


def of_run(scene: Scene, origin: str) -> tuple[Sequence[str], Sequence[str]]:
    """The answer of one saved run that is drawn, and all else in sentences; nothing, where no workload of it reported its input."""
    from .answer import answer, head  # noqa: PLC0415  # as below
    from .study import study  # noqa: PLC0415  # statsmodels, which only such runs need

    runs = [one.run for one in scene.io if one.run.origin == origin]
    if not runs:
        return (), ()
    found = study(origin, runs)
    return [*answer(found), *head(found)], [*of_factors(found), *of_tweak_sets(found)]
