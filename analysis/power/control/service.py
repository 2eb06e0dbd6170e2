"""A decider: a run's lines in, a decision out for each, until the run has no more to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.power import algorithms
from analysis.terms import Refused

from .messages import decided, question_of, read, seen_of
from .terms import Decision, Infeasible, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from .terms import Controller, Seen

    Write = Callable[[dict[str, Any]], None]


def serve(lines: Iterable[str], write: Write) -> int:
    """Answer each line. Returns: 0 when the run has nothing more to tell, 2 after a line that could not be used: `{"error": …}`."""
    try:
        _serve(iter(lines), write)
    except Unsupported as reason:
        write({"unsupported": str(reason)})
    except Infeasible as reason:
        write({"infeasible": str(reason), "smallest_cap": reason.smallest_cap})
    except Refused as reason:
        write({"error": str(reason)})
        return 2
    return 0


def _serve(lines: Iterator[str], write: Write) -> None:
    hello = next(lines, None)
    if hello is None:
        return
    at_work = algorithms.at_work(question_of(read(hello)))
    write(decided(at_work.first()))
    for line in lines:
        write(decided(following(at_work, seen_of(read(line)))))


def following(controller: Controller, seen: Seen) -> Decision:
    """What to set after an iteration: what the controller says, or all as it was where power was not measured and all fitted."""
    if (seen.power_max is None or seen.power_mean is None) and not seen.oom:
        return Decision(seen.settings, "no reading of power: held")
    return controller.then(seen)
