"""A capped run as a whole: algorithms by back-end and task; back-ends are never mixed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
    POWER,
    SCALES,
    THROUGHPUT,
    UNKNOWN,
    WATT,
    WORST,
    capped,
    is_capped,
    named,
)

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
    """An algorithm: its images/s against the baseline's (`rate`), and how it keeps the cap.

    `above` is the share of steady time above 1.02 times the cap, over blocks; `lacking` blocks are
    without it and excluded.
    """

    name: str
    rate: Estimate
    verdict: Verdict
    above: Mean | None
    lacking: int
    holds: Holds


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAlgorithm(PowerArm):
    """One algorithm on one task: `n` of `blocks` have figures.

    `means` are over blocks, by figure; `most` is the largest of all steady iterations. `front`: no
    other algorithm has more images/s from as little power. `unread` counts, of the `n` blocks,
    those that lack a figure that others have, or that a sensor should have given. Such a block is
    in no mean of it, and while one lacks the share above 1.02 times the cap, no cap counts as held.
    `lost` counts blocks without figures by reason, `remarks` are (word, sentence): predictions,
    refused settings, ended processes, infeasible caps.
    """

    n: int
    blocks: int
    means: Mapping[str, Mean]
    most: Mapping[str, float]
    unread: Mapping[str, int]
    lost: Mapping[str, int]
    remarks: tuple[tuple[str, str], ...]
    front: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """One task on one back-end, the unit of comparison; `again`: the A/A of arms and copies.

    `label` is its name in sentences, `steady` the number of counted iterations of a run, and of
    all.
    """

    name: str
    label: str
    title: str
    caps: tuple[float, ...]
    slo_ms: float | None
    steady: tuple[int, int]
    arms: tuple[MeasuredAlgorithm, ...]
    again: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class AllTasks(PowerArm):
    """One algorithm on all tasks of a back-end: means over tasks in a block, then over blocks.

    `rate` is for the `tasks` that both have; `above` and `holds` are for all tasks of the
    algorithm. A block without one of these is excluded. `held` is in how many of its tasks it holds
    the cap, and how many there are.
    """

    tasks: int
    held: tuple[int, int]


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
    together: tuple[AllTasks, ...]
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
    """Return why requested back-ends measured nothing, a line per reason."""
    counts: dict[tuple[str, str], int] = {}
    names = named(run)
    for cell in run.cells:
        backend = names[cell.workload]["backend"] if cell.workload in names else ""
        if cell.outcome != "measured" and backend not in {*CHOSEN, *told}:
            key = backend, (cell.reason or UNKNOWN).rstrip(".")
            counts[key] = counts.get(key, 0) + 1
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
    against = _against(blocks, baseline)
    tasks = _in_order({*cells["task"]})
    labels = _labels(tasks)
    groups = tuple(
        _group(
            labels[task],
            cells[cells["task"] == task],
            rows[rows["task"] == task],
            blocks,
            against,
            baseline,
            margin,
        )
        for task in tasks
    )
    return PowerSide(
        backend=first["backend"],
        unit=first["unit"],
        power_source=first["power_source"],
        baseline=baseline,
        margin=margin,
        family=int((against["metric"].eq(THROUGHPUT) & against["p"].notna()).sum()),
        groups=groups,
        together=_together(groups, blocks, baseline) if len(groups) > 1 else (),
        against=against,
        rows=rows,
    )


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


def _against(blocks: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Compare every arm of every task with the baseline; each figure is a family for Holm."""
    frame = blocks.reset_index()
    try:
        result = contrasts(frame, "arm", baseline, SCALES, by=("task",), within=("block",))
    except (Refused, UnknownName):  # only one arm has figures, or the baseline has none
        return pd.DataFrame(
            columns=["task", "arm", "metric", "n", *ENDS, "p", "p_adjusted", "missing"]
        )
    ratios = result["metric"].isin(LOGS)
    result.loc[ratios, ENDS] -= 1
    return result


