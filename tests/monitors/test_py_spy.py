"""py-spy, the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.studies.monitors.monitor import load
from tests.monitors.watched import watch

if TYPE_CHECKING:
    from pathlib import Path


py_spy = load("py_spy")


@pytest.mark.needs("root", "py-spy")
def test_it_finds_where_the_workload_is(tmp_path: Path) -> None:
    """100 a second over half a second of CPU time and more: 50 samples, of which a loaded machine may lose most."""
    done = watch("py_spy", tmp_path)
    assert done.ended_as_asked
    stacks = [line.rsplit(" ", 1) for line in done.lines("profile.txt")]
    taken = sum(int(count) for _, count in stacks)
    assert py_spy.samples(tmp_path) == taken > 5
    assert sum(int(count) for stack, count in stacks if "squares" in stack) > taken / 2


@pytest.mark.needs("py-spy")
def test_it_says_its_version() -> None:
    assert (py_spy.version() or "").startswith("py-spy 0.")


def test_without_its_last_word_nothing_is_counted(tmp_path: Path) -> None:
    """It writes what it took at its end only: killed before, it has taken nothing that anybody could read."""
    (tmp_path / "stdout").write_text("py-spy> Sampling process 100 times a second. Press Control-C to exit.\n")
    assert py_spy.samples(tmp_path) is None
    assert py_spy.watches(tmp_path)
