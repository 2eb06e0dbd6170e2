"""The decider in a cell's process: an algorithm's answers, and the message where it has none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from analysis.studies.power import parameters
from control.power import algorithms
from control.power.catalog import Task
from control.power.terms import Knobs, Question, Seen, Settings, Tenant, must_be_settable
from fixtures.studies.power.capped import Capped, reader
from fixtures.terms import Refused
from tests.analysis.studies.power.made_reference import reference

KNOBS = Knobs(
    shares=True,
    batches=(1, 2, 4, 8, 16),
    most_processes=4,
    sm_mhz=(210.0, 1110.0, 1950.0),
    power_limit_w=(100.0, 350.0),
)
QUESTION = Question("powercap", "3080Ti", "made_up", ((0, 200.0), (3, 150.0)), KNOBS)
TENANTS = (Tenant(50.0, 8),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parameters.write(reference(), tmp_path / "one.json")
    return tmp_path


def test_without_a_reading_of_power_all_stays_as_it_is() -> None:
    seen = Seen(0, 150.0, Settings(TENANTS), 900.0, None, None)
    decision = algorithms.following(algorithms.at_work(QUESTION), seen)
    assert decision.settings == Settings(TENANTS)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            replace(QUESTION, knobs=replace(KNOBS, power_limit_w=None)),
            "power limit cannot be set here",
        ),
        (replace(QUESTION, algorithm="steady"), "steady needs a model of made_up on 3080Ti"),
    ],
)
def test_an_unusable_algorithm_ends_the_cell_with_its_reason(question: Question, said: str) -> None:
    task = Task(6, "3080Ti", "made_up", "imagenet", question.caps)
    with pytest.raises(Refused, match=said):
        Capped(
            task,
            None,  # type: ignore[arg-type]  # not reached
            partial(algorithms.at_work, question),
            0.0,
            1.0,
            lambda *_: None,
        )


def test_models_are_read_once_and_only_by_those_who_need_them(folder: Path) -> None:
    assert reader(folder, "made_up", "3080Ti") is reader(folder, "made_up", "3080Ti")
    nowhere = reader(folder / "nothing", "made_up", "3080Ti")
    assert algorithms.at_work(replace(QUESTION, models=nowhere)).first().settings.tenants
    with pytest.raises(Refused, match="nothing: No such file"):
        algorithms.at_work(replace(QUESTION, algorithm="steady", models=nowhere))
    with pytest.raises(
        Refused, match="no model of another on 3080Ti; available: made_up on 3080Ti"
    ):
        reader(folder / "one.json", "another", "3080Ti")()


@pytest.mark.parametrize(
    "settings",
    [
        Settings((Tenant(120.0, 1),)),
        Settings((Tenant(0.0, 1),)),
        Settings((Tenant(50.0, 0),)),
        *(
            Settings(TENANTS, **{knob: value})
            for knob in ("sm_mhz", "mem_mhz", "power_limit_w")
            for value in (-5.0, 0.0, 2.0**32, float("nan"))
        ),
        Settings(TENANTS, throttle=1.5),
    ],
)
def test_settings_that_mean_nothing_are_not_set(settings: Settings) -> None:
    with pytest.raises(Refused, match="These settings are invalid"):
        must_be_settable(settings)
