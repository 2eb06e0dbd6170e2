"""What docs/reference/calibration.md shows is what the command prints, and what docs/calibration.md says stands in its tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.commands.calibrate import TRIALS
from analysis.load import load
from analysis.render.markdown import render
from analysis.studies.calibration.answer import answer
from analysis.studies.calibration.rates import Calibration, baseline_rates, family_rates, single_rates, stopping_rates, word_rates
from analysis.studies.calibration.real_noise import real_noise

ROOT = Path(__file__).parents[4]
WORDS = (ROOT / "docs/calibration.md").read_text(encoding="utf-8")
SEED = 1
_, COMMAND, MEASURED = re.split(r"<!-- calibrate (.*) -->", (ROOT / "docs/reference/calibration.md").read_text(encoding="utf-8"))
FAMILIES = "### Many A/A contrasts"


def sections(markdown: str) -> dict[str, str]:
    return {part.partition("\n")[0]: part.strip() for part in markdown.split("\n### ")}


@pytest.mark.slow
def test_the_tables_are_what_the_command_prints() -> None:
    """To the letter, but for families of fifty, which would take seconds more: those of twenty are compared.

    If it fails because a rule changed: replace what stands there by what `--markdown` prints, and read the words above again.
    """
    families = family_rates(SEED, TRIALS, [20])
    calibration = Calibration(
        seed=SEED,
        trials=TRIALS,
        single=single_rates(SEED, TRIALS),
        families=families,
        words=word_rates(SEED, TRIALS),
        baselines=baseline_rates(SEED, TRIALS),
        stopping=stopping_rates(SEED, TRIALS),
        real=tuple(real_noise(load(ROOT / name), SEED, TRIALS) for name in COMMAND.split()),
    )
    shown, printed = sections(MEASURED), sections(f"\n{render(answer(calibration, rules=True))}")
    (title,) = (title for title in shown if title.startswith(FAMILIES.removeprefix("### ")))
    of_twenty = [line.rpartition(" | ")[0] + " |" for line in shown.pop(title).splitlines() if line.startswith("| ")]
    assert of_twenty == [line for line in printed.pop(title).splitlines() if line.startswith("| ")]
    shown.pop("")
    printed.pop("", None)
    assert shown == printed


def test_every_number_it_draws_a_conclusion_from_stands_in_a_table() -> None:
    said = re.findall(r"\d+\.\d", re.sub(r"factor 1\.1", "", WORDS))
    assert len(said) > 10
    assert not [number for number in said if not re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", MEASURED)]
