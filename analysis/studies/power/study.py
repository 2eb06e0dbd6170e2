"""A capped run as a whole: algorithms by back-end and task; back-ends are never mixed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from analysis.contrasts import contrasts
from analysis.plain import one_line
from analysis.stats.estimate import Estimate, Mean, mean_of
from analysis.terms import Refused, Run, UnknownName, Verdict
from analysis.wording import counted, ended
from control.t_test import ALPHA

from .figures import (
    ABOVE_102,
    CHOSEN,
    LONGEST,
    NO_SENSOR,
    SCALES,
    THROUGHPUT,
    UNKNOWN,
    WATT,
    WORST,
    capped,
    is_capped,
    named,
)

if TYPE_CHECKING:
    from analysis.contrasts import Scale

Holds = Literal["yes", "no", "not shown", "no sensor"]
BASELINE = "powercap"
# The largest share of steady time above 1.02 times the cap with which a cap counts as held.
LIMIT = 0.05
APART = 0.05  # percentage points: a visible difference at one decimal
COMFORTABLE = 5  # blocks; with fewer, one outlying block can decide
LOGS = [name for name, scale in SCALES.items() if scale == "log"]
BLOCK = ["task", "arm", "block"]
ENDS = ["value", "low", "high", "low90", "high90"]
# Predicted quantities of an iteration, and their measurements.
PREDICTED = {
    "images/s": ("predicted.throughput_images_per_s", THROUGHPUT),
    "largest reading": ("predicted.power_w", "power_max"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerArm:
    """An algorithm on one task, or on all `tasks` together: a mean over tasks in each block.

    `rate`: its images/s against the baseline's; `above`: the share of steady time above 1.02 times
    the cap; `lacking`: blocks without that share, while which no cap counts as held. `n` of
    `blocks` have figures; `means` are over blocks, by figure, `most` the largest of all steady
    iterations. `lost` counts blocks without figures by reason; `remarks` are (word, sentence).
    `held` is in how many of its tasks it holds the cap, and how many there are.
    """

    name: str
    rate: Estimate
    verdict: Verdict
    above: Mean | None
    lacking: int
    holds: Holds
    n: int
    blocks: int = 0
    means: Mapping[str, Mean] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[tuple[str, str], ...] = ()
    tasks: int = 1
    held: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Group:
    """One task on one back-end, the unit of comparison; `again`: the A/A of arms and copies.

    `steady` is the number of counted iterations of a run, and of all.
    """

    name: str
    label: str
    title: str
    caps: tuple[float, ...]
    slo_ms: float | None
    steady: tuple[int, int]
    arms: tuple[PowerArm, ...]
    again: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class PowerSide:
    """One back-end of one run: its tasks, and its algorithms on all of them together.

    `against` has every contrast with the baseline, in every figure: ratios minus 1, and differences
    of shares. `family` counts those of throughput, which Holm adjusts for. `rows` are the
    iterations.
    """

    backend: str
    unit: str
    power_source: str
    baseline: str
    margin: float
    family: int
    groups: tuple[Group, ...]
    together: tuple[PowerArm, ...]
    against: pd.DataFrame
    rows: pd.DataFrame


def sides(run: Run, refused: list[str], baseline: str | None = None) -> list[PowerSide]:
    """Judge the algorithms of every back-end of a run under caps; add unusable parts to `refused`.

    `baseline` is the reference algorithm: by default powercap, or the first if that has no figures.

    Raises: Refused, for a run without iterations under a cap. UnknownName, if no cell has that
    baseline.
    """
    if not is_capped(run):
        raise Refused(
            f"{run.origin}: no cell reports iterations under a cap; "
            "`pytest benchmarks/bench_power_cap.py --benchmark-save=NAME` makes such a run."
        )
    wrong: list[str] = []
    cells, rows = capped(run, wrong)
    read = cells.dropna(subset="read")
    refused += [*wrong, *_nowhere(run, {*read["read"]})]
    if read.empty:
        raise Refused(
            wrong[0]
            if wrong
            else f"{run.origin}: no cell of the untouched machine reports iterations under a cap."
        )
    known = sorted({names["arm"] for names in named(run).values()})
    if baseline is not None and baseline not in known:
        raise UnknownName(
            f"{run.origin}: no algorithm {baseline!r} to compare with; available: "
            f"{', '.join(known)}."
        )
    places = dict.fromkeys(zip(read["study"], read["read"], strict=True))
    return [
        _side(
            cells[(cells["study"] == study) & (cells["backend"] == backend)],
            rows,
            run.studies[study].margin,
            baseline,
        )
        for study, backend in places
    ]


def _nowhere(run: Run, told: set[str]) -> list[str]:
    names = named(run)
    counts = Counter(
        (names[cell.workload]["backend"], (cell.reason or UNKNOWN).rstrip("."))
        for cell in run.cells
        if cell.outcome != "measured"
        and cell.workload in names
        and names[cell.workload]["backend"] not in {*CHOSEN, *told}
    )
    return [
        f"back-end {backend}: {count} cells: {reason}."
        for (backend, reason), count in counts.items()
    ]


def _side(cells: pd.DataFrame, every: pd.DataFrame, margin: float, chosen: str | None) -> PowerSide:
    first = cells.dropna(subset="read").iloc[0]
    rows = every[every["id"].isin(cells["id"])]
    blocks = _blocks(cells)
    measured = sorted({*blocks.index.get_level_values("arm")})
    baseline = chosen or (BASELINE if BASELINE in measured or not measured else measured[0])
    against = _against(blocks.reset_index(), baseline, SCALES, by=("task",))
    groups = tuple(
        _group(
            cells[cells["task"] == task],
            rows[rows["task"] == task],
            blocks[blocks.index.isin([task], "task")],
            against[against["task"] == task],
            baseline,
            margin,
        )
        for task in sorted({*cells["task"]}, key=_numbers_by_size)
    )
    return PowerSide(
        backend=first["backend"],
        unit=first["unit"],
        power_source=first["power_source"],
        baseline=baseline,
        margin=margin,
        family=int((against["metric"].eq(THROUGHPUT) & against["p"].notna()).sum()),
        groups=groups,
        together=_together(groups, blocks, baseline, margin) if len(groups) > 1 else (),
        against=against,
        rows=rows,
    )


def _numbers_by_size(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _blocks(cells: pd.DataFrame) -> pd.DataFrame:
    """Return figures by task, arm and block; an arm and its copy count as one.

    A figure that either lacks is missing, and a rate is 0 if either is. If a copy was lost in a
    block, the other represents it.
    """
    measured = cells[cells[THROUGHPUT].notna()]
    values = measured[[*BLOCK, *SCALES]].astype(dict.fromkeys(SCALES, float))
    with np.errstate(divide="ignore"):  # a rate of 0 returns as 0
        values[LOGS] = np.log(values[LOGS])
    copies = values.groupby(BLOCK)
    means = copies.mean().where(copies.count().eq(copies.size(), axis=0))
    means[LOGS] = np.exp(means[LOGS])
    return means


def _against(
    frame: pd.DataFrame, baseline: str, scales: Mapping[str, Scale], by: Sequence[str] = ()
) -> pd.DataFrame:
    try:
        result = contrasts(frame, "arm", baseline, scales, by=by, within=("block",))
    except (Refused, UnknownName):  # only one arm has figures, or the baseline has none
        return pd.DataFrame(
            columns=[*by, "arm", "metric", "n", *ENDS, "p", "p_adjusted", "missing"]
        )
    result.loc[result["metric"].isin(LOGS), ENDS] -= 1
    return result


def _estimate(rows: pd.DataFrame) -> Estimate:
    if rows.empty:
        return Estimate()
    row = rows.iloc[0]
    names = ("value", "low", "high", "p", "p_adjusted")
    known = {name: None if pd.isna(row[name]) else float(row[name]) for name in names}
    return Estimate(int(row["n"]), **known, missing=row["missing"] or None)


def _group(
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    blocks: pd.DataFrame,
    against: pd.DataFrame,
    baseline: str,
    margin: float,
) -> Group:
    task = str(cells["task"].iloc[0])
    label = one_line(task.replace("=", " "), 120)
    rates = against[against["metric"] == THROUGHPUT]
    names = sorted({*cells["arm"]}, key=lambda name: (name != baseline, name))
    arms = tuple(
        _arm(
            name,
            cells[cells["arm"] == name],
            rows[rows["arm"] == name],
            blocks[blocks.index.isin([name], "arm")],
            rates[rates["arm"] == name],
            margin,
        )
        for name in names
    )
    facts: Mapping[str, Any] = next((own for own in cells["facts"].dropna() if own), {})
    slo_ms = facts.get("slo_ms")
    longest = rows[rows["id"] == rows["id"].mode().iloc[0]] if len(rows) else None
    return Group(
        name=task,
        label=label,
        title=_title(label, facts),
        caps=() if longest is None else tuple(dict.fromkeys(longest["cap"])),
        slo_ms=float(slo_ms) if isinstance(slo_ms, int | float) else None,
        steady=(0, 0) if longest is None else (int(longest["steady"].sum()), len(longest)),
        arms=arms,
        again=_again(cells),
    )


def _again(cells: pd.DataFrame) -> Estimate:
    frame = cells.assign(copy=cells["again"].map({False: "first", True: "again"}))
    rates = frame[frame[THROUGHPUT] > 0]
    if {*rates["copy"]} != {"first", "again"}:
        return Estimate()
    both = {"within": ("arm", "block"), "unit": ("block",)}
    found = contrasts(rates, "copy", "first", {THROUGHPUT: "log"}, **both, fewest=2)
    found[ENDS] -= 1
    return replace(_estimate(found), p_adjusted=None)


def _arm(
    name: str,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    own: pd.DataFrame,
    rate: pd.DataFrame,
    margin: float,
) -> PowerArm:
    own = own.assign(**{figure: own[figure].where(own[figure] > 0) for figure in LOGS})
    reads = (cells["power_source"].dropna() != NO_SENSOR) | (cells["unit"].dropna() != WATT)
    measured, unread = cells[cells[THROUGHPUT].notna()], own.isna().sum()
    expected = [figure for figure in SCALES if measured[figure].notna().any()]
    expected += [ABOVE_102] if reads.any() else []
    largest = rows[rows["steady"]][[LONGEST, WORST]].max().dropna() if len(rows) else pd.Series()
    lost = cells[~cells["block"].isin(own.index.get_level_values("block"))].drop_duplicates("block")
    reasons = [f"{row.outcome}: {ended(str(row.reason))}" for row in lost.itertuples()]
    estimate = _estimate(rate)
    notes = []
    if estimate.value is not None and 3 <= estimate.n < COMFORTABLE:
        few = f"with fewer than {COMFORTABLE}, one outlying block can decide the result."
        notes.append(("note:", f"{estimate.n} pairs only: {few}"))
    if len(own) and len(rate) and estimate.missing:
        notes.append(("no verdict:", ended(estimate.missing)))
    if most := max(unread[expected], default=0):
        notes.append(("missing:", f"{most} of {len(own)} blocks lack readings, or are 0."))
    return PowerArm(
        name=name,
        blocks=cells["block"].nunique(),
        rate=estimate,
        verdict=_verdict(rate, margin),
        **_held(own[ABOVE_102], is_sensed=bool(reads.any())),
        means={figure: mean for figure in SCALES if (mean := _mean(figure, own[figure].dropna()))},
        most={str(figure): float(value) for figure, value in largest.items()},
        lost=dict(Counter(reasons)),
        remarks=(*_remarks(cells, rows), *notes),
    )


def _held(shares: pd.Series, *, is_sensed: bool, is_whole: bool = False) -> dict[str, Any]:
    """Return from an arm's shares by block whether the cap is held, and the fields beside it."""
    above, lacking = _mean(ABOVE_102, shares.dropna()), int(shares.isna().sum()) if is_sensed else 0
    holds = is_held(above, sensed=is_sensed, whole=is_whole or not lacking)
    return {"n": len(shares), "above": above, "lacking": lacking, "holds": holds}


