"""What every step of `predict` is asked: files, the response, factors that models must not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from .tables import Table


def files(parser: argparse.ArgumentParser) -> None:
    """Say which files and which response."""
    parser.add_argument("runs", metavar="RUN|CSV", nargs="+", help="saved runs; CSV with a column of the response and one a factor")
    parser.add_argument(
        "--response", metavar="NAME", help="what to predict: a metric, service_s, response_s, cpu_s, energy_j, a column of telemetry"
    )
    parser.add_argument("--without", metavar="FACTOR", nargs="+", default=[], help="factors that models must not see")


def table(asked: argparse.Namespace) -> Table:
    """Read them. Raises: Refused."""
    from .reading import read  # noqa: PLC0415  # scipy takes a second to import

    return read(asked.runs, asked.response, asked.without)
