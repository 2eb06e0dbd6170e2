"""Report of a run over keys: the sentence, then the table of effects with `effects`' numbers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.terms import Run
from tests import made_designs as designs
from tests.analysis.report.pages import page, section
from tests.synthetic import Made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.report.page import HtmlPage

LONG = "net.ipv4.tcp_congestion_control"
KEYS = designs.Keys(
    {"vm.swappiness": -0.1, LONG: 0.0, "vm.dirty_ratio": 0.0},
    together={(LONG, "vm.dirty_ratio"): -0.08},
    broken={("profile.only-1", block): ("failed", "<out> of memory") for block in (1, 2, 3, 4)},
)


@cache
def run(kind: str = "factorial", workloads: tuple[str, ...] = ("cnn_train",)) -> Run:
    points = {"factorial": designs.factorial, "ablation": designs.ablation}[kind](3)
    return from_json(
        designs.designed(kind, KEYS, points, Made(blocks=4, workloads=workloads)), "made up.json"
    )


@pytest.fixture(scope="module")
def factorial_page() -> HtmlPage:
    return page(run(workloads=("cnn_train", "lora_finetune")))


@pytest.fixture(scope="module")
def ablation_page() -> HtmlPage:
    return page(run("ablation"))


def test_a_factorial_design_as_it_is_read(
    factorial_page: HtmlPage, snapshot: SnapshotAssertion
) -> None:
    """Once for each workload; each point's own result stands below it."""
    assert section(factorial_page.html, "answer") == snapshot(name="answer")
    assert section(factorial_page.html, "keys") == snapshot(name="keys")


def test_an_ablation_as_it_is_read(ablation_page: HtmlPage, snapshot: SnapshotAssertion) -> None:
    """The origin of each effect, and losses; the table of whole sets is folded away."""
    for place in ("answer", "keys", "again"):
        assert section(ablation_page.html, place) == snapshot(name=place)
    assert '<details class="part" id="verdicts">' in ablation_page.html
