"""Kinds of jobs by priority: as they are typed, and what each gets as a page and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page
from analysis.terms import Refused

from .priorities import Kind
from .words import number, unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from .priorities import Served

FORM = "PRIORITY:RATE:S[:CS2], such as 1:2.5:0.2"


def parse(text: str) -> Kind:
    """Read a kind of job. Raises: Refused."""
    parts = text.split(":")
    if not 3 <= len(parts) <= 4:
        raise Refused(f"{one_line(text, 60)!r} is no class of jobs; write {FORM}.")
    try:
        return Kind(int(parts[0]), *map(float, parts[1:]))
    except ValueError:
        raise Refused(f"{one_line(text, 60)!r} is no class of jobs: all its parts are numbers; write {FORM}.") from None


def render(answers: Sequence[tuple[int, Sequence[Served]]], *, preemptive: bool) -> str:
    """Write mean waits by priority, for each number of servers."""
    parts: list[RenderableType] = []
    for servers, some in answers:
        how = "pushed aside and resumed" if preemptive else "let finish"
        parts.append(f"{servers} server{'s' if servers > 1 else ''}, who has begun is {how}")
        scale, name = unit(one.response_s or 0.0 for one in some)
        rows = [_row(one, scale) for one in sorted(some, key=lambda one: one.kind.priority)]
        parts.append(columns(("priority", "jobs/s", "service s", "cs²", "load so far", f"wait {name}", f"response {name}"), rows))
        if any(one.wait_s is None for one in some):
            parts.append(hanging([("•", "where the load so far is 1 or more, the queue grows without end and has no stationary wait.")]))
        parts.append("")
    return on_page(parts)


def document(answers: Sequence[tuple[int, Sequence[Served]]], *, preemptive: bool) -> dict[str, Any]:
    """Write the same for programs."""
    return {
        "preemptive": preemptive,
        "answers": [{"servers": servers, "classes": [asdict(one) for one in some]} for servers, some in answers],
    }


def _row(one: Served, scale: float) -> list[str]:
    kind = one.kind
    times = [number(None if value is None else value * scale) for value in (one.wait_s, one.response_s)]
    return [str(kind.priority), f"{kind.rate_per_s:g}", f"{kind.service_s:g}", f"{kind.scv_service:g}", number(one.load), *times]
