"""`python -m analysis plot`: files with what they should hold, and a reason for each that is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.load import load
from analysis.plots import fitting, pictures
from tests.made_telemetry import sampled_file
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from collections.abc import Callable

MADE = Made(arms=(STOCK, AGAIN, Arm("tcp", gain=0.1, requested={"net.x": "1"})), blocks=4, steps=6, warmup=1)


@pytest.fixture
def plot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Run the command; answers exit code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main(["plot", *map(str, arguments), "--output", str(tmp_path / "plots")])
        return (code, *capsys.readouterr())

    return run


def test_everything_that_can_be_drawn_is_written_and_named(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """Made without a GPU: all but energy, and both tables; no picture of another design, nor of what nobody reported."""
    path = sampled_file(tmp_path, MADE, gpus=0)
    code, out, err = plot(path, "--format", "svg")
    written = {path.name for path in (tmp_path / "plots").iterdir()}
    assert (code, err) == (0, "")
    assert written == {f"{name}.svg" for name in fitting(pictures(), [load(path)]) if name != "energy"} | {"summary.csv", "summary.md"}
    assert not any(name.startswith(("io_", "key_")) for name in written)
    assert all(str(tmp_path / "plots" / name) in out for name in written)
    assert "not drawn: energy: power was not measured: no NVIDIA driver." in out
    assert "tcp" in (tmp_path / "plots/summary.md").read_text(encoding="utf-8")
    assert all(len(line) <= 100 for line in out.splitlines() if not line.startswith(str(tmp_path)))


def test_named_pictures_alone(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = saved_file(tmp_path, MADE)
    assert plot(path, "--picture", "forest", "--picture", "averages")[0] == 0
    assert {one.name for one in (tmp_path / "plots").iterdir()} == {"forest.png", "averages.png"}


def test_json_lists_files_reasons_and_rows(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, out, _ = plot(
        saved_file(tmp_path, MADE),
        tmp_path / "nothing.json",
        "--picture",
        "forest",
        "--picture",
        "energy",
        "--picture",
        "summary",
        "--json",
    )
    said = json.loads(out)
    assert code == 0
    assert [one["picture"] for one in said["files"]] == ["forest", "summary", "summary"]
    assert all(Path(one["path"]).stat().st_size == one["size_bytes"] for one in said["files"])
    assert said["files"][0]["answers"] == pictures()["forest"].ANSWERS
    assert said["not_drawn"] == {"energy": "power was not measured: no NVIDIA driver."}
    assert [row["tweakset"] for row in said["summary"]] == ["stock", "stock-again", "tcp"]
    assert len(said["refused"]) == 1


def test_the_same_run_gives_the_same_files(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = saved_file(tmp_path, MADE)
    asked = (path, "--picture", "forest", "--picture", "summary", "--format", "svg")
    plot(*asked)
    first = {one.name: one.read_bytes() for one in (tmp_path / "plots").iterdir()}
    plot(*asked)
    assert first == {one.name: one.read_bytes() for one in (tmp_path / "plots").iterdir()}


def test_a_copy_of_a_run_is_drawn_once(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """Beside itself it would look like a second measurement that agrees."""
    _, out, _ = plot(saved_file(tmp_path, MADE), saved_file(tmp_path, MADE, "copy.json"), "--picture", "summary", "--json")
    assert len(json.loads(out)["summary"]) == 3


def test_an_unknown_picture_is_answered_with_those_there_are(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, out, err = plot(saved_file(tmp_path, MADE), "--picture", "pie")
    assert (code, out) == (2, "")
    assert err == f"error: no picture 'pie'; there are {', '.join(pictures())}, summary.\n"


def test_nothing_to_read_or_draw_or_nowhere_to_write_is_an_error(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, _, err = plot(tmp_path / "nothing.json")
    assert (code, err.splitlines()[-1].endswith("no run could be read, so there is nothing to draw.")) == (2, True)
    path = saved_file(tmp_path, MADE)
    assert plot(path, "--picture", "energy")[::2] == (2, "error: energy: power was not measured: no NVIDIA driver.\n")
    (tmp_path / "plots").write_text("in the way")
    code, _, err = plot(path, "--picture", "forest")
    assert (code, "cannot be written" in err) == (2, True)


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    out = capsys.readouterr().out
    assert "python -m analysis plot .benchmarks/*/0001_exp1.json" in out
    assert max(map(len, out.splitlines())) <= 100
