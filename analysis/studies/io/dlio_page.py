"""DLIO results as text of at most 100 columns: DLIO's own figures checked, the same runs judged, stale data, variation, and notes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page

from .dlio_answers import answers
from .dlio_factors import STEADY, WHOLE
from .dlio_findings import NAME, findings
from .responses import is_degenerate
from .validity import cannot_be, fewest_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from .dlio_study import DlioStudy
    from .responses import Judged


def render(found: DlioStudy, *, color: bool = False) -> str:
    """Write a study as text."""
    return on_page(parts(found), color=color)


def parts(found: DlioStudy) -> Iterator[RenderableType]:
    """The page, part by part."""
    yield Text(_head(found), "bold")
    said = answers(found)
    if said:
        yield hanging([("•", f"{one_line(line, 1000)}.") for line in said])
    for section in (_reckoned(found), _judged(found), *findings(found)):
        made = list(section)
        if made:
            yield ""
            yield from made


class _Letters:
    """Marks in a table, each with its sentence below it, given once."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def __call__(self, sentence: str) -> str:
        at = len(self._given)
        return self._given.setdefault(sentence, "abcdefghijklmnopqrstuvwxyz"[at] if at < 26 else f"z{at}")

    def lines(self) -> RenderableType:
        return hanging([(letter, f"{one_line(sentence)}.") for sentence, letter in self._given.items()], "dim", "dim")


def _head(found: DlioStudy) -> str:
    trained, made = len(found.judged), len(found.generations)
    said = [f"{trained + made} result folder{'' if trained + made == 1 else 's'}: {trained} trained, {made} only generated data"]
    degenerate = sum(map(is_degenerate, found.judged))
    said += [f"{degenerate} degenerate"] if degenerate else []
    said += [f"{len(found.stale)} on stale data"] if found.stale else []
    said += [f"{len(found.refused)} cannot be read"] if found.refused else []
    return "; ".join(said)


def _reckoned(found: DlioStudy) -> Iterator[RenderableType]:
    if not found.judged:
        return
    letters = _Letters()
    rows = []
    for one in found.judged:
        run, said = one.run, one.run.reported
        bad = next((doubt.reason for doubt in one.doubts if doubt.kind in ("stale data", "degenerate", "times")), None)
        reported = [
            _said(said.get(name), figure, bad, letters)
            for name, figure in (("train_au_mean_percentage", STEADY), ("train_io_mean_MB_per_second", "mb_per_s_nominal_dlio"))
        ]
        again = [
            "–" if bad else _number(one.formula(name), digits)
            for name, digits in ((STEADY, 2), ("mb_per_s_nominal_dlio", 1), ("mb_per_s_nominal_steady", 1))
        ]
        ratio = found.identities[run.origin].reported if not bad else None
        counts = [str(run.processes), f"{fewest_steps(run)[0]}x{len({epoch.number for epoch in run.epochs})}"]
        sd = said.get("train_au_stdev_percentage")
        reported[0] += f" ({sd:.2f})" if isinstance(sd, float) and math.isfinite(sd) and not bad else ""
        rows.append([one_line(one.run.id, NAME), *counts, reported[0], again[0], reported[1], again[1], again[2], _number(ratio, 4)])
    yield Text(f"As DLIO reckons it{_left_out(found)}")
    heads = ["run", "ranks", "steps", "AU %", "again", "MB/s", "again", "consistent", "identity"]
    yield columns(heads, rows)
    legend = [
        ("steps", "of an epoch of a rank, by epochs; in brackets after AU, its population deviation over epochs, which DLIO reports."),
        ("again", "reckoned anew from the step lists; MB are 2^20 bytes of nominal record length."),
        ("consistent", "MB/s of as many steps as the time spans; DLIO counts S - 2 steps over the time of S - 1."),
        ("identity", "samples/s over AU x batch x ranks / computation time: 1, for they are one measurement and no two findings."),
    ]
    yield letters.lines()
    yield hanging(legend, "dim", "dim")


def _left_out(found: DlioStudy) -> str:
    ways = sorted({(one.run.excluded_start_steps, one.run.excluded_end_steps) for one in found.judged})
    said = (f"{start} {'step' if start == 1 else 'steps'} at the start of an epoch and {end} at its end" for start, end in ways)
    return f", leaving out {' or '.join(said)}"


def _judged(found: DlioStudy) -> Iterator[RenderableType]:
    if not found.judged:
        return
    letters = _Letters()
    names = [(STEADY, 1, 2), (WHOLE, 1, 2), ("samples_per_s_steady", 1, 2), ("samples_per_s_whole", 1, 2)]
    names += [("mb_per_s_nominal_whole", 1, 1), ("first_step_share", 100, 1), ("barrier_share", 100, 1)]
    rows = []
    for one in found.judged:
        cells = [_figure(one, *how, letters) for how in names]
        rows.append([one_line(one.run.id, NAME), *cells])
    yield Text("What the runs' input did: without the first step (steady) and over the whole epoch")
    yield columns(["run", "AU steady", "AU whole", "steady /s", "whole /s", "MB/s whole", "first %", "barrier %"], rows)
    yield letters.lines()
    legend = [
        ("/s", "samples a second."),
        ("first", "the part of the epoch until the first batch is there; barrier: what is neither load nor computation."),
    ]
    yield hanging(legend, "dim", "dim")


def _figure(one: Judged, name: str, scale: float, digits: int, letters: _Letters) -> str:
    response = one.responses[name]
    if response.value is None:
        return f"({letters(response.why_missing or 'not recorded')})"
    return f"{response.value * scale:.{digits}f}"


def _said(value: object, figure: str, bad: str | None, letters: _Letters) -> str:
    """What the source reported; what cannot be is not shown as a number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"({letters('not reported')})"
    why = cannot_be(figure, [float(value)])
    if why or bad:
        return (
            f"({letters('refused: ' + '; '.join(reason for reason in (bad, why and f'what was reported is no figure: {why}') if reason))})"
        )
    return f"{value:.2f}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"
