"""Run benchmarks, which change the kernel, only when named; only then load their plug-in."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import options
from fixtures.terms import USAGE, BadInput
from fixtures.text import did_you_mean
from fixtures.user_error import UserError

if TYPE_CHECKING:
    from analysis.studies.gate.session import SessionGate


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options that choose the cells of a run."""
    config: Any = pluginmanager.get_plugin("pytestconfig")
    options.add_options(parser, config.invocation_params.args, config.invocation_params.dir)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep `pytest .` from finding benchmarks."""
    if not collection_path.is_relative_to(options.BENCHMARKS):
        return None
    studies = options.named(config.args, config.invocation_params.dir)
    return (
        None
        if collection_path.stem.removeprefix("bench_") in studies
        or (collection_path.is_dir() and studies)
        else True
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the benchmarks' plug-in before pytest-benchmark reads options; refuse misspelt files."""
    if not config.pluginmanager.hasplugin("benchmark"):
        raise UserError(
            "-p no:benchmark: pytest-benchmark stores and saves the measurements. Omit the option."
        )
    if config.option.help:  # what is named has not been looked at then
        return
    _refuse_misspelt(config)
    studies = options.named(config.args, config.invocation_params.dir)
    try:
        options.refuse_strangers(config, studies)
    except (
        BadInput
    ) as error:  # said once here; from a session that has started it would come out twice
        raise UserError(str(error)) from None
    if studies:
        from fixtures import plugin

        config.stash[plugin.JUDGE] = ReadSide()
        config.pluginmanager.register(plugin, "deeptweak")  # its own pytest_configure runs here


def _refuse_misspelt(config: pytest.Config) -> None:
    """Refuse a misspelt file as pytest does, with a hint to the benchmark. Raises: UsageError."""
    for word in config.args:
        path = word.partition("::")[0]
        if "bench" in path and not Path(config.invocation_params.dir, path).exists():
            benchmarks = [f"benchmarks/{one.name}" for one in options.BENCHMARKS.glob("bench_*.py")]
            raise pytest.UsageError(
                "file or directory not found: "
                f"{path}.{did_you_mean(path, ['benchmarks/', *benchmarks])}"
            )


class ReadSide:
    """The link to the read side, imported when needed: the gate, and the verdicts at the end."""

    gate: SessionGate | None = None

    def read_gate(self, path: str, workloads: Collection[str], tweaksets: Collection[str]) -> None:
        """Read the limits for `--gate`. Raises: BadInput."""
        from analysis.studies.gate import session
        from analysis.terms import Refused

        try:
            self.gate = session.read(path, set(workloads), set(tweaksets))
        except Refused as error:
            raise BadInput(f"--gate: {error}") from error

    def verdicts(self, saved: dict[str, Any], *, color: bool) -> tuple[str, int]:
        """Return the page that ends a run, and the exit status."""
        from analysis.ending import ending
        from analysis.terms import Refused

        try:
            return ending(saved, self.gate, color=color)
        except Refused as error:
            return f"No verdict: {error}", USAGE  # a run without verdicts has failed
