"""The report of a run that took a tweak set apart: the sentence first, then the table of effects, with the same numbers as `effects`."""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from analysis.compare import compare
from analysis.load import from_json
from analysis.report.keys import MOST_INTERACTIONS, keys
from analysis.report.view import view_of
from analysis.studies.keys.effects import effects_of
from tests import made_designs as designs
from tests.analysis.report.pages import page, section
from tests.made_effects import factorial
from tests.synthetic import Made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.report.page import Page
    from analysis.terms import Run

LONG = "net.ipv4.tcp_congestion_control"
KEYS = designs.Keys(
    {"vm.swappiness": -0.1, LONG: 0.0, "vm.dirty_ratio": 0.0},
    together={(LONG, "vm.dirty_ratio"): -0.08},
    broken={("profile.only-1", block): ("failed", "<out> of memory") for block in (1, 2, 3, 4)},
)


@cache
def run(kind: str = "factorial", workloads: tuple[str, ...] = ("cnn_train",)) -> Run:
    points = {"factorial": designs.factorial, "ablation": designs.ablation}[kind](3)
    return from_json(designs.designed(kind, KEYS, points, Made(blocks=4, workloads=workloads)), "made up.json")


@pytest.fixture(scope="module")
def factorial_page() -> Page:
    return page(run(workloads=("cnn_train", "lora_finetune")))


@pytest.fixture(scope="module")
def ablation_page() -> Page:
    return page(run("ablation"))


def test_a_factorial_design_as_it_is_read(factorial_page: Page, snapshot: SnapshotAssertion) -> None:
    """Once for each workload; what each point of the design did by itself is counted below it."""
    assert section(factorial_page.html, "answer") == snapshot(name="answer")
    assert section(factorial_page.html, "keys") == snapshot(name="keys")


def test_an_ablation_as_it_is_read(ablation_page: Page, snapshot: SnapshotAssertion) -> None:
    """How each effect came to be, and what was lost; the table of whole sets is folded away and says what it is."""
    for place in ("answer", "keys", "again"):
        assert section(ablation_page.html, place) == snapshot(name=place)
    html = ablation_page.html
    folded = html[html.index('<details class="sets">') :]
    folded = folded[: folded.index("</details>")]
    assert ('<table class="verdicts"' in folded, '<table class="effects"' in folded) == (True, False)


def test_one_statement_on_the_control_and_no_count_that_would_say_the_contrary() -> None:
    """The check of the effects fails, that of `compare` does not: the page says that it fails, wherever it speaks of it."""
    one = run("ablation")
    comparisons, failing = compare(one), [replace(found, again_fails=True) for found in effects_of(one)]
    assert all(found.verdict != "not comparable" for found in comparisons if found.untouched)
    view = view_of(one, comparisons, failing, pictures={}, place=1)
    assert "trust no verdict" in (view.control or "")
    assert view.answers == []
    assert view.rules[6].state == "not met"
    assert "The control" in view.rules[6].reason
    trusted = view_of(one, comparisons, effects_of(one), pictures={}, place=1)
    assert "The control" not in trusted.rules[6].reason


def test_where_compare_finds_the_control_to_differ_the_effects_say_so_too(snapshot: SnapshotAssertion) -> None:
    """A factorial design checks by the scatter of all cells: what the pairs alone show is told beside it."""
    (found,) = effects_of(run())
    assert not found.again_fails
    controls = [replace(other, verdict="not comparable") for other in compare(run()) if other.untouched]
    check = [line for line in keys([found], controls)[0].known if line.startswith("A/A")]
    assert check == snapshot
    assert check != [line for line in keys([found])[0].known if line.startswith("A/A")]


def test_a_fraction_names_what_an_effect_cannot_be_told_from(ablation_page: Page) -> None:
    """There is no column where it would be empty."""
    aliased = factorial({"vm.swappiness": -0.1}, design="fractional")
    terms = (replace(aliased.terms[0], aliases=("vm.x:vm.y",)), *aliased.terms[1:])
    (told,) = keys([replace(aliased, terms=terms)])
    assert [one.aliases for one in told.rows if one.aliases] == ["vm.x:vm.y"]
    assert ">cannot be told" not in ablation_page.html


def test_the_strongest_interactions_are_shown_and_the_rest_counted() -> None:
    many = factorial({}, keys={f"vm.k{at}": "1" for at in range(7)}, together={("vm.k1", "vm.k5"): 0.2})
    (told,) = keys([many])
    assert told.hidden == 21 - MOST_INTERACTIONS
    assert "vm.k1 × vm.k5" in [one.name for one in told.rows]


def test_what_cannot_be_analysed_says_why() -> None:
    refused = replace(factorial({}), terms=(), refusal="every cell failed.", sentence="Nothing can be said: every cell failed.")
    (told,) = keys([refused])
    assert (told.refusal, told.rows) == ("every cell failed.", ())


def test_effects_are_a_file_of_their_own(ablation_page: Page) -> None:
    encoded = re.search(r'download="effects.csv" href="data:text/csv;charset=utf-8,([^"]+)"', ablation_page.html)
    assert encoded
    rows = list(csv.DictReader(io.StringIO(unquote(html.unescape(encoded.group(1))))))
    found = effects_of(run("ablation"))[0].terms
    assert [float(line["gain_fraction"]) for line in rows] == [term.gain for term in found]
    assert [line["means"] for line in rows] == [term.means for term in found]
