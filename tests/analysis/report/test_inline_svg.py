"""Pictures that share a page undisturbed and describe themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from matplotlib.figure import Figure

from analysis.plots.scene import Scene
from analysis.plots.style import svg
from analysis.report.page import pictures_of
from tests.analysis.report.pages import read

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def inlined(name: str, title: str, description: str, head: str = "a title") -> str:
    figure = Figure(figsize=(7.2, 2))
    axes = figure.add_subplot()
    axes.plot([float(at % 7) for at in range(20)], "o-", color="#0072B2")
    axes.plot([0.0, 40.0], [3.0, 9.0])
    axes.set_xlim(0, 19)
    axes.set_title(head, color="#1a1a1a")
    return svg(figure, name, title, description)


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(markup)  # noqa: S314  # made a line above


def names(markup: str) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', markup))


def test_pictures_share_no_id_and_refer_to_their_own_alone() -> None:
    one, other = (inlined(name, "t", "d") for name in ("one", "other"))
    assert len(names(one)) > 3
    assert not names(one) & names(other)
    for markup in (one, other):
        used = re.findall(r'href="#([^"]+)"', markup) + re.findall(r"url\(#([^)]+)\)", markup)
        assert used
        assert set(used) <= names(markup)


def test_it_says_what_it_shows_to_those_who_cannot_see_it() -> None:
    root = parsed(inlined("one", "Effects & gains", "Whether <it> moved."))
    told = {part.get("id"): part.text for part in root if part.tag in {"title", "desc"}}
    assert root.get("role") == "img"
    assert [told[name] for name in (root.get("aria-labelledby") or "").split()] == [
        "Effects & gains",
        "Whether <it> moved.",
    ]


@pytest.mark.filterwarnings("ignore:Glyph .* missing from")
def test_any_name_can_stand_in_a_picture() -> None:
    for name in (
        "<script>alert(1)</script>",
        "a & b",
        "\x01\x1b[31m",
        "$x^2$",
        "\u202eevil",
        "ünï",
    ):
        markup = inlined("one", name, name, name)
        assert not any(odd in markup for odd in ("<script", "\u202e", "\x1b"))
        assert parsed(markup).tag == "svg"


@pytest.mark.usefixtures("few_pictures")
def test_what_cannot_be_drawn_says_why_and_what_can_is_told(snapshot: SnapshotAssertion) -> None:
    points, other = pictures_of(Scene((read(),)))
    assert (points.missing, other.markup) == (None, None)
    assert points.markup is not None
    assert [
        other.missing,
        *(part.text for part in parsed(points.markup) if part.tag in {"title", "desc"}),
    ] == snapshot