def _estimate(rows: pd.DataFrame) -> Estimate:
    """Convert a row of contrasts, if there is one; missing values are None."""
    if rows.empty:
        return Estimate()
    row = rows.iloc[0]
    known = {
        name: None if pd.isna(row[name]) else float(row[name])
        for name in ("value", "low", "high", "p", "p_adjusted")
    }
    return Estimate(int(row["n"]), **known, missing=row["missing"] or None)


def _group(
    label: str,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    blocks: pd.DataFrame,
    against: pd.DataFrame,
    baseline: str,
    margin: float,
) -> Group:
    task = cells["task"].iloc[0]
    rates = against[(against["task"] == task) & (against["metric"] == THROUGHPUT)]
    arms = []
    for name in sorted({*cells["arm"]}, key=lambda name: (name != baseline, name)):
        own = blocks.loc[[key for key in blocks.index if key[:2] == (task, name)]]
        its = cells[cells["arm"] == name], rows[rows["arm"] == name]
        arms.append(_arm(name, *its, own, rates[rates["arm"] == name], margin))
    # An arm whose mean is not over all blocks is not on the front, but may still beat others.
    best = _front(arms) - {arm.name for arm in arms if {THROUGHPUT, POWER} & arm.unread.keys()}
    facts: Mapping[str, Any] = next((own for own in cells["facts"].dropna() if own), {})
    slo_ms = facts.get("slo_ms")
    longest = (
        rows[rows["id"] == rows["id"].value_counts(sort=False).idxmax()] if len(rows) else rows
    )
    return Group(
        name=task,
        label=label,
        title=_title(label, facts),
        caps=tuple(dict.fromkeys(longest["cap"])) if len(rows) else (),
        slo_ms=float(slo_ms)
        if isinstance(slo_ms, int | float) and not isinstance(slo_ms, bool)
        else None,
        steady=(int(longest["steady"].sum()), len(longest)) if len(rows) else (0, 0),
        arms=tuple(replace(arm, front=arm.name in best) for arm in arms),
        again=_again(cells),
    )


def _again(cells: pd.DataFrame) -> Estimate:
    """Compare arms with their copies in throughput: mean over arms per block, then over blocks."""
    frame = cells.assign(copy=cells["again"].map({False: "first", True: "again"}))
    rates = frame[frame[THROUGHPUT] > 0]
    if {*rates["copy"]} != {"first", "again"}:
        return Estimate()
    both = {"within": ("arm", "block"), "unit": ("block",)}
    found = contrasts(rates, "copy", "first", {THROUGHPUT: "log"}, **both, fewest=2).assign(
        p_adjusted=math.nan
    )
    found[ENDS] -= 1
    return _estimate(found)


def _arm(
    name: str,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    own: pd.DataFrame,
    rate: pd.DataFrame,
    margin: float,
) -> MeasuredAlgorithm:
    measured = cells[cells[THROUGHPUT].notna()]
    # 0 has no logarithm.
    own = own.assign(**{figure: own[figure].where(own[figure] > 0) for figure in LOGS})
    means = {
        figure: mean
        for figure in SCALES
        if (mean := _mean(figure, own[figure].dropna())) is not None
    }
    counted_rows = rows[rows["steady"]] if len(rows) else rows
    sensed = bool(
        ((cells["power_source"].dropna() != NO_SENSOR) | (cells["unit"].dropna() != WATT)).any()
    )
    unread = {
        figure: missing
        for figure in SCALES
        if (missing := int(own[figure].isna().sum()))
        and (measured[figure].notna().any() or (sensed and figure == ABOVE_102))
    }
    most = {}
    for figure in (LONGEST, WORST) if len(counted_rows) else ():
        if counted_rows[figure].notna().any():
            most[figure] = float(counted_rows[figure].max())
            blocks = counted_rows["block"][counted_rows[figure].isna()].nunique()
            unread |= {figure: blocks} if blocks else {}
    lost = cells[~cells["block"].isin(own.index.get_level_values("block"))].drop_duplicates("block")
    reasons = [
        f"{outcome}: {ended(reason)}"
        for outcome, reason in zip(lost["outcome"], lost["reason"], strict=True)
    ]
    estimate = _estimate(rate)
    few = estimate.value is not None and 3 <= estimate.n < COMFORTABLE
    notes = (
        [
            (
                "note:",
                (
                    f"{estimate.n} pairs only: with fewer than {COMFORTABLE}, one outlying block "
                    "can decide the result."
                ),
            )
        ]
        if few
        else []
    )
    if len(own) and len(rate) and estimate.missing:
        notes.append(("no verdict:", ended(estimate.missing)))
    return MeasuredAlgorithm(
        name=name,
        n=len(own),
        blocks=cells["block"].nunique(),
        rate=estimate,
        verdict=_verdict(rate, margin),
        above=means.get(ABOVE_102),
        lacking=unread.get(ABOVE_102, 0),
        holds=is_held(means.get(ABOVE_102), sensed=sensed, whole=ABOVE_102 not in unread),
        means=means,
        most=most,
        unread=unread,
        lost=dict(Counter(reasons)),
        remarks=(*_remarks(cells, rows), *notes),
    )


