"""Measure how equal processes scatter when they take turns, and what a layout of turns costs.

`python -m docs.turn_layouts` prints its tables from docs/turn_layouts.jsonl.xz; docs/designs.md
shows two of them. `--measure FILE --minutes=N` (as root) makes such a file on another machine:
blocks of five processes per workload of the main job, in slices of 1, 2, 4 and 8 steps. The
processes are equal, or two of them run under a tweak set with a known effect, which shows whether
short slices dilute it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import lzma
import math
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from control.t_test import ALPHA, detectable_gain, t_tail
from control.turns import round_adjusted_s
from fixtures.turn_layout import FEWEST_SLICES, FEWEST_STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fixtures.targets._turns import TurnArm
    from fixtures.targets.local import Local

    Floats = NDArray[np.float64]
    # Log step time by workload, tweak set and block.
    LogTimes = dict[str, dict[str, dict[int, float]]]

SAVED = Path(__file__).with_name("turn_layouts.jsonl.xz")
BUILDS = Path(__file__).with_name("turn_layouts_builds.jsonl.xz")
WORKLOADS = ("lora_finetune", "cnn_train", "ddp_train", "checkpoint_train")
LAYOUTS = ((1, 40), (2, 20), (4, 10), (8, 5))  # steps per slice, slices
PROCESSES, CHANGED = 5, 2  # per block; how many run under a tweak set
EFFECTS = {"cnn_train": "malloc-keep-memory", "ddp_train": "tcp-cubic"}
STOCK = "stock"
BEFORE = (4, 40)  # steps per slice, steps per process at commit cd3136fd
STEPS = (10, 20, 40)
DIGITS = 5
SEEDS_APART = 1_000
DRAWS = 1_000
PER_CENT = 100.0


@dataclass(frozen=True, slots=True)
class TurnBlock:
    """Processes of one workload that took turns.

    hour: when it was measured, in a word (`quiet`, `busy`)
    slice_steps: steps per slice
    arms: the arm of each process, `stock` or the name of a tweak set
    start_s, cell_s: start-up and total time per process, seconds
    steps_s: processes × steps
    others_cpu_s: processes × slices, None if unknown
    """

    hour: str
    workload: str
    slice_steps: int
    arms: Sequence[str]
    start_s: float
    cell_s: float
    steps_s: Sequence[Sequence[float]]
    others_cpu_s: Sequence[Sequence[float | None]]

    def slices_s(self, steps: int) -> Floats:
        """Return the first steps of each process, shape (processes, slices, steps per slice)."""
        first = [own[:steps] for own in self.steps_s]
        return np.asarray(first, float).reshape(len(first), -1, self.slice_steps)

    def taken_s(self, steps: int) -> float:
        """Return the time that a process with this many steps takes."""
        return self.start_s + (self.cell_s - self.start_s) * steps / len(self.steps_s[0])


def stored(path: Path = SAVED) -> list[TurnBlock]:
    """Read the blocks of a file."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [TurnBlock(**json.loads(line)) for line in lines]


def scatter(blocks: Sequence[TurnBlock], steps: int) -> float:
    """Return the standard deviation of equal processes within blocks, on the log scale."""
    squares, freedom = 0.0, 0
    for block in blocks:
        values = values_of(block, steps)
        for arm in set(block.arms):
            alike = values[[name == arm for name in block.arms]]
            squares += float(((alike - alike.mean()) ** 2).sum())
            freedom += len(alike) - 1
    return math.sqrt(squares / freedom)


