"""What one grid says, in sentences: most important first, each with how many cells it stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bounds import NEAR, ROUNDING
from .equal_work import FACTOR
from .relations import HIGH_UTILIZATION, LOW_SMACT, LOW_SMOCC, in_words
from .terms import GRACT, SAID, SMACT, SMOCC, UTILIZATION, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .equal_work import OddCell
    from .findings import Findings
    from .relations import Course, FittedLine

FEW = 4
CLOSE_R2 = 0.8
SHARES_ALONE = 2  # bounds, where one metric of all was recorded


def share(value: float | None) -> str:
    """Write a share: `.226`, `1.000`; a dash for what is missing."""
    return "–" if value is None else f"{value:.3f}".removeprefix("0") if value >= 0 else f"{value:.3f}"


def heading(findings: Findings) -> list[str]:
    """Say what was looked at: how many cells of what, on which GPU, and what else must be known of the logs."""
    grid = findings.grid
    sizes = {cell.size for cell in grid.cells}
    runs = f" in {len(grid.cells)} runs" if len(grid.cells) > len(sizes) else ""
    logs = f"{len(sizes)} cells of blocks × threads{runs}" if sizes else "no logs"
    lines = [f"{grid.origin}: {logs}{''.join(f'; {table.label}' for table in grid.read)}"]
    chip = grid.chip
    of = f"{chip.sms} SMs ({chip.source})" if chip.sms is not None else f"SMs unknown: {chip.missing}"
    lines.append(f"{chip.name or 'GPU unknown'}, {of}" if chip.name else of)
    return [*lines, *(f"{note[0].upper()}{note[1:]}." for note in grid.notes)]


def main_sentences(findings: Findings) -> list[str]:
    """The answer: whether utilisation misleads, whether bounds hold, and whether each cell ran what the others ran."""
    return [*list(_misled(findings))[:1], *list(_bounds(findings))[:1], *list(_work(findings))[:1]]


def sentences(findings: Findings) -> list[str]:
    """Write every finding, in the order in which a reader wants them."""
    return [
        *_agreement(findings),
        *_work(findings),
        *_misled(findings),
        *_lines(findings),
        *_bundle(findings),
        *_courses(findings),
        *_memory(findings),
        *_prediction(findings),
        *_spread(findings),
        *_bounds(findings),
    ]


def _agreement(findings: Findings) -> Iterator[str]:
    for agreement in findings.agreements:
        how = (
            f"all {agreement.compared} figures of these come out of them "
            f"{f'to {agreement.largest:.0e}' if agreement.largest else 'to the last digit'}"
        )
        if agreement.differing:
            size, metric, theirs, ours = agreement.differing[0]
            how = (
                f"{len(agreement.differing)} of {agreement.compared} figures differ: {named(size)} {metric} {theirs:g}, "
                f"and its log gives {ours:g}"
            )
        yield f"{agreement.table}: {agreement.cells} have logs here, and {how}."


def _misled(findings: Findings) -> Iterator[str]:
    misled = findings.misled
    if misled is None:
        return
    values = misled.example_values
    gract = f", GRACT at least {share(misled.least_gract)}" if misled.least_gract is not None else ""
    verdict = "Utilisation misleads" if misled.busy_low_smact else "Utilisation and SMACT"
    yield (
        f"{verdict}: it reaches {HIGH_UTILIZATION:g} % in {misled.busy} of {misled.cells} cells (at least"
        f" {misled.least_utilization:.0f} %, mean {misled.mean_utilization:.2f} %{gract}); in {misled.busy_low_smact} of these SMACT"
        f" stays below {share(LOW_SMACT)}, in {misled.busy_low_smocc} SMOCC below {share(LOW_SMOCC)} ({misled.table})."
    )
    if misled.busy_low_smact:
        occ = f", SMOCC {share(values.get(SMOCC))}" if SMOCC in values else ""
        gract = f", GRACT {share(values.get(GRACT))}" if GRACT in values else ""
        yield f"{named(misled.example)}: utilisation {values[UTILIZATION]:.0f} %{gract}, SMACT {share(values[SMACT])}{occ}."


def _lines(findings: Findings) -> Iterator[str]:
    said = {
        (UTILIZATION, f"100 × {GRACT}"): ("GRACT says what utilisation says", "GRACT and utilisation say different things"),
        (GRACT, SMACT): ("GRACT tells SMACT here", "GRACT says little of SMACT"),
        (SMACT, SMOCC): ("SMOCC follows SMACT", "SMOCC follows SMACT loosely"),
    }
    for (x, y), (close, loose) in said.items():
        every = [line for line in findings.lines if (line.x, line.y) == (x, y)]
        known = [line.r2 for line in every if line.r2 is not None]
        if every and not known:
            yield f"No line of {SAID[y.rpartition(' ')[2]]} on {SAID[x]} can be fitted: {every[0].missing} ({every[0].table})."
        elif every:
            lead = close if min(known) >= CLOSE_R2 else loose
            yield f"{lead[0].upper()}{lead[1:]}: {'; '.join(f'{equation(line)} ({line.table})' for line in every)}."


def equation(line: FittedLine) -> str:
    """Write a line with its R², or why it has none."""
    if line.r2 is not None:
        return f"{in_words(line)}, R² {line.r2:.4f}"
    return in_words(line) if line.slope is None else f"{in_words(line)}, {line.missing}"


def _bundle(findings: Findings) -> Iterator[str]:
    known = [line for line in findings.by_threads if line.r2 is not None and line.slope is not None]
    if len(known) > 1:
        low, high = known[0], known[-1]
        yield (
            f"SMOCC on SMACT is a bundle of lines, one a block size: slope {low.slope:.3f} at {low.among} a block (R² {low.r2:.2f}),"
            f" {high.slope:.3f} at {high.among} (R² {high.r2:.2f}) ({findings.over.label})."
        )


def _courses(findings: Findings) -> Iterator[str]:
    for metric in (SMACT, SMOCC):
        every = [course for course in findings.courses if course.metric == metric]
        dips = [course for course in every if course.dip is not None]
        if not every:
            continue
        name = metric.upper()
        if not dips:
            yield f"{name} never falls with more blocks, at any of {len(every)} block sizes ({findings.over.label})."
            continue
        if metric == SMACT:
            yield (
                f"More blocks are not more {name}: it is not monotone at {len(dips)} of {len(every)} block sizes ({findings.over.label})."
                f" Its deepest fall, by threads a block: {'; '.join(map(_dip, dips))} blocks."
            )
        else:
            yield f"{name} is not monotone either, at {_listed(str(dip.threads) for dip in dips)} threads a block."


def _dip(course: Course) -> str:
    assert course.dip is not None  # noqa: S101  # only those that have one are asked
    few, high, many, low = course.dip
    return f"{course.threads}: {share(high)} at {few}, {share(low)} at {many}"


def _memory(findings: Findings) -> Iterator[str]:
    if findings.memory:
        yield (
            "Used memory grows by what the kernel allocates, 8 × blocks × threads bytes: "
            f"{'; '.join(f'{equation(line)} ({line.table})' for line in findings.memory)}."
        )


def _work(findings: Findings) -> Iterator[str]:
    for odd in findings.odd:
        if odd.rival is None:
            leaves = f"where equally many launches would take {_limits(odd)}"
            yield f"{named(odd.size)} did not run what the others ran: {odd.samples:.0f} active samples {leaves}."
        elif odd.size < odd.rival:
            (other,) = (one for one in findings.odd if one.size == odd.rival)
            yield (
                f"One of these two did not run what the others ran, and nothing tells which: {named(odd.size)} has {odd.samples:.0f} active"
                f" samples, {named(other.size)} {other.samples:.0f} where equally many launches would take {_limits(other)}."
            )
    if findings.launches:
        several = [f"{named(size)}: {count:g}" for size, count in findings.launches.items()]
        yield f"Launches differ from most cells' in {len(several)}: {_listed(several)}."
    for uneven in findings.uneven:
        counts = ", ".join(f"{name} {count}" for name, count in uneven.counts.items())
        yield f"{uneven.place}: its logs are not of one length ({counts}): one was cut short."
    if findings.idle:
        yield f"No work was seen in {_listed(named(cell.size) for cell in findings.idle)}: no sample has GRACT or utilisation above 0."
    if findings.grid.cells and not findings.grid.whole_run and len(findings.samples) > 1 and not findings.odd:
        yield (
            f"Every cell took as long as equally many launches would (within a factor of {FACTOR:g}), as far as others of its block size"
            " tell."
        )


def _limits(odd: OddCell) -> str:
    few, many = odd.least, odd.most
    if few is not None and many is not None:
        return f"{few:.0f} to {many:.0f}"
    return f"{few:.0f} or more" if few is not None else f"{many or 0:.0f} or fewer"


def _prediction(findings: Findings) -> Iterator[str]:
    every = findings.predictions
    if not every.cells:
        known = {size: row[SMACT] for size, row in findings.over.rows.items() if SMACT in row}
        sms = findings.grid.chip.sms
        full = [value for size, value in known.items() if sms is not None and size[0] >= sms]
        if full:
            yield (
                f"From {sms} blocks on SMACT could be 1; it is {share(min(full))} to {share(max(full))} in {len(full)} cells:"
                f" min(b, SMs) / SMs is a bound and predicts nothing without the duty, and {every.missing or 'that is not known'}."
            )
        return
    worst = max(every.cells, key=lambda cell: abs(cell.off))
    yield (
        f"SMACT is where the number of blocks puts it, within ± {share(NEAR)}, in {every.near} of {len(every.cells)} cells;"
        f" furthest off is {named(worst.size)}: {share(worst.observed)} where {share(worst.least)} to {share(worst.most)} was predicted."
    )


def _spread(findings: Findings) -> Iterator[str]:
    if findings.spread:
        lines = [f"{SAID[metric]} {f'{most:.1f} %' if metric == UTILIZATION else share(most)}" for metric, most in findings.spread.items()]
        yield f"Runs of one size differ by at most: {', '.join(lines)} (active means)."


def _bounds(findings: Findings) -> Iterator[str]:
    bounds = findings.bounds
    if not bounds.tested:
        return
    places = dict.fromkeys(named(violation.size) for violation in bounds.violations)
    if bounds.violations:
        yield f"Bounds are broken in {len(places)} of {len(findings.samples)} cells (± {ROUNDING:g}): {_listed(places)}; see below."
    else:
        samples = max(count for bound, (count, _) in bounds.tested.items() if "share" not in bound or len(bounds.tested) == SHARES_ALONE)
        yield f"All {len(bounds.tested)} bounds hold in all {len(findings.samples)} cells, in each of {samples} samples (± {ROUNDING:g})."
    for bound, reason in bounds.untested.items():
        yield f"Not tested: {bound}: {reason}."


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:FEW]) + (f" and {len(every) - FEW} more" if len(every) > FEW else "")
