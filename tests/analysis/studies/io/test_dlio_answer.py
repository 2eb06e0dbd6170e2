"""DLIO's result folders on screen: rows of the input table, damaged folders, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.dlio_like import Made, folder

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


EIGHT = Made(
    after_s=900,
    loads=(1.0, *[0.02] * 79),
    reader={"read_threads": 8},
    overrides=("++workload.reader.read_threads=8",),
)


def baselines(where: Path, waits: Sequence[float]) -> None:
    for at, wait in enumerate(waits):
        folder(where / "2", Made(after_s=100 * at, loads=(1.0, *[wait] * 79)))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command's working folder, so that no path is on its pages."""
    monkeypatch.chdir(tmp_path)
    return Path("study")


def page(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["io", *map(str, words)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 100
    return out


def test_the_whole_page(
    here: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    """Baselines run twice, a setting once, another model, and one folder of generated data."""
    baselines(here, (0.030, 0.031))
    folder(here / "2_read_threads_8", EIGHT)
    folder(here / "made", Made(after_s=50, generates=True))
    assert page(capsys, here, "--all") == snapshot


def test_what_has_no_input_is_refused_in_one_line_with_code_2(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("README.md").write_text("# A study")
    Path("empty").mkdir()
    (folder(here, Made()) / "summary.json").unlink()
    folder(Path("made"), Made(generates=True))
    words = {
        "README.md": "not JSON",
        "study": "summary.json: missing",
        "made": "no run reports its input",
        "nowhere": "no such file",
        "empty": "no saved run",
    }
    for name, word in words.items():
        assert main(["io", name]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), word in err) == ("", 1, True)
