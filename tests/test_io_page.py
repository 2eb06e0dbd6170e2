"""Figures and models in docs/io.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.studies.io.figures import judge
from fixtures.studies.io import models, parameters
from fixtures.studies.io.dataset import DataSpec, estimate_bytes
from tests.made_io import io_runs

PAGE = (Path(__file__).parents[1] / "docs" / "io.md").read_text(encoding="utf-8")


def first_column(head: str) -> list[str]:
    """Return names in backquotes in this table's first column; `_x` continues the one before."""
    (table,) = re.findall(rf"(?m)^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE)
    found = []
    for row in table.splitlines():
        names = re.findall(r"`(\w+)`", row.split("|")[1])
        stem = names[0].removesuffix("_steady")
        found += [stem + name if name.startswith("_") else name for name in names]
    return found


def test_every_response_has_its_formula() -> None:
    (run, *_) = io_runs()
    assert sorted(first_column("figure")) == sorted(judge(run).responses)


@pytest.mark.parametrize("name", sorted({model.name for model in models.available().values()}))
def test_a_model_at_default_scale_is_small_with_enough_steps(name: str) -> None:
    scaled = parameters.complete({"model": name})
    assert scaled["steps_per_epoch"] >= 40
    assert estimate_bytes([DataSpec.of(scaled)]) < 1e9
