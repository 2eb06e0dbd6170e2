"""Options of single studies: each file of `fixtures/studies/`, by name, under one contract."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from control.power import algorithms
from control.scheduling.policies import names as policies
from fixtures import studies
from fixtures.studies.jobs import arrivals
from fixtures.studies.power import backends, points
from fixtures.terms import BadInput, Metric, Study
from tests.sessions import HOUSE

OWNED = studies.owned()
NAMES = {
    "arrivals": arrivals.names(),
    "policies": policies(),
    "algorithms": algorithms.names(),
    "power_backend": backends.names(),
    "profile_grid": points.GRIDS,
}


def test_each_file_has_options() -> None:
    assert (
        {one.folder for one in OWNED.values()}
        <= set(studies.names())
        >= {"gpu", "io", "jobs", "monitors", "power"}
    )


@pytest.mark.parametrize("dest", OWNED)
def test_an_option_has_help_and_studies_but_no_default(dest: str) -> None:
    option, studies_that_take_it, how, _ = OWNED[dest]
    assert option.startswith("--")
    assert how["help"]
    assert "default" not in how
    assert studies_that_take_it
    for study in studies_that_take_it:
        assert (HOUSE / "benchmarks" / f"bench_{study}.py").exists()


@pytest.mark.parametrize("dest", NAMES)
def test_the_help_has_every_name_that_there_is(dest: str) -> None:
    assert set(NAMES[dest]) <= set(re.findall(r"[\w-]+", OWNED[dest].how["help"]))


@pytest.mark.parametrize("dest", OWNED)
def test_an_option_without_its_study_is_refused_with_its_file(dest: str) -> None:
    option, (study, *_), *_ = OWNED[dest]
    with pytest.raises(BadInput, match=f"{option} is an option of benchmarks/bench_{study}.py"):
        studies.refuse_strangers({dest: "1"}, {"kernel_tweaks", "gpu_metrics"})
    studies.refuse_strangers({dest: "1"}, {"kernel_tweaks", study})
    main_job = Study(
        "kernel_tweaks", "Why?", ("idle",), ("stock",), Metric("step_time_p10_s", "lower")
    )
    assert studies.apply({dest: "1"}, main_job, workloads="idle") == main_job
    assert studies.files({dest: "1"}, "kernel_tweaks") == {}


# Without a study, everything of the run side can still be imported, and the core's
# commands answer for the main run.
IMPORTED = """
import pkgutil, fixtures
from fixtures import workloads
for one in pkgutil.walk_packages(fixtures.__path__, "fixtures."):
    room = one.name.split(".")[1]
    if room not in ("studies", "cluster", "jobs") and not one.name.endswith("__main__"):
        try:
            __import__(one.name)
        except ModuleNotFoundError as error:
            if error.name.split(".")[0] in ("fixtures", "control"):
                raise  # a framework that is not installed here is another matter
print(*[workloads.load(name).id for name in workloads.names()])
"""
MAIN_RUN = "data/runs/2026-11-21_gate_amd-epyc-2cpu.json"
COMMANDS = (
    "-m fixtures list",
    "-m pytest benchmarks/bench_kernel_tweaks.py --plan -q -p no:cacheprovider",
    f"-m analysis compare {MAIN_RUN}",
    f"-m analysis show {MAIN_RUN}",
    f"-m analysis report {MAIN_RUN} --output page.html",
)
BENCHMARKS = {"jobs": "cluster", "monitors": "monitoring"}  # whose names begin otherwise
STUDIES = sorted(
    {
        path.parent.name
        for side in ("analysis", "fixtures")
        for path in HOUSE.glob(f"{side}/studies/*/__init__.py")
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_without_a_study_the_rest_is_whole(study: str, tmp_path: Path) -> None:
    own = {path.stem for path in HOUSE.glob(f"fixtures/studies/{study}/workloads/*.py")}
    for path in HOUSE.iterdir():
        if path.name in {"analysis", "fixtures", "benchmarks"}:
            shutil.copytree(
                path, tmp_path / path.name, ignore=shutil.ignore_patterns("__pycache__")
            )
        elif not path.name.startswith("."):
            (tmp_path / path.name).symlink_to(path)
    for side in ("analysis", "fixtures"):
        shutil.rmtree(tmp_path / side / "studies" / study, ignore_errors=True)
    for path in [*tmp_path.glob("analysis/commands/*.py"), *tmp_path.glob("benchmarks/*.py")]:
        if path.stem.startswith(
            f"bench_{BENCHMARKS.get(study, study)}"
        ) or f".studies.{study}" in path.read_text(encoding="utf-8"):
            path.unlink()
    imported = _run(tmp_path, "-c", IMPORTED)
    names = imported.split("\n")[0].split()
    assert "cnn_train" in names
    assert not own & set(names)
    for command in COMMANDS:
        assert _run(tmp_path, *command.split())


def _run(place: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=place, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), command
    return done.stdout
