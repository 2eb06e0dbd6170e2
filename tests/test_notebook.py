"""The notebook of the I/O study, run from its first cell to its last: what a reader would type, on a design of seconds."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.load import load
from fixtures.kernel.lock import LENT
from fixtures.kernel.tunables import Tunables, diff
from tests.needs import requires

if TYPE_CHECKING:
    import nbformat

HOUSE = Path(__file__).parents[1]
NOTEBOOK = HOUSE / "docs" / "io_patterns.ipynb"
PATIENCE_S = 600
# Raw files, cold and warm, stock and its copy and another read-ahead, in three blocks: 18 cells.
DESIGN = [
    "--workloads=io_train",
    "--vary=format=raw",
    "--vary=cache=cold,warm",
    "--vary=num_files_train=48",
    "--vary=batch_size=4",
    "--vary=read_threads=0",
    "--vary=record_scale=0.0005",
    "--vary=computation_time=0.002",
    "--tweaks=block-readahead",
    "--blocks=3",
]


def code_cells() -> list[dict[str, Any]]:
    """Those of the notebook as it lies in the repository."""
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_no_output_lies_in_the_repository() -> None:
    """Outputs of one machine would be taken for results, and make every diff unreadable."""
    assert code_cells()
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code_cells())


def test_its_parameters_are_in_its_first_cell_of_code() -> None:
    first = code_cells()[0]
    assert first["metadata"]["tags"] == ["parameters"]
    assert {line.split(" =")[0] for line in first["source"] if line[:1].isupper()} == {"DESIGN", "RESULTS", "SAVED", "DLIO"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
@requires("torch", "nbclient")
def ended(place: Path, kernel_lock: None) -> list[nbformat.NotebookNode]:  # noqa: ARG001 its commands change the kernel
    """Its cells of code after a run of a copy of it, with other parameters behind its own."""
    parameters = {"DESIGN": DESIGN, "RESULTS": str(place), "SAVED": "", "DLIO": "tests/recordings/dlio-2.0.0"}
    import nbclient
    import nbformat

    copy = nbformat.read(NOTEBOOK, as_version=4)
    at = next(number for number, cell in enumerate(copy.cells) if "parameters" in cell.metadata.get("tags", []))
    ours = nbformat.v4.new_code_cell("\n".join(f"{name} = {value!r}" for name, value in parameters.items()))
    copy.cells.insert(at + 1, ours)
    nbformat.write(copy, place / NOTEBOOK.name)
    theirs = {"DEEPTWEAK_STATE_DIR": str(place / "state"), LENT: str(os.getpid()), "COLUMNS": "160", "NO_COLOR": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST") and name != "CI"}
    client = nbclient.NotebookClient(copy, timeout=PATIENCE_S, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    before = Tunables().snapshot()
    client.execute(env={**kept, **theirs})
    assert diff(before, Tunables().snapshot()) == {}
    return [cell for cell in copy.cells if cell.cell_type == "code"]


def said(cells: list[nbformat.NotebookNode], words: str) -> str:
    """What the one cell with these words in it put out as text."""
    (cell,) = (cell for cell in cells if words in cell.source)
    return "\n".join(out.text if out.output_type == "stream" else out.data.get("text/plain", "") for out in cell.outputs)


def images(cell: nbformat.NotebookNode) -> list[str]:
    """Pictures that a cell put out."""
    return [out.data["image/png"] for out in cell.outputs if "image/png" in out.get("data", {})]


def plain(text: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_it_ends_with_every_cell_measured_and_the_machine_put_back(ended: list[nbformat.NotebookNode], place: Path) -> None:
    """Two caches, stock and its copy and a read-ahead that was in force, three blocks; the file is one that anybody may load."""
    (saved,) = place.glob("*/*_notebook.json")
    cells = load(saved).cells
    assert {cell.outcome for cell in cells} == {"measured"}
    assert len(cells) == 2 * 3 * 3
    assert {cell.tweakset for cell in cells} == {"stock", "stock-again", "block-readahead"}
    assert said(ended, "machine_check").endswith("{'changed': {}, 'restored': True}")


def test_it_plans_before_it_runs(ended: list[nbformat.NotebookNode]) -> None:
    plan = said(ended, '"--plan"')
    assert "18 cells" in plan
    assert "Nothing was touched" in plan


def test_it_ends_with_a_table_of_verdicts(ended: list[nbformat.NotebookNode]) -> None:
    """What varies with what, from Python and from the command; each tweak set in both caches, with a verdict of the house's words."""
    verdicts = said(ended, "verdicts = ")
    assert "varies with" in verdicts
    assert all(name in verdicts for name in ("au_whole_percent", "au_steady_percent", "samples_per_s_whole", "cache"))
    page = said(ended, '"io", saved')
    assert "What varies" in page
    assert "stock-again" in page
    compared = plain(said(ended, '"compare"'))
    assert "tweak set block-readahead" in compared
    rows = re.findall(r"(?m)^(io_train(?::cache=warm)?) .*(?:faster|slower|same \(|can't tell|not comparable)", compared)
    assert sorted(rows) == ["io_train", "io_train:cache=warm"], compared


def test_throughput_and_utilisation_are_one_measurement(ended: list[nbformat.NotebookNode]) -> None:
    (low, high) = re.findall(r"implies: (\S+) to (\S+)", said(ended, "ratios = "))[0]
    assert float(low) >= 0.995
    assert float(high) <= 1.005


def test_pictures_stand_in_it_and_what_was_not_varied_has_none(ended: list[nbformat.NotebookNode]) -> None:
    """One epoch by itself; then where the time goes; not processes, of which there was one, nor formats."""
    (steps,) = (cell for cell in ended if "axes.bar" in cell.source)
    (all_of_them,) = (cell for cell in ended if "picture.draw" in cell.source)
    assert [len(images(cell)) for cell in (steps, all_of_them)] == [1, 1]
    assert said(ended, "picture.draw").count("not drawn: ") == 2


def test_results_of_dlio_are_read_beside_it(ended: list[nbformat.NotebookNode]) -> None:
    assert "2 runs of 2 configurations" in said(ended, '"io", DLIO')
