"""The command that repeats a run: `pytest` with its study, or `deeptweak run` with a command."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .wording import fewest_blocks, studies_own, study_files

if TYPE_CHECKING:
    from .terms import Run

CATALOGUE = Path("data/tweaks")  # its tweak sets are given by name, in any copy of the repository
# Session options that `deeptweak run` accepts too; it determines the others automatically.
SHARED = frozenset(
    {"--tweaks", "--seed", "--blocks", "--budget", "--design", "--resolution", "--apply"}
)
# Defaults: an option with this value is omitted.
ALONE = {"samples": 1, "timeout_s": 600.0, "output": None, "image": None}
NAMES = {"timeout_s": "timeout"}
PLACE = {"target": "target", "apply": "apply", "workload-via": "workload_via", "image": "image"}


def command_for(run: Run, *more: str, workloads: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the argument list of the command that repeats a run's arms.

    `more` are further options; `workloads` restricts the workloads.
    """
    options = [*more, *_options(run, workloads)]
    command = next((known.command for known in run.workloads.values() if known.command), None)
    if command is None:
        return ("pytest", *study_files(run), *options)
    shared = [option for option in options if option.partition("=")[0] in SHARED]
    return (
        "deeptweak",
        "run",
        *_of_command(command),
        *shared,
        "--",
        *map(str, _listed(command, "program")),
    )


def recipe(run: Run) -> str:
    """Return the commands that repeat a run, as far as recorded; "" for other tools' files."""
    if run.format != "deeptweak":
        return ""
    own = any(known.command for known in run.workloads.values())
    lines = []
    if run.commit:  # `deeptweak run` records the user's folder: never check that out
        commit = shlex.quote(run.commit.removesuffix("+dirty"))
        lines.append(f"# measured at {run.commit}" if own else f"git checkout {commit}")
    if run.place:
        lines.append(
            f"# it ran on {run.place.get('nodes')}; add your --kubeconfig, --namespace, --nodes, "
            "--gpus and --pod-overlay"
        )
    often = [f"--seed={run.design.seed}", f"--blocks={run.design.blocks}"]
    if run.design.budget_s and fewest_blocks(run) < run.design.blocks:  # a budget's blocks
        often[1] = f"--budget={run.design.budget_s:.12g}s"
    saved = [] if own else ["--benchmark-save=again"]
    return "\n".join([*lines, shlex.join([*command_for(run, *often), *saved])])


def _options(run: Run, only: Collection[str] | None) -> Iterator[str]:
    design = run.design
    if design.kind == "file":
        yield "--design-file=DESIGN.csv"
    elif design.kind != "matrix":
        yield f"--design={design.kind}"
    if design.kind == "fractional":
        resolutions = {
            str(note["resolution"]) for note in design.notes.values() if "resolution" in note
        }
        yield from [f"--resolution={resolution}" for resolution in sorted(resolutions)[:1]]
    if not studies_own(run):  # otherwise a workload that meets none of them would be missing
        yield f"--tweaks={','.join(_tweaks(run)) or 'stock'}"
    cells = [cell for cell in run.cells if only is None or cell.workload in only]
    met = {(cell.workload, cell.tweakset) for cell in cells}
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    # Else they are the study's.
    if len(met) == len(workloads) * len({tweakset for _, tweakset in met}):
        yield f"--workloads={','.join(workloads)}"
    if design.steps is not None:
        yield f"--steps={design.steps}"
    yield from (f"--{name}={run.place[key]}" for name, key in PLACE.items() if key in run.place)


def _tweaks(run: Run) -> Iterator[str]:
    varied = {factor.tweakset for factor in run.design.factors}
    for name, tweakset in run.tweaksets.items():
        asks = bool(tweakset.requested or tweakset.scripts)
        if name in varied or (asks and not varied):
            yield (
                name
                if tweakset.path is None or Path(tweakset.path).parent == CATALOGUE
                else tweakset.path
            )
    yield from sorted(varied - run.tweaksets.keys())


def _of_command(command: Mapping[str, object]) -> Iterator[str]:
    yield _steps_found_by(command)
    for name in ("steps", "warmup", *ALONE):
        if name in command and command[name] != ALONE.get(name, ()):
            value = command[name]
            shown = f"{value:g}" if isinstance(value, float) else value
            yield f"--{NAMES.get(name, name)}={shown}"
    codes = ",".join(map(str, _listed(command, "exit_codes")))
    if codes not in {"", "0"}:
        yield f"--exit-codes={codes}"
    yield f"--cwd={command.get('folder')}"
    environment = command.get("environment")
    if isinstance(environment, dict):
        yield from (f"--env={name}={value}" for name, value in environment.items())


def _steps_found_by(command: Mapping[str, object]) -> str:
    if command.get("format"):
        return f"--format={command['format']}"
    if command.get("pattern"):
        by = "step" if command.get("steps_are") == "lines" else "result"
        return f"--{by}-regex={command['pattern']}"
    return "--runs"


def _listed(command: Mapping[str, object], name: str) -> list[object]:
    value = command.get(name)
    return list(value) if isinstance(value, list | tuple) else []
