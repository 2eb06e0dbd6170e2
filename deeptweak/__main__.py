"""`deeptweak`: one command for measuring (`fixtures`) and judging (`analysis`)."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import webbrowser
from pathlib import Path

from deeptweak.house import HOUSE
from deeptweak.project import WrongTable, options, version

NAME = "deeptweak"
MEASURE = {
    "run": "measure your own command under tweak sets: deeptweak run --tweaks=X -- CMD",
    "tune": "find the settings to keep for your command: deeptweak tune --tweaks=X -- CMD",
    "doctor": "check what this machine can do: root, GPU, tweak sets",
    "restore": "put back what a killed run left changed",
    "list": "list tweak sets, workloads, designs, monitors, …",
    "arrivals": "generate a stream of jobs, or convert one from FLTK",
}
DEMO = ("demo", "judge a saved run and write its report: no root, no GPU, 30 seconds")
COMPLETION = ("completion", "print tab completion for bash, zsh or fish (docs/reference/shell.md)")
SHELLS = ("bash", "zsh", "fish")
DEMO_RUN = "data/runs/turns_2026-11-25_amd-epyc-2cpu.json.xz"
DEMO_REPORT = "deeptweak-demo.html"
USAGE, INTERRUPTED = 2, 130
STARTED_AS = "DEEPTWEAK_STARTED_AS"  # control/called.py reads it
EXTRAS = {
    "kubernetes": "[kubernetes]",
    "sklearn": "[studies]",
    "torch": "[workloads]",
}


def main() -> int:
    """Run the command that was typed. Returns: its exit code."""
    sys.path.insert(0, str(HOUSE))
    # before the house is imported, and for all processes that are started from here
    os.environ[STARTED_AS] = _typed(sys.argv[0])
    try:
        return _run(sys.argv[1:])
    except WrongTable as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:  # while the house is imported; later each command says more
        print("error: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if error.name is None or (HOUSE / missing).exists():
            raise
        from control.called import INSTALL

        print(
            f"error: {missing} is not installed: {INSTALL.format(EXTRAS.get(missing, ''))}.",
            file=sys.stderr,
        )
        return USAGE


def _typed(path: str) -> str:
    by_name = shutil.which(NAME)
    if by_name and Path(by_name).resolve() == Path(path).resolve():
        return NAME
    return path if re.fullmatch(rf"[\w./+-]*/{NAME}", path) else NAME


def _run(words: list[str]) -> int:
    name = words[0] if words else ""
    if name in {"", "-h", "--help"}:
        _print_help()
        return 0 if name else USAGE
    if name in {"-V", "--version"}:
        print(f"deeptweak {version(HOUSE)}")
        return 0
    if name == DEMO[0]:
        return _demo(words[1:])
    if name == COMPLETION[0]:
        return _completion(words[1:])
    words = _with_project(words)
    if name in MEASURE:
        from fixtures.__main__ import main as measure

        return measure(words)
    return _judge(words)


def _print_help() -> None:
    try:
        print(_help(), flush=True)
    except BrokenPipeError:  # by `| head`; the interpreter's flush at exit must not report it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_project(words: list[str]) -> list[str]:
    if (found := options(words, _commands)) is None:
        return words
    path, own = found
    print(f"{path}: {' '.join(own)}", file=sys.stderr)
    return [words[0], *own, *words[1:]]


def _commands() -> set[str]:
    from analysis.__main__ import COMMANDS, command_of

    return {*MEASURE, *map(command_of, COMMANDS)}


def _judge(words: list[str]) -> int:
    from analysis.__main__ import main as judge

    return judge(words)


def _help() -> str:
    from analysis.__main__ import listed

    width = 12
    own = [f"  {name:<{width}} {what}" for name, what in MEASURE.items()]
    parts = [
        (
            "usage: deeptweak COMMAND …\n\nAre AI workloads faster under these kernel settings? "
            "Measure, judge, and put the machine back."
        ),
        f"start here:\n  {DEMO[0]:<{width}} {DEMO[1]}\n  {COMPLETION[0]:<{width}} {COMPLETION[1]}",
        "\n".join(["measure:", *own]),
        listed(),
        (
            "`deeptweak COMMAND --help` has the rest. `deeptweak RUN.json` is `show`. `deeptweak "
            "--version` prints the version."
        ),
    ]
    return "\n\n".join(parts)


def completion_parser() -> argparse.ArgumentParser:
    """Return the parser of `completion`."""
    name, what = COMPLETION
    parser = argparse.ArgumentParser(prog=f"deeptweak {name}", description=_sentence(what))
    parser.add_argument("shell", choices=SHELLS, help="the shell to print completion for")
    return parser


def demo_parser() -> argparse.ArgumentParser:
    """Return the parser of `demo`."""
    name, what = DEMO
    written = (
        f"Writes {DEMO_REPORT} in the current folder, replacing nothing but an earlier report."
    )
    return argparse.ArgumentParser(
        prog=f"deeptweak {name}", description=f"{_sentence(what)} {written}"
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _completion(words: list[str]) -> int:
    """Print a completion script, which `python -m docs.shell` generates."""
    shell = completion_parser().parse_args(words).shell
    print((HOUSE / f"data/shell/deeptweak.{shell}").read_text(encoding="utf-8"), end="")
    return 0


def _demo(words: list[str]) -> int:
    demo_parser().parse_args(words)
    if reason := _unwritable(Path(DEMO_REPORT)):
        hint = "Move the file, or start the demo in another folder."
        print(f"error: {DEMO_REPORT}: {reason}. {hint}", file=sys.stderr)
        return USAGE
    own, run = os.environ[STARTED_AS], os.path.relpath(HOUSE / DEMO_RUN)
    run = str(HOUSE / DEMO_RUN) if run.startswith(os.pardir) else run
    print(
        "$ make bench                        # ten minutes, as root: saved on 25 November 2026, 2 "
        "CPUs, no GPU",
        flush=True,
    )
    print(f"$ {own} compare {run}\n", flush=True)
    if code := _judge(["compare", run]):
        return code
    print(f"\n$ {own} report {run} --output={DEMO_REPORT}\n", flush=True)
    if code := _judge(["report", run, f"--output={DEMO_REPORT}"]):
        return code
    if sys.stdout.isatty():
        webbrowser.open(Path(DEMO_REPORT).resolve().as_uri())
    print(
        "\nNow your own command, under two settings, as root:\n"
        f"  {own} run --tweaks=thp-always,malloc-keep-memory -- sleep 0.1"
    )
    return 0


def _unwritable(path: Path) -> str:
    from analysis.report.saving import must_be_replaceable
    from analysis.terms import Refused

    try:
        must_be_replaceable(path)
    except Refused:
        return "exists and is not a DeepTweak report"
    return ""


if __name__ == "__main__":
    sys.exit(main())
