"""A report is saved whole or not at all, and overwrites nothing but a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.report.saving import MARK, must_be_replaceable, save
from analysis.terms import Refused

HTML = f"<!DOCTYPE html><html><head>{MARK}</head>äöü</html>"


@pytest.mark.parametrize(
    "content",
    [
        b"my thesis",
        b"<html><title>somebody else's report</title></html>",
        b"\x00\xff",
        b"x" * 5000 + MARK.encode(),
    ],
)
def test_anything_else_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(content)
    with pytest.raises(Refused, match="not a DeepTweak report"):
        save(HTML, path)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [
        ("report.html", content)
    ]


def test_a_folder_is_no_place_for_a_report(tmp_path: Path) -> None:
    """Nor a missing folder; both are found out before any work."""
    with pytest.raises(Refused, match="not a file"):
        must_be_replaceable(tmp_path)
    with pytest.raises(Refused, match=r"folder: .*missing"):
        must_be_replaceable(tmp_path / "missing" / "report.html")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "latest.html").symlink_to(tmp_path / "report.html")
    save(HTML, tmp_path / "latest.html")
    assert (tmp_path / "latest.html").is_symlink()
    assert (tmp_path / "report.html").read_text("utf-8") == HTML


def test_a_reader_never_sees_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content is on disk (fsync) before it gets its name: until then the old report stands."""
    path, seen = tmp_path / "report.html", []
    path.write_text(f"{HTML} earlier", "utf-8")
    monkeypatch.setattr("os.fsync", lambda _: seen.append(path.read_text("utf-8")))
    save(HTML, path)
    assert seen == [f"{HTML} earlier"]