def _mean(figure: str, values: pd.Series) -> Mean | None:
    """Return the mean over blocks with its interval: geometric for rates, arithmetic for shares."""
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
    """Yield remarks: predictions, settings not in force, lost processes, infeasible caps."""
    if len(rows) and (words := prediction_words(rows)):
        yield "predicted:", words
    infeasible = cells["infeasible"].dropna().map(lambda sentences: [*dict.fromkeys(sentences)])
    counts = (
        [("refused:", rows["refused"], "iteration"), ("process:", rows["lost"], "iteration")]
        if len(rows)
        else []
    )
    for head, sentences, noun in (*counts, ("infeasible:", infeasible, "cell")):
        for sentence, count in sentences.explode().value_counts(sort=False).items():
            yield head, f"{counted(count, noun)}: {ended(str(sentence))}"
    if len(rows) and rows["astray"].any():
        yield (
            "clocks:",
            f"different from the request in {rows['astray'].sum()} iterations, without a refusal.",
        )


def as_asked(rows: pd.DataFrame) -> pd.DataFrame:
    """Return steady iterations comparable with predictions: as requested, with all processes."""
    return rows[
        rows["steady"]
        & ~rows["astray"]
        & (rows["refused"].str.len() == 0)
        & (rows["lost"].str.len() == 0)
    ]


def prediction_words(rows: pd.DataFrame) -> str:
    """Write how far predictions were off; "" without predictions."""
    kept = as_asked(rows)
    words, most = [], 0
    for what, (predicted, measured) in PREDICTED.items():
        errors = (kept[predicted] / kept[measured].where(kept[measured] != 0) - 1).dropna()
        if len(errors):
            median, size = 100 * errors.median(), 100 * errors.abs().median()
            scatter = "" if size - abs(median) < APART else f" (off by {size:.1f} %)"
            words.append(f"{what} {median:+.1f} %{scatter}")
            most = max(most, len(errors))
    return f"{', '.join(words)}; {most} iterations." if words else ""


def _front(arms: Sequence[MeasuredAlgorithm]) -> set[str]:
    """Return the Pareto front: no other arm has as much throughput from as little power."""
    places = {
        arm.name: (arm.means[THROUGHPUT].value, -arm.means[POWER].value)
        for arm in arms
        if {THROUGHPUT, POWER} <= arm.means.keys()
    }
    return {
        name
        for name, own in places.items()
        if not any(
            other != own and other[0] >= own[0] and other[1] >= own[1] for other in places.values()
        )
    }


