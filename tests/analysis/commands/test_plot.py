"""`python -m analysis plot`: the files that it writes, and a reason for each missing picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.load import load
from analysis.plots import fitting, pictures
from tests.analysis.answers import refused
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

MADE = Made(
    arms=(STOCK, AGAIN, Arm("tcp", gain=0.1, requested={"net.x": "1"})), blocks=4, steps=6, warmup=1
)


@pytest.fixture
def plot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main(["plot", *map(str, arguments), "--output", str(tmp_path / "plots")])
        return (code, *capsys.readouterr())

    return run


def test_everything_that_can_be_drawn_is_written_and_named(
    plot: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    path = saved_file(tmp_path, MADE)
    code, out, err = plot(path, "--format", "svg")
    written = {path.name for path in (tmp_path / "plots").iterdir()}
    assert (code, err) == (0, "")
    assert written == {f"{name}.svg" for name in fitting([load(path)]) if name != "telemetry"} | {
        "summary.csv",
        "summary.md",
    }
    assert not any(name.startswith(("io_", "key_")) for name in written)
    assert all(str(tmp_path / "plots" / name) in out for name in written)
    assert "not drawn: telemetry" in out
    assert "tcp" in (tmp_path / "plots/summary.md").read_text(encoding="utf-8")
    assert all(len(line) <= 100 for line in out.splitlines() if not line.startswith(str(tmp_path)))


def test_named_pictures_alone(plot: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = saved_file(tmp_path, MADE)
    assert plot(path, "--picture", "forest", "--picture", "run_order")[0] == 0
    assert {one.name for one in (tmp_path / "plots").iterdir()} == {"forest.png", "run_order.png"}


def test_json_lists_files_reasons_and_rows(
    plot: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, out, _ = plot(
        saved_file(tmp_path, MADE),
        tmp_path / "nothing.json",
        "--picture",
        "forest",
        "--picture",
        "telemetry",
        "--picture",
        "summary",
        "--json",
    )
    said = json.loads(out)
    assert code == 0
    assert [one["picture"] for one in said["files"]] == ["forest", "summary", "summary"]
    assert all(Path(one["path"]).stat().st_size == one["size_bytes"] for one in said["files"])
    assert said["files"][0]["answers"] == pictures()["forest"].ANSWERS
    assert said["not_drawn"].keys() == {"telemetry"}
    assert [row["tweakset"] for row in said["summary"]] == ["stock", "stock-again", "tcp"]
    assert len(said["refused"]) == 1


def test_nothing_to_read_or_draw_or_nowhere_to_write_is_an_error(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, MADE)
    Path("in the way").touch()
    complaints = {}
    for words in (
        ["nothing.json"],
        ["run.json", "--picture", "telemetry"],
        ["run.json", "--picture", "forest", "--output", "in the way"],
    ):
        assert main(["plot", "--output", "plots", *words]) == 2
        complaints[" ".join(words)] = capsys.readouterr().err
    assert complaints == snapshot
    assert f"available: {', '.join(pictures())}, summary." in refused(
        capsys, "plot", "run.json", "--picture", "pie"
    )
