"""Acknowledged changes: the file says which are known, and whatever is not understood in it is refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.studies.history.answer import acknowledge, read
from analysis.studies.history.history import History, gather, judge, regressions
from analysis.terms import Refused
from tests.made_history import night, noisy, stepped

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


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
        "run: ci-2026-01-31T02:00:00+00:00",  # with the digest that tells it from another run of that second
        "run: ci-2026-01-28T02:00:00+00:00",
    ],
)
def test_an_entry_speaks_for_the_change_within_three_runs_of_what_it_names(history: History, tmp_path: Path, when: str) -> None:
    """The change is between night 29 and 30, 2026-01-31; all metrics are meant where none is named."""
    if when.startswith("run: "):
        ids = {point.mark.run_id for judged in history.judged for point in judged.series.points}
        when = f"run: {next(run_id for run_id in ids if run_id.startswith(when.removeprefix('run: ')))}"
    known = acknowledge(history, read(entry(tmp_path, f"- workload: bench.py::sort\n  {when}\n  note: issue 12\n")))
    assert [change.acknowledged for change in known.changes] == ["issue 12"] * 2
    assert (known.notes, regressions(known, recent=60)) == ((), [])


@pytest.mark.parametrize("when", ["date: 2026-02-04", "date: 2026-01-27", "date: 2027-01-01", "run: nobody"])
def test_an_entry_that_speaks_for_nothing_is_said_to(history: History, tmp_path: Path, when: str) -> None:
    path = entry(tmp_path, f"# old\n- workload: bench.py::sort\n  {when}\n  note: x\n")
    known = acknowledge(history, read(path))
    named = when.removeprefix("date: ").replace("run: ", "run ")
    (note,) = known.notes
    assert note.startswith(f"{path}:2: ")
    assert named in note
    assert len(regressions(known, recent=60)) == 2


@pytest.mark.parametrize(("wanted", "marked"), [("metric: throughput_samples_per_s", 1), ("tweakset: as-run", 2), ("tweakset: stock", 0)])
def test_an_entry_may_mean_one_metric_or_tweak_set(history: History, tmp_path: Path, wanted: str, marked: int) -> None:
    known = acknowledge(history, read(entry(tmp_path, f"- workload: bench.py::sort\n  {wanted}\n  date: 2026-01-31\n  note: x\n")))
    assert sum(change.acknowledged is not None for change in known.changes) == marked


NOT_UNDERSTOOD = (
    "- workload: a\n  note: x\n  date: 2026-01-01\n  who: me\n",
    "- note: x\n  date: 2026-01-01\n",
    "- workload: a\n  date: 2026-01-01\n",
    "- workload: a\n  note: x\n",
    "- workload: a\n  note: x\n  run: r\n  date: 2026-01-01\n",
    "- workload: a\n  note: x\n  date: yesterday\n",
    "- workload: a\n  note:\n  date: 2026-01-01\n",
    "workload: a\n",
    "- just words\n",
    "- [unclosed\n",
    "",
)


def test_what_is_not_understood_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    complaints = {}
    for text in NOT_UNDERSTOOD:
        with pytest.raises(Refused) as refusal:
            read(entry(Path(), text))
        complaints[repr(text)] = str(refusal.value)
    with pytest.raises(Refused) as refusal:
        read(Path("none.yaml"))
    assert complaints | {"no file": str(refusal.value)} == snapshot
