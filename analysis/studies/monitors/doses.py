"""One monitor at several rates: does looking more often cost more, and how much does one look cost?

Page's test for ordered alternatives takes each block as a judge that ranks the rates (Page 1963); it asks nothing of their distribution
and nothing of how far blocks differ. Of two rates a block can say only which was dearer: there it is the sign test. Rates of equal cost
hold by neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.stats.effect import mean_of
from analysis.wording import probability
from control.t_test import ALPHA

from .arms import signed
from .records import all_cpu_s
from .terms import Dose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.stats.effect import Mean

    from .terms import Trend, Watched

FEWEST_BLOCKS = 3
PAGE, SIGNS = "Page's L", "sign test"

Values = dict[str, dict[int, float]]  # arm → block → primary metric


def doses(cells: Sequence[Watched], values: Mapping[str, Mapping[int, float]], overheads: Mapping[str, float]) -> list[Dose]:
    """Judge every monitor of one workload that ran at two rates or more; `values` is the primary metric by arm and block."""
    families: dict[tuple[str, str], dict[str, float]] = {}
    for cell in cells:
        if cell.rate_per_s is not None and cell.tweakset in overheads:
            families.setdefault((cell.base, cell.rest), {})[cell.tweakset] = cell.rate_per_s
    known = []
    for (base, rest), rates in sorted(families.items()):
        arms = sorted(rates, key=rates.__getitem__)
        blocks = sorted(set.intersection(*(set(values[arm]) for arm in arms)))
        if len(set(rates.values())) < max(2, len(arms)) or len(blocks) < FEWEST_BLOCKS:
            continue
        table = [[values[arm][block] for arm in arms] for block in blocks]
        known.append((f"{base} {rest}".strip(), arms, rates, table))
    ordered = [_order(table) for *_, table in known]
    rising, falling = (holm([entry[side] for entry in ordered]) for side in (0, 1))
    return [
        _dose(name, {arm: (rates[arm], overheads[arm]) for arm in arms}, len(table), ps, _per_sample(cells, arms))
        for (name, arms, rates, table), ps in zip(known, zip(rising, falling, strict=True), strict=True)
    ]


def _dose(name: str, arms: Mapping[str, tuple[float, float]], blocks: int, ps: tuple[float, float], slope: Mean | None) -> Dose:
    """Put one monitor's order into a word; `arms` have rate and overhead, the lowest rate first."""
    rising, falling = ps
    rates, means = zip(*arms.values(), strict=True)
    trend: Trend = "holds" if rising < ALPHA else "contradicted" if falling < ALPHA else "not shown"
    test = PAGE if len(arms) > 2 else SIGNS
    at = " <= ".join(f"{signed(mean)} at {rate:g}/s" for rate, mean in arms.values())
    listed = at if trend == "holds" else at.replace(" <= ", ", ")
    p = falling if trend == "contradicted" else rising
    sentence = f"{name}: dose order {trend} ({test}, Holm p {probability(p)}, {blocks} blocks): {listed}"
    if trend == "holds" and list(means) != sorted(means):
        sentence += "; as a whole, though the means are not all in order"
    if slope is not None and slope.low is not None and slope.high is not None:
        ends = f"{1e3 * slope.low:.3g} to {1e3 * slope.high:.3g}"
        few = ", by two rates alone" if len(arms) == 2 else ""
        sentence += f"; one more sample costs {1e3 * slope.value:.3g} ms of CPU (95 % {ends}{few})"
    return Dose(
        family=name,
        arms=tuple(arms),
        rates_per_s=rates,
        means=means,
        blocks=blocks,
        test=test,
        p=rising,
        p_against=falling,
        trend=trend,
        sentence=f"{sentence}.",
        per_sample_s=slope,
    )


def _order(table: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Answer the one-sided p of rising and of falling cost."""
    from scipy.stats import binomtest, page_trend_test  # noqa: PLC0415  # a second, which a report of other runs need not wait

    if len(table[0]) > 2:
        return tuple(float(page_trend_test([row[::step] for row in table]).pvalue) for step in (1, -1))  # type: ignore[return-value]  # two
    dearer, cheaper = (sum(sign * (row[1] - row[0]) > 0 for row in table) for sign in (1, -1))
    count = dearer + cheaper
    if not count:
        return 1.0, 1.0
    return tuple(float(binomtest(number, count, alternative="greater").pvalue) for number in (dearer, cheaper))  # type: ignore[return-value]  # two


def _per_sample(cells: Sequence[Watched], arms: Sequence[str]) -> Mean | None:
    """CPU seconds of one more sample: in each block the slope of the least-squares line through the rates; then over blocks.

    None at all is no point of that line: it has no start-up either, which the line's intercept holds.
    """
    blocks: dict[int, list[tuple[float, float]]] = {}
    for cell in cells:
        cpu_s = all_cpu_s(cell)
        samples = cell.monitor.get("samples")
        if cell.tweakset in arms and cpu_s is not None and samples is not None:
            blocks.setdefault(cell.block, []).append((samples, cpu_s))
    slopes = []
    for points in blocks.values():
        if len(points) == len(arms) and len({x for x, _ in points}) > 1:
            middle = sum(x for x, _ in points) / len(points)
            slopes.append(sum((x - middle) * y for x, y in points) / sum((x - middle) ** 2 for x, _ in points))
    return mean_of(slopes) if len(slopes) >= FEWEST_BLOCKS else None
