"""Conditions for comparing two arms, and warnings about a run's result."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median, stdev

from control.called import JUDGE
from control.names import first_few, undigested
from control.t_test import ALPHA, t_interval

from .terms import Cell, Comparison, NotComparable, Run, SavedTweakSet, Setting
from .wording import listed, percent, probability, unsigned

LEVEL = 0.05
NAMED = 3  # cells of one reason
AVAILABLE = "mem_available_bytes_mean"
HUGEPAGE_BYTES = 2 << 20
LEAST_BYTES = 1 << 28  # less is lost in what other programs allocate and free
# Kinds of settings that every cell reads back, from the kernel or the workload's process.
READ_BACK = ("sysctl", "environment", "process")
# Facts about a workload that must agree: its data and where it ran.
SAME_WORK = ("data_crc32", "device")


def must_be_sound(tweakset: SavedTweakSet, cells: Sequence[Cell]) -> None:
    """Check settings in force, metrics that agree with steps, jobs lost. Raises: NotComparable."""
    must_be_in_force(tweakset, cells)
    must_not_contradict(cells)
    must_have_done_its_jobs(cells)


def must_be_in_force(tweakset: SavedTweakSet, cells: Iterable[Cell]) -> None:
    """Check that every requested kernel or process value was in force (the manipulation check).

    The run side checks boot tokens and the limits of `ulimit.conf`, and skips or fails the cell.

    Raises: NotComparable, naming the settings and blocks.
    """
    failed: dict[str, list[int]] = {}
    named = [setting.key for setting in tweakset.requested if setting.kind in READ_BACK]
    for cell in cells:
        requested: Mapping[str, object] = cell.applied.requested if cell.applied else {}
        observed: Mapping[str, object] = cell.applied.observed if cell.applied else {}
        for key in dict.fromkeys([*named, *requested]):
            if key not in requested or observed.get(key) is None:
                line = f"{key} was not read back"
            elif not means(key, requested[key], observed[key]):
                line = f"{key} was requested as {requested[key]} but read back as {observed[key]}"
            else:
                continue
            failed.setdefault(line, []).append(cell.block)
    if failed:
        lines = "; ".join(f"{line} ({listed(blocks)})" for line, blocks in failed.items())
        raise NotComparable(f"{tweakset.name} was not in force: {lines}.")


def must_not_contradict(cells: Iterable[Cell]) -> None:
    """Check that saved metrics agree with their steps. Raises: NotComparable."""
    if names := [cell.id for cell in cells if cell.contradictions]:
        raise NotComparable(
            f"saved metrics contradict the steps of {', '.join(names)} (see the warnings): the "
            "file was damaged or edited."
        )


def must_share_machines(baseline: Sequence[Cell], candidate: Sequence[Cell]) -> None:
    """Check that two arms of a run share a machine. Raises: NotComparable."""
    nodes = [{cell.node or "unknown" for cell in cells} for cells in (baseline, candidate)]
    if all(nodes) and not nodes[0] & nodes[1]:
        first, second = (first_few(sorted(own), 2) for own in nodes)
        raise NotComparable(
            f"the arms ran on different machines: {first} against {second}, so the machine is "
            "part of any difference."
        )


def means(key: str, requested: object, observed: object) -> bool:
    if same_value(requested, observed):
        return True
    from control.meaning import agrees

    path = f"/proc/sys/{key.translate(str.maketrans('./', '/.'))}"
    return bool(agrees(path, str(requested), str(observed)))


def same_value(value: object, other: object) -> bool:
    text, other_text = str(value), str(other)
    return text == other_text or [_number(word) for word in text.split()] == [
        _number(word) for word in other_text.split()
    ]


def _number(word: str) -> int | str:
    # The kernel reads a leading 0 as octal; Python needs 0o.
    try:
        return int(re.sub(r"^([+-]?)0(?=[0-7]+$)", r"\g<1>0o", word), 0)
    except ValueError:
        return word


def same_machine(arms: Sequence[SavedTweakSet], pairs: Iterable[tuple[Cell, Cell]]) -> bool:
    """Return whether two arms ran on the same untouched machine, so that any difference is noise.

    Scripts count by their observed changes.
    """
    if any(arm.monitor or arm.level_of for arm in arms):
        return False
    boots = set()
    for pair in pairs:
        for arm, cell in zip(arms, pair, strict=True):
            if cell.applied is None or (arm.scripts and cell.applied.side_effects):
                return False  # without a record of applied values, the changes are unknown
            there = cell.applied.already_in_force
            if any(one.kind in READ_BACK and one.key not in there for one in arm.requested):
                return False
            boots.add(cell.boot_id)
        if pair[0].limits != pair[1].limits:
            return False
    return len(boots) == 1 or not any(one.kind == "boot" for arm in arms for one in arm.requested)


def must_have_done_its_jobs(cells: Iterable[Cell]) -> None:
    """Check that every job of a stream finished: otherwise lost jobs would look like a gain.

    Raises: NotComparable.
    """
    lost, of, under = 0, 0, ""
    for cell in cells:
        rows = cell.report.get("job", ())
        if not rows and "stream" not in cell.report:
            continue
        numbers = {row.get("job") for row in rows if isinstance(row.get("job"), int)}
        steps = len(rows) if cell.steps is None else len(cell.steps.wall_s)
        if not len(numbers) == len(rows) == steps:
            raise NotComparable(
                f"{cell.id} does not record the outcome of every job: the file was damaged or "
                "edited."
            )
        lost += sum(row.get("outcome") != "done" for row in rows)
        of, under = of + len(rows), cell.tweakset
    if lost:
        raise NotComparable(
            f"{lost} of {of} jobs did not finish under {under}, and the time until a job fails or "
            "is given up is not a completion time. "
            f"`{JUDGE} depend report` lists the losses."
        )


def different_data(baseline: Cell, candidate: Cell) -> str | None:
    """Return how the work of two cells differs, or None if equal: only then is their ratio fair."""
    for fact in SAME_WORK:
        if baseline.facts.get(fact) != candidate.facts.get(fact):
            return f"the arms differ in {fact}"
    if _plan(baseline) != _plan(candidate):
        return "the arms ran different jobs"
    if not (baseline.steps and candidate.steps and baseline.applied and candidate.applied):
        return None  # other tools record no samples; their number is what fitted into the time
    if baseline.steps.warmup != candidate.steps.warmup:
        return "the arms differ in their warm-up steps"
    for column in ("samples", "tokens"):
        if getattr(baseline.steps, column) != getattr(candidate.steps, column):
            return f"the arms differ in {column} per step"
    return None


def _plan(cell: Cell) -> list[str]:
    return sorted(
        repr([row.get(name) for name in ("job", "class", "planned_submit_s", "work")])
        for row in cell.report.get("job", ())
    )


def must_be_same_work(baseline: Sequence[Cell], candidate: Sequence[Cell]) -> None:
    """Check that unpaired cells did the same work. Raises: NotComparable."""
    kinds = set()
    for cell in (*baseline, *candidate):
        kind = f"on {cell.facts.get('device', 'an unknown device')}"
        if cell.steps is not None and cell.applied is not None:
            kind += (
                f" {len(cell.steps.samples)} steps of {sum(cell.steps.samples)} samples in all, "
                f"{cell.steps.warmup} warm-up steps"
            )
        kinds.add(kind)
    if len(kinds) > 1:
        raise NotComparable(f"the cells did not do the same work: {'; '.join(sorted(kinds))}.")


def other_hardware(baseline: Iterable[Run], candidate: Iterable[Run]) -> str | None:
    seen: dict[str, set[str]] = {}
    for run in (*baseline, *candidate):
        for name, value in hardware(run).items():
            seen.setdefault(name, set()).add(value)
    differing = [
        f"{name} {' against '.join(sorted(values))}"
        for name, values in seen.items()
        if len(values) > 1
    ]
    return f"other hardware: {'; '.join(differing)}." if differing else None


def hardware(run: Run) -> dict[str, str]:
    facts = {
        name: str(run.machine[name]) for name in ("cpu_model", "cpu_count") if run.machine.get(name)
    }
    memory = run.machine.get("mem_total_bytes")
    if isinstance(memory, int | float):
        # Kernels reserve some memory, and the amount varies a little with the version.
        facts["memory_gib"] = f"{memory / 2**30:.0f}"
    gpus = run.machine.get("gpus")
    if isinstance(gpus, list | tuple):
        facts["gpus"] = ", ".join(
            sorted(str(gpu.get("name")) if isinstance(gpu, dict) else str(gpu) for gpu in gpus)
        )
    return facts


def lost_cells(run: Run, cells: Iterable[Cell]) -> list[str]:
    lost: dict[str, list[str]] = {}
    for cell in cells:
        if cell.outcome != "measured":
            reason = (cell.reason or "no reason was recorded").rstrip(".")
            lost.setdefault(f"{cell.outcome}: {reason}", []).append(cell.id)
    return [
        f"{run.origin}: {ids[0]} {reason}."
        if len(ids) == 1
        else f"{run.origin}: {len(ids)} cells {reason}: {first_few(ids, NAMED)}."
        for reason, ids in lost.items()
    ]


def warnings_of(run: Run, comparisons: Iterable[Comparison]) -> list[str]:
    """Return the warnings about a whole run, the reader's first."""
    lines = list(run.warnings)
    if run.interrupted:
        lines.append(
            "the run was interrupted: later blocks are missing (the same command with `--resume` "
            "finishes it)."
        )
    lines += disturbances(run)
    lines += _two_treatments(run)
    lines += _left_behind(run)
    comparisons = tuple(comparisons)
    lines += _hugepages(run, comparisons)
    lines += partial(run, comparisons)
    lines += untouched_apart(comparisons)
    lines += [
        f"{name}: {warning}"
        for name, tweakset in run.tweaksets.items()
        for warning in tweakset.warnings
        if _own(run, name, warning)
    ]
    return lines


