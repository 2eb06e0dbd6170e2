"""Options of single studies: each file of `fixtures/studies/` under one contract, found by its name."""

from __future__ import annotations

import re

import pytest

from fixtures import arrivals, studies
from fixtures.jobs import engines
from fixtures.power import backends, options, points
from fixtures.terms import BadInput, Metric, Study
from fixtures.workloads import job_stream
from tests.sessions import HOUSE

OWNED = studies.owned()
NAMES = {
    "arrivals": arrivals.names(),
    "policies": job_stream.policies(),
    "engine": engines.names(),
    "algorithms": options.algorithms(),
    "power_backend": backends.names(),
    "profile_grid": points.GRIDS,
}


def test_each_file_has_options() -> None:
    assert {one.file for one in OWNED.values()} == set(studies.names()) >= {"io", "jobs", "monitors", "power"}


@pytest.mark.parametrize("dest", OWNED)
def test_an_option_says_what_it_is_and_whose_and_has_no_default_of_its_own(dest: str) -> None:
    """What is not given is not there, so that a study keeps its own choice."""
    option, studies_that_take_it, how, _ = OWNED[dest]
    assert option.startswith("--")
    assert how["help"]
    assert "default" not in how
    assert studies_that_take_it
    for study in studies_that_take_it:
        assert (HOUSE / "benchmarks" / f"bench_{study}.py").exists()


@pytest.mark.parametrize("dest", NAMES)
def test_the_help_has_every_name_that_there_is(dest: str) -> None:
    """Though it is written without asking for them, which would take long."""
    assert set(NAMES[dest]) <= set(re.findall(r"[\w-]+", OWNED[dest].how["help"]))


@pytest.mark.parametrize("dest", OWNED)
def test_an_option_without_its_benchmark_is_refused_by_the_name_of_its_file(dest: str) -> None:
    option, (study, *_), *_ = OWNED[dest]
    with pytest.raises(BadInput, match=f"{option} is an option of benchmarks/bench_{study}.py"):
        studies.refuse_strangers({dest: "1"}, {"kernel_tweaks", "gpu_metrics"})
    studies.refuse_strangers({dest: "1"}, {"kernel_tweaks", study})
    main_job = Study("kernel_tweaks", "Why?", ("idle",), ("stock",), Metric("step_time_p10_s", "lower"))
    assert studies.apply({dest: "1"}, main_job, workloads="idle") == main_job
    assert studies.files({dest: "1"}, "kernel_tweaks") == {}
