"""The summary tables written down: as CSV for programs, as Markdown for pages, as text for a terminal."""

from __future__ import annotations

import csv
import re
from dataclasses import asdict
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from analysis.plain import one_line
from analysis.report.csv_files import field
from analysis.studies.gate.markdown import text as markdown
from analysis.wording import digits, number, percent

from .changes import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.table import Table

    from .rows import Row

LONGEST = 80  # letters of a name in a table
LEGEND = (
    "samples: all samples / all time. GPU, CPU, memory: means over the measured steps. Gain: in the primary metric, + is faster.",
    "Only where the verdict is improved or regressed was a difference shown, whatever the other numbers are.",
)
NUMBER = re.compile(r"[-+]?[\d.]*(e[-+]\d+)?")
ACROSS = {"improved": "faster", "regressed": "slower", "equivalent": "equivalent"}


class Shown(NamedTuple):
    """A column people read: its head, its unit, and how a row stands in it; one that is empty in every row is left out."""

    head: str
    unit: str
    cell: Callable[[Row], str]


def _digits(value: float | None) -> str:
    return "" if value is None else digits(value)


def _tenths(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


COLUMNS = (
    Shown("tweak set", "", lambda row: one_line(row.tweakset, LONGEST)),
    Shown("cells", "", lambda row: str(row.cells)),
    Shown("samples", "1/s", lambda row: _digits(row.throughput_samples_per_s)),
    Shown("step", "s", lambda row: _digits(row.step_time_mean_s)),
    Shown("GPU", "%", lambda row: _tenths(row.gpu_util_percent)),
    Shown("GPU", "W", lambda row: _tenths(row.gpu_power_w)),
    Shown("energy", "J/sample", lambda row: _digits(row.energy_j_per_sample)),
    Shown("CPU", "%", lambda row: _tenths(row.cpu_busy_percent)),
    Shown("memory", "GiB", lambda row: _digits(row.memory_used_gib)),
    Shown("parameters", "", lambda row: ", ".join(f"{count} {section}" for section, count in row.changes.items()) or "none"),
    Shown("gain", "%", lambda row: "" if row.gain is None else number(row.gain)),
    Shown("verdict", "", lambda row: row.verdict),
)
FOLDED = ("tweak set", "parameters")


def as_csv(rows: Sequence[Row]) -> str:
    """Write every row with every field, units in the names, fractions as fractions; what was not measured is empty."""
    out = StringIO()
    records = [_record(row) for row in rows]
    writer = csv.DictWriter(out, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: field(value) for name, value in record.items()} for record in records)
    return out.getvalue()


def as_markdown(rows: Sequence[Row]) -> str:
    """Write a table for each workload of each run, and one across them where there are several."""
    parts = ["# Summary", ""]
    for place, group in by_place(rows).items():
        kept = _kept(group)
        heads = [", ".join(filter(None, (column.head, column.unit))) for column in kept]
        parts += [f"## {markdown(place)}", "", *_lines(heads, [[column.cell(row) for column in kept] for row in group]), ""]
    if len(by_place(rows)) > 1:
        heads = ["workload", "run", "machine", "baseline, samples/s", *ACROSS.values(), "not decided"]
        parts += ["## Across workloads and runs", "", *_lines(heads, across(rows)), ""]
    return "\n".join([*parts, "\n\n".join(LEGEND), ""])


def as_text(rows: Sequence[Row]) -> str:
    """Write the same in at most 100 columns, what was shown across workloads and runs in a line each."""
    from analysis.printing import hanging, on_page  # noqa: PLC0415  # rich, which the files have no need of

    parts: list[str | Table] = []
    for place, group in by_place(rows).items():
        parts += [place, _table(group), ""]
    for word, said in ACROSS.items():
        found = [f"{row.workload} {one}" for group in by_place(rows).values() for row, one in _named(group, word)]
        if found:
            parts.append(hanging([(f"{said}:", ", ".join(found))]))
    return on_page([*parts, *LEGEND])


def by_place(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group rows by workload and run, named as a heading names them."""
    several_studies = len({row.study for row in rows}) > 1
    found: dict[str, list[Row]] = {}
    for row in rows:
        study = f" ({row.study})" if several_studies and row.study != row.workload else ""
        found.setdefault(one_line(f"{row.workload}{study} · run {row.run_id} · {row.machine}", 2 * LONGEST), []).append(row)
    return found


def across(rows: Sequence[Row]) -> list[list[str]]:
    """Answer one line a workload and run: which sets were shown to be faster or slower, and how many were not decided."""
    lines = []
    for group in by_place(rows).values():
        first, base = group[0], next((row for row in group if row.verdict == "baseline"), None)
        named = [", ".join(one for _, one in _named(group, word)) or "none" for word in ACROSS]
        undecided = sum(row.verdict in {"inconclusive", "not comparable"} for row in group)
        rate = _digits(base.throughput_samples_per_s) if base else ""
        lines.append([first.workload, first.run_id, first.machine, rate, *named, str(undecided)])
    return lines


def _named(group: Sequence[Row], word: str) -> list[tuple[Row, str]]:
    return [(row, f"{row.tweakset} ({percent(row.gain)})") for row in group if row.verdict == word and row.gain is not None]


def _kept(group: Sequence[Row]) -> list[Shown]:
    return [column for column in COLUMNS if any(column.cell(row) for row in group)]


def _table(group: Sequence[Row]) -> Table:
    from rich.table import Table  # noqa: PLC0415  # as above
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="")
    kept = _kept(group)
    for column in kept:
        folds, left = column.head in FOLDED, column.head == "tweak set"
        # A unit that would widen its column is written short; the head says of what.
        unit = column.unit.removesuffix("/sample")
        table.add_column(
            f"{unit and column.head}\n{unit or column.head}", justify="left" if left else "right", no_wrap=not folds, overflow="fold"
        )
    for row in group:
        table.add_row(*(Text(column.cell(row)) for column in kept))
    return table


def _record(row: Row) -> Mapping[str, object]:
    """Make the flat record of a row: counts of parameters by section, other sections together."""
    record = asdict(row)
    counted = record.pop("changes")
    renamed = {"gain": "gain_fraction", "low": "gain_low_95_fraction", "high": "gain_high_95_fraction", "metric": "primary_metric"}
    flat = {renamed.get(name, name): value for name, value in record.items()}
    sections = {f"{section}_parameters": counted.get(section, 0) for section in SECTIONS}
    return flat | sections | {"other_parameters": sum(count for section, count in counted.items() if section not in SECTIONS)}


def _lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    ruled = ["---" if at == 0 else "---:" for at in range(len(heads))]
    safe = [[cell if NUMBER.fullmatch(cell) else markdown(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (heads, ruled, *safe)]
