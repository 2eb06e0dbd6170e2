"""Whether runs of one configuration read the same data: by the hash of the list of their files' sizes, which each run carries."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import IoRun


def of_one_data_set(runs: Sequence[IoRun], refused: list[str]) -> list[IoRun]:
    """Leave out runs of a configuration that read another data set than most of its runs; all of them, where no data set has most."""
    of = {one.id: str(one.dataset.get("sizes_sha256") or "none recorded") for one in runs}
    read: dict[str, Counter[str]] = {}
    configurations = {one.id: str(sorted((name, str(value)) for name, value in {**one.params, **one.overrides}.items())) for one in runs}
    for one in runs:
        read.setdefault(configurations[one.id], Counter())[of[one.id]] += 1
    kept = []
    for one in runs:
        alike = read[configurations[one.id]]
        usual, times = alike.most_common(1)[0]
        if of[one.id] == usual and list(alike.values()).count(times) == 1:
            kept.append(one)
        else:
            said = f"{times} of {alike.total()} runs of its configuration read {usual[:12]}"
            refused.append(
                f"{one.origin}: {one.id}: the list of its data set's sizes has the hash {of[one.id][:12]}, {said}: not the same data."
            )
    return kept
