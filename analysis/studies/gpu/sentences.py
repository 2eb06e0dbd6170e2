"""What one grid says, in sentences: most important first, each with how many cells it stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bounds import ROUNDING
from .equal_work import FACTOR
from .prediction import NEAR
from .relations import in_words
from .shape import HIGH_UTILIZATION, LOW_SMACT, LOW_SMOCC
from .terms import GRACT, SAID, SMACT, SMOCC, UTILIZATION, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .equal_work import Odd
    from .findings import Findings
    from .relations import Line
    from .shape import Course

FEW = 4
CLOSE_R2 = 0.8
SHARES_ALONE = 2  # bounds, where one metric of all was recorded


def share(value: float | None) -> str:
    """Write a share: `.226`, `1.000`; a dash for what is missing."""
    return "–" if value is None else f"{value:.3f}".removeprefix("0") if value >= 0 else f"{value:.3f}"


def heading(found: Findings) -> list[str]:
    """Say what was looked at: how many cells of what, on which GPU, and what else must be known of the logs."""
    grid = found.grid
    sizes = {cell.size for cell in grid.cells}
    runs = f" in {len(grid.cells)} runs" if len(grid.cells) > len(sizes) else ""
    logs = f"{len(sizes)} cells of blocks × threads{runs}" if sizes else "no logs"
    lines = [f"{grid.origin}: {logs}{''.join(f'; {one.label}' for one in grid.read)}"]
    chip = grid.chip
    of = f"{chip.sms} SMs ({chip.source})" if chip.sms is not None else f"SMs unknown: {chip.missing}"
    lines.append(f"{chip.name or 'GPU unknown'}, {of}" if chip.name else of)
    return [*lines, *(f"{note[0].upper()}{note[1:]}." for note in grid.notes)]


def sentences(found: Findings) -> list[str]:
    """Write every finding, in the order in which a reader wants them."""
    return [
        *_agreement(found),
        *_work(found),
        *_misled(found),
        *_lines(found),
        *_bundle(found),
        *_courses(found),
        *_memory(found),
        *_prediction(found),
        *_spread(found),
        *_bounds(found),
    ]


def _agreement(found: Findings) -> Iterator[str]:
    for one in found.agreements:
        how = f"all {one.compared} figures of these come out of them {f'to {one.largest:.0e}' if one.largest else 'to the last digit'}"
        if one.differing:
            size, metric, theirs, ours = one.differing[0]
            how = f"{len(one.differing)} of {one.compared} figures differ: {named(size)} {metric} {theirs:g}, and its log gives {ours:g}"
        yield f"{one.table}: {one.cells} have logs here, and {how}."


def _misled(found: Findings) -> Iterator[str]:
    one = found.misled
    if one is None:
        return
    values = one.example_values
    gract = f", GRACT at least {share(one.least_gract)}" if one.least_gract is not None else ""
    verdict = "Utilisation misleads" if one.busy_low_smact else "Utilisation and SMACT"
    yield (
        f"{verdict}: it reaches {HIGH_UTILIZATION:g} % in {one.busy} of {one.cells} cells (at least"
        f" {one.least_utilization:.0f} %, mean {one.mean_utilization:.2f} %{gract}); in {one.busy_low_smact} of these SMACT"
        f" stays below {share(LOW_SMACT)}, in {one.busy_low_smocc} SMOCC below {share(LOW_SMOCC)} ({one.table})."
    )
    if one.busy_low_smact:
        occ = f", SMOCC {share(values.get(SMOCC))}" if SMOCC in values else ""
        gract = f", GRACT {share(values.get(GRACT))}" if GRACT in values else ""
        yield f"{named(one.example)}: utilisation {values[UTILIZATION]:.0f} %{gract}, SMACT {share(values[SMACT])}{occ}."


def _lines(found: Findings) -> Iterator[str]:
    said = {
        (UTILIZATION, f"100 × {GRACT}"): ("GRACT says what utilisation says", "GRACT and utilisation say different things"),
        (GRACT, SMACT): ("GRACT tells SMACT here", "GRACT says little of SMACT"),
        (SMACT, SMOCC): ("SMOCC follows SMACT", "SMOCC follows SMACT loosely"),
    }
    for (x, y), (close, loose) in said.items():
        every = [line for line in found.lines if (line.x, line.y) == (x, y)]
        known = [line.r2 for line in every if line.r2 is not None]
        if every and not known:
            yield f"No line of {SAID[y.rpartition(' ')[2]]} on {SAID[x]} can be fitted: {every[0].missing} ({every[0].table})."
        elif every:
            lead = close if min(known) >= CLOSE_R2 else loose
            yield f"{lead[0].upper()}{lead[1:]}: {'; '.join(f'{equation(line)} ({line.table})' for line in every)}."


def equation(line: Line) -> str:
    """Write a line with its R², or why it has none."""
    if line.r2 is not None:
        return f"{in_words(line)}, R² {line.r2:.4f}"
    return in_words(line) if line.slope is None else f"{in_words(line)}, {line.missing}"


def _bundle(found: Findings) -> Iterator[str]:
    known = [line for line in found.by_threads if line.r2 is not None and line.slope is not None]
    if len(known) > 1:
        low, high = known[0], known[-1]
        yield (
            f"SMOCC on SMACT is a bundle of lines, one a block size: slope {low.slope:.3f} at {low.among} a block (R² {low.r2:.2f}),"
            f" {high.slope:.3f} at {high.among} (R² {high.r2:.2f}) ({found.over.label})."
        )


def _courses(found: Findings) -> Iterator[str]:
    for metric in (SMACT, SMOCC):
        every = [one for one in found.courses if one.metric == metric]
        dips = [one for one in every if one.dip is not None]
        if not every:
            continue
        name = metric.upper()
        if not dips:
            yield f"{name} never falls with more blocks, at any of {len(every)} block sizes ({found.over.label})."
            continue
        if metric == SMACT:
            yield (
                f"More blocks are not more {name}: it is not monotone at {len(dips)} of {len(every)} block sizes ({found.over.label})."
                f" Its deepest fall, by threads a block: {'; '.join(map(_dip, dips))} blocks."
            )
        else:
            yield f"{name} is not monotone either, at {_listed(str(one.threads) for one in dips)} threads a block."


def _dip(one: Course) -> str:
    assert one.dip is not None  # noqa: S101  # only those that have one are asked
    few, high, many, low = one.dip
    return f"{one.threads}: {share(high)} at {few}, {share(low)} at {many}"


def _memory(found: Findings) -> Iterator[str]:
    if found.memory:
        yield (
            "Used memory grows by what the kernel allocates, 8 × blocks × threads bytes: "
            f"{'; '.join(f'{equation(line)} ({line.table})' for line in found.memory)}."
        )


def _work(found: Findings) -> Iterator[str]:
    for odd in found.odd:
        if odd.rival is None:
            leaves = f"where equally many launches would take {_limits(odd)}"
            yield f"{named(odd.size)} did not run what the others ran: {odd.samples:.0f} active samples {leaves}."
        elif odd.size < odd.rival:
            (other,) = (one for one in found.odd if one.size == odd.rival)
            yield (
                f"One of these two did not run what the others ran, and nothing tells which: {named(odd.size)} has {odd.samples:.0f} active"
                f" samples, {named(other.size)} {other.samples:.0f} where equally many launches would take {_limits(other)}."
            )
    if found.launches:
        several = [f"{named(size)}: {count:g}" for size, count in found.launches.items()]
        yield f"Launches differ from most cells' in {len(several)}: {_listed(several)}."
    for one in found.uneven:
        counts = ", ".join(f"{name} {count}" for name, count in one.counts.items())
        yield f"{one.place}: its logs are not of one length ({counts}): one was cut short."
    if found.idle:
        yield f"No work was seen in {_listed(named(cell.size) for cell in found.idle)}: no sample has GRACT or utilisation above 0."
    if found.grid.cells and not found.grid.whole_run and len(found.samples) > 1 and not found.odd:
        yield (
            f"Every cell took as long as equally many launches would (within a factor of {FACTOR:g}), as far as others of its block size"
            " tell."
        )


def _limits(odd: Odd) -> str:
    few, many = odd.least, odd.most
    if few is not None and many is not None:
        return f"{few:.0f} to {many:.0f}"
    return f"{few:.0f} or more" if few is not None else f"{many or 0:.0f} or fewer"


def _prediction(found: Findings) -> Iterator[str]:
    every = found.predictions
    if not every.cells:
        known = {size: row[SMACT] for size, row in found.over.rows.items() if SMACT in row}
        sms = found.grid.chip.sms
        full = [value for size, value in known.items() if sms is not None and size[0] >= sms]
        if full:
            yield (
                f"From {sms} blocks on SMACT could be 1; it is {share(min(full))} to {share(max(full))} in {len(full)} cells:"
                f" min(b, SMs) / SMs is a bound and predicts nothing without the duty, and {every.missing or 'that is not known'}."
            )
        return
    worst = max(every.cells, key=lambda one: abs(one.off))
    yield (
        f"SMACT is where the number of blocks puts it, within ± {share(NEAR)}, in {every.near} of {len(every.cells)} cells;"
        f" furthest off is {named(worst.size)}: {share(worst.observed)} where {share(worst.least)} to {share(worst.most)} was predicted."
    )


def _spread(found: Findings) -> Iterator[str]:
    if found.spread:
        said = [f"{SAID[metric]} {f'{most:.1f} %' if metric == UTILIZATION else share(most)}" for metric, most in found.spread.items()]
        yield f"Runs of one size differ by at most: {', '.join(said)} (active means)."


def _bounds(found: Findings) -> Iterator[str]:
    bounds = found.bounds
    if not bounds.tested:
        return
    places = dict.fromkeys(named(one.size) for one in bounds.violations)
    if bounds.violations:
        yield f"Bounds are broken in {len(places)} of {len(found.samples)} cells (± {ROUNDING:g}): {_listed(places)}; see below."
    else:
        samples = max(count for bound, (count, _) in bounds.tested.items() if "share" not in bound or len(bounds.tested) == SHARES_ALONE)
        yield f"All {len(bounds.tested)} bounds hold in all {len(found.samples)} cells, in each of {samples} samples (± {ROUNDING:g})."
    for bound, why in bounds.untested.items():
        yield f"Not tested: {bound}: {why}."


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:FEW]) + (f" and {len(every) - FEW} more" if len(every) > FEW else "")
