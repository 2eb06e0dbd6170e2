"""What must hold before two arms are compared, and what a reader must know before believing the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .terms import NotComparable
from .wording import listed, percent, probability

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .terms import Cell, Comparison, Run, TweakSet

LEVEL = 0.05
# Facts of a workload that name its data: the same seed must have given both arms the same samples.
# Facts of a workload that must agree: its data and where it ran.
SAME_WORK = ("data_crc32", "device")
UNLIMITED = {"unlimited", "infinity", "-1"}


def must_be_in_force(tweakset: TweakSet, cells: Sequence[Cell]) -> None:
    """Check that every setting asked for was in force in every cell (the manipulation check).

    Every setting asked for must have been read back. The value is compared where the kernel answers in the manifest's own words (sysctl
    and boot); limits and services are converted on the way, and the run side has compared them.

    Raises: NotComparable, naming the settings and blocks.
    """
    failed: dict[str, list[int]] = {}
    for cell in cells:
        observed: Mapping[str, object] = cell.applied.observed if cell.applied else {}
        for setting in tweakset.requested:
            found = observed.get(setting.key)
            if found is None:
                failed.setdefault(f"{setting.key} was not read back", []).append(cell.block)
            elif setting.kind in {"sysctl", "boot"} and not _same(_asked(cell, setting.key, setting.value), found):
                line = f"{setting.key} was asked to be {setting.value!r} and the kernel answered {found!r}"
                failed.setdefault(line, []).append(cell.block)
    if failed:
        lines = "; ".join(f"{line} ({listed(blocks)})" for line, blocks in failed.items())
        raise NotComparable(f"{tweakset.name} was not in force: {lines}.")


def _asked(cell: Cell, key: str, written: str) -> object:
    """Prefer what the cell itself says it asked: of a key written twice in a manifest the last one counts."""
    return cell.applied.requested.get(key, written) if cell.applied else written


def _same(asked: object, found: object) -> bool:
    one, other = (" ".join(str(value).split()) for value in (asked, found))
    if f"[{one}]" in other.split():  # /sys marks the chosen of several words: always [madvise] never
        return True
    return one == other or (one in UNLIMITED and other in UNLIMITED) or (one.isdigit() and other.isdigit() and int(one) == int(other))


def leaves_machine_alone(tweakset: TweakSet, cells: Iterable[Cell]) -> bool:
    """Whether an arm is the untouched machine: it asks for nothing, or only for what was in force already, and runs no script."""
    if tweakset.scripts:
        return False
    asked = {setting.key for setting in tweakset.requested}
    return all(asked <= (cell.applied.already_in_force if cell.applied else frozenset()) for cell in cells)


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
        keys = [key for key in before if key in restored and not _same(before[key], restored[key])]
        if keys:
            lines.append(f"{cell.id} did not put back {', '.join(sorted(keys))}: the cells that ran after it are in doubt.")
    return lines
