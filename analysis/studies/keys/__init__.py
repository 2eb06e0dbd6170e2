"""Effects of single keys: studies of decomposed tweak sets, where set verdicts do not suffice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from analysis.answer import Answer
from analysis.terms import Run

if TYPE_CHECKING:
    from .terms import Effects

ORDER = 30
TITLE = "Which key"


def tells_of(run: Run) -> bool:
    return bool(run.design.factors) and not run.is_switched


def answer(run: Run, *, brief: bool = False) -> Answer:
    from . import answers
    from .effects import effects_of

    if not brief:
        return answers.answer(effects_of(run), run)
    return answers.brief(effects_of(run), run)


def for_pictures(runs: Sequence[Run]) -> dict[str, object]:
    from .effects import effects_of

    return {"effects": {run.origin: effects_of(run) for run in runs}}


def effects_of_grid(
    workload: str,
    metric: str,
    factors: Mapping[str, tuple[str, ...]],
    points: dict[str, tuple[str, ...]],
    rows: Sequence[tuple[str, tuple[str, ...], str, float]],
    lost: Sequence[tuple[str, str, tuple[str, ...]]],
) -> Effects:
    """Estimate effects of a grid's factors, such as hyper-parameters, on a lower-is-better metric.

    `rows` are point, levels, block and value of each cell; `lost` are point, reason and blocks of
    cells without a value.
    """
    from .effects import of_table
    from .observed import letters
    from .terms import DesignData, DesignFactor, EffectRow, LostPoint

    named = zip(factors.items(), letters(len(factors)), strict=True)
    data = DesignData(
        "hyper-parameters",
        workload,
        metric,
        tuple(DesignFactor(name, letter, levels) for (name, levels), letter in named),
        points,
        tuple(EffectRow(*row) for row in rows),
        tuple(LostPoint(*point) for point in lost),
        better="lower",
        scale="log",
    )
    (effects,) = of_table(data)
    return effects


def effects_answer(effects: Effects) -> Answer:
    from . import answers

    return answers.answer([effects])
