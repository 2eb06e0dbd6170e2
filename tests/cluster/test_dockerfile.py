"""The image's recipe, checked without a build: its copies suffice, its installs have versions.

No test builds the image: there is no Docker on a machine of the tests' own cluster, whose pods see
this machine's Python instead.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fixtures import workloads
from fixtures.kubernetes import manifests
from fixtures.kubernetes.settings import Overlay

HOUSE = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    """Pairs of instruction and argument, continued lines joined, comments left out."""
    lines = "\n".join(
        line for line in (HOUSE / "Dockerfile").read_text().splitlines() if not line.startswith("#")
    )
    return [
        (word, rest)
        for line in lines.replace("\\\n", " ").splitlines()
        if line
        for word, rest in [line.split(maxsplit=1)]
    ]


def of(word: str) -> list[str]:
    return [rest for found, rest in instructions() if found == word]


def environment() -> dict[str, str]:
    return dict(one.split("=", 1) for rest in of("ENV") for one in shlex.split(rest))


def sources() -> list[str]:
    return [source for rest in of("COPY") for source in rest.split()[:-1]]


def ignored(path: str) -> bool:
    """Whether the builder does not get to see it: the last pattern that matches counts."""
    verdict = False
    for pattern in (HOUSE / ".dockerignore").read_text().splitlines():
        rule = pattern.removeprefix("!").removeprefix("**/")
        if (
            pattern
            and not pattern.startswith("#")
            and any(fnmatch.fnmatch(part, rule) for part in (path, *Path(path).parts))
        ):
            verdict = not pattern.startswith("!")
    return verdict


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the image would have under its WORKDIR."""
    folder = tmp_path_factory.mktemp("image")
    for source in sources():
        if (HOUSE / source).is_dir():
            shutil.copytree(
                HOUSE / source, folder / source, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(HOUSE / source, folder)
    return folder


def python(image: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in that folder and environment with local packages: no other code is found."""
    [workdir] = of("WORKDIR")
    variables = {name: value.replace(workdir, str(image)) for name, value in environment().items()}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd="/",
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_everything_copied_is_there_and_reaches_the_builder() -> None:
    assert sources()
    assert [
        source for source in sources() if not (HOUSE / source).exists() or ignored(source)
    ] == []


def test_the_extras_installed_are_those_of_pyproject() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"\.\[([\w,]+)\]", " ".join(of("RUN")))
    assert extras == ["kubernetes,studies,workloads"]
    assert set(extras[0].split(",")) <= project["optional-dependencies"].keys()


def test_every_workload_and_the_agent_are_in_what_was_copied(image: Path) -> None:
    """Each prints its options: it was found, with all imports at its start."""
    [agent] = manifests.agent_pod(
        manifests.Spot("0123456789ab", "n", "", "ns", None), "i", Overlay()
    )["spec"]["containers"]
    for module in [
        *(f"fixtures.workloads.{name}" for name in workloads.names()),
        agent["command"][-1],
    ]:
        done = python(image, "-m", module, "--help")
        assert (done.returncode, done.stderr) == (0, ""), module