def values_of(block: TurnBlock, steps: int) -> Floats:
    """Return the value of each process, on the log scale, from its first steps."""
    seen = [own[: steps // block.slice_steps] for own in block.others_cpu_s]
    return np.log(round_adjusted_s(block.slices_s(steps).tolist(), seen))


def effects(blocks: Sequence[TurnBlock], steps: int) -> Floats:
    """Return the log gain of each block's changed processes."""
    gains = []
    for block in blocks:
        values = values_of(block, steps)
        stock = np.array([name == STOCK for name in block.arms])
        gains.append(values[stock].mean() - values[~stock].mean())
    return np.array(gains)


class LayoutCost(NamedTuple):
    """The cost of measuring equal processes in one layout.

    blocks: how many were measured
    sd: standard deviation of a process, log scale
    cell_s: seconds that a process takes
    """

    workload: str
    hour: str
    slice_steps: int
    steps: int
    blocks: int
    sd: float
    cell_s: float

    @property
    def error(self) -> float:
        """Return the standard error of a process's mean after a minute, log scale."""
        return self.sd * math.sqrt(self.cell_s / 60)


def costs_of(blocks: Sequence[TurnBlock]) -> Iterator[LayoutCost]:
    """Yield the cost of each layout that was measured."""
    for (workload, hour, each), own in sorted(_grouped(blocks).items()):
        for steps in STEPS:
            long = [block for block in own if len(block.steps_s[0]) >= steps]
            if long and steps % each == 0:
                sd = scatter(long, steps)
                cell_s = float(np.mean([block.taken_s(steps) for block in long]))
                yield LayoutCost(workload, hour, each, steps, len(long), sd, cell_s)


def table(costs: Sequence[LayoutCost]) -> Iterator[str]:
    """Write the result of each layout: scatter per process, its time, and both combined."""
    yield (
        "| workload | hour | steps per slice | steps | blocks | a process takes | sd of a process "
        "| error of a minute |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for one in costs:
        shown = f"{one.cell_s:.2f} s | {PER_CENT * one.sd:.1f} % | {PER_CENT * one.error:.2f} %"
        yield (
            f"| `{one.workload}` | {one.hour} | {one.slice_steps} | {one.steps} | {one.blocks} | "
            f"{shown} |"
        )


def table_of_bounds(costs: Sequence[LayoutCost], contrasts: Mapping[str, int]) -> Iterator[str]:
    """Write how far the best layout lowers the error of a minute.

    The last line has the median over the main job's contrasts, whose numbers are by workload.
    """
    yield "| workload | hour | steps per slice, steps | best layout / 4-step slices, 40 steps |"
    yield "|---|---|---|---|"
    shares = []
    for (workload, hour), group in groupby(costs, key=lambda one: (one.workload, one.hour)):
        own = [*group]
        best = min((one for one in own if one.steps >= FEWEST_STEPS), key=lambda one: one.error)
        before = next(one for one in own if (one.slice_steps, one.steps) == BEFORE)
        share = best.error / before.error
        shares += [share] * contrasts[workload]
        yield f"| `{workload}` | {hour} | {best.slice_steps}, {best.steps} | {share:.2f} |"
    yield f"| {len(shares)} contrasts | | median | {np.median(shares):.2f} |"


def table_of_effects(blocks: Sequence[TurnBlock]) -> Iterator[str]:
    """Write how much of a known effect is found, by the length of slices."""
    yield "| workload | tweak set | hour | steps of a slice | blocks | gain (log, %) |"
    yield "|---|---|---|---|---|---|"
    for (workload, hour, each), own in sorted(_grouped(blocks).items()):
        changed = [block for block in own if set(block.arms) != {STOCK}]
        if not changed:
            continue
        gains = effects(changed, len(changed[0].steps_s[0]))
        error = gains.std(ddof=1) / math.sqrt(len(gains))
        name = next(arm for arm in changed[0].arms if arm != STOCK)
        shown = f"{PER_CENT * gains.mean():+.1f} ± {PER_CENT * error:.1f}"
        yield f"| `{workload}` | `{name}` | {hour} | {each} | {len(changed)} | {shown} |"


def table_of_false_alarms(blocks: Sequence[TurnBlock]) -> Iterator[str]:
    """Write how often equal processes seem to differ, by the steps of a slice.

    In each draw, equal processes of a block become two untouched arms and candidates at random. An
    alarm is a run of all workloads in which any candidate differs (Holm).
    """
    yield "| steps of a slice | draws | contrasts of a draw | blocks of a contrast | alarms |"
    yield "|---|---|---|---|---|"
    for each in sorted({block.slice_steps for block in blocks}):
        groups: dict[str, list[Floats]] = defaultdict(list)
        for block in blocks:
            if block.slice_steps == each:
                values = values_of(block, max(FEWEST_STEPS, FEWEST_SLICES * each))
                groups[block.workload].append(values[[name == STOCK for name in block.arms]])
        draw = np.random.default_rng(each)
        draws = [
            [p for own in groups.values() for p in _equal_contrasts(own, draw)]
            for _ in range(DRAWS)
        ]
        alarms = sum(min(ps) * len(ps) <= ALPHA for ps in draws)
        counts = [len(own) for own in groups.values()]
        yield (
            f"| {each} | {DRAWS} | {len(draws[0])} | {min(counts)} to {max(counts)} | "
            f"{PER_CENT * alarms / DRAWS:.1f} % |"
        )


def _equal_contrasts(blocks: Sequence[Floats], draw: np.random.Generator) -> Iterator[float]:
    """Yield the p-value of each candidate among equal processes, paired by block."""
    shuffled = [draw.permutation(values) for values in blocks]
    for place in range(2, min(len(values) for values in shuffled)):
        gains = [values[place] - values[:2].mean() for values in shuffled]
        error = np.std(gains, ddof=1) / math.sqrt(len(gains))
        yield 2 * t_tail(abs(float(np.mean(gains))) / error, len(gains) - 1)


def runs_of_builds() -> dict[tuple[str, str], dict[str, LogTimes]]:
    """Read the main jobs of builds that took turns: by hour and build, then by run."""
    runs: dict[tuple[str, str], dict[str, LogTimes]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    )
    with lzma.open(BUILDS, "rt", encoding="utf-8") as lines:
        for one in map(json.loads, lines):
            run = runs[one["hour"], one["build"]][one["run"]]
            run[one["workload"]][one["tweakset"]][one["block"]] = math.log(one["step_time_s"])
    return runs


def table_of_builds(builds: Mapping[tuple[str, str], Mapping[str, LogTimes]]) -> Iterator[str]:
    """Write the smallest detectable effects of a run's contrasts: the median, also by workload."""
    yield f"| hour, build | each run | middle | {' | '.join(f'`{name}`' for name in WORKLOADS)} |"
    yield f"|---|---|---|{'---|' * len(WORKLOADS)}"
    for (hour, build), runs in sorted(builds.items()):
        found = [detectable(run) for run in runs.values()]
        medians = [np.median([value for own in run.values() for value in own]) for run in found]
        shown = [np.median(medians)]
        shown += [np.median([np.median(run[name]) for run in found]) for name in WORKLOADS]
        each = ", ".join(f"{PER_CENT * value:.1f}" for value in medians)
        columns = " | ".join(f"{PER_CENT * value:.1f}" for value in shown)
        yield f"| {hour}, {build} | {each} | {columns} |"


def detectable(of_workloads: LogTimes) -> dict[str, list[float]]:
    """Return the smallest detectable gain of each contrast among all of a run.

    Values are by tweak set and block, on the log scale.
    """
    untouched = ("stock", "stock-again")
    family = sum(len(arms) - len(untouched) for arms in of_workloads.values())
    found = defaultdict(list)
    for workload, arms in of_workloads.items():
        for name in arms.keys() - set(untouched):
            blocks = sorted(arms[name].keys() & arms["stock"].keys() & arms["stock-again"].keys())
            gains = [
                arms[name][block] - sum(arms[one][block] for one in untouched) / 2
                for block in blocks
            ]
            found[workload].append(
                detectable_gain(float(np.std(gains, ddof=1)), len(blocks), ALPHA / family)
            )
    return found


def _grouped(blocks: Sequence[TurnBlock]) -> dict[tuple[str, str, int], list[TurnBlock]]:
    found: dict[tuple[str, str, int], list[TurnBlock]] = defaultdict(list)
    for block in blocks:
        found[block.workload, block.hour, block.slice_steps].append(block)
    return found


def measured(minutes: float, hour: str, seed: int) -> Iterator[TurnBlock]:
    """Measure blocks of untouched processes, workloads and layouts in random order.

    Raises: Refused, if another run holds the machine, or a process fails.
    """
    from fixtures.targets.local import Local

    draw, until_s, number = random.Random(seed), time.monotonic() + 60 * minutes, 0
    every = [
        (name, *layout, tweakset)
        for name in WORKLOADS
        for layout in LAYOUTS
        for tweakset in {"", EFFECTS.get(name, "")}
    ]
    with (
        tempfile.TemporaryDirectory(prefix="deeptweak-", dir=".") as folder,
        contextlib.closing(Local(Path(folder))) as target,
    ):
        target.open("layouts", [], {})
        while time.monotonic() < until_s:
            for workload, slice_steps, slices, tweakset in draw.sample(every, len(every)):
                number += 1
                changed = [tweakset] * CHANGED if tweakset else []
                names = [*changed, *[STOCK] * (PROCESSES - len(changed))]
                yield _block(
                    target,
                    hour,
                    names,
                    _arms(target, workload, (slice_steps, slices), names, number),
                )


def _arms(
    target: Local, workload: str, layout: tuple[int, int], names: Sequence[str], number: int
) -> list[TurnArm]:
    from fixtures import tweaks, workloads
    from fixtures.targets._turns import TurnArm
    from fixtures.terms import CellSpec, Order
    from fixtures.tweaks.local import Plan

    case, (slice_steps, slices) = workloads.load(workload), layout
    warmup = int(workloads.of(case).params["warmup_steps"])
    order = Order(case, slice_steps * slices, warmup, SEEDS_APART * number, slice_steps=slice_steps)
    plans = {
        name: Plan() if name == STOCK else target.plan(tweaks.resolve(name)[0]) for name in names
    }
    return [
        TurnArm(CellSpec("layouts", workload, f"{name}-{at}", number, at, 1), plans[name], order)
        for at, name in enumerate(names)
    ]


def _block(target: Local, hour: str, names: Sequence[str], arms: Sequence[TurnArm]) -> TurnBlock:
    from fixtures.terms import Refused

    begun_s = time.monotonic()
    target.take_turns(arms, lambda *_: None)
    cell_s = (time.monotonic() - begun_s) / len(arms)
    runs, order = [arm.result for arm in arms if arm.result], arms[0].order
    if wrong := next((run.error for run in runs if run.error), None):
        raise Refused(f"{order.case.id}: {wrong}")
    turns_s = sorted(time_s for arm in arms for window in arm.windows for time_s in window)
    steps_s = [
        [float(f"{step.wall_s:.{DIGITS}g}") for step in run.steps if not step.warmup]
        for run in runs
    ]
    others = [[one.others_cpu_s for one in arm.slices] for arm in arms]
    start_s = cell_s - (turns_s[-1] - turns_s[0]) / len(arms)
    return TurnBlock(
        hour,
        order.case.id,
        order.slice_steps,
        names,
        round(start_s, 3),
        round(cell_s, 3),
        steps_s,
        others,
    )


def main() -> None:
    """Print the tables, or measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=SAVED,
        help="blocks (default: those of docs/designs.md)",
    )
    parser.add_argument(
        "--measure", type=Path, metavar="FILE", help="measure and write the blocks to FILE"
    )
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="duration in minutes (default: 30)"
    )
    parser.add_argument("--hour", default="quiet", help="load of the machine, in a word")
    parser.add_argument("--seed", type=int, default=1, help="order of workloads and layouts")
    line = parser.parse_args()
    if line.measure:
        with lzma.open(line.measure, "wt", encoding="utf-8") as out:
            for block in measured(line.minutes, line.hour, line.seed):
                out.write(json.dumps(asdict(block), separators=(",", ":")) + "\n")
        return
    blocks, builds = stored(line.file), runs_of_builds()
    costs = [*costs_of(blocks)]
    any_run = next(iter(builds["quiet", "now"].values()))
    contrasts = {name: len(own) for name, own in detectable(any_run).items()}
    tables = [
        table(costs),
        table_of_bounds(costs, contrasts),
        table_of_effects(blocks),
        table_of_false_alarms(blocks),
    ]
    if line.file == SAVED:
        tables.append(table_of_builds(builds))
    print("\n\n".join("\n".join(made) for made in tables))


if __name__ == "__main__":
    main()