def untouched_apart(comparisons: Iterable[Comparison]) -> Iterator[str]:
    for comparison in comparisons:
        effect = comparison.primary
        if not comparison.untouched or effect is None or effect.p >= LEVEL:
            continue
        refused = comparison.guard and comparison.verdict == "not comparable"
        ending = (
            "no conclusion is drawn for this workload."
            if refused
            else "trust this workload's verdicts less."
        )
        one_in = max(20, min(1000, round(1 / max(effect.p, 1e-3))))
        yield (
            f"A/A check: {comparison.tweakset} changes nothing, yet under "
            f"{undigested(comparison.workload)} it differs from {comparison.baseline} by "
            f"{percent(effect.gain)} (p {probability(effect.p)}, not adjusted). "
            f"By chance, about one check in {one_in:,} differs this much; otherwise the "
            f"machine was not quiet: {ending}"
        )


def reserved_bytes(settings: Iterable[Setting]) -> int:
    """Return how many bytes boot tokens and `vm.nr_hugepages` reserve as huge pages.

    `hugepages=` belongs to the preceding `hugepagesz=`, else to `default_hugepagesz=`, else to
    pages of 2 MiB (admin-guide/mm/hugetlbpage.rst).
    """
    settings = tuple(settings)
    boot = [setting for setting in settings if setting.kind == "boot"]
    sizes = [_size_bytes(one.value) for one in boot if one.key == "default_hugepagesz"]
    default = (sizes or [0])[0] or HUGEPAGE_BYTES
    size, pools = default, dict[int, int]()
    for setting in boot:
        if setting.key == "hugepagesz":
            size = _size_bytes(setting.value) or size
        elif setting.key == "hugepages":  # `0:2,1:3` are pages per NUMA node
            counts = [part.rpartition(":")[2] for part in setting.value.split(",")]
            pools[size] = sum(int(count) for count in counts if re.fullmatch("[0-9]{1,15}", count))
    typed = [
        setting.value
        for setting in settings
        if (setting.kind, setting.key) == ("sysctl", "vm.nr_hugepages")
        and re.fullmatch("[0-9]{1,15}", setting.value)
    ]
    if typed:
        pools[default] = int(typed[-1])
    return sum(size * pages for size, pages in pools.items())


