"""Checkpoint intervals, advised, tried and simulated, as text of at most 100 columns and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, in_lines, on_page
from analysis.studies.jobs.queues.words import NONE, figure, number
from analysis.wording import percent, probability, unsigned

from .report_page import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from analysis.studies.jobs.queues.terms import Figure

    from .checkpoints import Trial
    from .intervals import Advice
    from .simulation import Asked, Played


def advice_json(advice: Advice | None, trials: Sequence[tuple[Trial, Advice | None]], refused: Sequence[str]) -> str:
    """Write advice and trials for programs. An interval that is open has null at that end."""
    made = [{**asdict(trial), "advice": None if own is None else asdict(own)} for trial, own in trials]
    return printable_json({"advice": None if advice is None else asdict(advice), "trials": made, "refused": list(refused)})


def advice_page(advice: Advice | None, trials: Sequence[tuple[Trial, Advice | None]], *, color: bool = False) -> str:
    """Write them for people."""
    parts = [] if advice is None else [*_advice(advice)]
    return on_page([*parts, *(part for trial, own in trials for part in _trial(trial, own))], color=color)


def simulated_json(asked: Asked, advice: Advice, found: Sequence[Played]) -> str:
    """Write a simulation for programs."""
    return printable_json(
        {"simulated": True, "asked": asdict(asked), "advice": asdict(advice), "intervals": [asdict(one) for one in found]}
    )


def simulated_page(asked: Asked, advice: Advice, found: Sequence[Played], *, color: bool = False) -> str:
    """Write it for people."""
    return on_page(_simulated(asked, advice, found), color=color)


def _advice(one: Advice) -> Iterator[RenderableType]:
    yield f"a checkpoint takes {number(one.cost_s)} s, failures come every {number(one.mtbf_s)} s on average, at random"
    rows = [
        ("Young", number(one.young_s, 6), _over(one.young_overhead)),
        ("Daly", number(one.daly_s, 6), _over(one.daly_overhead)),
        ("exact", number(one.best_s, 6), _over(one.best_overhead)),
    ]
    yield columns(("", "interval s", "time beyond the work"), rows)
    yield hanging([("•", f"from {number(one.low_s)} s to {number(one.high_s)} s the whole takes at most 1 % more than at the best.")])
    if one.too_dear:
        yield hanging([("•", "a checkpoint takes half the time between failures or more: the rules do not hold, and little gets done.")])
    yield ""


def _over(share: float) -> str:
    return "without end" if math.isinf(share) else unsigned(share)


def _trial(one: Trial, advice: Advice | None) -> Iterator[RenderableType]:
    yield Text(in_lines(one_line(one.condition)), "bold")
    yield f"under {one_line(one.fault)}, {one.blocks} block{'s' if one.blocks > 1 else ''}"
    heads = ("checkpoint every s", "streams", "time/work [95 %]", "by Daly's formula", "more than the best", "p")
    rows = []
    for each in one.tried:
        more = "best" if each.more is None else percent(each.more)
        p = NONE if each.p is None else probability(each.p)
        every = f"{each.checkpoint_s:g}" if each.checkpoint_s else "none"
        rows.append([every, f"{each.streams}", figure(each.time), number(each.foretold), more if each.time else NONE, p])
    yield columns(heads, rows)
    yield hanging(("•", line) for line in _lines(one, advice))
    yield ""


def _lines(one: Trial, advice: Advice | None) -> Iterator[str]:
    for each in one.tried:
        if each.lost:
            every = f"checkpoints every {each.checkpoint_s:g} s" if each.checkpoint_s else "no checkpoints"
            jobs = "job was not done and is" if each.lost == 1 else "jobs were not done and are"
            yield f"with {every} {each.lost} {jobs} in no time: it is worse than it looks."
    if one.mtbf_s is not None:
        yield f"{one.killed} attempts failed in {number(one.ran_s)} s of running: one running job fails every {_open(one.mtbf_s)} s."
    else:
        yield "no attempt failed: there is no mean time between failures to reckon with."
    if one.cost_s is not None:
        yield f"a checkpoint took {number(one.cost_s)} s ({one.checkpoints} of them)."
    else:
        yield "no checkpoint was told with its cost."
    if one.restart_s is not None:
        yield f"the next attempt began {number(one.restart_s)} s after the failure, which no interval changes."
    if one.least_s is None:
        yield f"{one.why}."
    else:
        whys = "; ".join(why for why in (one.least_s.why, one.why) if why)
        yield f"least time by a + bτ + c/τ at {_open(one.least_s)} s{f' ({whys})' if whys else ''}."
    if advice is not None:
        yield f"Young says {number(advice.young_s)} s, Daly {number(advice.daly_s)} s: {_held(one, advice)}"


def _held(one: Trial, advice: Advice) -> str:
    if one.least_s is None or one.least_s.low is None or one.least_s.high is None:
        return "nothing here to hold them against."
    if math.isinf(one.least_s.high) and one.least_s.low == 0:
        return "these runs cannot tell."
    inside = one.least_s.low <= advice.daly_s <= one.least_s.high
    return f"Daly's lies {'inside' if inside else 'OUTSIDE'} the interval of the measured least."


def _open(one: Figure) -> str:
    if one.low is None or one.high is None:
        return number(one.value)
    return f"{number(one.value)} [{number(one.low)}, {'∞' if math.isinf(one.high) else number(one.high)}]"


def _simulated(asked: Asked, advice: Advice, found: Sequence[Played]) -> Iterator[RenderableType]:
    failures = "at random" if asked.shape == 1 else f"by Weibull's law of shape {asked.shape:g}"
    yield Text(
        f"SIMULATED: {asked.seeds} jobs of {number(asked.work_s)} s of work for each interval, the same failures for all, every "
        f"{number(asked.mtbf_s)} s on average {failures}. A checkpoint takes {number(asked.cost_s)}, a restart {number(asked.restart_s)} s."
    )
    rows = [
        [
            number(one.interval_s),
            f"{one.time.value:.4f}" + ("" if one.time.high is None else f" ± {one.time.high - one.time.value:.4f}"),
            f"{one.formula:.4f}",
            "Daly's interval" if one.interval_s == advice.daly_s else ratio(one.against_daly),
        ]
        for one in found
    ]
    yield columns(("interval s", "time/work ± 95 %", "formula", "of Daly's [95 %]"), rows)
    best = min(found, key=lambda one: one.time.value)
    yield hanging([("•", _least(best, advice))])


def _least(best: Played, advice: Advice) -> str:
    if best.interval_s == advice.daly_s:
        return "no other interval took less time than Daly's."
    against = best.against_daly
    shown = against is not None and against.high is not None and against.high < 1
    return f"least at {number(best.interval_s)} s, {'' if shown else 'not '}shown to be better than Daly's {number(advice.daly_s)} s."
