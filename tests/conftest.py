"""Tiers: each test runs in that of its needs (tests/needs.py); a run ends by naming the rest."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import needs
from tests.kernel_lock import kernel_lock, kernel_unchanged, takes_turns
from tests.needs import NEEDS, REFERENCE, TIERS, Tier, needs_of
from tests.sessions import place
from tests.waiting import HASTE, PATIENCE_S

__all__ = ["REFERENCE", "kernel_lock", "kernel_unchanged", "place"]  # fixtures
LEFT_OUT = pytest.StashKey["dict[Tier, int]"]()  # how many tests of each other tier
CHOSEN = pytest.StashKey[int]()  # and of those that were asked for
CLUSTER = "tests/cluster/"
KERNEL = "this machine's kernel"

# A test never judges time: no deadline, and no complaint about examples that a busy machine is slow
# to draw. With CI set, every run draws the same ones. A path that does not exist lets pytest read
# this file too, in an environment that may have no tests' packages.
with contextlib.suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile(
        "house",
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        max_examples=20,
        derandomize=bool(os.environ.get("CI")),
    )
    hypothesis.settings.load_profile("house")


@pytest.fixture(scope="session", autouse=True)
def _patient() -> Iterator[None]:
    """Let the harness wait for as long as a test may take: the machine may be busy."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pytest.MonkeyPatch.context() as patch:
        for name in HASTE:
            patch.setattr(name, PATIENCE_S)
        for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
            patch.delenv(name)  # a session that a test starts is no worker
        for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
            patch.delenv(name, raising=False)  # a page is 100 columns wide, without colour
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("deeptweak tests").addoption(
        "--tier",
        choices=TIERS,
        action="append",
        help="run the tests of this tier alone; several may be named (default: all)",
    )


def tier_of(item: pytest.Item) -> Tier:
    """The tier of a test: that of the most demanding of its needs."""
    tiers = {NEEDS[name].tier for name in needs_of(item)} | (
        {"machine"} if item.get_closest_marker("slow") else set()
    )
    return next((tier for tier in ("cluster", "machine") if tier in tiers), "quick")


# Last: syrupy has seen every test by then, and calls no snapshot unused whose test is of another
# tier.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tiers that were asked for."""
    asked = config.getoption("tier") or TIERS
    # The longest first: a process is to have begun them when the others come to their end.
    chosen: dict[str, list[pytest.Item]] = {CLUSTER: [], KERNEL: [], "": []}
    others: list[pytest.Item] = []
    left_out = config.stash[LEFT_OUT] = {}
    for item in items:
        tier = tier_of(item)
        if tier in asked:
            module = item.nodeid.partition("::")[0]
            chosen[CLUSTER if tier == "cluster" else KERNEL if takes_turns(module) else ""].append(
                item
            )
        else:
            left_out[tier] = left_out.get(tier, 0) + 1
            others.append(item)
    items[:] = [item for part in chosen.values() for item in part]
    config.stash[CHOSEN] = len(items)
    if others:
        config.hook.pytest_deselected(items=others)


class OneProcessPerModule(LoadScopeScheduling):  # type: ignore[misc] # mypy does not see xdist
    """A module's fixtures are set up once; a folder's, where they are a cluster.

    All that hold this machine's kernel are of one process: others would only wait for it.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        if module.startswith(CLUSTER):
            return module.rpartition("/")[0]
        return KERNEL if takes_turns(module) else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return OneProcessPerModule(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with an unmet need; with CI set, fail it if the need can be installed."""
    needs.tier_now = tier_of(item)
    for name in needs_of(item):
        reason = NEEDS[name].unavailable_reason()
        if reason and os.environ.get("CI") and NEEDS[name].installable:
            pytest.fail(f"not skipped in CI: {reason}", pytrace=False)
        if reason:
            pytest.skip(reason)


# With xdist the workers collect, and the first to end tells.
@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's count."""
    for key, name in ((LEFT_OUT, "left_out"), (CHOSEN, "chosen")):
        if name in getattr(node, "workeroutput", {}):
            node.config.stash.setdefault(key, node.workeroutput[name])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the controller what this worker has left out.

    Where all that was named is of other tiers, running nothing is no failure.
    """
    config = session.config
    left_out, chosen = config.stash.get(LEFT_OUT, {}), config.stash.get(CHOSEN, 0)
    if hasattr(config, "workeroutput"):
        config.workeroutput |= {"left_out": left_out, "chosen": chosen}
    elif session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and left_out and not chosen:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """End with one line: what did not run, and which command runs it."""
    if not config.getoption("tier"):
        return
    parts = [
        f"{count:,} tests of {TIERS[tier]}"
        for tier, count in config.stash.get(LEFT_OUT, {}).items()
    ]
    skipped: Sequence[Any] = terminalreporter.stats.get("skipped", ())
    parts += [f"{len(skipped):,} that cannot run here (-rs says why)"] if skipped else []
    terminalreporter.write_line(f"Not run: {'; '.join(parts) or 'nothing'}.")