def _in_order(names: Iterable[str]) -> list[str]:
    """Sort by name, numbers by size: task 6 before task 13."""
    return sorted(
        names,
        key=lambda name: [
            (0, int(part), "") if part.isdecimal() else (1, 0, part)
            for part in re.split(r"(\d+)", name)
        ],
    )


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Return the names of tasks for sentences: `task 6`, with other parameters if ambiguous."""
    short = [
        next((part.replace("=", " ") for part in name.split() if part.startswith("task=")), name)
        for name in names
    ]
    labels = zip(names, short, strict=True)
    return {name: one_line(text if short.count(text) == 1 else name, 120) for name, text in labels}


def _title(label: str, facts: Mapping[str, Any]) -> str:
    """Return the heading of a task's table: number, network and GPU, as far as known."""
    model, gpu, dataset = (facts.get(key) for key in ("model", "gpu_of_parameters", "dataset"))
    if not isinstance(model, str):
        return label
    data = f" ({dataset})" if isinstance(dataset, str) and dataset else ""
    return one_line(f"{label}: {model}{data}{f' on {gpu}' if isinstance(gpu, str) else ''}", 200)


def _together(groups: Sequence[Group], blocks: pd.DataFrame, baseline: str) -> tuple[AllTasks, ...]:
    """Return every arm on all tasks: tasks have equal weights, and blocks are the replicates."""
    names = sorted(
        {arm.name for group in groups for arm in group.arms if arm.n},
        key=lambda name: (name != baseline, name),
    )
    common = {
        name: [
            group.name
            for group in groups
            if all(_has_rate(blocks, group.name, arm) for arm in (baseline, name))
        ]
        for name in names
    }
    rates = blocks[THROUGHPUT]
    frames = [
        pd.DataFrame({"versus": name, "arm": arm, THROUGHPUT: np.exp(logs)}).reset_index()
        for name in names
        if name != baseline and common[name]
        for arm in (baseline, name)
        if len(logs := _over_tasks(np.log(rates.where(rates > 0)), arm, common[name]))
    ]
    against = pd.DataFrame(columns=["arm"])
    if {baseline} < {arm for frame in frames for arm in frame["arm"]}:
        against = contrasts(
            pd.concat(frames),
            "arm",
            baseline,
            {THROUGHPUT: "log"},
            by=("versus",),
            within=("block",),
        )
        against[ENDS] -= 1
    result = []
    for name in names:
        words = {
            group.name: arm.holds
            for group in groups
            for arm in group.arms
            if arm.name == name and arm.n
        }
        # Use all of an arm's tasks, even those that the baseline lacks: they are under a cap, too.
        every = _over_tasks(blocks[ABOVE_102], name, [*words])
        own = blocks.index[blocks.index.get_level_values("arm") == name]
        lacking = own.get_level_values("block").nunique() - len(every)
        above = _mean(ABOVE_102, every)
        held = [*words.values()]
        # A block that lacks a task is in no mean of all; the means of each task include it.
        holds = is_held(
            above, sensed={*held} != {"no sensor"}, whole=not lacking or {*held} == {"yes"}
        )
        rate = _estimate(against[against["arm"] == name])
        more: Verdict = "improved" if (rate.value or 0) > 0 else "regressed"
        verdict: Verdict = (
            "not comparable" if rate.p is None else more if rate.shown else "inconclusive"
        )
        result.append(
            AllTasks(
                name=name,
                rate=rate,
                verdict=verdict,
                above=above,
                lacking=lacking,
                holds=holds,
                tasks=len(common[name]),
                held=(held.count("yes"), len(held)),
            )
        )
    return tuple(result)


def _has_rate(blocks: pd.DataFrame, task: str, arm: str) -> bool:
    own = blocks[THROUGHPUT][[key[:2] == (task, arm) for key in blocks.index]]
    return bool(own.notna().any())


def _over_tasks(values: pd.Series, arm: str, tasks: Sequence[str]) -> pd.Series:
    """Return the mean over tasks, in each block with all of them."""
    own = values[
        values.index.isin([arm], "arm") & values.index.isin(tasks, "task") & values.notna()
    ].groupby("block")
    return own.mean()[own.size() == len(tasks)]
