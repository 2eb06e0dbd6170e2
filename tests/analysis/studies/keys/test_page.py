"""The page of effects."""

from __future__ import annotations

import pytest

from analysis import load
from analysis.render.text import render
from analysis.studies.keys.answers import answer
from analysis.studies.keys.effects import effects_of
from tests.made_designs import Keys, ablation, designed, factorial, fraction, plackett_burman_12
from tests.synthetic import Made

LONG = {f"net.ipv4.conf.enp0s31f6.a_setting_with_a_very_long_name_{at}": (-0.1 if at == 1 else 0.0) for at in range(5)}


@pytest.mark.parametrize(
    ("kind", "points", "blocks"),
    [
        ("ablation", ablation(5), 5),
        ("factorial", factorial(5), 2),
        ("fractional", fraction(4, (0, 1, 2, 3)), 1),
        ("screening", plackett_burman_12(5), 2),
    ],
    ids=["ablation", "factorial", "fractional", "screening"],
)
def test_no_line_is_longer_than_a_page_however_long_the_names(kind: str, points: dict[str, frozenset[int]], blocks: int) -> None:
    """Names fold; numbers, verdicts and the sentence stay whole; without colour there is no escape sequence."""
    broken = {("profile.p03", 1): ("failed", "the kernel refuses it, for a reason that takes some words to say " * 3)}
    run = load.from_json(designed(kind, Keys(LONG, broken=broken), points, Made(blocks=blocks, steps=6)), "made-up.json")
    found = effects_of(run)
    plain, colored = render(answer(found, run)), render(answer(found, run), color=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in colored
    assert max(map(len, plain.splitlines())) <= 100
    assert "regressed" in plain
    called = "=1,orinteractionsofothers:" if kind == "screening" else "=1:"
    assert f"setting_with_a_very_long_name_1{called}" in "".join(plain.split())


def test_names_that_are_commands_of_a_terminal_are_printed_as_text() -> None:
    """A factor's name comes out of a file that anybody may have written."""
    run = load.from_json(
        designed("factorial", Keys({"a\x1b[31m": 0.0, "[bold]b": 0.0}), factorial(2), Made(blocks=3, steps=6)), "made-up.json"
    )
    page = render(answer(effects_of(run), run))
    assert "\x1b" not in page
    assert "[bold]b" in page
