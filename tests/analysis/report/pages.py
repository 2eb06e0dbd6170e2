"""Synthetic runs and their reports, for the tests beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

from analysis.load import from_json
from analysis.plots.scene import NothingToDraw, Scene
from analysis.report.page import HtmlPage, page_of
from analysis.terms import Run
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_run

SWAPPINESS = {"vm.swappiness": "1"}
EVERYTHING = Made(
    arms=(
        STOCK,
        AGAIN,
        Arm("faster", 0.12, SWAPPINESS),
        Arm("slower", -0.12, {"vm.dirty_ratio": "40"}),
        Arm("same", 0.0, {"kernel.numa_balancing": "0"}),
        Arm(
            "isolate",
            requested={"isolcpus": "2-11"},
            kind="boot",
            broken=dict.fromkeys(range(1, 9), ("skipped", "no such boot token")),
        ),
        Arm("ignored", requested=SWAPPINESS, observed={"vm.swappiness": "60"}),
    ),
    workloads=("cnn_train", "checkpoint_train"),
    primaries={"checkpoint_train": ("step_time_p10_s", "lower")},
    blocks=8,
    run_cv=0.005,
    step_cv=0.005,
)


def read(
    made: Made = EVERYTHING,
    change: Callable[[JSON], None] | None = None,
    origin: str = "made up.json",
) -> Run:
    """Make a run and read it, changed on the way where requested."""
    saved = saved_run(made)
    if change:
        change(saved)
    return from_json(saved, origin)


def page(*runs: Run, refused: Sequence[str] = ()) -> HtmlPage:
    """Write a report, with two small stand-ins for its pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.report.page.fitting", two_pictures)
        return page_of(runs, "python -m analysis report 'made up.json'", refused)


def two_pictures(_: object = None) -> dict[str, SimpleNamespace]:
    """Stand-ins for the real pictures, one of which fails: pages are tested apart from drawing."""

    def points(scene: Scene) -> Figure:
        figure = Figure(figsize=(7.2, 2), label="Points & lines")
        axes = figure.add_subplot(clip_on=True)
        axes.plot(range(50), marker="o", color="#0072B2")
        axes.set_title(", ".join(scene.runs[0].tweaksets), color="#1a1a1a")
        return figure

    def nothing(_: Scene) -> Figure:
        raise NothingToDraw("no GPU <was> measured")

    return {
        "points": SimpleNamespace(
            TITLE="Points",
            ANSWERS="Whether there are points.",
            leads=False,
            DESIGNS=frozenset(),
            draw=points,
        ),
        "telemetry": SimpleNamespace(
            TITLE="Telemetry",
            ANSWERS="What the machine did.",
            leads=False,
            DESIGNS=frozenset(),
            draw=nothing,
        ),
    }


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.hidden += tag in {"style", "svg", "script"}
        self.parts.append(
            "\n" if tag in {"tr", "li", "p", "h1", "h2", "h3", "h4", "h5", "dt", "summary"} else " "
        )

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in {"style", "svg", "script"}

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data.replace("\n", " "))


def text_of(html: str) -> str:
    """Visible text, a line for each row, item and paragraph."""
    parser = _Text()
    parser.feed(html)
    lines = "".join(parser.parts).replace("\u00a0", " ").splitlines()
    return "\n".join(filter(None, (re.sub(r"\s+", " ", line).strip() for line in lines)))


def section(html: str, place: str) -> str:
    """Visible text below one heading of a page, by its id."""
    starts = re.compile(r'<h2 id="|<details class="part" id="')
    begin = html.index(
        next(f'{one}{place}"' for one in starts.pattern.split("|") if f'{one}{place}"' in html)
    )
    after = starts.search(html, begin + 1)
    return text_of(html[begin : after.start() if after else -1])