def _size_bytes(text: str) -> int:
    match = re.fullmatch("([0-9]{1,15})([KMGT]?)", text.upper())
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ") if match else 0


def _hugepages(run: Run, comparisons: Iterable[Comparison]) -> Iterator[str]:
    """Yield arms whose huge pages were not in force, as available memory did not shrink."""
    for comparison in comparisons:
        stock, cells = (
            [
                cell
                for cell in run.cells
                if cell.workload == comparison.workload
                and cell.tweakset in arms
                and AVAILABLE in cell.telemetry
            ]
            for arms in (comparison.baseline_arms or (comparison.baseline,), (comparison.tweakset,))
        )
        reserved = _reserved(run, comparison.tweakset, cells, stock)
        reserved -= _reserved(run, comparison.baseline, stock, cells)
        if not stock or not cells or reserved < LEAST_BYTES:
            continue
        before, after = (fmean(cell.telemetry[AVAILABLE] for cell in own) for own in (stock, cells))
        less = before - after
        if less < reserved / 2:
            yield (
                f"{comparison.tweakset} reserves {reserved / 2**30:.2f} GiB more in huge pages "
                f"than {comparison.baseline}, yet under {comparison.workload} "
                f"{abs(less) / 2**30:.2f} GiB {'less' if less >= 0 else 'more'} memory was "
                "available: they were apparently not in force."
            )


