"""Options of single studies: each file of `fixtures/studies/` under one contract, found by its name."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from fixtures import studies
from fixtures.studies import names
from fixtures.terms import BadInput, Metric, Study
from tests.sessions import HOUSE

FILES = [importlib.import_module(f"fixtures.studies.{name}") for name in names()]


class Group:
    """What pytest's group of options is asked for."""

    def __init__(self) -> None:
        self.added: dict[str, dict[str, Any]] = {}

    def addoption(self, name: str, **how: object) -> None:
        self.added[name] = how


def added(module: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 a file of the folder
    group = Group()
    module.add_options(group)
    return group.added


def test_there_are_files() -> None:
    assert {"power", "power_profile"} <= set(names())


@pytest.mark.parametrize("module", FILES, ids=names())
def test_each_names_studies_that_exist(module: Any) -> None:  # noqa: ANN401 as above
    assert module.STUDIES
    for study in module.STUDIES:
        assert (HOUSE / "benchmarks" / f"bench_{study}.py").exists()


@pytest.mark.parametrize("module", FILES, ids=names())
def test_options_say_what_they_are_and_have_no_default_of_their_own(module: Any) -> None:  # noqa: ANN401 as above
    """What is not given is not there, so that a study keeps its own choice."""
    for name, how in added(module).items():
        assert name.startswith("--")
        assert how["help"]
        assert "default" not in how


def test_no_option_is_there_twice() -> None:
    found = [name for module in FILES for name in added(module)]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("module", FILES, ids=names())
def test_an_option_of_another_study_is_refused_by_name(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 as above
    option = next(iter(added(module)))
    dest = option.strip("-").replace("-", "_")
    monkeypatch.setattr(studies, "_WORDS", {module.__name__.rpartition(".")[2]: {dest: option}})
    study = Study("kernel_tweaks", "Why?", ("idle",), ("stock",), Metric("step_time_p10_s", "lower"))
    with pytest.raises(BadInput, match=f"{option}: of {module.STUDIES[0]}"):
        studies.under({dest: "1"}, study, workloads=None)
    assert studies.under({}, study, workloads="idle") == study
    assert studies.files({}, "kernel_tweaks") == {}