def _mean(figure: str, values: pd.Series) -> Mean | None:
    if SCALES[figure] == "log":
        return mean_of([*np.log(values)], log=True)
    return mean_of([*values], within=(0.0, 1.0 if "_share" in figure else math.inf))


def _verdict(rate: pd.DataFrame, margin: float) -> Verdict:
    if rate.empty or math.isnan(rate["p_adjusted"].iloc[0]):
        return "not comparable"
    row = rate.iloc[0]
    if row["p_adjusted"] < ALPHA:
        return "improved" if row["value"] > 0 else "regressed"
    is_inside = 1 / (1 + margin) < 1 + row["low90"] and row["high90"] < margin
    return "equivalent" if is_inside else "inconclusive"


def is_held(above: Mean | None, *, sensed: bool = False, whole: bool = True) -> Holds:
    """Return whether the cap is held, according to the interval over blocks; one block has none.

    `sensed`: there was a sensor, so that without a mean its readings are missing. `whole`: no block
    lacks the share. Missing readings may have been above the cap, so incomplete blocks cannot show
    that it is held, only that it is not.
    """
    if above is None:
        return "not shown" if sensed else "no sensor"
    if above.low is None or above.high is None:
        return "not shown"
    return "yes" if whole and above.high <= LIMIT else "no" if above.low > LIMIT else "not shown"


