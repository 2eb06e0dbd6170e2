"""A plan as a picture: the smallest difference that a run shows, over its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.plots.confidence import CURVE_LEGEND, Curve, curve_section
from analysis.plots.marks import BANDED
from analysis.plots.page import Spec, fill, margin_entry
from analysis.plots.style import house_style
from analysis.stats.power import spread_interval
from analysis.terms import Run
from analysis.wording import unsigned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .plan import Plan


@house_style()
def draw(plan: Plan, pilot: Run) -> Figure:
    """A panel a workload: the smallest difference over blocks, by the pilot's noise, with the pilot's blocks and those that are needed."""
    goal = plan.goal
    curves = []
    for need in plan.needs:
        low, high = spread_interval(need.log_sd, need.df)
        curves.append(Curve(need.workload, (low, need.log_sd, high), need.mde_blocks, goal.gain, need.alpha, goal.power))
    lead = f"What lies above the curve a run of so many blocks finds, {unsigned(goal.power)} of the times. It crosses the dashed line, "
    lead += f"the {unsigned(goal.gain)} that matter, where the plan ends."
    legend = [*CURVE_LEGEND, fill("as far as the pilot knows its noise, 95 %", BANDED, BANDED), margin_entry([goal.gain], "less than {}")]
    return Spec(lead, [curve_section(curves)], legend).lay_out([pilot], "How small a difference more blocks show")
