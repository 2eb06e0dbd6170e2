"""Read recordings of real programs, each format within 2 % of an independently known truth.

`python -m tests.command.recordings.record` makes a recording; its docstring says what is in one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest

from fixtures.studies.command import choosing
from fixtures.studies.command.bars import Trial
from fixtures.studies.command.formats import FORMATS, ROWS
from fixtures.studies.command.reading import Lines
from fixtures.terms import Refused

HERE = Path(__file__).parent / "recordings"
NAMES = sorted(path.stem for path in HERE.glob("*.jsonl"))
HEADERS = {
    name: json.loads((HERE / f"{name}.jsonl").read_text().partition("\n")[0]) for name in NAMES
}
READ = [
    name
    for name, header in HEADERS.items()
    if header["exit_code"] == 0 and not name.endswith(("-failed", "-refused"))
]
FAILED = [name for name in NAMES if name not in READ]
NO_STEPS = ("keras-verbose-2",)  # it prints once an epoch, and had three
READ = [name for name in READ if not name.startswith(NO_STEPS)]
PAIRS = sorted(
    name.removesuffix("-slow")
    for name in READ
    if name.endswith("-slow") and name.removesuffix("slow") + "fast" in READ
)
WITHIN = 0.02
COLLECTED = ("torchrun-bar",)  # --tee looks for output every 0.1 s, which is in each arrival


@dataclass(frozen=True)
class Recording:
    """A real program's output, as a trial of it, and the truth."""

    program: str
    exit_code: int
    truth: dict[str, Any]
    trial: Trial

    def expected(self, format_name: str) -> float:
        """Seconds of a step or of a run, or something per second."""
        row = FORMATS[format_name]
        if row.combine == "geomean" and "figures" in self.truth:
            return geometric_mean(self.truth["figures"].values())
        if row.name in ("told-rate", "lightning"):
            return 1 / float(self.truth["step_s"])
        if "rate_per_s" in self.truth:
            return float(self.truth["rate_per_s"]) * (8 if row.unit == "bit" else 1)
        return float(
            self.truth.get("run_s") or self.truth["step_s"] / self.truth.get("counts_per_step", 1)
        )


def recording(name: str) -> Recording:
    header, *chunks = [
        json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()
    ]
    trial = Trial(tuple(header["command"]), 0.0, header["wall_s"])
    pipes = {"out": Lines(), "err": Lines()}
    for at_s, pipe, text in chunks:
        for stamped in pipes[pipe].take(text.encode(), at_s):
            trial.add(*stamped)
    for lines in pipes.values():
        for stamped in lines.take(b"", header["wall_s"]):
            trial.add(*stamped)
    return Recording(header["program"], header["exit_code"], header["truth"], trial)


def read(name: str) -> tuple[str, float]:
    """Return a recording's format and its figure: seconds per step or per run, or a rate."""
    trial = recording(name).trial
    if found := choosing.choose_figure(trial, HERE):
        return found[0].name, found[1].value.number
    one = choosing.choose_steps(trial)
    assert one, "printed no known steps"
    return one.row.name, one.step_s if one.rate_per_s is None else one.rate_per_s


def within(name: str) -> float:
    return 0.05 if name.startswith(COLLECTED) else WITHIN


@pytest.mark.parametrize("name", READ)
def test_what_a_real_program_prints_is_read(name: str) -> None:
    format_name, number = read(name)
    assert number == pytest.approx(recording(name).expected(format_name), rel=within(name)), (
        format_name
    )


@pytest.mark.parametrize("name", PAIRS)
def test_a_known_effect_on_a_real_program_is_found(name: str) -> None:
    """By the same format and the same unit of a step, whichever of the two runs is the trial."""
    (slow_format, slow), (fast_format, fast) = read(f"{name}-slow"), read(f"{name}-fast")
    expected = recording(f"{name}-slow").expected(slow_format) / recording(f"{name}-fast").expected(
        fast_format
    )
    assert slow_format == fast_format
    assert slow / fast == pytest.approx(expected, rel=2 * within(name))


@pytest.mark.parametrize("name", FAILED)
def test_a_run_that_told_failures_has_no_figure(name: str) -> None:
    one = recording(name)
    if not one.exit_code:  # of any other a cell fails for that
        with pytest.raises(Refused, match=r"reported failures|printed no \S+ figure"):
            choosing.choose_figure(one.trial, HERE)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(NO_STEPS)])
def test_three_lines_are_no_steps(name: str) -> None:
    assert choosing.choose_figure(recording(name).trial) is None
    assert choosing.choose_steps(recording(name).trial) is None


def test_every_format_has_a_recording() -> None:
    """But for those that another form of the same program stands for."""
    others = {"aiperf-json", "aiperf-table", "fio-json-write", "pytest-benchmark-json", "told"}
    assert {row.name for row in ROWS} - {read(name)[0] for name in READ} == others
