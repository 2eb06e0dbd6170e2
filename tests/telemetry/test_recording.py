"""A cell's recording: lost sources, slow ones, batches, and ticks of a pause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from fixtures.telemetry import sampler
from fixtures.telemetry.sampler import FileWatch, Recording
from fixtures.telemetry.sources import Converted, Row, SourceMissing


class _Vanishing:
    """A source that is gone at its third sample."""

    def __init__(self) -> None:
        self.samples = 0

    def open(self, root: Path, pid: int | None) -> None:
        del root, pid

    def sample(self) -> Row:
        self.samples += 1
        if self.samples > 2:
            raise SourceMissing("it fell off the bus")
        return (self.samples,)

    def convert(self, times: Sequence[float], rows: Sequence[Row | None]) -> Converted:
        del times
        return Converted(
            {"x": [None if row is None else float(row[0] or 0) for row in rows]}, {}, {}, {}
        )

    def close(self) -> None:
        self.samples = -1


class _Steady(_Vanishing):
    def sample(self) -> Row:
        return (7,)

    def convert(self, times: Sequence[float], rows: Sequence[Row | None]) -> Converted:
        return Converted(
            {"y": [7.0 if row else None for row in rows]}, {"y_mean": 7.0 * len(times)}, {}, {}
        )


def test_a_source_that_fails_midway_stops_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    recording = Recording({"x": _Vanishing(), "y": _Steady()}, tmp_path, None)
    for second in range(5):
        recording.sample(float(second))
    told = recording.result()
    assert told["columns"] == {
        "t_monotonic_s": [0.0, 1.0, 2.0, 3.0, 4.0],
        "x": [1.0, 2.0, None, None, None],
        "y": [7.0] * 5,
    }
    assert told["missing"] == {"x": "stopped after 2 samples: it fell off the bus"}


class _Slow(_Steady):
    """A source that changes slowly: read every second at most."""

    EVERY_S = 1.0

    def read(self) -> bytes:
        self.samples += 1
        return b"%d" % self.samples

    def parse(self, raw: bytes) -> Row:
        return (int(raw),)

    def convert(self, times: Sequence[float], rows: Sequence[Row | None]) -> Converted:
        column = [None if row is None else float(row[0] or 0) for row in rows]
        return Converted(
            {"z": column}, {"z_last": column[-1] or 0.0, "z_s": times[-1] - times[0]}, {}, {}
        )


def test_a_slow_source_is_read_at_its_own_ticks_and_at_the_end(tmp_path: Path) -> None:
    """Ticks each 0.25 s: read at 0, 1 and 2, and 0.3 s later at the end, others just before."""
    recording = Recording({"y": _Steady(), "z": _Slow()}, tmp_path, None)
    for tick in range(10):
        recording.sample(tick / 4)
    recording.finish(2.3, 0.125)
    told = recording.result()
    assert told["columns"]["z"] == [1.0, None, None, None, 2.0, None, None, None, 3.0, None, 4.0]
    assert told["columns"]["y"] == [7.0] * 10 + [None]
    assert told["summary"]["z_s"] == 2.3
    assert recording.last_s() == 2.3


def test_a_slow_source_is_summarized_over_whole_intervals(tmp_path: Path) -> None:
    """From 1.3 to 1.6 s: from its reading at 1 s to that at 2 s."""
    recording = Recording({"z": _Slow()}, tmp_path, None)
    for tick in range(13):
        recording.sample(tick / 4)
    assert recording.result((1.3, 1.6))["summary"] == {"z_last": 3.0, "z_s": 1.0}


@pytest.mark.parametrize("batch", [1, 2, 1000])
def test_what_is_read_is_the_same_whenever_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(sampler, "BATCH", batch)
    recording = Recording({"z": _Slow()}, tmp_path, None)
    for second in range(7):
        recording.sample(float(second))
    assert recording.result()["columns"]["z"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


class _Ticking:
    """A clock that a wait advances, and a command at the end."""

    def __init__(
        self, end_s: float, stopped: Mapping[float, float], *, paused: bool = True
    ) -> None:
        self._paused = paused
        self.now_s, self._end_s, self._stopped = 0.0, end_s, dict(stopped)
        self.over_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def next(self, wait_s: float | None) -> dict[str, object] | None:
        until_s = self.now_s + (wait_s or 0.0)
        for from_s, to_s in list(self._stopped.items()):
            if self.now_s <= from_s < until_s:
                del self._stopped[from_s]
                until_s, self.over_s = max(until_s, to_s), to_s if self._paused else 0.0
        self.now_s = min(until_s, self._end_s)
        return {"do": "end"} if self.now_s >= self._end_s else None


@pytest.mark.parametrize(
    ("stopped", "ticks"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({2.5: 6.5}, [0, 1, 2, 7, 8, 9]),
        ({2.5: 2.6}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({2.5: 6.0}, [0, 1, 2, 7, 8, 9]),
        ({0.5: 3.2, 4.5: 8.7}, [0, 4, 9]),
    ],
)
def test_ticks_of_a_pause_are_neither_made_up_nor_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: dict[float, float], ticks: list[int]
) -> None:
    """A tick per second for ten seconds, while the process is stopped and continued.

    The old ticks then continue.
    """
    clock = _Ticking(9.9, stopped)
    monkeypatch.setattr(sampler, "time", clock)
    recording = Recording({"y": _Steady()}, tmp_path, None)
    recording.sample(0.0)
    _, missed = sampler.record(clock, recording, 1, clock, FileWatch({}))  # type: ignore[arg-type]
    times = recording.result()["columns"]["t_monotonic_s"]
    assert missed == 0
    assert times == [*map(float, ticks), 9.9]


def test_ticks_that_it_ran_over_are_counted_and_not_made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick per second, no processor from 2.5 to 6.5 s: ticks 3, 4, 5 are missed, 6 is late."""
    clock = _Ticking(9.9, {2.5: 6.5}, paused=False)
    monkeypatch.setattr(sampler, "time", clock)
    recording = Recording({"y": _Steady()}, tmp_path, None)
    recording.sample(0.0)
    _, missed = sampler.record(clock, recording, 1, clock, FileWatch({}))  # type: ignore[arg-type]
    assert (recording.result()["columns"]["t_monotonic_s"], missed) == (
        [0.0, 1.0, 2.0, 6.5, 7.0, 8.0, 9.0, 9.9],
        3,
    )


class _Words:
    """A cell's begin and end, then a lost harness; `waits` has the wait for each word."""

    def __init__(self) -> None:
        self.waits: list[float | None] = []
        self._said: Iterator[dict[str, object]] = iter(
            [{"do": "begin", "token": 1, "pid": None}, {"do": "end", "token": 1}]
        )

    def next(self, wait_s: float | None) -> dict[str, object]:
        self.waits.append(wait_s)
        for word in self._said:
            return word
        raise sampler.HarnessGoneError


@pytest.mark.usefixtures("capfd")
def test_between_cells_it_waits_for_a_word_and_does_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No processor time at all while no cell is measured: only within one a wait has an end."""
    words = _Words()
    monkeypatch.setattr(sampler, "SOURCES", {})
    monkeypatch.setattr(sampler, "gc", SimpleNamespace(disable=lambda: None))
    with pytest.raises(sampler.HarnessGoneError):
        sampler.serve(1.0, tmp_path, words, sampler.Pauses())  # type: ignore[arg-type]
    before, within, after = words.waits
    assert (before, after) == (None, None)
    assert within is not None
