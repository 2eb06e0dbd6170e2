"""What a monitored run says in sentences, the same on a terminal and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import probability

from .words import amount, ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Overhead

WORDS = (("equivalent", "No effect beyond the margin: {}."), ("inconclusive", "Neither a cost nor its absence is shown: {}."))


def answer(found: Overhead) -> list[str]:
    """What one workload says: the A/A first, then what costs, what does not, and what is not known."""
    lines = [found.control.sentence]
    if found.control.state == "differs":
        return lines
    monitors = [one for one in found.arms if one.base]
    called = [(one, one.cpu) for one in monitors if one.verdict in {"regressed", "improved"} and one.cpu is not None]
    for arm, cpu in sorted(called, key=lambda one: -one[1].value):
        p = "" if cpu.p_adjusted is None else f", Holm p {probability(cpu.p_adjusted)}"
        lines.append(f"{arm.label} {arm.said}: {amount(cpu)} CPU {ends(cpu)}{p}, {cpu.n} {found.units}.")
    for word, said in WORDS:
        names = [one.label for one in monitors if one.verdict == word]
        lines += [said.format(", ".join(names))] if names else []
    return lines


def sentences(found: Sequence[Overhead]) -> list[tuple[str, list[str]]]:
    """All that is said of a run: for each workload its answer, its rates, its places, and the demands with what became of them."""
    return [
        (
            one.workload,
            [
                *answer(one),
                *(dose.sentence for dose in one.doses),
                *([one.position.sentence] if one.position is not None else []),
                *(f"{check.passed}: {check.name}: {check.figures}." for check in one.checks),
            ],
        )
        for one in found
    ]
