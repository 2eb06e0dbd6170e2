"""What the models make of inputs, typed or fitted; of fitted ones with intervals, which hold what the run's own scatter leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from .fitting import inputs
from .open_queues import allen_cunneen, kingman, mg1, mmc, must_be_stable, sakasegawa
from .quantiles import response_quantile, wait_quantile, wait_within
from .terms import Figure, Unstable
from .units import estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .fitting import Fit
    from .terms import Inputs, Queue


@dataclass(frozen=True, slots=True)
class Predicted:
    """A queue by a model, and its mean wait and response with the interval that the fit leaves them.

    `wait_tails_s` and `response_tails_s`: share of jobs → what they wait, or are there, at most. Of responses only M/M/c tells.
    `wait_within`: seconds → share of jobs that wait no longer.
    """

    queue: Queue
    wait_s: Figure
    response_s: Figure
    wait_tails_s: Mapping[float, float] = field(default_factory=dict)
    response_tails_s: Mapping[float, float] = field(default_factory=dict)
    wait_within: Mapping[float, float] = field(default_factory=dict)


def models(asked: Inputs) -> list[Queue]:
    """Answer every model for so many servers, exact ones first. Raises: Refused, Unstable."""
    must_be_stable(asked)
    of_one: tuple[Callable[[Inputs], Queue], ...] = (mmc, mg1, kingman)
    return [model(asked) for model in (of_one if asked.servers == 1 else (mmc, allen_cunneen, sakasegawa))]


def predicted(fit: Fit, servers: int) -> list[Predicted]:
    """Predict what the fitted stream would do on so many servers. Empty where its service times are not known.

    Raises: Unstable.
    """
    sums = {name: float(values.sum()) for name, values in fit.units.sums.items()}
    asked = inputs(sums, servers)
    if asked is None:
        return []
    found = []
    for at, queue in enumerate(models(asked)):
        waits, responses = (estimate(partial(value_of, servers=servers, at=at, name=name), fit.units) for name in ("wait_s", "response_s"))
        found.append(Predicted(queue, waits or Figure(queue.wait_s), responses or Figure(queue.response_s)))
    return found


def tails(one: Predicted, shares: Sequence[float], times_s: Sequence[float] = ()) -> Predicted:
    """Add percentiles, and shares within times, to a prediction of a queue that turns nobody away. Raises: Refused, for what is none."""
    responses = shares if one.queue.model.startswith("M/M/") else ()
    return replace(
        one,
        wait_tails_s={share: wait_quantile(one.queue, share) for share in shares},
        response_tails_s={share: response_quantile(one.queue, share) for share in responses},
        wait_within={time_s: wait_within(one.queue, time_s) for time_s in times_s},
    )


def value_of(sums: dict[str, float], servers: int, at: int, name: str) -> float | None:
    """Answer one number of one model (`at` in the order of `models`) out of sums; None where there is no stationary one."""
    asked = inputs(sums, servers)
    if asked is None:
        return None
    try:
        return float(getattr(models(asked)[at], name))
    except Unstable:
        return None


def chosen(fit: Fit, servers: int) -> tuple[int, str]:
    """Which of `models` the data leave standing, and why: the simplest whose assumptions they do not refuse."""
    poisson, exponential = ((one is None or not one.refused) for one in (fit.arrivals, fit.services))
    if poisson and exponential:
        return 0, "neither Poisson arrivals nor exponential service times are refused"
    which = " and ".join(name for name, fine in (("Poisson arrivals", poisson), ("exponential service times", exponential)) if not fine)
    if servers == 1 and poisson:
        return 1, f"{which} are refused, Poisson arrivals are not"
    return (2 if servers == 1 else 1), f"{which} are refused"
