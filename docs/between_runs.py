"""Measure how often equal and unequal arms of runs are distinguished, and how often any test could.

`python -m docs.between_runs` prints the tables of docs/verdicts.md. The bounds take
minutes; `--without-bounds` leaves them out. `--take RUN.json…` makes docs/equal_runs.jsonl, the
series behind the tables, from saved runs, so that another machine can have its own tables.

**The bound.** Each series is fitted as AR(1) noise with Student's t innovations. No test with 5 %
false alarms finds a change of that noise more often than the likelihood ratio does (Neyman and
Pearson). The ratio knows the size of the change, the memory and the tails. No test knows the
level or the scatter of the runs, so the ratio integrates over both: `compare`, too, has to
estimate them from the runs that it judges.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, stdtr

from analysis.load import load_each
from analysis.stats.in_time import step_in_time
from analysis.terms import Cell, Run
from control.t_test import ALPHA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Arms = NDArray[np.int_]

SAVED = Path(__file__).with_name("equal_runs.jsonl")
PRIMARY = ("throughput_samples_per_s", "step_time_p10_s")
FASTEST = "step_time_min_s"
SHAPES = ((8, 8), (4, 4), (8, 1), (15, 1))
WAYS = ("old first", "in turn", "at random")
SEEDS_AT_RANDOM = 4
# Untouched whole cells in the order in which they ran: constants of `in_time` were tuned on these.
UNTOUCHED, LEAST_UNTOUCHED = ("stock", "stock-again"), 16
# Any arm of all other sessions against itself: no constant was tuned on these.
LEAST_OTHER = 8
DIGITS = 5
SLOWER = 0.1


@dataclass(frozen=True, slots=True)
class EqualCells:
    """Consecutive cells that differ in nothing.

    run, workload, metric: their source
    chosen_on: whether constants of `in_time` were tuned on them
    values: as measured, in the order of time
    """

    run: str
    workload: str
    metric: str
    chosen_on: bool
    values: Sequence[float]

    def gains(self) -> Floats:
        """Return the values' logarithms, signed so that more is better."""
        logs: Floats = np.log(np.asarray(self.values, float))
        return logs if self.metric == PRIMARY[0] else -logs


def stored() -> list[EqualCells]:
    """Read the series stored beside this file."""
    return [
        EqualCells(**json.loads(line)) for line in SAVED.read_text(encoding="utf-8").splitlines()
    ]


def taken(paths: Sequence[str]) -> Iterator[EqualCells]:
    """Take all series of equal cells from saved runs."""
    for run in load_each(paths, []):
        untouched = list(_of_untouched(run))
        yield from untouched or _of_every_arm(run)


def _of_untouched(run: Run) -> Iterator[EqualCells]:
    for workload in run.workloads:
        cells = [cell for cell in _measured(run, workload) if cell.tweakset in UNTOUCHED]
        cells = sorted((cell for cell in cells if not cell.slices_s), key=lambda cell: cell.order)
        if len(cells) < LEAST_UNTOUCHED:
            continue
        yield from _of_each_metric(run, cells, chosen_on=True)
        steps = [cell.steps for cell in cells if cell.steps]
        if len(steps) == len(cells):
            fastest = [_rounded(min(each.wall_s[each.warmup :])) for each in steps]
            yield EqualCells(_name(run), workload, FASTEST, chosen_on=True, values=fastest)


def _of_every_arm(run: Run) -> Iterator[EqualCells]:
    for workload in run.workloads:
        for tweakset in run.tweaksets:
            cells = [cell for cell in _measured(run, workload) if cell.tweakset == tweakset]
            cells.sort(key=lambda cell: (cell.block, cell.order))
            if len(cells) >= LEAST_OTHER:
                yield from _of_each_metric(run, cells, chosen_on=False)


def _measured(run: Run, workload: str) -> list[Cell]:
    own = [cell for cell in run.cells if cell.workload == workload and not cell.segments]
    return [cell for cell in own if cell.outcome == "measured"]


def _of_each_metric(run: Run, cells: Sequence[Cell], *, chosen_on: bool) -> Iterator[EqualCells]:
    for metric in PRIMARY:
        if all(metric in cell.metrics for cell in cells):
            amounts = [_rounded(cell.metrics[metric]) for cell in cells]
            yield EqualCells(_name(run), cells[0].workload, metric, chosen_on, amounts)


def _name(run: Run) -> str:
    return Path(run.origin).name


def _rounded(amount: float) -> float:
    return float(f"{amount:.{DIGITS}g}")


def draws(series: Sequence[EqualCells], runs: int) -> Floats:
    """Return every stretch of `runs` consecutive cells, shape (stretches, runs)."""
    long = [each.gains() for each in series if len(each.values) >= runs]
    return np.concatenate([np.lib.stride_tricks.sliding_window_view(gains, runs) for gains in long])


