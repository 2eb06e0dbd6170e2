"""Which key did it: a study whose tweak sets were taken apart, so that a verdict on each of them is no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.switched import is_switched

if TYPE_CHECKING:
    from analysis.answer import Answer
    from analysis.terms import Run

ORDER = 30
TITLE = "Which key"


def tells_of(run: Run) -> bool:
    return bool(run.design.factors) and not is_switched(run)


def answer(run: Run, *, brief: bool = False) -> Answer:
    from . import answers
    from .effects import effects_of

    if not brief:
        return answers.answer(effects_of(run), run)
    return answers.brief([] if run.design.conclusion else effects_of(run), run)
