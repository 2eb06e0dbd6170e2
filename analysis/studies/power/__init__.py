"""Power-capped inference: what partition, batches and clock give and take, what is best under a cap, and who holds the cap best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cells import is_capped as tells_of

if TYPE_CHECKING:
    from analysis.answer import Answer
    from analysis.terms import Run

__all__ = ["ORDER", "TITLE", "answer", "tells_of"]
ORDER = 20
TITLE = "Power cap"


def answer(run: Run, *, brief: bool = False) -> Answer:
    """Who gets most out of the cap and holds it; `brief` leaves out energy, latency and what stands beside the figures."""
    from dataclasses import replace

    from .report import answer as answer_of
    from .study import sides

    refused: list[str] = []
    return replace(answer_of(run, sides(run, refused), brief=brief), refused=refused)