def _reserved(run: Run, name: str, cells: Iterable[Cell], others: Iterable[Cell]) -> int:
    cells = tuple(cells)
    one_boot = {cell.boot_id for cell in cells} & {cell.boot_id for cell in others} - {None}
    there = {key for cell in cells if cell.applied for key in cell.applied.already_in_force}
    settings = run.tweaksets[name].requested if name in run.tweaksets else ()
    return reserved_bytes(
        setting
        for setting in settings
        if setting.key not in there and not (one_boot and setting.kind == "boot")
    )


def _own(run: Run, name: str, warning: str) -> bool:
    point = run.design.points.get(name)
    if point is None or point.tweakset == name or point.tweakset not in run.tweaksets:
        return True
    return warning not in run.tweaksets[point.tweakset].warnings


def _two_treatments(run: Run) -> list[str]:
    lines = []
    for name in dict.fromkeys(cell.tweakset for cell in run.cells):
        moved = {
            cell.id: cell.applied.side_effects.keys()
            for cell in run.cells
            if cell.tweakset == name and cell.outcome == "measured" and cell.applied
        }
        for path in sorted(set().union(*moved.values())):
            cells = [one for one, paths in moved.items() if path in paths]
            if len(cells) < len(moved):
                lines.append(
                    f"{name} also changed {path} in {len(cells)} of {len(moved)} cells "
                    f"({first_few(cells, 2)}) but not in the others: "
                    "these are two treatments."
                )
    return lines


def _left_behind(run: Run) -> list[str]:
    lines = []
    for cell in run.cells:
        if keys := not_put_back(cell):
            lines.append(
                f"{cell.id} did not put back {', '.join(keys)}: the cells that ran after it are "
                "in doubt."
            )
        if cell.applied and cell.applied.left_alone:
            changed = ", ".join(sorted(cell.applied.left_alone))
            lines.append(
                f"{cell.id}: another program changed {changed}: this cell and the following are "
                "in doubt."
            )
    return lines


def not_put_back(cell: Cell) -> list[str]:
    before, restored = (cell.applied.before, cell.applied.restored) if cell.applied else ({}, {})
    return sorted(
        key for key in before if key in restored and not same_value(before[key], restored[key])
    )


# Limit: this share of all CPUs, in more than one cell of FEWEST. A quiet machine with 2 CPUs has
# 0.01 (data/runs).
OTHERS, STEAL, ONE_IN = 0.10, 0.05, 10
MOST_CPUS = 1 << 16
FEWEST, LEAST_CORES = 3, 0.01  # blocks; cores used by others, which may delay a step by 1 %
BUSY, OWN, STOLEN = "cpu_busy_percent_mean", "process_cpu_percent_mean", "cpu_steal_percent_mean"


