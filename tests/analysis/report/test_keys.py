"""The report of a run that took a tweak set apart: the sentence first, then the table of effects, with the same numbers as `effects`."""

from __future__ import annotations

import base64
import csv
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.compare import compare
from analysis.effects.effects import effects_of
from analysis.load import from_json
from analysis.report.keys import MOST_INTERACTIONS, keys
from analysis.report.view import view_of
from tests import made_designs as designs
from tests.analysis.report.pages import page, read, row, text_of
from tests.made_effects import factorial
from tests.synthetic import Made

if TYPE_CHECKING:
    from analysis.terms import Run

pytestmark = pytest.mark.usefixtures("few_pictures")
LONG = "net.ipv4.tcp_congestion_control"
KEYS = designs.Keys(
    {"vm.swappiness": -0.1, LONG: 0.0, "vm.dirty_ratio": 0.0},
    together={(LONG, "vm.dirty_ratio"): -0.08},
    broken={("profile.only-1", block): ("failed", "<out> of memory") for block in (1, 2, 3, 4)},
)


def run(kind: str = "factorial", **made: object) -> Run:
    points = {"factorial": designs.factorial, "ablation": designs.ablation}[kind](3)
    return from_json(designs.designed(kind, KEYS, points, replace(Made(blocks=4), **made)), "made up.json")  # type: ignore[arg-type]  # fields of `Made`


def test_the_sentence_of_effects_is_the_first_thing_a_reader_sees() -> None:
    """Once, for each workload; what each point of the design did by itself is counted below it."""
    one = run(workloads=("cnn_train", "lora_finetune"))
    text = text_of(page(one).html)
    for found in effects_of(one):
        assert text.count(found.sentence) == 1
        assert text.index(found.sentence) < text.index("Which key did it")
    assert "Each tweak set of the design by itself against the baseline under cnn_train: " in text


def test_each_effect_has_its_row_with_gain_interval_p_and_verdict() -> None:
    one = run()
    html = page(one).html
    found = next(term for term in effects_of(one)[0].terms if term.factors == ("vm.swappiness",))
    assert found.verdict == "regressed"
    assert found.gain is not None
    assert found.gain_low is not None
    assert found.gain_high is not None
    wanted = f"{100 * found.gain:+.1f} ({100 * found.gain_low:+.1f} to {100 * found.gain_high:+.1f}) <0.001 Holm, 3 effects"
    assert row(html, "vm.swappiness", "on average over the other keys").startswith(
        f"vm.swappiness on average over the other keys regressed {wanted}"
    )
    assert " interacts -" in row(html, f"{LONG} × vm.dirty_ratio", "how much one changes what the other does")
    assert '<span class="chip interacts">interacts</span>' in html


def test_an_ablation_says_how_each_effect_came_to_be_and_what_was_lost() -> None:
    html = page(run("ablation")).html
    assert row(html, "profile", "all keys, against stock")
    assert row(html, "vm.swappiness", "alone, against stock")
    assert row(html, "vm.swappiness", "in the profile, against it without this key")
    text = text_of(html)
    assert f"{LONG} alone, against stock" not in text
    assert "profile.only-1" in text
    assert "<out> of memory" in text


def test_error_and_the_check_of_nothing_against_nothing_stand_below_the_table() -> None:
    text = text_of(page(run()).html)
    assert re.search(r"Error term: .+ \(\d+ degrees of freedom\)\.", text)
    assert "A/A check: stock-again" in text
    assert "Where the variation went" in text


