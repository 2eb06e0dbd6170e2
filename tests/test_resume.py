"""Nothing that was measured is measured twice, and two plans never become one run."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from tests.sessions import Place
from tests.test_session import SCHEMA

pytestmark = pytest.mark.usefixtures("kernel_unchanged")


@pytest.fixture(scope="module")
def unsaved(
    tmp_path_factory: pytest.TempPathFactory,
    kernel_lock: None,  # noqa: ARG001 it runs sessions
) -> Place:
    """A whole run without a request to save: its cells are kept."""
    place = Place(tmp_path_factory.mktemp("unsaved"))
    place.manifest("one", ulimit="nofile=512")
    done = place.run(*options(place))
    assert done.code == 0, done.out
    assert done.lines(
        "Not saved. To save this run without measuring again, run the same command with --resume "
        "--benchmark-save=NAME."
    )
    assert place.files() == []
    return place


def options(place: Place, *, seed: int = 1) -> tuple[str, ...]:
    return (f"--tweaks={place.folder}/one.yaml", "--blocks=2", "--steps=3", f"--seed={seed}")


def copied(place: Place, folder: Path) -> Place:
    """The same progress in a place that may be changed."""
    progress = folder / "saved/progress"
    progress.mkdir(parents=True)
    for path in (place.storage / "progress").iterdir():
        (progress / path.name).write_bytes(path.read_bytes())
    (folder / "one.yaml").write_bytes((place.folder / "one.yaml").read_bytes())
    return Place(folder)


def test_an_unsaved_run_is_saved_without_measuring_again(unsaved: Place, tmp_path: Path) -> None:
    place = copied(unsaved, tmp_path)
    kept = place.finished()
    done = place.run(*options(place), "--resume", "--benchmark-save=late")
    assert done.code == 0, done.out
    assert not done.lines("idle x")
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    assert {b["extra_info"]["id"]: b["extra_info"] for b in saved["benchmarks"]} == kept
    assert saved["deeptweak"]["telemetry_file"] is not None
    assert list((place.storage / "progress").iterdir()) == []


def test_another_plan_does_not_go_on_from_it(unsaved: Place) -> None:
    done = unsaved.run(*options(unsaved, seed=2), "--resume")
    assert done.code == 2
    assert done.lines("--resume: no interrupted run of this plan")
    assert not done.lines("idle x")