def disturbances(run: Run) -> Iterator[str]:
    turns = "`--turns`" if "command" in run.studies else "`--design=turns`"
    way_out = (
        "measure more blocks"
        if run.design.kind == "turns"
        else f"let the arms take turns ({turns})"
    )
    others = [
        (share, cell.block)
        for cell in run.cells
        if (share := share_of_others(run, cell)) is not None
    ]
    stolen = [
        (cell.telemetry[STOLEN] / 100, cell.block) for cell in run.cells if STOLEN in cell.telemetry
    ]
    yield from _beyond("other programs used", OTHERS, others, f"stop them, or {way_out}")
    yield from _beyond(
        "the hypervisor gave other guests", STEAL, stolen, f"measure at another time, or {way_out}"
    )


def share_of_others(run: Run, cell: Cell) -> float | None:
    """Return the share of all CPUs that other programs used during a cell's steps; None if unknown.

    Sensors cannot tell it for a workload with a report, whose helpers need not be its children.
    """
    count = run.machine.get("cpu_count")
    if not isinstance(count, int) or not 0 < count < MOST_CPUS:
        return None
    if counted := _counted(cell):
        # Sensors are read slightly before and after the steps, so cap the share at all CPUs.
        used_s, wall_s = map(sum, zip(*counted, strict=True))
        return min(1.0, used_s / wall_s / count)
    if BUSY not in cell.telemetry or OWN not in cell.telemetry or cell.report or cell.monitor:
        return None
    return max(0.0, cell.telemetry[BUSY] / 100 - cell.telemetry[OWN] / 100 / count)


def _counted(cell: Cell) -> list[tuple[float, float]]:
    return [
        (used_s, sum(part))
        for used_s, part in zip(cell.others_cpu_s, cell.slices_s, strict=True)
        if used_s is not None
    ]


def partial(run: Run, comparisons: Iterable[Comparison]) -> Iterator[str]:
    """Yield arms where others' CPU use differs by more than chance: it may be the arm's effect."""
    contrasts = [comparison for comparison in comparisons if not comparison.guard]
    for comparison in contrasts:
        arms = (comparison.tweakset, *(comparison.baseline_arms or (comparison.baseline,)))
        cores = [_cores_of_others(run, comparison, arm) for arm in arms]
        blocks = sorted(set[int].intersection(*(set(own) for own in cores)))
        differences = [cores[0][block] - fmean(own[block] for own in cores[1:]) for block in blocks]
        if len(blocks) < FEWEST or abs(more := fmean(differences)) < LEAST_CORES:
            continue
        error = stdev(differences) / math.sqrt(len(blocks))
        p = t_interval(more, error, len(blocks) - 1).p if error else 0.0
        if p < ALPHA / len(contrasts):
            yield (
                f"Others used {abs(more):.2f} of a core {'more' if more > 0 else 'less'} during "
                f"{comparison.tweakset} than during "
                f"{comparison.baseline} under {comparison.workload} (p {probability(p)}). If "
                f"{comparison.tweakset} causes that, removing "
                "their share removes part of its effect: whole cells (`--design=matrix`) keep it."
            )


def _cores_of_others(run: Run, comparison: Comparison, tweakset: str) -> dict[int, float]:
    return {
        cell.block: sum(map(min, counted)) / sum(wall_s for _, wall_s in counted)
        for cell in run.cells
        if (cell.study, cell.workload) == (comparison.study, comparison.workload)
        and cell.tweakset == tweakset
        and (counted := _counted(cell))
    }


def _beyond(who: str, limit: float, shares: list[tuple[float, int]], remedy: str) -> Iterator[str]:
    disturbed = sum(share > limit for share, _ in shares)
    if disturbed * ONE_IN > len(shares):
        most, block = max(shares)
        middle = median(share for share, _ in shares)
        yield (
            f"Disturbed: {who} {unsigned(middle)} of the CPUs (median of {len(shares)} cells; up "
            f"to {unsigned(most)}, in block {block}), more than {unsigned(limit)} in {disturbed} "
            f"of them. This widens the intervals: {remedy}."
        )
