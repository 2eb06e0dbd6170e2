"""What can be said of conditions that ran once each, in words: whether they did the same work, and why no overhead is claimed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis.verdict import ONE_RUN

from . import of_logs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .of_logs import Condition


def monitors_of(one: Condition) -> str:
    """Name a condition's monitors."""
    return ", ".join(one.monitors) or "none"


def began(one: Condition) -> str | None:
    """When a condition's first log began, by the machine's clock; None where no log has one."""
    if one.top is not None and one.top.snapshots[0].clock:
        return one.top.snapshots[0].clock
    stamps = [gpu.texts["timestamp"][0] for gpu in one.smi.gpus.values() if "timestamp" in gpu.texts] if one.smi is not None else []
    found = re.search(r"\d\d:\d\d:\d\d", min(stamps, default=""))
    return found[0] if found else None


def same_training(conditions: Sequence[Condition]) -> str:
    """Say whether the conditions did the same work: what a seed fixes must agree digit by digit."""
    trained = [each for each in conditions if each.time_s is not None]
    other = [f"{each.name}: {why}" for each in trained if (why := of_logs.other_work(each, conditions))]
    if len(trained) < 2:
        return "fewer than two trainings ended: whether the conditions did the same is not known"
    if other:
        return f"not the same training, so left out of the differences: {'; '.join(other)}"
    first = trained[0].training
    if first is None or not (first.tests or len(first.loss)):
        return "no loss and no accuracy to tell whether the conditions did the same"
    last = f"; the last accuracy is {first.tests[-1].correct} of {first.tests[-1].samples}" if first.tests else ""
    return f"the same training in all {len(trained)}: {len(first.loss)} losses and {len(first.tests)} accuracies agree digit by digit{last}"


def reason(conditions: Sequence[Condition]) -> str:
    """Say why no overhead is claimed."""
    said = [f"{ONE_RUN}"]
    clocks = [each.name for each in sorted((each for each in conditions if began(each)), key=lambda each: began(each) or "")]
    if len(clocks) > 1:
        said.append(f"one after the other (by their clocks {', '.join(clocks)}), so drift is part of any difference")
    found, apart = of_logs.differences(conditions), of_logs.spread(conditions)
    if apart:
        slow, fast, share = apart
        said.append(
            f"the baselines {slow.name} ({monitors_of(slow)}) and {fast.name} ({monitors_of(fast)}) differ by {100 * share:.2f} %"
            + (", more than any monitor adds to either" if all(each.fraction < share for each in found) else "")
        )
    for base in dict.fromkeys(each.against for each in found):
        faster = [each.condition for each in found if each.against == base and each.fraction < 0]
        if faster and len(faster) == sum(each.against == base for each in found):
            drifted = "no monitor speeds a training up, so the machine drifted more than they cost"
            said.append(f"every condition is faster than {base}, which has fewer monitors: {drifted}")
    if not found:
        said.append("no two times of one training whose monitors can be told apart")
    return f"{'; '.join(said)}."
