"""What else cost goes with: how often a monitor looks, and the place of a cell in its block.

Page's test for ordered alternatives takes each block as a judge that ranks the rates (Page 1963); it asks nothing of their distribution
and nothing of how far blocks differ. Of two rates a block can say only which was dearer: there it is the sign test. Rates of equal cost
hold by neither.

Arms run in random order, so that the place in a block falls on all of them alike; where it matters it is noise that could be had out, and
a reason to look at what the machine does as a block goes on (warmth, a cache, a neighbour).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binomtest, linregress, page_trend_test

from analysis.stats.adjust import holm
from analysis.stats.estimate import Mean, mean_of
from analysis.stats.linear import base_columns, fit, independent
from analysis.wording import probability
from control.t_test import ALPHA, t_interval

from .terms import Dose, OverheadFigure, Position, Trend, percent

if TYPE_CHECKING:
    from .records import MonitoredCell

FEWEST_BLOCKS = 3
PAGE, SIGNS = "Page's L", "sign test"

Values = dict[str, dict[int, float]]  # arm → block → primary metric


def doses(cells: Sequence[MonitoredCell], values: Values, overheads: Mapping[str, float]) -> list[Dose]:
    families: dict[str, dict[str, float]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.base, cell.rest)):
        if cell.rate_per_s is not None and cell.tweakset in overheads:
            families.setdefault(f"{cell.base} {cell.rest}".strip(), {})[cell.tweakset] = cell.rate_per_s
    known, tables = [], []
    for name, rates in families.items():
        arms = sorted(rates, key=rates.__getitem__)
        blocks = sorted(set.intersection(*(set(values[arm]) for arm in arms)))
        if len(set(rates.values())) >= max(2, len(arms)) and len(blocks) >= FEWEST_BLOCKS:
            known.append((name, {arm: (rates[arm], overheads[arm]) for arm in arms}))
            tables.append(np.array([[values[arm][block] for arm in arms] for block in blocks]))
    rising, falling = (holm([_order(table, step) for table in tables]) for step in (1, -1))
    return [
        _dose(name, arms, len(table), up, down, _per_sample(cells, arms))
        for (name, arms), table, up, down in zip(known, tables, rising, falling, strict=True)
    ]


def _dose(name: str, arms: Mapping[str, tuple[float, float]], blocks: int, rising: float, falling: float, slope: Mean | None) -> Dose:
    """One monitor's order in a word; `arms` have rate and overhead, the lowest rate first."""
    rates, means = zip(*arms.values(), strict=True)
    trend: Trend = "holds" if rising < ALPHA else "contradicted" if falling < ALPHA else "not shown"
    test = PAGE if len(arms) > 2 else SIGNS
    at = (" <= " if trend == "holds" else ", ").join(f"{percent(mean)} % at {rate:g}/s" for rate, mean in arms.values())
    p = probability(falling if trend == "contradicted" else rising)
    sentence = f"{name}: dose order {trend} ({test}, Holm p {p}, {blocks} blocks): {at}"
    if trend == "holds" and list(means) != sorted(means):
        sentence += "; as a whole, though the means are not all in order"
    if slope is not None and slope.low is not None and slope.high is not None:
        ends = f"{1e3 * slope.low:.3g} to {1e3 * slope.high:.3g}"
        few = ", by two rates alone" if len(arms) == 2 else ""
        sentence += f"; one more sample costs {1e3 * slope.value:.3g} ms of CPU (95 % {ends}{few})"
    return Dose(name, tuple(arms), rates, means, blocks, test, rising, falling, trend, f"{sentence}.", slope)


def _order(table: np.ndarray, step: int) -> float:
    """The one-sided p of rising cost (step 1), or of falling cost (step -1); `table` has a row a block, a column a rate."""
    if table.shape[1] > 2:
        return float(page_trend_test(table[:, ::step]).pvalue)
    signs = np.sign(step * (table[:, 1] - table[:, 0]))
    count = int((signs != 0).sum())
    return float(binomtest(int((signs > 0).sum()), count, alternative="greater").pvalue) if count else 1.0


def _per_sample(cells: Sequence[MonitoredCell], arms: Mapping[str, object]) -> Mean | None:
    """CPU seconds of one more sample: in each block the slope of the least-squares line through the rates; then over blocks.

    None at all is no point of that line: it has no start-up either, which the line's intercept holds.
    """
    blocks: dict[int, list[tuple[float, float]]] = {}
    for cell in cells:
        cpu_s, samples = cell.all_cpu_s, cell.monitor.get("samples")
        if cell.tweakset in arms and cpu_s is not None and samples is not None:
            blocks.setdefault(cell.block, []).append((samples, cpu_s))
    points = [each for each in blocks.values() if len(each) == len(arms) and len({x for x, _ in each}) > 1]
    return mean_of([float(linregress(*zip(*each, strict=True)).slope) for each in points]) if len(points) >= FEWEST_BLOCKS else None


def position(cells: Sequence[MonitoredCell], values: Values, none: str) -> Position | None:
    """Fit block + arm + place to cells' values; None where these are too few, or place cannot be told from these."""
    cells = [cell for cell in cells if cell.block in values.get(cell.tweakset, {})]
    blocks, others = sorted({cell.block for cell in cells}), sorted({cell.tweakset for cell in cells} - {none})
    if not others or not any(cell.tweakset == none for cell in cells):
        return None
    last = max(cell.place for cell in cells) or 1
    arms = np.array([[cell.tweakset == arm for arm in others] for cell in cells], float)
    levels = np.column_stack([base_columns([cell.block for cell in cells]), arms])
    model = np.column_stack([levels, [cell.place / last for cell in cells]])
    logs = np.log([values[cell.tweakset][cell.block] for cell in cells])
    if len(cells) <= model.shape[1] or not independent([model]):
        return None
    fitted, without = (fit(columns, logs) for columns in (model, levels))
    error = math.sqrt(fitted.rss / fitted.df * float(fitted.inverse[-1, -1]))
    if not error > 0:
        return None
    slope, low, high, p = t_interval(float(fitted.beta[-1]), error, fitted.df)
    moved = float(np.abs(np.expm1(fitted.beta[len(blocks) : -1]) - np.expm1(without.beta[len(blocks) :])).max())
    figure = OverheadFigure(len(cells), value=math.expm1(slope), low=math.expm1(low), high=math.expm1(high), p=p)
    shown = f"{figure.amount} {figure.ends} from first place to last, p {probability(p)}, {len(cells)} cells"
    tells = f"with place in the model no overhead moves by more than {100 * moved:.2f} %"
    verb = "matters" if p < ALPHA else "is not shown to matter"
    return Position(figure, moved, f"Place in the block {verb}: {shown}; {tells}.")
