"""What follows from DLIO results, part by part: turned findings, repeats, published rows, stale data, variation, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line
from analysis.printing import columns, hanging, tiny

from .dlio_answers import others
from .dlio_factors import STEADY, WHOLE, run_value, settings
from .dlio_sentences import reversals
from .oneway import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from .dlio_factors import Tested
    from .dlio_study import DlioStudy
    from .oneway import Oneway, RunError
    from .responses import Judged

NAME, HEAD = 60, 24  # of a run: in a table, where it folds, and beside a note
RESPONSES = {STEADY: "AU steady", WHOLE: "AU whole"}
NO_REPEATS = "not possible: no setting was run twice here, so nothing says what a run by itself scatters by. Name repeats too."


def findings(found: DlioStudy) -> Iterator[Iterator[RenderableType]]:
    """All parts in order; one that has nothing to say is empty."""
    yield from (part(found) for part in (_reversed, _repeated, _published, _stale, _variation, _notes))


def _reversed(found: DlioStudy) -> Iterator[RenderableType]:
    lines = reversals(found.groups)
    if lines:
        yield Text("What the excluded first step hides", "yellow")
        yield hanging([("-", f"{one_line(line)}.") for line in lines])


def _repeated(found: DlioStudy) -> Iterator[RenderableType]:
    again = [runs for inner in settings(found.usable).values() for runs in inner.values() if len(runs) > 1]
    if again:
        yield Text("Settings that were run again: mean over runs, sample deviation, 95 % by Student's t")
        rows = [[one_line(runs[0].run.id, NAME), str(len(runs)), *(_over_runs(runs, name) for name in RESPONSES)] for runs in again]
        yield columns(["run", "n", *RESPONSES.values()], rows)


def _over_runs(runs: Iterable[Judged], name: str) -> str:
    values = [value for one in runs if (value := run_value(one, name)) is not None]
    over = interval(values) if values else None
    return f"{over.mean:.2f} (sd {over.sd:.2f}) {over.low:.2f} to {over.high:.2f}" if over and over.sd is not None else "–"


def _published(found: DlioStudy) -> Iterator[RenderableType]:
    if not found.rows:
        return
    lost = [row for row in found.rows if row not in found.raw]
    yield Text(f"Published table: {len(found.raw)} of {len(found.rows)} rows are those of raw data here, to 0.005")
    groups = zip(("without raw data", "another, degenerate run", "another run"), (lost, *others(found)), strict=True)
    lines = [(what, one_line(", ".join(row.id for row in rows), 1000)) for what, rows in groups if rows]
    if lines:
        yield hanging(lines, "", "dim")


def _stale(found: DlioStudy) -> Iterator[RenderableType]:
    if found.stale:
        yield Text("Stale data: these ran on other data than their own and are compared with nothing", "yellow")
        yield hanging([(one_line(one.id, 40), f"{one_line(one.evidence)}.") for one in found.stale])


def _variation(found: DlioStudy) -> Iterator[RenderableType]:
    error = any(found.error.values())
    rows = [_tested(one, with_error=error) for one in found.tests if one.epochs is not None]
    if not rows:
        return
    refused = any(one.value(STEADY) is None for one in found.usable)
    over = "over epochs not valid" if error else "not valid"
    yield Text(f"Analysis of variance, {over}: epochs taken for runs{'; the figures are refused above' if refused else ''}", "yellow")
    yield columns(["factor", "response", "F over epochs", "p", "eta²", *(["F over runs", "p"] if error else [])], rows, left=2)
    scatter = "; ".join(f"{RESPONSES[name]} {_scatter(one)}" for name, one in found.error.items() if one is not None)
    lines = [
        ("AU steady", "as DLIO reported it."),
        ("over epochs", "pseudo-replication, shown to be checked; nothing follows from it."),
        ("over runs", f"on what runs of one setting scatter by: {scatter}." if scatter else NO_REPEATS),
    ]
    yield hanging(lines, "dim", "dim")


def _scatter(error: RunError) -> str:
    return f"{error.sd:.3f} points, from {error.settings} setting{'s' * (error.settings > 1)} run again (df {error.df})"


def _tested(one: Tested, *, with_error: bool) -> list[str]:
    levels = f"{one.among}{one.factor} {' / '.join(one.levels)}"
    response = RESPONSES[one.response] + (f", from epoch {one.skipped + 1}" if one.skipped else "")
    return [one_line(levels, 90), response, *_f(one.epochs), *(_f(one.runs)[:2] if with_error else [])]


def _f(one: Oneway | None) -> list[str]:
    if one is None:
        return ["–", "–", "–"]
    f = f"{one.f:.1f}" if one.f >= 100 else f"{one.f:.2f}"
    return [f"({one.df_between},{one.df_error}) {f}", tiny(one.p), "–" if one.eta2 is None else f"{one.eta2:.4f}"]


def _notes(found: DlioStudy) -> Iterator[RenderableType]:
    noted: dict[str, list[str]] = {}
    for one in found.judged:
        for note in (*one.run.notes, *(doubt.reason for doubt in one.doubts if doubt.kind == "contradiction")):
            noted.setdefault(note, []).append(one.run.id)
        size, host = one.run.reported.get("data_size_per_host_GB"), one.run.host
        if isinstance(size, float) and host.cached_bytes and size * 2**30 <= host.cached_bytes:
            noted.setdefault("the page cache held as much as the data set when it began: storage was hardly read", []).append(one.run.id)
    lines = [(_names(ids, len(found.judged)), f"{one_line(note)}.") for note, ids in noted.items()]
    if lines:
        yield hanging(lines, "dim", "dim")


def _names(ids: Iterable[str], everybody: int) -> str:
    names = list(ids)
    return "all" if len(names) == everybody > 1 else one_line(", ".join(names), HEAD)