def orders(n: int, m: int, way: str) -> list[Arms]:
    """Return which runs are the candidate's (1): the last ones, every other one, or any."""
    arms = np.zeros(n + m, int)
    if way == "old first":
        arms[n:] = 1
    elif n == m and way == "in turn":
        arms[1::2] = 1
    elif way == "in turn":
        arms[np.linspace(0, n + m - 1, m + 2)[1:-1].round().astype(int)] = 1
    else:
        generators = [np.random.default_rng(seed) for seed in range(SEEDS_AT_RANDOM)]
        places = [generator.permutation(n + m)[:m] for generator in generators]
        return [np.isin(np.arange(n + m), own).astype(int) for own in places]
    return [arms]


def share_found(equal: Floats, arms: Sequence[Arms], slower: float = 0) -> float:
    """Return the share that `compare` calls different if the candidate is `slower`."""
    found = []
    for order in arms:
        runs = equal + np.log1p(-slower) * order
        step, error, df = step_in_time(runs, order.tolist(), range(len(order)))
        found.append(2 * stdtr(df, -np.abs(step) / error) < ALPHA)
    return float(np.mean(found))


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of equal runs.

    memory: the correlation of neighbours
    scale, tails: of the innovations (Student's t): their scale, in log gain, and degrees of freedom
    """

    memory: float
    scale: float
    tails: float

    def log_density(self, off_level: Floats) -> Floats:
        """Return the log density of deviations from the level (…, runs), in units of `scale`."""
        first = off_level[..., 0] * np.sqrt(1 - self.memory**2)
        fresh = off_level[..., 1:] - self.memory * off_level[..., :-1]
        surprise = np.log1p(first**2 / self.tails) + np.log1p(fresh**2 / self.tails).sum(axis=-1)
        density: Floats = -(self.tails + 1) / 2 * surprise
        return density

    def simulated(self, shape: tuple[int, int], generator: np.random.Generator) -> Floats:
        """Return series of shape (series, runs), in units of `scale`."""
        count, runs = shape
        warmup = 30
        series = generator.standard_t(self.tails, (count, warmup + runs))
        for at in range(1, warmup + runs):
            series[:, at] += self.memory * series[:, at - 1]
        return series[:, warmup:]


def fitted(series: Floats) -> Noise:
    """Fit the noise of a series by maximum likelihood; a weak prior keeps the tails finite."""
    around = series - np.median(series)

    def noise_of(guess: Floats) -> Noise:
        return Noise(*map(float, (np.tanh(guess[0]), np.exp(guess[1]), 1 + np.exp(guess[2]))))

    def cost(guess: Floats) -> float:
        noise = noise_of(guess)
        constant = gammaln((noise.tails + 1) / 2) - gammaln(noise.tails / 2)
        constant -= np.log(noise.tails * np.pi) / 2 + np.log(noise.scale)
        first = np.log(1 - noise.memory**2) / 2
        density = noise.log_density((around - guess[3]) / noise.scale)
        return float(0.02 * guess[2] ** 2 - density - len(around) * constant - first)

    found = []
    for memory, tails in ((0.05, 0.5), (0.55, 2.5)):
        start = [memory, np.log(around.std() * 0.7), tails, 0.0]
        precise = {"maxiter": 4000, "xatol": 1e-4, "fatol": 1e-5}
        found.append(minimize(cost, start, method="Nelder-Mead", options=precise))
    return noise_of(min(found, key=lambda fit: float(fit.fun)).x)


LEVELS = np.linspace(-4, 4, 17)  # around the median, in standard scales of the noise
SHARES = np.linspace(0, 1, 13)  # position between the smallest and largest scale, on a log scale


@dataclass(frozen=True, slots=True)
class Oracle:
    """The most powerful test for known noise of unknown scale.

    noise, order: what the test knows; change: the log gain to be found, up or down
    """

    noise: Noise
    order: Arms
    change: float

    def share_found(self, count: int, seed: int = 1) -> float:
        """Return the share of changes found at 5 % false alarms, by `count` simulated draws."""
        generator = np.random.default_rng(seed)
        equal = self.noise.simulated((count, len(self.order)), generator)
        limit = np.quantile(self._evidence(equal), 1 - ALPHA)
        return float(np.mean(self._evidence(equal + self._step()) > limit))

    def _step(self) -> Floats:
        return np.asarray(self.change / self.noise.scale * self.order, float)

    def _evidence(self, series: Floats) -> Floats:
        """Return the likelihood ratio of the change, up or down, against none."""
        none, up, down = (self._likelihood(series, sign * self._step()) for sign in (0, 1, -1))
        ratio: Floats = np.logaddexp(up, down) - none
        return ratio

    def _likelihood(self, series: Floats, step: Floats) -> Floats:
        """Return the log likelihood, integrated over all levels and scales."""
        middle = np.median(series, axis=-1, keepdims=True)
        scales = self._scales(series - middle)
        width = 1 / np.sqrt(1 - self.noise.memory**2)
        found = []
        for scale in scales:
            rest = (series - middle) / scale - step
            levels = np.median(rest, axis=-1, keepdims=True) + LEVELS * width
            densities = self.noise.log_density(rest[:, None, :] - levels[:, :, None])
            narrow = (series.shape[-1] - 1) * np.log(scale[:, 0])
            found.append(np.logaddexp.reduce(densities, axis=-1) - narrow)
        together: Floats = np.logaddexp.reduce(found, axis=0)
        return together

    def _scales(self, off_middle: Floats) -> list[Floats]:
        """Return scales from well below that within the arms to well above that of all runs."""
        inside = off_middle.copy()
        for arm in (self.order == 0, self.order == 1):
            inside[:, arm] -= np.median(inside[:, arm], axis=-1, keepdims=True)
        spreads = (np.median(np.abs(each), axis=-1, keepdims=True) for each in (inside, off_middle))
        low, high = (np.log(spread) for spread in spreads)
        return [np.exp(low - 1.2 + share * (high - low + 3.2)) for share in SHARES]


Known = tuple[Noise, int]


def bound(noises: Sequence[Known], arms: Sequence[Arms], count: int) -> float:
    """Return the mean bound at 10 % slower, weighting each series by its number of stretches.

    Takes: the noise and the length of each series; `count` simulated draws per series and order,
    half as many if there are several orders.
    """
    found, weights = [], []
    count = count if len(arms) == 1 else count // 2
    for number, (noise, length) in enumerate(noises):
        for place, order in enumerate(arms):
            oracle = Oracle(noise, order, float(np.log1p(-SLOWER)))
            found.append(oracle.share_found(count, seed=number * len(arms) + place))
            weights.append(length - len(order) + 1)
    return float(np.average(found, weights=weights))


def primary(series: Sequence[EqualCells]) -> list[EqualCells]:
    """Return the series behind the table."""
    return [each for each in series if each.chosen_on and each.metric in PRIMARY]


def noises_of(series: Sequence[EqualCells]) -> list[Known]:
    """Fit the noise of each series behind the table; return each with the series' length."""
    return [(fitted(each.gains()), len(each.values)) for each in primary(series)]


def row(
    series: Sequence[EqualCells], n: int, m: int, way: str, bounds: Sequence[float] = ()
) -> str:
    """Write how often runs are called different: equal ones, and a candidate 10 % slower."""
    equal, arms = draws(series, n + m), orders(n, m, way)
    figures = [share_found(equal, arms, slower) for slower in (0, SLOWER)]
    return _line(f"{n}+{m}", way, len(equal), *figures, *bounds)


def _line(*entries: str | float) -> str:
    shown = [f"{100 * each:.1f}" if isinstance(each, float) else str(each) for each in entries]
    return f"| {' | '.join(shown)} |"


HEAD = ("old + new", "order", "draws", "equal", "10 % slower")
BOUND_DRAWS = 300
MORE_SHAPES = ((5, 5), (6, 6), (7, 7), (8, 4), (8, 5), (15, 3), (15, 4), (15, 5))


def _print_head(title: str, head: Sequence[str]) -> None:
    print(f"\n{title}\n")
    print(_line(*head), _line("---", "---", *["---:"] * (len(head) - 2)).replace(" ", ""), sep="\n")


def _print_tables(series: Sequence[EqualCells], *, with_bounds: bool) -> None:
    noises = noises_of(series) if with_bounds else []
    _print_head("Series on which constants were chosen", (*HEAD, "bound"))
    for n, m in SHAPES:
        for way in WAYS:
            arms = orders(n, m, way)
            bounds = [bound(noises, arms, BOUND_DRAWS)] if with_bounds else []
            print(row(primary(series), n, m, way, bounds), flush=True)
    others = [each for each in series if not each.chosen_on]
    fastest = [each for each in series if each.metric == FASTEST]
    tables = (
        ("Other sessions", others, SHAPES),
        ("Fastest step", fastest, SHAPES),
        ("More runs", primary(series), MORE_SHAPES),
    )
    for title, own, shapes in tables:
        _print_head(title, HEAD)
        for n, m in shapes:
            for way in WAYS:
                print(row(own, n, m, way))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--without-bounds", action="store_true", help="omit the bounds")
    parser.add_argument("--take", nargs="+", metavar="RUN.json", help="make series from these runs")
    options = parser.parse_args()
    if options.take:
        lines = [json.dumps(asdict(each)) + "\n" for each in taken(options.take)]
        SAVED.write_text("".join(lines), encoding="utf-8")
    else:
        _print_tables(stored(), with_bounds=not options.without_bounds)
