"""Acknowledged changes: the file says which are known, and whatever is not understood in it is refused with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.history.acknowledged import acknowledge, read
from analysis.history.gather import gather
from analysis.history.judge import judge, regressions
from analysis.load import from_json
from analysis.terms import Refused
from tests.made_history import night, noisy, stepped

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.history.records import History


@pytest.fixture(scope="module")
def history() -> History:
    """Thirty nights, 20 % slower, thirty nights: in throughput and in the median of a call."""
    times_s = noisy(stepped((30, 0.1), (30, 0.12)))
    return judge(gather(from_json(night(at, {"sort": time_s}), f"{at}.json") for at, time_s in enumerate(times_s)))


def entry(folder: Path, text: str) -> Path:
    path = folder / "known.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "when",
    [
        "date: 2026-01-31",
        "date: 2026-01-29",
        "date: '2026-02-03'",
        "run: ci-2026-01-31T02:00:00+00:00",
        "run: ci-2026-01-28T02:00:00+00:00",
    ],
)
def test_an_entry_speaks_for_the_change_within_three_runs_of_what_it_names(history: History, tmp_path: Path, when: str) -> None:
    """The change is between night 29 and 30, 2026-01-31; all metrics are meant where none is named."""
    known = acknowledge(history, read(entry(tmp_path, f"- workload: bench.py::sort\n  {when}\n  note: checks its input, issue 12\n")))
    assert [change.acknowledged for change in known.changes] == ["checks its input, issue 12"] * 2
    assert (known.notes, regressions(known, recent=60)) == ((), [])


@pytest.mark.parametrize("when", ["date: 2026-02-04", "date: 2026-01-27", "date: 2027-01-01", "run: nobody"])
def test_an_entry_that_speaks_for_nothing_is_said_to(history: History, tmp_path: Path, when: str) -> None:
    path = entry(tmp_path, f"# old\n- workload: bench.py::sort\n  {when}\n  note: x\n")
    known = acknowledge(history, read(path))
    named = when.removeprefix("date: ").replace("run: ", "run ")
    assert known.notes == (f"{path}:2: acknowledges nothing: no change of bench.py::sort was found within 3 runs of {named}.",)
    assert len(regressions(known, recent=60)) == 2


@pytest.mark.parametrize(("wanted", "marked"), [("metric: throughput_samples_per_s", 1), ("tweakset: as-run", 2), ("tweakset: stock", 0)])
def test_an_entry_may_mean_one_metric_or_tweak_set(history: History, tmp_path: Path, wanted: str, marked: int) -> None:
    known = acknowledge(history, read(entry(tmp_path, f"- workload: bench.py::sort\n  {wanted}\n  date: 2026-01-31\n  note: x\n")))
    assert sum(change.acknowledged is not None for change in known.changes) == marked


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- workload: a\n  note: x\n  date: 2026-01-01\n  who: me\n", "known.yaml:4: unknown key 'who'; an acknowledgement has workload, "),
        ("- note: x\n  date: 2026-01-01\n", "known.yaml:1: an acknowledgement needs a workload."),
        ("- workload: a\n  date: 2026-01-01\n", "known.yaml:1: an acknowledgement needs a note."),
        ("- workload: a\n  note: x\n", "known.yaml:1: an acknowledgement needs either a run or a date, and not both."),
        ("- workload: a\n  note: x\n  run: r\n  date: 2026-01-01\n", "needs either a run or a date, and not both."),
        ("- workload: a\n  note: x\n  date: yesterday\n", "known.yaml:3: 'yesterday' is no date; write it as 2026-11-03."),
        ("- workload: a\n  note:\n  date: 2026-01-01\n", "known.yaml:2: note has no value; give one, or drop the line."),
        ("workload: a\n", "known.yaml:1: the file must be a list: lines that begin with a dash."),
        ("- just words\n", "known.yaml:1: an entry of the file must be names with values"),
        ("- [unclosed\n", "broken YAML"),
        ("", "is empty"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(Refused) as refusal:
        read(entry(tmp_path, text))
    assert complaint in str(refusal.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"none\.yaml: "):
        read(tmp_path / "none.yaml")
