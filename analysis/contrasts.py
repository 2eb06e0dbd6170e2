"""One comparison for any column of a frame: each level against the baseline, paired by block.

`compare` judges tweak sets with all its checks; this is for policies, faults, formats, replicas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from control.t_test import ALPHA, LARGEST_LOG, t_interval

from .stats.effect import ROUNDING, holm, moments
from .terms import Refused
from .wording import must_be_known

if TYPE_CHECKING:
    import pandas as pd

    Pairs = Mapping[object, list[tuple[float, float]]]  # by unit: baseline's value, candidate's

Scale = Literal["log", "raw"]
FEWEST = 3  # units needed for an interval
COLUMNS = ["arm", "metric", "n", "baseline", "candidate", "value", "low", "high"]
COLUMNS += ["low90", "high90", "p", "missing"]
NO_PAIR = "no block has both"
NOT_POSITIVE = "0 in at least one block, so no ratio can be computed"
SAME = "the same in every block: no interval"


def contrasts(
    frame: pd.DataFrame,
    arm: str,
    baseline: object,
    metrics: Mapping[str, Scale],
    *,
    by: Sequence[str] = (),
    within: Sequence[str] = ("run", "block"),
    unit: Sequence[str] | None = None,
    family: Sequence[str] = ("metric",),
    fewest: int = FEWEST,
) -> pd.DataFrame:
    """Compare each level of the column `arm` with the baseline, per metric and group of `by`.

    `within` are the columns that both sides of a pair share; pairs of one `unit` (default:
    `within`) count by their mean. On the `log` scale a contrast is the ratio candidate / baseline,
    on the `raw` scale the difference.

    Returns: one row per group, level and metric, with the columns of `by`, then
        arm, metric
        n: units with both sides
        baseline, candidate: means over these units (geometric on the log scale)
        value, low, high, low90, high90: the contrast, with its 95 and 90 % intervals (Student's t)
        p, p_adjusted: two-sided; adjusted by Holm over rows that agree in the columns of `family`
        missing: why there is no value or no interval; empty if there is one
    Raises: UnknownName, if a column or the baseline does not exist. Refused, for a single level.

    Example:
        >>> contrasts(frame, "policy", "fifo", {"mean_wait_s": "log"})

    """
    import pandas as pd

    for name in (arm, *metrics, *by, *within, *(unit or ())):
        must_be_known("column", name, frame.columns)
    levels = frame[arm].dropna().unique()
    must_be_known(arm, baseline, levels)
    if len(levels) == 1:
        raise Refused(f"{arm} is {baseline} in every cell, so there is no other level to compare.")
    rows = []
    for key, group in frame.groupby([*by], sort=False, dropna=False) if by else [((), frame)]:
        for metric, scale in metrics.items():
            places = _places(group, arm, metric, scale, within, unit or within)
            for level in group[arm].dropna().unique():
                if level != baseline:
                    contrast = contrast_of(_pairs(places, baseline, level), scale, fewest)
                    place = dict(zip(by, key, strict=True))
                    rows.append(place | {"arm": level, "metric": metric} | contrast)
    result = pd.DataFrame(rows, columns=[*by, *COLUMNS])
    result["p_adjusted"] = float("nan")
    known = result[result["p"].notna()]
    for _, members in known.groupby([*family], sort=False, dropna=False) if len(known) else ():
        result.loc[members.index, "p_adjusted"] = holm(list(members["p"]))
    return result


def _places(
    group: pd.DataFrame,
    arm: str,
    metric: str,
    scale: Scale,
    within: Sequence[str],
    unit: Sequence[str],
) -> dict[tuple[object, object], dict[object, float]]:
    known = group[group[metric].notna()]
    units, places = (
        known[[*columns]].itertuples(index=False, name=None) for columns in (unit, within)
    )
    values: dict[tuple[object, object], dict[object, list[float]]] = {}
    for own_unit, place, level, value in zip(units, places, known[arm], known[metric], strict=True):
        values.setdefault((own_unit, place), {}).setdefault(level, []).append(float(value))
    return {
        place: {level: _mean(every, scale) for level, every in own.items()}
        for place, own in values.items()
    }


def _pairs(
    places: Mapping[tuple[object, object], Mapping[object, float]], baseline: object, level: object
) -> Pairs:
    pairs: dict[object, list[tuple[float, float]]] = {}
    for (own_unit, _), means in places.items():
        if level in means and baseline in means:
            pairs.setdefault(own_unit, []).append((means[baseline], means[level]))
    return pairs


def _mean(values: Sequence[float], scale: Scale) -> float:
    if scale == "raw":
        return math.fsum(values) / len(values)
    return (
        math.exp(math.fsum(map(math.log, values)) / len(values)) if min(values) > 0 else min(values)
    )


def contrast_of(pairs: Pairs, scale: Scale, fewest: int = FEWEST) -> dict[str, object]:
    """Return the contrast of pairs, one per unit: the columns of `contrasts` from `n` on."""
    every = [pair for own in pairs.values() for pair in own]
    empty: dict[str, object] = {"n": len(pairs)}
    if not every:
        return empty | {"missing": NO_PAIR}
    if scale == "log" and any(min(pair) <= 0 for pair in every):
        return empty | {"missing": NOT_POSITIVE}
    changes = [math.fsum(_change(pair, scale) for pair in own) / len(own) for own in pairs.values()]
    value, spread = moments(changes)
    before, after = (
        _mean([_mean([pair[side] for pair in own], scale) for own in pairs.values()], scale)
        for side in (0, 1)
    )
    known = empty | {
        "baseline": before,
        "candidate": after,
        "value": _back(value, scale),
        "missing": "",
    }
    if len(changes) < fewest:
        return known | {"missing": f"fewer than {fewest} blocks: no interval"}
    if spread < ROUNDING:
        return known | {"missing": SAME}
    error = spread / math.sqrt(len(changes))
    wide, narrow = (
        t_interval(value, error, len(changes) - 1, alpha) for alpha in (ALPHA, 2 * ALPHA)
    )
    ends = {"low": wide.low, "high": wide.high, "low90": narrow.low, "high90": narrow.high}
    return known | {name: _back(end, scale) for name, end in ends.items()} | {"p": wide.p}


def _change(pair: tuple[float, float], scale: Scale) -> float:
    before, after = pair
    return math.log(after / before) if scale == "log" else after - before


def _back(value: float, scale: Scale) -> float:
    return math.exp(min(value, LARGEST_LOG)) if scale == "log" else value
