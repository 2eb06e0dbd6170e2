"""One comparison for any column of a frame: each level against the baseline, paired by block.

`compare` judges tweak sets with all its checks; this module has the arithmetic for everything
else that a study varies: policies, faults, algorithms, formats, numbers of replicas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from control.names import first_few
from control.t_test import ALPHA, LARGEST_LOG, t_interval

from .stats.effect import ROUNDING, holm, moments
from .terms import Refused, UnknownName
from .wording import suggestion

if TYPE_CHECKING:
    import pandas as pd

    Pairs = Mapping[object, list[tuple[float, float]]]  # by unit: baseline's value, candidate's

Scale = Literal["log", "raw"]
FEWEST = 3  # units needed for an interval
SHOWN_NAMES = 12  # in an error
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
        _must_have("column", name, [*frame.columns])
    levels = list(dict.fromkeys(frame[arm].dropna()))
    _must_have(arm, baseline, levels)
    if len(levels) == 1:
        raise Refused(f"{arm} is {baseline} in every cell, so there is no other level to compare.")
    groups = frame.groupby(list(by), sort=False, dropna=False) if by else [((), frame)]
    rows = [
        dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True)) | row
        for key, group in groups
        for row in _of_group(
            group, arm, baseline, metrics, list(within), list(unit or within), fewest
        )
    ]
    columns = [
        *by,
        "arm",
        "metric",
        "n",
        "baseline",
        "candidate",
        "value",
        "low",
        "high",
        "low90",
        "high90",
        "p",
        "missing",
    ]
    result = pd.DataFrame(rows, columns=columns)
    result["p_adjusted"] = float("nan")
    known = result[result["p"].notna()]
    for _, members in known.groupby(list(family), sort=False, dropna=False) if len(known) else ():
        result.loc[members.index, "p_adjusted"] = holm(list(members["p"]))
    return result


def _must_have(noun: str, name: object, there: Sequence[object]) -> None:
    if name not in list(there):
        names = sorted(map(str, there))
        raise UnknownName(
            f"no {noun} {name!r}; available: "
            f"{first_few(names, SHOWN_NAMES)}.{suggestion(str(name), set(names))}"
        )


def _of_group(
    group: pd.DataFrame,
    arm: str,
    baseline: object,
    metrics: Mapping[str, Scale],
    within: list[str],
    unit: list[str],
    fewest: int,
) -> Iterator[dict[str, object]]:
    levels = dict.fromkeys(group[arm].dropna())
    for metric, scale in metrics.items():
        known = group[group[metric].notna()]
        of_place: dict[object, dict[tuple[object, ...], float]] = {}
        for level, own in known.groupby(arm, sort=False):
            of_place[level] = _means(own, metric, scale, within)
        units = dict(zip(_keys(known, within), _keys(known, unit), strict=True))
        before = of_place.get(baseline, {})
        for level in levels:
            if level == baseline:
                continue
            pairs: dict[object, list[tuple[float, float]]] = {}
            for place, after in of_place.get(level, {}).items():
                if place in before:
                    pairs.setdefault(units[place], []).append((before[place], after))
            yield {"arm": level, "metric": metric} | contrast_of(pairs, scale, fewest)


def _keys(rows: pd.DataFrame, columns: list[str]) -> list[tuple[object, ...]]:
    return list(rows[columns].itertuples(index=False, name=None))


def _means(
    rows: pd.DataFrame, metric: str, scale: Scale, within: list[str]
) -> dict[tuple[object, ...], float]:
    values: dict[tuple[object, ...], list[float]] = {}
    for place, value in zip(_keys(rows, within), rows[metric], strict=True):
        values.setdefault(place, []).append(float(value))
    return {place: _mean(own, scale) for place, own in values.items()}


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
