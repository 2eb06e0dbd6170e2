"""What must hold before two arms are compared, and what a reader must know before believing the result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .terms import NotComparable
from .wording import listed, percent, probability

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .terms import Cell, Comparison, Run, TweakSet

LEVEL = 0.05
# Facts of a workload that must agree: its data and where it ran.
SAME_WORK = ("data_crc32", "device")


def must_be_in_force(tweakset: TweakSet, cells: Sequence[Cell]) -> None:
    """Check that every kernel value asked for stood there in every cell (the manipulation check).

    Boot tokens and limits are not values that are written: the run side checks them before a cell and skips it where they fail.

    Raises: NotComparable, naming the settings and blocks.
    """
    failed: dict[str, list[int]] = {}
    for cell in cells:
        asked: Mapping[str, object] = cell.applied.requested if cell.applied else {}
        observed: Mapping[str, object] = cell.applied.observed if cell.applied else {}
        for key in dict.fromkeys([*(one.key for one in tweakset.requested if one.kind == "sysctl"), *asked]):
            if key not in asked or observed.get(key) is None:
                failed.setdefault(f"{key} was not read back", []).append(cell.block)
            elif not same_value(asked[key], observed[key]):
                failed.setdefault(f"{key} was to be {asked[key]} and the kernel answered {observed[key]}", []).append(cell.block)
    if failed:
        lines = "; ".join(f"{line} ({listed(blocks)})" for line, blocks in failed.items())
        raise NotComparable(f"{tweakset.name} was not in force: {lines}.")


def must_not_contradict(cells: Iterable[Cell]) -> None:
    """Check that no cell's saved metrics say other than its steps: one of the two was edited, and nobody can tell which.

    Raises: NotComparable, naming the cells.
    """
    names = [cell.id for cell in cells if cell.contradictions]
    if names:
        verb, whose = ("contradict", "their") if len(names) > 1 else ("contradicts", "its")
        raise NotComparable(f"{', '.join(names)} {verb} {whose} own steps (see the warnings): the file was damaged or edited.")


def same_value(one: object, other: object) -> bool:
    """Whether two texts mean the same setting: blanks and the base of numbers (0x10, 020) make no difference."""
    return [_number(word) for word in str(one).split()] == [_number(word) for word in str(other).split()]


def _number(word: str) -> int | str:
    # The kernel reads a leading 0 as octal; Python wants 0o.
    try:
        return int(re.sub(r"^([+-]?)0(?=[0-7]+$)", r"\g<1>0o", word), 0)
    except ValueError:
        return word


def same_machine(arms: Sequence[TweakSet], pairs: Iterable[tuple[Cell, Cell]]) -> bool:
    """Whether two arms ran on one and the same untouched machine, so that any difference between them is noise.

    True where kernel values asked for stood there already, boot tokens were those of one boot shared by both, and the workloads'
    limits were equal. Scripts count by what they were seen to do: where no cell shows a changed tunable, none gets credit for chance.
    """
    boots = set()
    for pair in pairs:
        for arm, cell in zip(arms, pair, strict=True):
            if arm.scripts and cell.applied and cell.applied.side_effects:
                return False
            already = cell.applied.already_in_force if cell.applied else frozenset()
            if any(one.kind == "sysctl" and one.key not in already for one in arm.requested):
                return False
            boots.add(cell.boot_id)
        if pair[0].limits != pair[1].limits:
            return False
    return len(boots) == 1 or not any(one.kind == "boot" for arm in arms for one in arm.requested)


def different_data(baseline: Cell, candidate: Cell) -> str | None:
    """Say how the work of two cells differs, None where they did the same: only then does their ratio speak of the machine."""
    if baseline.steps is None or candidate.steps is None:
        raise ValueError("only measured cells have data to compare")
    for fact in SAME_WORK:
        if baseline.facts.get(fact) != candidate.facts.get(fact):
            return f"the arms differ in {fact}"
    for column in ("warmup", "samples", "tokens"):
        if getattr(baseline.steps, column) != getattr(candidate.steps, column):
            return f"the arms differ in {column} a step" if column != "warmup" else "the arms differ in their warm-up steps"
    return None


def warnings_of(run: Run, comparisons: Iterable[Comparison]) -> list[str]:
    """Collect what casts doubt on a run as a whole, one line each: what the reader noticed, then what the run says of itself."""
    lines = list(run.warnings)
    if run.interrupted:
        lines.append("the run was interrupted: later blocks are missing (`pytest benchmarks/ --resume` finishes it).")
    lines += _left_behind(run)
    for comparison in comparisons:
        effect = comparison.primary
        if comparison.untouched and effect is not None and effect.p < LEVEL:
            lines.append(
                f"A/A check: {comparison.tweakset} changes nothing, yet under {comparison.workload} it differs from "
                f"{comparison.baseline} by {percent(effect.gain)} (p {probability(effect.p)}, not adjusted). "
                "One such check in 20 does so by chance; otherwise the machine was not quiet: trust this workload's verdicts less."
            )
    lines += [f"{name}: {warning}" for name, tweakset in run.tweaksets.items() for warning in tweakset.warnings]
    return lines


def _left_behind(run: Run) -> list[str]:
    """Cells after which a value was not what it had been: the cells that ran next were not what they say."""
    lines = []
    for cell in run.cells:
        if cell.applied is None:
            continue
        before, restored = cell.applied.before, cell.applied.restored
        keys = [key for key in before if key in restored and not same_value(before[key], restored[key])]
        if keys:
            lines.append(f"{cell.id} did not put back {', '.join(sorted(keys))}: the cells that ran after it are in doubt.")
        if cell.applied.left_alone:
            changed = ", ".join(sorted(cell.applied.left_alone))
            lines.append(f"{cell.id}: somebody else changed {changed} meanwhile: this cell and those after it are in doubt.")
    return lines
