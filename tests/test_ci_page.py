"""The CI cookbook: its files are read by their programs, and its commands have their options."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from analysis.__main__ import main as judge
from analysis.studies.gate.gate import EXIT
from analysis.studies.gate.limits import KEYS, read
from analysis.wording import spoken
from deeptweak.__main__ import MEASURE
from fixtures.__main__ import main as measure
from tests.composite import run_action

HOUSE = Path(__file__).parents[1]
PAGE = (HOUSE / "docs/ci.md").read_text(encoding="utf-8")
ACTION = yaml.safe_load((HOUSE / ".github/actions/gate/action.yml").read_text(encoding="utf-8"))
COMMAND = re.compile(r"(?:python -m analysis|deeptweak) ([a-z]+)((?: [^`'#\n]*)?)")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    for command, rest in COMMAND.findall(PAGE):
        yield command, re.findall(r"(--[\w-]+)", rest)


def test_the_limits_file_is_one(tmp_path: Path) -> None:
    (example,) = [block for block in blocks("yaml") if block.startswith("max_regression")]
    (tmp_path / "limits.yml").write_text(f"{example}baseline: stock\n")
    limits = read(tmp_path / "limits.yml")
    assert limits.limit_of("lora_finetune", "throughput_samples_per_s") == 0.10
    assert set(yaml.safe_load(example)) | {"baseline"} == set(KEYS)


def test_shell_is_shell() -> None:
    for block in blocks("sh"):
        done = subprocess.run(
            ["bash", "-n"], input=block, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_the_action_has_the_inputs_and_outputs_that_are_listed() -> None:
    (_, table) = PAGE.split("| input | |")
    rows = re.findall(r"^\| (`.*?) \|", table.split("Outputs:")[0], flags=re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == set(
        ACTION["inputs"]
    )
    said = re.search(r"^Outputs: (.*)", PAGE, flags=re.MULTILINE)
    assert said
    assert set(re.findall(r"`([\w-]+)`", said[1])) == set(ACTION["outputs"])


def test_the_example_job_gives_the_action_what_it_needs(tmp_path: Path) -> None:
    """No unknown input, no required one missing; the runs it names are absent, so it is refused."""
    (example,) = [block for block in blocks("yaml") if "actions/gate" in block]
    (inputs,) = [
        step["with"] for step in yaml.safe_load(example)["jobs"]["bench"]["steps"] if "with" in step
    ]
    (tmp_path / "project").mkdir()
    job = run_action(
        HOUSE / ".github/actions/gate/action.yml",
        tmp_path / "project",
        inputs | {"report": "false"},
        {},
        {},
    )
    assert job.exit_code == 2


@pytest.mark.parametrize(
    ("command", "options"),
    [pytest.param(*one, id=" ".join([one[0], *one[1]])) for one in commands()],
)
def test_a_command_has_the_options_it_is_shown_with(
    command: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main = measure if command in MEASURE else judge
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    help_text = capsys.readouterr().out
    assert not [option for option in options if option not in help_text]


def test_the_exit_codes_are_the_gates() -> None:
    table = dict(re.findall(r"^\| (\d) \| ([^:,|]+?)[ ]?[:,|]", PAGE, flags=re.MULTILINE))
    assert table == {str(code): spoken(word) for word, code in EXIT.items()} | {"2": "refused"}
