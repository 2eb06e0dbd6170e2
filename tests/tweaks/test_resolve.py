"""`--tweaks` takes names, paths and directories, and answers anything else with what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.terms import BadInput
from fixtures.tweaks import CATALOGUE, available, resolve


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two manifests and a file that is none."""
    for name in ("one.yaml", "two.yml", "note.txt"):
        tmp_path.joinpath(name).write_text("# nothing\n")
    return tmp_path


def names(selector: str, folder: Path) -> list[str]:
    return [tweakset.name for tweakset in resolve(selector, folder)]


def test_names_come_in_the_order_asked_for_each_once(folder: Path) -> None:
    assert names(" two, one,two ,", folder) == ["two", "one"]
    assert names("all", folder) == ["one", "two"]
    assert list(available(folder)) == ["one", "two"]


def test_paths_and_directories_stand_beside_names(folder: Path) -> None:
    """The same file by name and by path is one set; a directory gives all its manifests."""
    assert names(f"{CATALOGUE}/numa.yaml,one,{folder}/../{folder.name}/one.yaml", folder) == [
        "numa",
        "one",
    ]
    assert names(f"{folder}/", CATALOGUE) == ["one", "two"]


def test_an_unknown_name_is_answered_with_the_closest_match(folder: Path) -> None:
    with pytest.raises(
        BadInput,
        match=re.escape("no tweak set is called 'ones'. Did you mean 'one'? Available: one, two."),
    ):
        resolve("ones", folder)


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("", "'' names no tweak set; available: one, two"),
        (" , ", "available: one, two"),
        ("missing.yaml", "missing.yaml: cannot be read: No such file"),
        ("{}/empty", "empty: this folder contains no \\*\\.yaml"),
        (
            "one,{}/other/one.yaml",
            "two tweak sets are named 'one': .*/one.yaml and .*/other/one.yaml; rename",
        ),
        ("{}/other/stock.yaml", "stock.yaml: 'stock' is the name of the untouched machine"),
        ("{}/other/Ü b.yaml", "'Ü b' is not a valid name for a tweak set"),
        ("{}/other/-x.yaml", "'-x' is not"),
    ],
)
def test_what_cannot_be_resolved_says_what_to_do(folder: Path, selector: str, says: str) -> None:
    folder.joinpath("empty").mkdir()
    folder.joinpath("other").mkdir()
    for name in ("one", "stock", "Ü b", "-x"):
        folder.joinpath("other", f"{name}.yaml").write_text("")
    with pytest.raises(BadInput, match=says):
        resolve(selector.format(folder), folder)


@pytest.mark.parametrize("selector", ["stock", "stock-again", "stock,stock-again"])
def test_the_stocks_alone_make_an_a_a_run(selector: str) -> None:
    """They are in every matrix anyway: naming them asks for nothing else."""
    assert resolve(selector) == []