def test_one_statement_on_the_control_and_no_count_that_would_say_the_contrary() -> None:
    """The check of the effects fails, that of `compare` does not: the page says that it fails, wherever it speaks of it."""
    one = run("ablation")
    comparisons, failing = compare(one), [replace(found, again_fails=True) for found in effects_of(one)]
    assert all(found.verdict != "not comparable" for found in comparisons if found.untouched)
    view = view_of(one, comparisons, failing, pictures={}, place=1)
    assert view.control == "Control: stock-again changes nothing and differs all the same under cnn_train: trust no verdict there."
    assert view.answers == []
    rule = next(rule for rule in view.rules if rule.number == 7)
    assert (rule.state, rule.reason) == ("not met", "The control differs from stock under cnn_train, though nothing was changed.")
    assert "The control" not in next(
        rule.reason for rule in view_of(one, comparisons, effects_of(one), pictures={}, place=1).rules if rule.number == 7
    )


def test_where_compare_finds_the_control_to_differ_the_effects_say_so_too() -> None:
    """A factorial design checks by the scatter of all cells: what the pairs alone show is told beside it."""
    one = run()
    (found,) = effects_of(one)
    assert not found.again_fails
    controls = [replace(other, verdict="not comparable") for other in compare(one) if other.untouched]
    worse = [line for line in keys([found], controls)[0].known if line.startswith("A/A check: ")]
    assert worse[0].endswith("Block by block, as verdicts are found, it differs: trust no effect here.")
    assert not any("trust no effect" in line for line in keys([found])[0].known)


def test_the_table_of_whole_sets_is_folded_away_and_says_what_it_is() -> None:
    html = page(run("ablation")).html
    folded = html[html.index('<details class="sets">') :]
    folded = folded[: folded.index("</details>")]
    assert '<table class="verdicts"' in folded
    assert '<table class="effects"' not in folded
    assert "p and MDE are adjusted for another number of questions" in text_of(folded)
    assert '<details class="sets">' not in page(read()).html


def test_a_fraction_names_what_an_effect_cannot_be_told_from() -> None:
    aliased = factorial({"vm.swappiness": -0.1}, design="fractional")
    terms = (replace(aliased.terms[0], aliases=("vm.x:vm.y",)), *aliased.terms[1:])
    (told,) = keys([replace(aliased, terms=terms)])
    assert [one.aliases for one in told.rows if one.aliases] == ["vm.x:vm.y"]
    assert ">cannot be told from</th>" not in page(run()).html, "no column where it would be empty"


def test_the_strongest_interactions_are_shown_and_the_rest_counted() -> None:
    many = factorial({}, keys={f"vm.k{at}": "1" for at in range(7)}, together={("vm.k1", "vm.k5"): 0.2})
    (told,) = keys([many])
    assert told.hidden == 21 - MOST_INTERACTIONS
    assert "vm.k1 × vm.k5" in [one.name for one in told.rows]


def test_what_cannot_be_analysed_says_why() -> None:
    refused = replace(factorial({}), terms=(), refusal="every cell failed.", sentence="Nothing can be said: every cell failed.")
    (told,) = keys([refused])
    assert (told.refusal, told.rows) == ("every cell failed.", ())


def test_effects_are_a_file_of_their_own() -> None:
    one = run()
    html = page(one).html
    encoded = re.search(r'download="effects.csv" href="data:text/csv;charset=utf-8;base64,([^"]+)"', html)
    assert encoded
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(encoded.group(1)).decode())))
    found = effects_of(one)[0].terms
    assert [float(line["gain_fraction"]) for line in rows] == [term.gain for term in found]
    assert {line["means"] for line in rows} == {"main", "interaction"}


def test_the_command_asks_for_the_design_and_not_for_what_it_made() -> None:
    text = text_of(page(run("ablation")).html)
    command = next(line for line in text.splitlines() if "python -m pytest benchmarks/bench_made_up.py" in line)
    assert "--design=ablation" in command
    assert "'--tweaks=profile'" in command or "--tweaks=profile " in command or "--tweaks=data/tweaks/profile.yaml" in command
    assert "profile.only-1" not in command


def test_a_matrix_has_no_such_section() -> None:
    html = page(read()).html
    assert "Which key" not in html
    assert "effects.csv" not in html
