"""Options of single studies: each file of `fixtures/studies/` under one contract, found by its name."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from control.power import algorithms
from control.scheduling.policies import names as policies
from fixtures import studies
from fixtures.studies.jobs import arrivals, engines
from fixtures.studies.power import backends, points
from fixtures.terms import BadInput, Metric, Study
from tests.sessions import HOUSE

OWNED = studies.owned()
NAMES = {
    "arrivals": arrivals.names(),
    "policies": policies(),
    "engine": tuple(engines.ENGINES),
    "algorithms": algorithms.names(),
    "power_backend": backends.names(),
    "profile_grid": points.GRIDS,
}


def test_each_file_has_options() -> None:
    assert {one.folder for one in OWNED.values()} <= set(studies.names()) >= {"gpu", "io", "jobs", "monitors", "power"}


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


def test_nothing_outside_of_a_study_imports_it() -> None:
    """The core finds studies by their folders and names none, and none names another."""
    found = {
        f"{path.relative_to(HOUSE)} imports {name}"
        for path in (HOUSE / "fixtures").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if re.match(r"fixtures\.studies\.\w", str(name)) and not path.is_relative_to(HOUSE.joinpath(*str(name).split(".")[:3]))
    }
    assert not found


WITHOUT = """
import pkgutil, fixtures
from fixtures import studies, targets, tweaks, workloads
for one in pkgutil.walk_packages(fixtures.__path__, "fixtures."):
    if one.name.split(".")[1] not in ("studies", "cluster", "jobs") and not one.name.endswith("__main__"):
        try:
            __import__(one.name)
        except ModuleNotFoundError as error:
            if error.name.split(".")[0] in ("fixtures", "control"):
                raise  # a framework that is not installed here is another matter
assert tweaks.resolve("all") and targets.names() and studies.owned()
print(*[workloads.load(name).name for name in workloads.names()])
print(*studies.put_back(), *studies.closing({}))
"""


@pytest.mark.parametrize("study", ["command", "gpu", "io", "monitors", "power"])
def test_without_a_study_the_rest_is_whole(study: str, tmp_path: Path) -> None:
    """Its folder is taken out of a copy: all else can be imported, and its workloads are no longer there."""
    left_out = HOUSE / "fixtures/studies" / study
    own = {path.stem for path in left_out.glob("workloads/*.py")}
    shutil.copytree(HOUSE / "fixtures", tmp_path / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "fixtures/studies" / study)
    for name in ("analysis", "control", "data", "benchmarks"):
        (tmp_path / name).symlink_to(HOUSE / name)
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    names = done.stdout.split("\n")[0].split()
    assert "cnn_train" in names
    assert not own & set(names)
