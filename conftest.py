"""Options, the plugin, and pytest-benchmark's hooks; the work is done where each points to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import host, plugin, saving
from fixtures.display import Display, plan_lines
from fixtures.node.signals import stop_like_ctrl_c
from fixtures.plugin import DISPLAY, RUN, cell_of
from fixtures.run import Options, Run, expected_s
from fixtures.terms import USAGE

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter

BENCHMARKS = Path(__file__).parent / "benchmarks"
SUMMARY = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What chooses the cells of a run; None is the study's own choice."""
    group = parser.getgroup("deeptweak", "kernel tweaks x AI workloads")
    group.addoption("--tweaks", metavar="NAMES", help="tweak sets: names, paths of Skyhook manifests, folders, or `all`")
    group.addoption("--workloads", metavar="NAMES", help="workloads, or `all`; every tweak set then meets every one of them")
    group.addoption("--blocks", type=int, metavar="N", help="replicates of every cell, in random order each")
    group.addoption("--steps", type=int, metavar="N", help="measured steps of each cell")
    group.addoption("--seed", type=int, default=1, metavar="N", help="order of the cells and samples of the workloads (default: 1)")
    group.addoption("--plan", action="store_true", help="print the cells, the writes and the expected duration; touch nothing")
    group.addoption("--resume", action="store_true", help="go on with an interrupted run of the same plan")


def _named(config: pytest.Config, path: Path = BENCHMARKS) -> bool:
    # Benchmarks change a kernel: `pytest .` must not find them, only their own path does.
    named = [Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args]
    return any(one.is_relative_to(path) for one in named)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Benchmarks run only when named, those of the harness itself only one by one."""
    if not collection_path.is_relative_to(BENCHMARKS):
        return None
    wanted = collection_path if collection_path.name.startswith("bench_harness") else BENCHMARKS
    return None if _named(config, wanted) else True


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set up before pytest-benchmark reads its options."""
    config.pluginmanager.register(plugin, "deeptweak")
    config.pluginmanager.register(Finish(), "deeptweak-finish")
    option = config.option
    if _named(config) and (getattr(option, "numprocesses", None) or getattr(option, "dist", "no") != "no"):
        pytest.exit("-n: this is one machine with one kernel, and its cells run one after the other. Leave -n out.", returncode=USAGE)
    if _named(config) and option.benchmark_disable:
        pytest.exit("--benchmark-disable: nothing would be kept of what is measured. Leave it out.", returncode=USAGE)
    # The steps are the data that everything later is judged on; without them a saved run is a summary of itself.
    option.benchmark_save_data = True
    tables = ("compare", "group_by", "histogram", "columns", "sort", "verbose", "compare_fail", "cprofile")
    given = " ".join(map(str, config.invocation_params.args))
    if _named(config) and not any(f"--benchmark-{name.replace('_', '-')}" in given for name in tables):
        option.benchmark_quiet = True  # a row a cell, hundreds of columns wide, would bury the verdicts


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make this session's run; nothing is touched before its first cell."""
    config = session.config
    saving.prepare(config)
    folder = Path(str(getattr(config._benchmarksession.storage, "path", ".benchmarks")))  # type: ignore[attr-defined]  # noqa: SLF001
    value = config.getoption
    options = Options(value("tweaks"), value("workloads"), value("blocks"), value("steps"), value("seed"), value("resume"), folder)
    config.stash[RUN] = Run(options)
    config.stash[DISPLAY] = Display(config.pluginmanager.get_plugin("terminalreporter"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Know how many cells there are."""
    cells = [cell for item in session.items if (cell := cell_of(item))]
    session.config.stash[DISPLAY].expect(cells)
    session.config.stash[RUN].cells = {cell.id: cell for cell in cells}  # without those that -k and the like have left out
    if cells:
        stop_like_ctrl_c()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Print the plan instead of running."""
    if not session.config.getoption("plan"):
        return None
    run, cells = session.config.stash[RUN], [cell for item in session.items if (cell := cell_of(item))]
    measurable = [cell for cell in cells if not run.plan_of(cell.tweakset).cannot]
    for line in plan_lines(run, cells, expected_s(measurable)):
        print(line)
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
    if _named(config):  # asked for before the first cell too, by --benchmark-compare
        machine_info["deeptweak"] = host.facts()


def pytest_benchmark_update_json(config: pytest.Config, benchmarks: list[Any], output_json: dict[str, Any]) -> None:
    """Add the run's own part."""
    del benchmarks
    if config.stash[RUN].records:
        saving.extend(config.stash[RUN], output_json, config._benchmarksession.storage)  # type: ignore[attr-defined]  # noqa: SLF001


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """Put the machine back before anything is saved, and say it in one line where saving fails."""
    run = session.config.stash.get(RUN, None)
    if run is None or not run.records:
        return (yield)
    run.interrupted = exitstatus == pytest.ExitCode.INTERRUPTED or len(run.records) < len(run.cells)
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
            config.stash[SUMMARY] = saving.finish(config, run)
            session.exitstatus = saving.exit_status(config, run, session.exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """End with the verdicts."""
    output = config.stash.get(SUMMARY, None)
    if output is None:
        return
    # Only a session that ran benchmarks needs the read side.
    from analysis.compare import compare  # noqa: PLC0415
    from analysis.load import from_json  # noqa: PLC0415
    from analysis.table import render_table  # noqa: PLC0415
    from analysis.terms import Refused  # noqa: PLC0415

    try:
        run = from_json(output, "this run")
        terminalreporter.write_line(render_table(compare(run), run, color=terminalreporter.hasmarkup))
    except Refused as error:
        terminalreporter.write_line(f"No table: {error}")
        if terminalreporter._session:  # noqa: SLF001 its only place
            terminalreporter._session.exitstatus = USAGE  # noqa: SLF001 a run without verdicts is no success
    for line in saving.closing_lines(config.stash[RUN], config):
        terminalreporter.write_line(line)
