"""Properties of every picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from analysis.load import from_json
from analysis.plots import (
    fitting,
    pictures,
)
from analysis.plots.scene import Scene, scene_of
from analysis.plots.style import svg, written
from docs import generate
from tests.analysis.plots.conftest import MADE
from tests.analysis.plots.reading import faults, refusal, said
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOUSE = Path(__file__).parents[3]
NAMES = list(fitting([from_json(saved_run(), "made.json")]))
ALONE_REFUSED = {"forest", "parameters", "telemetry"}


def test_every_picture_is_explained_once() -> None:
    """With an image from a saved run where one has the picture."""
    page = (HOUSE / "docs/pictures.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\*\*`(\w+)`\*\*: .*\?", page, re.MULTILINE)
    assert sorted(explained) == sorted(pictures())
    drawn = sorted(name for names in generate.SHOWN.values() for name in names)
    assert sorted(re.findall(r"^!\[(\w+)\]\(pictures/\1\.svg\)$", page, re.MULTILINE)) == drawn
    assert sorted(one.stem for one in generate.PICTURES.glob("*.svg")) == drawn


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_or_overlaps_and_the_svg_is_small(
    drawings: dict[str, Figure], name: str
) -> None:
    """It is sound XML, and without a date."""
    assert faults(drawings[name]) == []
    text = svg(drawings[name])
    ET.fromstring(text)  # noqa: S314  # written here
    assert len(text.encode()) < 120_000
    assert "<dc:date>" not in text
    assert "Verdana, sans-serif" in text


@pytest.mark.parametrize("name", NAMES)
def test_24_tweak_sets_with_endless_names_still_fit(crowded: Scene, name: str) -> None:
    """Names are folded or shortened in the middle, never cut at the edge, and stay distinct."""
    figure = pictures()[name].draw(crowded)
    assert faults(figure) == []


@pytest.mark.parametrize(
    ("form", "begins"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), pytest.param("pdf", b"%PDF", marks=pytest.mark.slow)],
)
def test_each_format_is_what_it_says_and_comes_out_the_same(
    drawings: dict[str, Figure], form: str, begins: bytes
) -> None:
    one = written(drawings["run_order"], form)
    assert one.startswith(begins)
    assert one == written(drawings["run_order"], form)


@pytest.mark.parametrize(
    ("wanted", "made", "reason"),
    [
        (
            NAMES,
            replace(
                MADE,
                arms=[
                    replace(arm, broken=dict.fromkeys(range(1, 6), ("failed", "no memory")))
                    for arm in (STOCK, AGAIN)
                ],
            ),
            "measured|no memory",
        ),
        (ALONE_REFUSED, Made(arms=(STOCK,), blocks=1), "."),
        (
            ["run_order"],
            Made(
                arms=(STOCK,),
                workloads=[f"w{at}" for at in range(150)],
                blocks=2,
                steps=1,
                warmup=0,
            ),
            "inches tall",
        ),
        (["parameters"], Made(blocks=6), "no measured tweak set sets"),
        (["switching"], Made(), "--design=switch"),
    ],
    ids=[
        "no cell measured",
        "stock in one block",
        "150 workloads",
        "nothing was changed",
        "not switched",
    ],
)
def test_what_cannot_be_drawn_says_why(wanted: Sequence[str], made: Made, reason: str) -> None:
    scene = scene_of([from_json(saved_run(made), "made.json")])
    reasons = {name: refusal(pictures()[name], scene) for name in wanted}
    assert all(re.search(reason, one) for one in reasons.values()), reasons


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_stand_side_by_side_each_under_its_own_name(
    tmp_path: Path, scene: Scene, name: str
) -> None:
    """The second has other tweak sets and no telemetry; missing data is not drawn as 0."""
    other = from_json(
        saved_run(Made(arms=(STOCK, Arm("else", requested={"vm.x": "1"})), blocks=4, seed=9)),
        str(tmp_path / "other.json"),
    )
    both = scene_of([*scene.runs, other])
    figure = pictures()[name].draw(both)
    assert faults(figure) == []
    text = said(figure)
    assert (f"Run {other.run_id}" in text) == (name != "telemetry"), (
        "the foot names the runs that are drawn"
    )


def test_foreign_names_cannot_break_a_picture() -> None:
    """Control characters, letters that the font lacks, and dollars do no harm."""
    name = "b\x1b[31m\nad 日本 $x^{2}$"
    scene = scene_of(
        [
            from_json(
                saved_run(Made(arms=(STOCK, Arm(name, requested={f"vm.{name}": name})), blocks=3)),
                "foreign.json",
            )
        ]
    )
    for one in ("forest", "run_order", "parameters"):
        # The parser meets only our own SVG.
        text = "".join(ET.fromstring(svg(pictures()[one].draw(scene))).itertext())  # noqa: S314
        assert "b\\x1b[31m ad 日本" in text
        assert "$x^{2}$" in text
