"""`deeptweak` in a shell: exit codes, tab completion, the manual page."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator

import pytest

import analysis.__main__ as judging
from analysis.studies.gate.gate import EXIT
from deeptweak import __main__ as door
from docs import generate, shell

JUDGING = [judging.command_of(name) for name in judging.COMMANDS]


def test_every_command_has_its_exit_codes_in_the_reference() -> None:
    listed = {*generate.EXIT_CODES, *JUDGING}
    assert listed - {"pytest benchmarks/…"} == {"demo", "completion", *door.MEASURE, *JUDGING}
    assert all({0, 2} <= generate.exit_codes(name).keys() for name in JUDGING)


@pytest.mark.parametrize("name", JUDGING)
def test_bad_usage_is_exit_code_2(name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        judging.main([name, "--no-such-option"])
    assert ended.value.code == 2


def test_the_gate_ends_with_the_codes_of_the_reference() -> None:
    assert {*EXIT.values(), judging.USAGE_ERROR} == generate.exit_codes("gate").keys()


@pytest.mark.needs("shtab")
@pytest.mark.parametrize("name", [shell.MANUAL, *(f"{shell.NAME}.{each}" for each in door.SHELLS)])
def test_a_file_for_shells_is_what_the_parsers_say(name: str) -> None:
    path = shell.FOLDER / name
    assert path.read_text(encoding="utf-8") == shell.written()[path], "run: python -m docs.shell"


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from options(each)
        elif action.help != argparse.SUPPRESS:
            yield from action.option_strings


def test_the_manual_has_every_command_and_option() -> None:
    text = (shell.FOLDER / shell.MANUAL).read_text(encoding="utf-8").replace("\\-", "-")
    parser = shell.whole()
    assert not [
        option
        for option in {*options(parser)} - {"-h", "--help", "-V", "--version"}
        if option not in text
    ]
    assert all(f".SS deeptweak {name}\n" in text for name in JUDGING)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["deeptweak", "com"], {"compare", "completion"}),
        (["deeptweak", "compare", "--bas"], {"--baseline"}),
        (["deeptweak", "run", "--tweaks", "thp-"], {"thp-always", "thp-never"}),
        (["deeptweak", "queue", "f"], {"fit"}),
    ],
    ids=["a command", "an option", "a tweak set", "a step"],
)
def test_bash_completes(typed: list[str], offered: set[str]) -> None:
    words = " ".join(typed)
    script = f"""
        source {shell.FOLDER}/deeptweak.bash
        COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}
        COMP_LINE='{words}'; COMP_POINT={len(words)}
        _shtab_deeptweak deeptweak {typed[-1]} {typed[-2]}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert {line.strip() for line in done.stdout.splitlines()} == offered, done.stderr


@pytest.mark.needs("fish")
def test_fish_completes() -> None:
    script = f"source {shell.FOLDER}/deeptweak.fish; complete -C 'deeptweak com'"
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=False)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [
        "compare",
        "completion",
    ], done.stderr


@pytest.mark.needs("zsh")
def test_zsh_reads_its_completion() -> None:
    done = subprocess.run(
        ["zsh", "-n", str(shell.FOLDER / "deeptweak.zsh")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", door.SHELLS)
def test_the_command_prints_the_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert door._completion([name]) == 0
    assert capsys.readouterr().out == (shell.FOLDER / f"deeptweak.{name}").read_text(
        encoding="utf-8"
    )
    with pytest.raises(SystemExit) as ended:
        door._completion(["ksh"])
    assert ended.value.code == 2
