"""The gate on a terminal: what a file calls its workloads is shown, and is no command to the CI runner that reads the log."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.render.text import render
from analysis.studies.gate.answer import answer, figures
from analysis.studies.gate.gate import Gate
from tests.made_gates import ruled
from tests.synthetic import STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from pathlib import Path

MADE = Made(arms=(STOCK, Arm("tuned", 0.0, {"vm.swappiness": "1"})), blocks=8)
# What a runner obeys: GitHub's `::` at the start of a line, blanks aside, and `##[` or `##vso[` anywhere.
OBEYED = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    ["::stop-commands::tok", "##[error]x", "##vso[task.complete]x", "a\n::error::x", "x" * 40 + "::error::" * 9, "a \u2028::error::x"],
)
def test_a_name_is_no_command_to_a_runner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = saved_file(tmp_path, replace(MADE, workloads=(name,)))
    command = ["gate", f"{path}:stock", f"{path}:tuned", "--max-regression", "5%", "--promote-to", str(tmp_path / "to.json")]
    assert main(command) == 0
    assert not OBEYED.search(capsys.readouterr().out)
    assert main([*command, "--json"]) == 0
    out = capsys.readouterr().out
    assert not OBEYED.search(out)
    assert json.loads(out)["rulings"][0]["comparison"]["workload"] == name
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(command) == 0
    obeyed = [line for line in capsys.readouterr().out.splitlines() if OBEYED.search(line)]
    assert obeyed
    assert all(line.startswith("::notice title=Gate::") for line in obeyed)


def test_a_refusal_is_no_command_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "##[error]x"]) == 2
    assert not OBEYED.search(capsys.readouterr().err)


def test_a_warning_or_a_file_of_such_a_name_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    text = render(answer(Gate("base", "::error::new.json", (), "undecided", ("word " * 17 + "::error::x " * 5,))))
    assert "error" in text
    assert not OBEYED.search(text)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("limit", "loss", "high", "shown"),
    [
        (0.02, 0.018, 0.0204, ("+1.80", "+2.04", "2.00")),
        (0.0205, 0.01, 0.0204, ("+1.00", "+2.04", "2.05")),
        (0.02, 0.0200004, 0.031, ("+2.0000", "+3.1000", "2.0000")),
        (0.05, -0.004, 0.021, ("-0.4", "+2.1", "5.0")),
        (0.03, None, None, ("", "", "3.0")),
    ],
)
def test_a_loss_beyond_its_limit_never_looks_like_the_limit(
    limit: float, loss: float | None, high: float | None, shown: tuple[str, str, str]
) -> None:
    """Up to four decimals: nobody measures more."""
    assert figures(replace(ruled(), limit=limit, loss=loss, loss_high=high)) == shown
