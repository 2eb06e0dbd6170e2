"""What a queue would do, by every formula that has its number of servers: waits, responses, how many wait, percentiles.

The inputs are typed (rate, mean service time, squared coefficients of variation), or fitted to saved runs and lists of jobs, whose scatter
then gives the answers intervals; several --servers answer what if. With as much work as can be done there is no stationary figure, and that
is said.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from analysis.studies.jobs.queues.formulas import Inputs
    from analysis.studies.jobs.queues.validation import Predicted

HELP = "waits by M/M/c, M/G/1, M/M/c/K, G/G/c, and by priority"
EXAMPLE = """\
examples:
  python -m analysis queue predict --rate 6 --service 0.2 --servers 2
  python -m analysis queue predict --rate 6 --service 0.2 --servers 2,3,4 --scv-service 4
  python -m analysis queue predict --rate 9 --service 0.2 --servers 2 --room 20
  python -m analysis queue predict --rate 9 --service 0.2 --servers 3 --within 0.1,1    how many wait no longer than that
  python -m analysis queue predict --class 1:2:0.2 --class 2:4:0.2 --servers 2
  python -m analysis queue predict .benchmarks/*/0001_queueing.json --servers 2,3

Exit code 0: answered, even if only that there is no stationary figure. 2: bad usage.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument(
        "runs", metavar="RUN", nargs="*", help="saved runs and lists of jobs (.csv) to fit, in place of --rate and --service"
    )
    parser.add_argument("--servers", metavar="C,…", type=wholes, help="how many servers; several are answered in turn (1, or as fitted)")
    parser.add_argument("--rate", metavar="PER_S", type=float, help="jobs a second")
    parser.add_argument("--service", metavar="S", type=float, help="mean service time, seconds")
    parser.add_argument("--scv-arrivals", metavar="CA2", type=float, help="variance of gaps over their mean squared (1: Poisson)")
    parser.add_argument("--scv-service", metavar="CS2", type=float, help="the same of service times (1: exponential)")
    parser.add_argument("--room", metavar="K", type=int, help="room for so many jobs, those in service included; others are turned away")
    parser.add_argument(
        "--class",
        dest="kinds",
        metavar="PRIORITY:RATE:S[:CS2]",
        action="append",
        default=[],
        help="jobs of a priority, the lower goes first",
    )
    parser.add_argument("--preemptive", action="store_true", help="who goes first pushes others aside, who resume later")
    parser.add_argument("--percentiles", metavar="P,…", type=shares, default=(0.9, 0.99), help="of waits and responses (90,99)")
    parser.add_argument("--within", metavar="S,…", type=seconds, default=(), help="what share of jobs waits no longer than so many seconds")


def wholes(text: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them. Raises: ValueError, which argparse says."""
    return tuple(int(part) for part in text.split(","))


def seconds(text: str) -> tuple[float, ...]:
    """Read times from 0 with commas between them. Raises: ValueError, which argparse says."""
    found = tuple(float(part) for part in text.split(","))
    if not all(0 <= time_s < float("inf") for time_s in found):
        raise ValueError("a wait is a number of seconds from 0")
    return found


def shares(text: str) -> tuple[float, ...]:
    """Read percentiles with commas between them, as shares. Raises: ValueError, which argparse says."""
    found = tuple(float(part) / 100 for part in text.split(","))
    if not all(0 < share < 1 for share in found):
        raise ValueError("a percentile lies between 0 and 100")
    return found


def run(asked: argparse.Namespace) -> int:
    """Print the predictions. Raises: Refused."""
    if asked.kinds:
        return _priorities(asked)
    refused: list[str] = []
    found = _fitted(asked, refused) if asked.runs else _typed(asked)
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if asked.json:
        from analysis.studies.jobs.queues.page import predictions_json  # noqa: PLC0415  # only for programs

        print(predictions_json(found, refused), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.queues import page  # noqa: PLC0415  # --json has no need of rich

    print(page.predictions(found, color=wants_color(sys.stdout)), end="")
    return 0


Answers = list[tuple[str, "Sequence[Predicted]", str]]


def _typed(asked: argparse.Namespace) -> Answers:
    """Predict from what was typed."""
    from analysis.studies.jobs.queues.formulas import (
        Inputs,  # --help need not wait for it
        Unstable,  # --help need not wait for it
    )

    missing = [name for name, value in (("--rate", asked.rate), ("--service", asked.service)) if value is None]
    if missing or asked.preemptive:
        wanted = "--preemptive is of several --class" if asked.preemptive else f"{', '.join(missing)}: missing"
        raise Refused(f"{wanted}; name runs to fit, or type --rate and --service, or several --class.")
    found: Answers = []
    for servers in asked.servers or (1,):
        inputs = Inputs(
            asked.rate,
            asked.service,
            servers,
            1.0 if asked.scv_arrivals is None else asked.scv_arrivals,
            1.0 if asked.scv_service is None else asked.scv_service,
        )
        varied = f", ca² {inputs.scv_arrivals:g}, cs² {inputs.scv_service:g}"
        title = f"{asked.rate:g} jobs/s of {asked.service:g} s on {servers} server{'s' if servers > 1 else ''}{varied}"
        try:
            found.append((title, _of_inputs(inputs, asked), ""))
        except Unstable as error:
            found.append((title, [], f"UNSTABLE: {error}"))
    return found


def _of_inputs(inputs: Inputs, asked: argparse.Namespace) -> list[Predicted]:
    """Predict by every model, or by the one that turns jobs away. Raises: Refused, Unstable."""
    from analysis.studies.jobs.estimates import Figure  # noqa: PLC0415  # as above
    from analysis.studies.jobs.queues import formulas  # noqa: PLC0415  # scipy takes a second to import
    from analysis.studies.jobs.queues.validation import (
        Predicted,  # as above
        models,  # as above
        tails,  # as above
    )

    if asked.room is None:
        return [
            tails(Predicted(one, Figure(one.wait_s), Figure(one.response_s)), asked.percentiles, asked.within) for one in models(inputs)
        ]
    one = formulas.mmck(inputs, asked.room)
    waits = {share: formulas.mmck_wait_quantile(inputs, asked.room, share) for share in asked.percentiles}
    within = {time_s: formulas.mmck_wait_within(inputs, asked.room, time_s) for time_s in asked.within}
    return [Predicted(one, Figure(one.wait_s), Figure(one.response_s), waits, wait_within=within)]


def _fitted(asked: argparse.Namespace, refused: list[str]) -> Answers:
    """Predict from what runs told of themselves."""
    from analysis.studies.jobs.queues.formulas import Unstable  # noqa: PLC0415  # as above
    from analysis.studies.jobs.queues.validation import (
        CLOSED,  # as above
        chosen,  # scipy takes a second to import
        predicted,  # scipy takes a second to import
        tails,  # scipy takes a second to import
    )

    from .fit import fits  # noqa: PLC0415  # which imports the rest when it is called

    typed = {"--rate": asked.rate, "--service": asked.service, "--scv-arrivals": asked.scv_arrivals, "--scv-service": asked.scv_service}
    both = [name for name, value in (*typed.items(), ("--room", asked.room)) if value is not None]
    if both:
        raise Refused(f"{both[0]}: is of typed inputs, and runs to fit are named; give either.")
    found: Answers = []
    for fit in fits(asked.runs, None if asked.servers is None else asked.servers[0], refused):
        if fit.closed:
            found.append((fit.group, [], CLOSED))
            continue
        for servers in asked.servers or (fit.servers,):
            if servers is None:
                refused.append(f"{fit.group}: nothing tells how many slots there are; say it with --servers.")
                continue
            title = f"{fit.group} on {servers} server{'s' if servers > 1 else ''}" + (" (SIMULATED jobs)" if fit.simulated else "")
            try:
                some = [tails(one, asked.percentiles, asked.within) for one in predicted(fit, servers)]
            except Unstable as error:
                found.append((title, [], f"UNSTABLE: {error}"))
                continue
            pick, why = chosen(fit, servers)
            said = (
                f"{some[pick].queue.model} is what the data leave standing: {why}." if some else "no service times: no model can be asked."
            )
            found.append((title, some, f"{said} Intervals {fit.units.why}." if some else said))
    if not found:
        raise Refused(refused[0])
    return found


def _priorities(asked: argparse.Namespace) -> int:
    """Print mean waits by priority."""
    from analysis.plain import printable_json  # noqa: PLC0415  # as elsewhere
    from analysis.studies.jobs.queues.priorities import (
        document,  # as elsewhere
        non_preemptive,  # as elsewhere
        parse,  # as elsewhere
        preemptive,  # as elsewhere
        render,  # as elsewhere
    )

    kinds = [parse(text) for text in asked.kinds]
    if asked.runs or any(
        value is not None for value in (asked.rate, asked.service, asked.room, asked.scv_arrivals, asked.scv_service, asked.within or None)
    ):
        raise Refused(
            "--class says rate, service time and variation itself, has endless room and is told its mean waits; leave the others out."
        )
    answers = [(servers, (preemptive if asked.preemptive else non_preemptive)(kinds, servers)) for servers in asked.servers or (1,)]
    if asked.json:
        print(printable_json(document(answers, preemptive=asked.preemptive)), end="")
    else:
        print(render(answers, preemptive=asked.preemptive), end="")
    return 0
