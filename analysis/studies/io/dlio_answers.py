"""What a folder of DLIO results comes to, in a few sentences before all tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dlio_factors import WHOLE, settings
from .dlio_sentences import reversals
from .responses import is_degenerate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .dlio_published import Row
    from .dlio_study import DlioStudy

DLIOS = {"au_steady_percent": "AU", "mb_per_s_nominal_dlio": "MB/s"}


def answers(found: DlioStudy) -> list[str]:
    """Say how many published rows stand, whether a steady figure can be believed, what whole epochs say, and whether there is a test."""
    return [*_published(found), *_steady(found), *_whole(found), *_test(found), *_beside(found)]


def others(found: DlioStudy) -> tuple[list[Row], list[Row]]:
    """Answer the rows without raw data whose folder is here with another run in it: degenerate ones, and those that are not."""
    lost = [row for row in found.rows if row not in found.raw]
    bad, good = ({one.run.id for one in found.judged if is_degenerate(one) is word} for word in (True, False))
    return [row for row in lost if row.id in bad], [row for row in lost if row.id in good - bad]


def _published(found: DlioStudy) -> Iterator[str]:
    if not found.rows:
        return
    stale = {one.id for one in found.stale} & {row.id for row in found.rows}
    said = [f"{len(found.raw)} of {_count(len(found.rows), 'published row')} are reproduced from raw data"]
    lost = len(found.rows) - len(found.raw)
    said += [f"{lost} have none here"] if lost else []
    said += [f"{len(stale)} ran on stale data"] if stale else []
    for rows, what in zip(others(found), ("another, degenerate run", "another run"), strict=True):
        said += [f"the folder of {_listed([row.id for row in rows])} holds {what}{' each' if len(rows) > 1 else ''}"] if rows else []
    yield "; ".join(said)


def _steady(found: DlioStudy) -> Iterator[str]:
    runs = found.judged
    if not runs:
        return
    good = [one for one in runs if all(one.value(name) is not None for name in DLIOS)]
    kinds: dict[str, int] = {}
    for one in runs:
        if one not in good:
            why = next((word for name in DLIOS if (word := one.responses[name].why_missing)), "") or "no figure"
            kinds[why.partition(":")[0]] = kinds.get(why.partition(":")[0], 0) + 1
    why = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in kinds.items())
    if not good:
        yield f"no steady {_listed(DLIOS.values(), 'or')} can be believed: {why} of {_count(len(runs), 'run')}"
    else:
        yield f"steady {_listed(DLIOS.values())} can be believed in {len(good)} of {_count(len(runs), 'run')}{f': {why}' if why else ''}"


def _whole(found: DlioStudy) -> Iterator[str]:
    known = sorted(
        ((value, one) for one in found.usable if (value := one.value(WHOLE)) is not None), key=lambda pair: (pair[0], pair[1].run.id)
    )
    if not known:
        return
    (low, first), (high, last) = known[0], known[-1]
    turned = len(reversals(found.groups))
    said = f"AU is {low:.1f} %" if len(known) == 1 else f"AU goes from {low:.1f} % ({first.run.id}) to {high:.1f} % ({last.run.id})"
    said += f", {known[len(known) // 2][0]:.1f} % in the middle" if len(known) > 2 else ""
    said += f"; {_count(turned, 'comparison')} of steady figures turn round there" if turned else ""
    yield f"over the whole epoch {said}"


def _test(found: DlioStudy) -> Iterator[str]:
    sizes = [len(runs) for inner in settings(found.usable).values() for runs in inner.values()]
    again = sum(size > 1 for size in sizes)
    if sizes and not again and len(sizes) > 1:
        yield "each setting ran once, so no difference can be tested"
    elif again:
        yield f"{again} of {_count(len(sizes), 'setting')} ran more than once: on those stands what is said over runs"


def _beside(found: DlioStudy) -> Iterator[str]:
    for table in found.beside:
        yield f"{table.name} lies above this folder: python -m analysis io {table.parent} checks it too, and looks for stale rows"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(names: Iterable[str], word: str = "and") -> str:
    words = list(names)
    return f" {word} ".join([*([", ".join(words[:-1])] if len(words) > 1 else []), words[-1]])
