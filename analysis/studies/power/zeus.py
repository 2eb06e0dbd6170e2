"""Zeus' tables of training under a power limit: whole GPU, driver's limit, one row a network, batch, optimiser and limit.

Real measurements (ml-energy/zeus, Apache-2.0). Columns: dataset, network, batch_size, optimizer, power_limit,
time_per_epoch, average_power.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.opening import read_whole
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

LEAST = 1e-9  # of W, s and images: below it a quotient is no number
COLUMNS = ("dataset", "network", "batch_size", "optimizer", "power_limit", "time_per_epoch", "average_power")


@dataclass(frozen=True, slots=True)
class Trained:
    """One epoch's time and mean power of a job under the driver's limit, which cards do not always hold: the mean may lie above it."""

    dataset: str
    network: str
    batch: int
    optimizer: str
    limit_w: float
    epoch_s: float
    power_mean_w: float

    @property
    def epochs_per_s(self) -> float:
        """Its speed, of which more is better."""
        return 1 / self.epoch_s


def read(path: Path) -> list[Trained]:
    """Read a table. Raises: Unreadable, with the line that is wrong."""
    try:
        text = read_whole(path).decode("utf-8-sig")
        lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            raise Unreadable(f"{path}: no column {', '.join(missing)}; such a table begins with {','.join(COLUMNS)}.")
        return [_row(cells, f"{path}: line {lines.line_num}") for cells in lines]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{path}: is no CSV: {one_line(error)}.") from None


def best(rows: Iterable[Trained], network: str, cap_w: float) -> Trained:
    """Answer the fastest row of a network whose measured mean power is at most `cap_w`.

    Raises: Refused, with the smallest cap that could be held, where none is.
    """
    of_network = [row for row in rows if row.network == network]
    if not of_network:
        raise Refused(f"no row of network {one_line(network)!r}.")
    held = [row for row in of_network if row.power_mean_w <= cap_w]
    if not held:
        raise Refused(f"no row of {network} holds {cap_w:g} W; the least was {min(row.power_mean_w for row in of_network):.1f} W.")
    return min(held, key=lambda row: row.epoch_s)


def above_limit(rows: Iterable[Trained]) -> list[Trained]:
    """Answer the rows that drew more on average than the limit allowed."""
    return [row for row in rows if row.power_mean_w > row.limit_w]


def by_limit(rows: Iterable[Trained]) -> dict[tuple[str, str, int, str], list[Trained]]:
    """Answer each job's rows, by dataset, network, batch and optimiser, in the order of their limits."""
    jobs: dict[tuple[str, str, int, str], list[Trained]] = defaultdict(list)
    for row in rows:
        jobs[row.dataset, row.network, row.batch, row.optimizer].append(row)
    return {job: sorted(there, key=lambda row: row.limit_w) for job, there in jobs.items()}


def interpolation_errors(rows: Iterable[Trained]) -> list[float]:
    """Leave each inner limit of each job out and say its speed by the line between its neighbours: relative errors, absolute."""
    return [
        abs(_between(low, here, high) / here.epochs_per_s - 1)
        for there in by_limit(rows).values()
        for low, here, high in zip(there, itertools.islice(there, 1, None), itertools.islice(there, 2, None), strict=False)
    ]


def _between(low: Trained, here: Trained, high: Trained) -> float:
    part = (here.limit_w - low.limit_w) / (high.limit_w - low.limit_w)
    return low.epochs_per_s + part * (high.epochs_per_s - low.epochs_per_s)


def _row(cells: Mapping[str, str | None], at: str) -> Trained:
    values = {}
    for name in ("batch_size", "power_limit", "time_per_epoch", "average_power"):
        try:
            values[name] = float(cells[name] or "")
        except ValueError:
            values[name] = math.nan
        if not 0 < values[name] < math.inf:
            raise Unreadable(f"{at}: {name} is {one_line(cells[name], 60)!r}; it is a number above 0.")
        if values[name] < LEAST:
            raise Unreadable(f"{at}: {name} is {one_line(cells[name], 60)!r}; nothing that was measured is below {LEAST:g}.")
    if values["batch_size"] != int(values["batch_size"]):
        raise Unreadable(f"{at}: batch_size is {one_line(cells['batch_size'], 60)!r}; it is a whole number.")
    return Trained(
        dataset=cells["dataset"] or "",
        network=cells["network"] or "",
        batch=int(values["batch_size"]),
        optimizer=cells["optimizer"] or "",
        limit_w=values["power_limit"],
        epoch_s=values["time_per_epoch"],
        power_mean_w=values["average_power"],
    )
