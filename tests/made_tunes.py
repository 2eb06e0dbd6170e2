"""A command with known effects of fifteen settings, tuned as by `deeptweak tune`, simulated."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev

from control.t_test import TInterval, t_interval
from control.tuning import HeatCell, Look, RaceRules, course

STOCK = frozenset[str]()
SETTINGS = [f"setting-{number:02d}" for number in range(15)]
# Two help, one harms, and one pair helps only together.
GAINS = {"setting-00": 0.04, "setting-01": 0.02, "setting-02": -0.05}
PAIR, PAIR_GAIN = frozenset({"setting-03", "setting-04"}), 0.04
# Scatter of a cell's log time around its block: of `cnn_train` on a quiet and on a noisy day.
QUIET, NOISY = 0.02, 0.06
BLOCK_SD = 0.05
CELL_S, SESSION_S, BUDGET_S = 3.0, 12.0, 3600.0


@dataclass
class Command:
    """A command whose time is `exp` of a block's level, of what the settings do, and of noise."""

    rng: random.Random
    cell_sd: float
    gains: Mapping[str, float] = field(default_factory=lambda: GAINS)
    pair_gain: float = PAIR_GAIN
    left_s: float = BUDGET_S
    heats: int = 0

    def gain(self, settings: Collection[str]) -> float:
        together = self.pair_gain if frozenset(settings) >= PAIR else 0.0
        return math.log1p(together) + math.fsum(
            math.log1p(self.gains.get(name, 0.0)) for name in settings
        )

    def measure(self, arms: Collection[frozenset[str]], share_s: float) -> list[HeatCell]:
        """Measure whole blocks of the arms, all settings, and stock twice, while time lasts."""
        arms = [STOCK, STOCK, *dict.fromkeys(arm for arm in [*arms, frozenset(SETTINGS)] if arm)]
        blocks = max(1, int((min(share_s, self.left_s) - SESSION_S) / (CELL_S * len(arms))))
        self.left_s -= SESSION_S + blocks * CELL_S * len(arms)
        self.heats += 1
        cells = []
        for block in range(1, blocks + 1):
            level = self.rng.gauss(0, BLOCK_SD)
            for arm in arms:
                log_time = level - self.gain(arm) + self.rng.gauss(0, self.cell_sd)
                cells.append(HeatCell(self.heats, block, arm, log_time))
        return cells


@dataclass(frozen=True)
class Tuned:
    """Outcome: settings, words of the looks, and the gain by fresh blocks beside the true one."""

    chosen: frozenset[str]
    words: Mapping[str, str]
    seemed: float
    confirmed: TInterval | None
    true: float
    race_s: float


def tune(command: Command, seed: int) -> Tuned:
    """Go through one tune."""
    looks: list[Look] = []
    found, _ = course(
        SETTINGS,
        RaceRules(looks=4),
        random.Random(seed),
        lambda _, arms, share: command.measure(arms, share * BUDGET_S),
        looks.append,
    )
    words = {name: word for look in looks for name, word in look.words().items()}
    race_s = BUDGET_S - command.left_s
    chosen = frozenset(found)
    confirmed = _confirmed(command, chosen) if chosen else None
    return Tuned(chosen, words, math.fsum(found.values()), confirmed, command.gain(chosen), race_s)


def _confirmed(command: Command, chosen: frozenset[str]) -> TInterval:
    by_block: dict[int, list[HeatCell]] = {}
    for cell in command.measure([chosen], command.left_s):
        by_block.setdefault(cell.block, []).append(cell)
    gains = []
    for cells in by_block.values():
        stock = fmean(cell.log_time for cell in cells if not cell.settings)
        gains.append(stock - next(cell.log_time for cell in cells if cell.settings == chosen))
    return t_interval(fmean(gains), stdev(gains) / math.sqrt(len(gains)), len(gains) - 1)
