"""A closed system by mean value analysis: so many users who ask, wait, think and ask again, and stations that serve one after the other.

Answers requests a second, response, jobs and utilisation of every station, with the bounds that no system of these demands can pass.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

HELP = "closed systems: users, time to think, demands of stations"
EXAMPLE = """\
example:
  python -m analysis queue closed --users 10 --think 5 --demand cpu=0.05 --demand disk=0.08

Exit code 0: answered. 2: bad usage.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("--users", metavar="N,…", type=wholes, required=True, help="how many; several are answered in turn")
    parser.add_argument("--think", metavar="S", type=float, default=0.0, help="seconds between an answer and the next request (0)")
    parser.add_argument(
        "--demand",
        metavar="NAME=S",
        action="append",
        default=[],
        required=True,
        help="what a request asks of a station: visits times seconds",
    )


def wholes(text: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them. Raises: ValueError, which argparse says."""
    return tuple(int(part) for part in text.split(","))


def run(asked: argparse.Namespace) -> int:
    """Print the answers. Raises: Refused."""
    from analysis.plain import printable_json  # noqa: PLC0415  # --help need not wait for it
    from analysis.printing import columns, on_page  # noqa: PLC0415  # as above
    from analysis.studies.jobs.output import number  # noqa: PLC0415  # as above
    from analysis.studies.jobs.queues.closed import mva  # noqa: PLC0415  # as above

    demands = _demands(asked.demand)
    found = [mva(demands, users, asked.think) for users in asked.users]
    if asked.json:
        print(printable_json({"demands_s": demands, "answers": [asdict(one) for one in found]}), end="")
        return 0
    heads = ["users", "requests/s", "at most", "response s", "at least", *(f"{name} busy" for name in demands)]
    rows = [
        [
            str(one.users),
            *map(number, (one.rate_per_s, one.most_per_s, one.response_s, one.least_s)),
            *(f"{100 * share:.1f} %" for share in one.utilisation.values()),
        ]
        for one in found
    ]
    print(on_page([columns(heads, rows)]), end="")
    return 0


def _demands(texts: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            seconds = float(value)
        except ValueError:
            raise Refused(f"--demand {text!r}: it is a name and seconds, such as disk=0.08.") from None
        if not name.strip() or name in found:
            raise Refused(f"--demand {text!r}: each station has one name of its own.")
        found[name] = seconds
    return found
