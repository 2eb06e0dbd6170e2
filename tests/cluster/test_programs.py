"""The programs of a test cluster are built once for each go.mod; one that cannot be built says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.rig import places, programs

pytestmark = pytest.mark.needs("go")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> programs.Module:
    """A Go module with one small program, and a cache of its own; Go's own cache stays where it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOCACHE", str(Path("~/.cache/go-build").expanduser()))
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "go.mod").write_text("module small\n\ngo 1.24\n")
    (folder / "go.sum").write_text("")
    (folder / "main.go").write_text("package main\n\nfunc main() {}\n")
    return programs.Module(str(folder), {"small": "."})


def test_a_program_is_built_once(module: programs.Module) -> None:
    programs.build(module)
    first = (places.programs() / "small").stat().st_ino
    programs.build(module)
    assert (places.programs() / "small").stat().st_ino == first


def test_it_is_built_anew_when_its_go_mod_changes(module: programs.Module) -> None:
    programs.build(module)
    (module.folder / "go.mod").write_text("module small\n\ngo 1.24.0\n")
    assert not programs.built(module)
    programs.build(module)
    assert programs.built(module)


def test_what_go_says_is_in_the_error_and_the_next_call_tries_again(module: programs.Module) -> None:
    (module.folder / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"small of .*go\.mod cannot be built: (?s:.*)undefined: nonsense"):
            programs.build(module)
    assert not programs.built(module)


def test_the_api_server_is_told_its_version() -> None:
    """Built outside of its repository it would say v0.0.0, and every client of today refuse it."""
    flags = programs._version(programs.KUBERNETES)
    assert "gitVersion=v1." in flags
    assert "gitMajor=1 " in flags
