"""Run the notebook in docs/ whole: it uses the Python door, pandas and matplotlib alone."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.needs import requires

if TYPE_CHECKING:
    import nbformat

HOUSE = Path(__file__).parents[1]
NOTEBOOK = HOUSE / "docs/notebook.ipynb"
PATIENCE_S = 600


def code_cells() -> list[dict[str, Any]]:
    """Those of the notebook as it lies in the repository."""
    return [
        cell
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]


def test_no_output_lies_in_the_repository() -> None:
    """Outputs of one machine would be taken for results, and make every diff unreadable."""
    assert code_cells()
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code_cells())


def test_it_imports_the_door_and_a_plotting_library_alone() -> None:
    source = "\n".join("".join(cell["source"]) for cell in code_cells())
    assert re.findall(r"^\s*(?:import|from) (\w+)", source, flags=re.MULTILINE) == [
        "matplotlib",
        "deeptweak",
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
@requires("nbclient")
def ended(place: Path) -> list[nbformat.NotebookNode]:
    """Its cells of code after a run of a copy, whose page lies elsewhere."""
    import nbclient
    import nbformat

    copy = nbformat.read(NOTEBOOK, as_version=4)
    (parameters,) = (cell for cell in copy.cells if "parameters" in cell.metadata.get("tags", []))
    parameters.source += f"\nPAGE = {str(place / 'report.html')!r}"
    client = nbclient.NotebookClient(
        copy, timeout=PATIENCE_S, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    )
    client.execute(env=os.environ | {"PYTHONPATH": str(HOUSE)})
    return [cell for cell in copy.cells if cell.cell_type == "code"]


def shown(cells: list[nbformat.NotebookNode], words: str, kind: str) -> str:
    (cell,) = (cell for cell in cells if words in cell.source)
    (data,) = (out.data for out in cell.outputs if kind in out.get("data", {}))
    return str(data[kind])


@pytest.mark.slow
def test_it_shows_cells_verdicts_and_a_picture(
    ended: list[nbformat.NotebookNode], place: Path
) -> None:
    assert "336 cells" in shown(ended, "deeptweak.load", "text/plain")
    assert "cnn_train" in shown(ended, "groupby", "text/html")
    page = shown(ended, "deeptweak.compare", "text/html")
    assert (page.count('class="good"'), page.count('class="bad"')) == (5, 1)
    assert shown(ended, "comparison.table", "text/html").count("<tr") == 1 + 21
    assert shown(ended, "plt.subplots", "image/png")
    assert (place / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_nothing_complains(ended: list[nbformat.NotebookNode]) -> None:
    assert [out.text for cell in ended for out in cell.outputs if out.output_type == "stream"] == []