def _remarks(cells: pd.DataFrame, rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    infeasible = cells["infeasible"].dropna().map(lambda sentences: [*dict.fromkeys(sentences)])
    counts = [("infeasible:", infeasible, "cell")]
    if len(rows):
        if words := prediction_words(rows):
            yield "predicted:", words
        counts += [
            ("refused:", rows["refused"], "iteration"),
            ("process:", rows["lost"], "iteration"),
        ]
    for head, sentences, noun in counts:
        for sentence, count in sentences.explode().value_counts(sort=False).items():
            yield head, f"{counted(count, noun)}: {ended(str(sentence))}"
    if len(rows) and rows["astray"].any():
        astray = f"different from the request in {rows['astray'].sum()} iterations"
        yield "clocks:", f"{astray}, without a refusal."


def prediction_words(rows: pd.DataFrame) -> str:
    """Describe how far predictions are off in steady iterations that ran as requested."""
    is_plain = (rows["refused"].str.len() == 0) & (rows["lost"].str.len() == 0)
    kept = rows[rows["steady"] & ~rows["astray"] & is_plain]
    words, most = [], 0
    for what, (predicted, measured) in PREDICTED.items():
        errors = (kept[predicted] / kept[measured].where(kept[measured] != 0) - 1).dropna()
        if len(errors):
            median, size = 100 * errors.median(), 100 * errors.abs().median()
            scatter = "" if size - abs(median) < APART else f" (off by {size:.1f} %)"
            words.append(f"{what} {median:+.1f} %{scatter}")
            most = max(most, len(errors))
    return f"{', '.join(words)}; {most} iterations." if words else ""


def _title(label: str, facts: Mapping[str, Any]) -> str:
    model, gpu, dataset = (facts.get(key) for key in ("model", "gpu_of_parameters", "dataset"))
    if not isinstance(model, str):
        return label
    data = f" ({dataset})" if isinstance(dataset, str) and dataset else ""
    return one_line(f"{label}: {model}{data}{f' on {gpu}' if isinstance(gpu, str) else ''}", 200)


def _together(
    groups: Sequence[Group], blocks: pd.DataFrame, baseline: str, margin: float
) -> tuple[PowerArm, ...]:
    """Return every arm on all tasks, which have equal weights; blocks are the replicates.

    Rates are compared over the tasks that all arms have, caps over all tasks of each arm.
    """
    words: dict[str, dict[str, Holds]] = {}
    for group in groups:
        for arm in group.arms:
            if arm.n:
                words.setdefault(arm.name, {})[group.name] = arm.holds
    rates = np.log(blocks[THROUGHPUT].where(blocks[THROUGHPUT] > 0)).unstack("task")  # noqa: PD010  # a series
    known = rates.groupby("arm").count().gt(0).all()
    common = [str(task) for task in known.index[known]]
    over = rates[common].mean(axis=1, skipna=False).dropna() if common else rates.sum(axis=1)[:0]
    frame = np.exp(over).rename(THROUGHPUT).reset_index()
    against = _against(frame, baseline, {THROUGHPUT: "log"})
    result = []
    for name in sorted(words, key=lambda name: (name != baseline, name)):
        own = blocks[ABOVE_102][blocks.index.isin([name], "arm")]
        shares = own.unstack("task")[[*words[name]]].mean(axis=1, skipna=False)  # noqa: PD010
        held, rate = [*words[name].values()], against[against["arm"] == name]
        # A block that lacks a task is in no mean of all; the means of each task include it.
        is_sensed, is_whole = {*held} != {"no sensor"}, {*held} == {"yes"}
        result.append(
            PowerArm(
                name=name,
                rate=_estimate(rate),
                verdict=_verdict(rate, margin),
                **_held(shares, is_sensed=is_sensed, is_whole=is_whole),
                tasks=len(common),
                held=(held.count("yes"), len(held)),
            )
        )
    return tuple(result)
