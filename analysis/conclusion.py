"""What a session says of a design over keys when it ends: which key did it, in a sentence; the tables are those of `effects`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from .checks import warnings_of
from .labels import headline
from .plain import one_line
from .printing import WIDTH, columns, hanging, on_page
from .switched.expand import is_switched
from .wording import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from .terms import Run


def takes_keys_apart(run: Run) -> bool:
    """Whether a run was laid out to say which key did it: its tweak sets are then but points, and a verdict on each is no answer."""
    return bool(run.design.factors) and not is_switched(run)


def render_conclusion(run: Run, width: int = WIDTH, *, color: bool = False) -> str:
    """Write what a design over keys says, no line longer than `width`.

    A static one says the sentence of its effects and whether its A/A check holds; an adaptive one has a sentence of its own, which the
    session prints, and of a search come the candidates that ran again to be confirmed.
    """
    parts: list[RenderableType] = [Text(headline([run]), "bold" if color else "")]
    parts += [Text(f"{name}: {study.question}") for name, study in run.studies.items()]
    parts += _candidates(run) if run.design.conclusion else _sentences(run)
    warnings = hanging((("warning:", line) for line in dict.fromkeys(warnings_of(run, ()))), "yellow")
    if warnings.row_count:
        parts += ["", warnings]
    return on_page(parts, width, color=color)


def _sentences(run: Run) -> Iterator[RenderableType]:
    from analysis.studies.keys.effects import effects_of  # noqa: PLC0415  # it takes a second to import, and a gate is read before the first cell
    from analysis.studies.keys.printable import printable  # noqa: PLC0415

    for one in map(printable, effects_of(run)):
        whose = ", ".join(filter(None, (one.observed.workload, one.observed.profile)))
        yield ""
        yield Text(f"{whose}: {one.sentence}", "bold")
        if one.again:
            yield hanging([("A/A:", one.again)])


def _candidates(run: Run) -> Iterator[RenderableType]:
    """The rows of what a search ran again; of other designs there are none."""
    found = run.design.conclusion.get("candidates")
    rows = [_row(one, one["confirmed"]) for one in (found if isinstance(found, list) else ()) if one.get("confirmed")]
    if rows:
        yield ""
        yield columns(["candidate", "levels", "n", "+ % faster [95 % for all]", "expected"], rows, left=2)


def _row(one: Mapping[str, object], fresh: Mapping[str, float]) -> list[str]:
    levels, expected = one["levels"], one["predicted"]
    said = ", ".join(f"{name}={level}" for name, level in levels.items() if level is not None) if isinstance(levels, dict) else ""
    ends = ", ".join(number(gain(fresh[end])).lstrip("+") for end in ("high", "low"))
    promised = number(gain(expected)) if isinstance(expected, float) else ""
    return [one_line(str(one["name"])), one_line(said), str(fresh["blocks"]), f"{number(gain(fresh['change']))} [{ends}]", promised]


def gain(change: float) -> float:
    """What a change of the cost of a step is as a gain: a cost that falls by a fifth is a gain of a quarter."""
    return 1 / (1 + change) - 1
