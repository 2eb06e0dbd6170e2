"""A service that works for a monitor: its usage is the monitor's, and unseen usage is not 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.monitors import beside
from fixtures.monitors.beside import RESTARTED, UNSEEN, Daemons

if TYPE_CHECKING:
    from tests.monitors.made_up import Made

BESIDE = "kind = 'beside'\ndef command(self, pid, folder): return ['sleep', '1000']\n"


def monitor(made: Callable[[str], Made], daemons: str, more: str = "") -> dict[str, Any]:
    run = made(BESIDE + f"def daemons(self): return {daemons}\n{more}").run()
    assert run.error is None
    assert run.monitor is not None
    return dict(run.monitor)


@pytest.mark.parametrize("daemons", ["[]", "[(1 << 22) + 1]"])
def test_one_that_is_not_seen_leaves_its_cpu_time_unknown(
    made: Callable[[str], Made], daemons: str
) -> None:
    """It runs in another container, say, or no process has that number."""
    found = monitor(made, daemons)
    assert found["cpu_s"] is None
    assert found["missing"]["cpu_s"] == UNSEEN
    assert found["told"] == {}


def test_only_what_it_used_meanwhile_and_its_start_and_end_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two daemons, before at 100 s and 7 s: 1 + 0 s until at work, 3 + 0.5 in all, 0.25 to end."""
    used = iter([100.0, 7.0, 101.0, 7.0, 102.75, 7.5, 103.0, 7.5])
    monkeypatch.setattr(beside, "cpu_s_of", lambda _pid: next(used))
    daemons = Daemons(partial(next, iter([[3, 4]] * 4)))
    for _ in range(4):
        daemons.look()
    assert daemons.why_unknown() is None
    assert (daemons.used_s(0, 1), daemons.used_s(0, -1), daemons.used_s(-2, -1)) == (1.0, 3.5, 0.25)


@pytest.mark.parametrize("looks", [([3], [4]), ([], [3]), ([3], []), ([3], [3, 4])])
def test_one_that_comes_or_goes_meanwhile_is_unknown(
    looks: tuple[list[int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "cpu_s_of", lambda _pid: 1.0)
    daemons = Daemons(partial(next, iter(looks)))
    for _ in looks:
        daemons.look()
    assert daemons.why_unknown() == RESTARTED
