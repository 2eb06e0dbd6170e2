"""What docs/io_patterns.md and docs/io_measures.md say of parameters, models and responses is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.studies.io.figures import judge
from fixtures.studies.io import formats, models, parameters
from fixtures.studies.io.dataset import Spec, estimate_bytes
from tests.made_io import io_runs

PAGE = "\n".join((Path(__file__).parents[1] / "docs" / name).read_text() for name in ("io_patterns.md", "io_measures.md"))


def first_column(head: str) -> list[str]:
    """The names, in backquotes, in the first column of the table with this head; `_x` goes on with what stood before it in its row."""
    (table,) = re.findall(rf"(?m)^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE)
    found = []
    for row in table.splitlines():
        names = re.findall(r"`(\w+)`", row.split("|")[1])
        stem = next((names[0].removesuffix(end) for end in ("_steady", "_h100") if names[0].endswith(end)), names[0])
        found += [stem + name if name.startswith("_") else name for name in names]
    return found


def test_every_parameter_is_explained_in_its_order() -> None:
    assert first_column("parameter") == list(parameters.PARAMETERS)


def test_every_format_is_named() -> None:
    (row,) = re.findall(r"(?m)^\| `format` \| (.*) \|$", PAGE)
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(formats.names())


def test_every_response_has_its_formula() -> None:
    (run, *_) = io_runs()
    assert sorted(first_column("response")) == sorted(judge(run).responses)


def test_every_model_is_in_the_table() -> None:
    """By DLIO's names; the model's alone means the first."""
    assert set(first_column("model")) == {model.name for model in models.available().values()}


@pytest.mark.parametrize("name", sorted({model.name for model in models.available().values()}))
def test_a_model_is_as_the_table_has_it(name: str) -> None:
    """DLIO's facts in its own size, and what the default scales leave: at least 40 steps, less than 1 GB."""
    stem = next(path for path in ("unet3d", "resnet50", "cosmoflow", "bert", "dlrm", "default", "megatron") if name.startswith(path))
    (row,) = re.findall(rf"(?m)^\| `{stem}.*\|$", PAGE)
    _, form, samples, record, batches, computations, here = (cell.strip() for cell in re.sub(r",(?=\d)", "", row)[1:-1].split("|"))
    own = models.load(name).own
    assert form == own["format"]
    assert samples == f"{own['num_files_train']} × {own['num_samples_per_file']}"
    assert record.split(" ± ")[0] == f"{own['record_length_bytes']:.0f}"
    assert f"{own['batch_size']:g}" in batches.split(", ")
    assert own["computation_time"] in [float(one) for one in computations.split(", ")]
    complete = parameters.complete({"model": name})
    assert str(complete["steps_per_epoch"]) in re.findall(r"\d+", here)
    assert int(str(complete["steps_per_epoch"])) >= 40
    assert estimate_bytes([Spec.of(complete)]) < 1e9
