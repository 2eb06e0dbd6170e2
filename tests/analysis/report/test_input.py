"""Report on training input: the answers of `python -m analysis io`, or nothing without input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.report.page import page_of
from tests.analysis.report.pages import section
from tests.made_io import MadeIo, saved_io

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


@pytest.fixture(scope="module")
def html() -> str:
    """A cold cache costs raw files two thirds, png files nothing."""
    made = MadeIo(
        factors={"format": ("raw", "png"), "cache": ("cold", "warm")},
        gain=lambda levels, _tweakset: (
            math.log(1 / 3) if levels == {"format": "raw", "cache": "cold"} else 0.0
        ),
        blocks=4,
    )
    return page_of([from_json(saved_io(made), "io.json")], "again").html


def test_it_says_which_factor_how_much_and_how_sure(html: str, snapshot: SnapshotAssertion) -> None:
    """The answer precedes its tables; pictures are drawn; no tweak sets, so no verdicts."""
    assert section(html, "answer") == snapshot(name="answer")
    assert section(html, "io") == snapshot(name="figures")
    assert "#verdicts" not in html
    assert 'id="picture-io_bottleneck"' in html
