"""What a report says of a training's input: the answers of `python -m analysis io`, and nothing where none was reported."""

from __future__ import annotations

import math

import pytest

from analysis.load import from_json
from analysis.report.page import page_of
from tests.analysis.report.pages import read
from tests.made_io import MadeIo, saved_io
from tests.synthetic import Made

HEAD = "What feeds the accelerator"


@pytest.fixture(scope="module")
def html() -> str:
    """A cold cache costs raw files two thirds, png files nothing."""
    made = MadeIo(
        factors={"format": ("raw", "png"), "cache": ("cold", "warm")},
        gain=lambda levels, _tweakset: math.log(1 / 3) if levels == {"format": "raw", "cache": "cold"} else 0.0,
        blocks=4,
    )
    return page_of([from_json(saved_io(made), "io.json")], "again").html.replace("\u00a0", " ")


def test_it_says_which_factor_how_much_and_how_sure(html: str) -> None:
    _, _, section = html.partition(f"{HEAD}</h2>")
    section = section.partition("<h2")[0]
    assert "samples/s: format × cache: cache cold → warm does with raw +20" in section
    assert "p &lt;0.001 (Holm over 3)" in section
    assert "A/A: stock and its copy: no difference shown in 4 configurations" in section
    assert '<a href="#input">Input</a>' in html


def test_it_stands_first_and_opens_with_the_answer(html: str) -> None:
    head, _, rest = html.partition(f"{HEAD}</h2>")
    assert 'aria-label="The answer"' not in head
    assert rest.index("Cold cache: the highest is png") < rest.index("samples/s: format × cache") < rest.index('aria-label="The answer"')
    assert head.index('href="#input"') < head.index('href="#verdicts"')


def test_boxes_in_which_nothing_is_claimed_are_one_line() -> None:
    """Of input a workload is a configuration: four boxes of "nothing is claimed" are one line."""
    made = MadeIo(tweaksets=("stock", "stock-again", "block-readahead-128"), blocks=2)
    text = page_of([from_json(saved_io(made), "io.json")], "again").html.replace("\u00a0", " ")
    assert "No tweak set can be named in any of 4 workloads." in text
    assert "No verdict: not comparable" not in text


def test_its_pictures_are_drawn(html: str) -> None:
    for name in ("io_whole_steady", "io_bottleneck", "io_format_cache"):
        assert f'id="picture-{name}"' in html


def test_a_run_that_reported_no_input_has_no_such_part() -> None:
    other = page_of([read(Made(blocks=2))], "again").html
    assert HEAD not in other
    assert "io_whole_steady" not in other
