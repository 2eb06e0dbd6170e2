"""Options, the plugin, and pytest-benchmark's hooks; the work is done where each points to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import host, options, plugin, spread, storage, targets
from fixtures.display import Display, plan_lines
from fixtures.node.signals import listen_no_more, stop_like_ctrl_c
from fixtures.plan import check_time_limit
from fixtures.plugin import DISPLAY, RUN, cell_of
from fixtures.run import Run
from fixtures.terms import USAGE, BadInput
from fixtures.text import printable

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from _pytest.terminal import TerminalReporter

    from analysis.ending import Keeper
    from fixtures.terms import Cell

GATE: pytest.StashKey[Keeper] = pytest.StashKey()
SUMMARY = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """What chooses the cells of a run."""
    given: Any = pluginmanager.get_plugin("pytestconfig")
    options.add_options(parser, given.invocation_params.args, given.invocation_params.dir)


def _named(config: pytest.Config) -> set[str]:
    return options.named(config.args, config.invocation_params.dir)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Benchmarks change a kernel, so they run only when named: `pytest .` must not find them."""
    if not collection_path.is_relative_to(options.BENCHMARKS):
        return None
    study = collection_path.stem.removeprefix("bench_")
    return None if study in _named(config) or (collection_path.is_dir() and _named(config)) else True


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set up before pytest-benchmark reads its options."""
    if not config.pluginmanager.hasplugin("benchmark"):
        pytest.exit("-p no:benchmark: it is pytest-benchmark that keeps and saves what is measured. Leave that out.", returncode=USAGE)
    if config.option.help:  # what is named has not been looked at then
        return
    _refuse_bad_option(config)
    if not _named(config):
        return
    config.pluginmanager.register(plugin, "deeptweak")
    if not spread.is_worker(config):
        config.pluginmanager.register(Finish(), "deeptweak-finish")
    option = config.option
    _refuse_empty(list(config.invocation_params.args))
    spread.configure(config)
    if option.benchmark_disable:
        pytest.exit("--benchmark-disable: nothing would be kept of what is measured. Leave it out.", returncode=USAGE)
    # The steps are the data that everything later is judged on; without them a saved run is a summary of itself.
    option.benchmark_save_data = True
    tables = ("compare", "group_by", "histogram", "columns", "sort", "verbose", "compare_fail", "cprofile")
    given = " ".join(map(str, config.invocation_params.args))
    if not any(f"--benchmark-{name.replace('_', '-')}" in given for name in tables):
        option.benchmark_quiet = True  # a row a cell, hundreds of columns wide, would bury the verdicts


def _refuse_empty(words: list[str]) -> None:
    # A variable that is not set: taken for no option, `--tweaks=$SETS` would run everything and `--gate=$LIMITS` pass everything.
    for word, following in zip(words, [*words[1:], "-"], strict=True):
        name, equals, value = word.partition("=")
        if name.startswith("--") and not (value if equals else following).strip():
            pytest.exit(f"{name}: is empty. Give it a value, or leave it out.", returncode=USAGE)


def _refuse_bad_option(config: pytest.Config) -> None:
    # Said once here; from a session that has started it would come out twice.
    try:
        options.refuse_strangers(config, _named(config))
        if _named(config):
            targets.make(config.option.target, config, Path())
    except BadInput as error:
        pytest.exit(str(error), returncode=USAGE)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make this session's run; nothing is touched before its first cell."""
    config = session.config
    if not _named(config):
        return
    storage.prepare(config)
    folder = Path(str(getattr(config._benchmarksession.storage, "path", ".benchmarks")))  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        config.stash[RUN] = Run(options.options(config, folder), targets.make(config.option.target, config, folder))
    except BadInput as error:
        pytest.exit(str(error), returncode=USAGE)
    config.stash[DISPLAY] = Display(config.pluginmanager.get_plugin("terminalreporter"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Know how many cells there are."""
    if RUN not in session.config.stash:
        return
    cells = [cell for item in session.items if (cell := cell_of(item))]
    session.config.stash[DISPLAY].expect(cells)
    run = session.config.stash[RUN]
    run.choose(cells)  # without those that -k and the like have left out
    if not cells:
        return
    stop_like_ctrl_c()
    if not session.config.option.plan:
        _keep_to_the_time(session.config, run, cells)
    gate = session.config.getoption("gate")
    if gate:
        _read_gate(session.config, gate, cells)


def _keep_to_the_time(config: pytest.Config, run: Run, cells: Sequence[Cell]) -> None:
    option = config.option
    if option.time_limit and not spread.is_worker(config):
        try:
            check_time_limit(run, cells, option.time_limit, getattr(option, "numprocesses", None) or 1)
        except BadInput as error:
            pytest.exit(str(error), returncode=USAGE)


def _read_gate(config: pytest.Config, gate: str, cells: Sequence[Cell]) -> None:
    from analysis.ending import keeper  # noqa: PLC0415
    from analysis.terms import Refused  # noqa: PLC0415

    try:
        config.stash[GATE] = keeper(gate, {cell.workload for cell in cells}, {cell.tweakset for cell in cells})
    except Refused as error:
        pytest.exit(printable(f"--gate: {error}"), returncode=USAGE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Print the plan instead of running."""
    if RUN not in session.config.stash or not session.config.getoption("plan"):
        return None
    run, cells = session.config.stash[RUN], [cell for item in session.items if (cell := cell_of(item))]
    for line in plan_lines(run, cells, every=session.config.get_verbosity() > 0):
        print(printable(line))
    _keep_to_the_time(session.config, run, cells)
    return True


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    """No letter for a cell: its own line says more."""
    if config.option.verbose > 0 or not report.nodeid.startswith("benchmarks/"):
        return None
    if report.outcome == "failed":
        return ("failed" if report.when == "call" else "error", "", "")
    return (report.outcome, "", "") if report.when == "call" or report.skipped else ("", "", "")


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """Add what a reader must know to judge a kernel benchmark."""
    if not _named(config):
        return
    run = config.stash.get(RUN, None)  # --benchmark-compare asks before there is one
    machine_info["deeptweak"] = spread.common(run.nodes) if run and run.nodes else run.target.facts() if run else host.facts()


def pytest_benchmark_update_json(config: pytest.Config, benchmarks: list[Any], output_json: dict[str, Any]) -> None:
    """Add the run's own part."""
    del benchmarks
    if RUN in config.stash and config.stash[RUN].records:
        storage.extend(config.stash[RUN], output_json, config._benchmarksession.storage)  # type: ignore[attr-defined]  # noqa: SLF001


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """Put the machine back before anything is saved, and say it in one line where saving fails."""
    run = session.config.stash.get(RUN, None)
    if run is None or not run.records:
        return (yield)
    listen_no_more()  # what is measured is saved; of the summary `apart` hears what ends it
    run.interrupted |= exitstatus == pytest.ExitCode.INTERRUPTED or len(run.records) < len(run.cells) or run.unasked
    run.close()
    try:
        return (yield)
    except OSError as error:
        session.exitstatus = USAGE
        session.config.stash[DISPLAY].unsaved(run, error)
        return None


class Finish:
    """Runs between pytest-benchmark's saving and pytest's summary, both of which are wrappers around this very hook."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """See that a run is saved in any case, and settle the exit status."""
        config, run = session.config, session.config.stash.get(RUN, None)
        if run is not None and run.records:
            config.stash[SUMMARY] = storage.finish(config, run)
            session.exitstatus = storage.exit_status(config, run, session.exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """End with the verdicts."""
    output = config.stash.get(SUMMARY, None)
    if output is None:
        return

    def verdicts() -> tuple[str, int]:
        # Only a session that ran benchmarks needs the read side.
        from analysis.ending import ending  # noqa: PLC0415
        from analysis.terms import Refused  # noqa: PLC0415

        try:
            return ending(output, config.stash.get(GATE, None), color=terminalreporter.hasmarkup)
        except Refused as error:
            return f"No verdict: {error}", USAGE  # a run without verdicts is no success

    text, status = storage.apart(verdicts)
    terminalreporter.write_line(text)
    session = terminalreporter._session  # noqa: SLF001 its only place
    if session and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = status
    for line in storage.closing_lines(config.stash[RUN], config):
        terminalreporter.write_line(line)
