"""Policies compared on real streams with identical arrivals, and each real stream played again in simulation: does that wait as long?

A stream is the unit: its figure under a policy over that under the baseline, for the streams that every policy had. A policy that lost
other jobs than the baseline is not compared: what is left of its jobs may well be the quick ones. Of the others those jobs count that each
did in the first attempt. The simulator gets the measured submissions and times in service and the policy by name; what it does not know is
what the engine takes to start a job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.stats.effect import moments
from analysis.studies.jobs.simulation.figures import figures
from analysis.studies.jobs.simulation.loop import play
from analysis.studies.jobs.simulation.study import FEWEST, Arm, compared
from analysis.terms import Refused
from control.scheduling import policies
from control.t_test import t_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .recorded import Recorded


@dataclass(frozen=True, slots=True)
class Replay:
    """Mean waits of a policy's streams, measured and simulated, in seconds; `longer_s` is measured less simulated, with its 95 % interval.

    The interval is None with fewer than three streams.
    """

    policy: str
    streams: int
    measured_s: float
    simulated_s: float
    longer_s: float
    interval_s: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """All under one condition on one engine with so many slots. `streams` are paired; `alone` those that not every policy had.

    `lost` jobs were not done in their first attempt; `copies` are streams that had the jobs of another under the same policy, left out.
    `left_out` are the policies under which other jobs were done in their first attempt: how many of the baseline's were not, and of theirs
    under it. `unplayed` streams lost slots or jobs, and were not played in simulation.
    """

    engine: str
    slots: int
    streams: int
    alone: int
    lost: int
    baseline: str
    arms: tuple[Arm, ...]
    replays: tuple[Replay, ...]
    condition: str = ""
    copies: int = 0
    left_out: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    unplayed: int = 0


def places(streams: Sequence[Recorded], baseline: str, refused: list[str]) -> list[Place]:
    """Compare, condition by condition: what differs in more than the policy is never paired. What cannot be is said in `refused`.

    Raises: Refused, where in none were any arrivals those of all policies.
    """
    groups: dict[tuple[str, str, int], list[Recorded]] = {}
    for one in streams:
        groups.setdefault((one.condition, one.engine, one.slots), []).append(one)
    found: list[Place] = []
    why: list[Refused] = []
    for group in groups.values():
        try:
            found.append(_place(group, baseline))
        except Refused as error:
            why.append(error)
    if not found:
        raise why[0]
    refused += [str(error) for error in why]
    return found


def lost_unequally(one: Place) -> str:
    """Say which policies are not compared, since they lost other jobs than the baseline; nothing where none did."""
    if not one.left_out:
        return ""
    said = "; ".join(
        " and ".join(
            f"{count} that {done} did were lost or tried again under {lost}"
            for count, done, lost in ((less, one.baseline, policy), (more, policy, one.baseline))
            if count
        )
        for policy, (less, more) in one.left_out.items()
    )
    return (
        f"Not compared with {one.baseline}: of the jobs {said}. "
        "Those that are left may well be the quick ones, and had the slots of the others. `analysis depend report` has all that were done."
    )


def _place(streams: Sequence[Recorded], baseline: str) -> Place:
    by_policy: dict[str, dict[str, Recorded]] = {}
    for one in sorted(streams, key=lambda one: one.again):
        by_policy.setdefault(one.policy, {}).setdefault(one.arrivals, one)
    kept = [one for mine in by_policy.values() for one in mine.values()]
    shared = [key for key in next(iter(by_policy.values())) if all(key in mine for mine in by_policy.values())]
    where = f"{streams[0].engine} with {streams[0].slots} slots"
    if baseline not in by_policy:
        raise Refused(f"{where}: no stream under {baseline}; there are {', '.join(sorted(by_policy))}. Say --baseline.")
    if not shared:
        raise Refused(f"{where}: no two policies met the same arrivals; nothing can be compared.")
    met = {
        policy: [mine[key] for key in shared] for policy, mine in sorted(by_policy.items(), key=lambda both: (both[0] != baseline, both[0]))
    }
    alike = {
        policy: own for policy, own in met.items() if all(one.at_once == base.at_once for one, base in zip(own, met[baseline], strict=True))
    }
    counted = {policy: tuple(figures(one.coming, one.played) for one in own) for policy, own in alike.items()}
    playable = {policy: [one for one in by_policy[policy].values() if one.playable] for policy in met}
    return Place(
        engine=streams[0].engine,
        slots=streams[0].slots,
        streams=len(shared),
        alone=len(kept) - len(shared) * len(met),
        lost=sum(one.lost for one in kept),
        baseline=baseline,
        arms=tuple(compared(counted, baseline)),
        replays=tuple(_replay(policy, mine) for policy, mine in playable.items() if mine and policy in policies.names()),
        condition=streams[0].condition,
        copies=len(streams) - len(kept),
        left_out={name: _otherwise(own, met[baseline]) for name, own in met.items() if name not in alike},
        unplayed=sum(not one.playable for one in kept),
    )


def _otherwise(own: Sequence[Recorded], base: Sequence[Recorded]) -> tuple[int, int]:
    """How many jobs that the baseline did in their first attempt a policy did not, and the other way round."""
    pairs = list(zip(own, base, strict=True))
    return sum(len(two.at_once - one.at_once) for one, two in pairs), sum(len(one.at_once - two.at_once) for one, two in pairs)


def _replay(policy: str, streams: Sequence[Recorded]) -> Replay:
    measured_s = [figures(one.coming, one.played).mean_wait_s for one in streams]
    simulated_s = [figures(one.coming, play(one.coming, one.played.slots, policy)).mean_wait_s for one in streams]
    longer_s, spread = moments([real - made for real, made in zip(measured_s, simulated_s, strict=True)])
    n = len(streams)
    half = t_quantile(0.975, n - 1) * spread / n**0.5 if n >= FEWEST else None
    interval = None if half is None else (longer_s - half, longer_s + half)
    return Replay(policy, n, sum(measured_s) / n, sum(simulated_s) / n, longer_s, interval)
