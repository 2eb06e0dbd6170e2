"""The `deeptweak run` line that measures somebody's own command again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .terms import Run

# Options of a session that `deeptweak run` has too; the others it finds itself.
SHARED = frozenset({"--tweaks", "--seed", "--blocks", "--budget", "--design", "--resolution", "--apply"})
ALONE = {"samples": 1, "timeout_s": 600.0, "output": None, "image": None}  # values that an option is left out for
NAMES = {"timeout_s": "timeout"}


def command_line(run: Run, options: Sequence[str]) -> tuple[str, ...] | None:
    """Return the words of the line, with those of a session's options that it takes; None for a run of our own workloads."""
    command = next((known.command for known in run.workloads.values() if known.command), None)
    if command is None:
        return None
    shared = [option for option in options if option.partition("=")[0] in SHARED]
    return ("deeptweak", "run", *_options(command), *shared, "--", *map(str, _listed(command, "program")))


def _options(command: Mapping[str, object]) -> Iterator[str]:
    yield _steps_found_by(command)
    for name in ("steps", "warmup", *ALONE):
        if name in command and command[name] != ALONE.get(name, ()):
            value = command[name]
            yield f"--{NAMES.get(name, name)}={value:g}" if isinstance(value, float) else f"--{NAMES.get(name, name)}={value}"
    codes = ",".join(map(str, _listed(command, "exit_codes")))
    yield from [f"--exit-codes={codes}"] if codes not in {"", "0"} else []
    yield f"--cwd={command.get('folder')}"
    environment = command.get("environment")
    yield from (f"--env={name}={value}" for name, value in environment.items()) if isinstance(environment, dict) else ()


def _steps_found_by(command: Mapping[str, object]) -> str:
    if command.get("format"):
        return f"--format={command['format']}"
    if command.get("pattern"):
        return f"--{'step' if command.get('steps_are') == 'lines' else 'result'}-regex={command['pattern']}"
    return "--runs"


def _listed(command: Mapping[str, object], name: str) -> list[object]:
    value = command.get(name)
    return list(value) if isinstance(value, list | tuple) else []
