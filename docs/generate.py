"""Reference pages generated from the code, pictures drawn from saved runs, files for shells.

`python -m docs.generate` writes docs/reference/ and docs/pictures/. A test fails if a page is
stale. Redraw the pictures if the drawing code changes; text is as wide as in the machine's fonts.
"""

from __future__ import annotations

import argparse
import json as jsonlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, cast, is_typeddict

import msgspec
import yaml
from _pytest.config.argparsing import Parser

from analysis import subcommands
from analysis.__main__ import COMMANDS, GROUPS, CommandModule, command_of
from analysis.render import add_options as add_render_options
from analysis.studies.gate.gate import Ruled
from analysis.studies.keys.terms import Effects, Term
from analysis.terms import Comparison, Effect
from control import saved, saved_cell
from control.called import NAME
from control.known_keys import KNOWN, KnownKey
from control.saved_cell import CellRecord, RunFile
from fixtures import catalogue, designs, targets
from fixtures.__main__ import examples
from fixtures.options import add_options
from fixtures.studies.command.formats import FIGURES, ROWS, STEPS
from fixtures.studies.io import models
from fixtures.studies.io.dataset import DataSpec, estimate_bytes
from fixtures.studies.io.parameters import complete
from fixtures.tweaks import available, lint, room
from fixtures.tweaks.manifest import notes, parse, text_of

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("reference")
PICTURES = Path(__file__).with_name("pictures")
# The pictures of docs/pictures.md, from the saved runs (data/runs) that show them best.

SHOWN: Mapping[str, tuple[str, ...]] = {
    "turns_2026-11-25_amd-epyc-2cpu": ("forest", "parameters"),
    "2026-11-21_gate_amd-epyc-2cpu": ("steps", "run_order"),
    "gpu-training_2026-11-26_nvidia-h200": ("telemetry",),
    "monitoring-sampler_2026-11-22_amd-epyc-2cpu": ("overhead_forest",),
    "io_readahead_2026-11-22_amd-epyc-2cpu": ("io_bottleneck",),
    "power-cap_2026-11-22_amd-epyc-2cpu": ("power_forest", "power_trace"),
    "cluster-kubernetes_2026-11-22_amd-epyc-2cpu": ("jobs_faults", "jobs_over_time"),
    "cluster-scheduling_2026-11-22_amd-epyc-2cpu": ("jobs_policies", "jobs_waits"),
}
RECORDS = {
    "A comparison, of `compare --json`": Comparison,
    "An effect of a comparison": Effect,
    "A ruling, of `gate --json`": Ruled,
    "An entry, of `effects --json`": Effects,
    "A term of an entry": Term,
}
SCHEMA = ROOT / "data/run.schema.json"
ROWS_AND_COLUMNS = Path(__file__).with_name("rows.yaml")
RULES = saved.RULES | saved_cell.RULES
MEANS = {
    "sysctl": "sysctl",
    "boot": "boot token (needs a reboot)",
    "ulimit": "process limit",
    "service": "systemd drop-in",
    "environment": "variable of the workload (no root)",
    "process": "setting of the workload's process",
}


def tweaks() -> Iterator[str]:
    """Yield a section per tweak set: purpose, kernels and risk, then a row per setting."""
    yield "# Catalogue of tweak sets"
    yield (
        "The sets in [`data/tweaks/`](../../data/tweaks). [Settings](../settings.md) says how to "
        "use them and how to write your own."
    )
    for name, path in available().items():
        text = text_of(path)
        tweakset, about = parse(text, name), notes(text, name)
        values: dict[str, list[str]] = {}
        for tweak in tweakset.tweaks:
            values.setdefault(tweak.key, []).append(tweak.value)
        means = ", ".join(dict.fromkeys(MEANS[tweak.kind] for tweak in tweakset.tweaks)) or "script"
        shows_in = ", ".join(about.workloads) or "all workloads"
        yield f"## {name}"
        yield f"{about.description}."
        yield (
            f"Set by {means} · kernels: {about.kernel} · risk: {about.risk} · expected to show "
            f"in: {shows_in}"
        )
        rows = []
        for key, reason in about.reasons.items():
            source = about.sources.get(key, "")
            value = (
                ", ".join(f"`{one}`" if one else "(no value)" for one in values.get(key, ()))
                or "see script"
            )
            rows.append(
                (
                    f"`{key}`",
                    value,
                    reason,
                    f"<{source}>" if source.startswith("https://") else source,
                )
            )
        yield table(("setting", "value", "reason", "source"), rows)


def named() -> Iterator[str]:
    """Yield workloads with their parameters, designs, monitors and jobs."""
    yield "# Catalogue of workloads, designs, monitors and jobs"
    yield (
        f"`{NAME} list` prints the same, `list NAME` the rest. Tweak sets have [a page of their "
        "own](tweaks.md)."
    )
    for head, entries in catalogue.sections():
        if head == catalogue.TWEAKS:
            continue
        yield f"## {head[0].upper()}{head[1:]}"
        # Omit what this machine lacks.
        yield table(
            ("name", ""),
            (
                (f"`{name}`", re.sub(r" \(unavailable: .*\)$", "", description))
                for name, description, _ in entries
            ),
        )
        for name, _, parameters in entries:
            if parameters:
                yield f"### Parameters of `{name}`"
                yield table(
                    ("parameter", ""),
                    ((f"`{parameter}`", meaning) for parameter, meaning in parameters.items()),
                )
            if name == "io_train":
                yield from models_of_io_train()


def models_of_io_train() -> Iterator[str]:
    """Yield DLIO's jobs in full size, and at the default scales."""
    yield "### Models of `io_train`"
    yield (
        "`--vary model=…`: DLIO's own training jobs, from [`data/io/`](../../data/io). A name "
        "without an accelerator means the first one. "
        "The last two columns are one epoch and its data set with the default scales."
    )
    rows = []
    for model in {model.name: model for model in models.available().values()}.values():
        scaled = complete({"model": model.name})
        spread = model.number("record_length_bytes_stdev")
        rows.append(
            (
                f"`{model.name}`",
                model.word("format"),
                f"{model.number('num_files_train'):,} × {model.number('num_samples_per_file'):,}",
                f"{model.number('record_length_bytes'):,}{f' ± {spread:,}' if spread else ''}",
                f"{model.number('batch_size')}",
                f"{model.number('computation_time')}",
                f"{scaled['steps_per_epoch']}",
                f"{estimate_bytes([DataSpec.of(scaled)]) / 1e6:.3g}",
            )
        )
    yield table(
        (
            "model",
            "format",
            "files × samples",
            "record, bytes",
            "batch",
            "computation, s",
            "steps",
            "MB",
        ),
        rows,
    )


def options() -> Iterator[str]:
    """Yield the options of `pytest benchmarks/…`, one table per group."""
    yield "# Options of `pytest benchmarks/…`"
    yield (
        "A study's options require its file on the command line; options of a target or design "
        "require that target or design."
    )
    parser = Parser(_ispytest=True)
    benches = [str(path) for path in sorted((ROOT / "benchmarks").glob("bench_*.py"))]
    chosen = [f"--target={name}" for name in targets.names()] + [
        f"--design={name}" for name in designs.names()
    ]
    add_options(parser, [*benches, *chosen], ROOT)
    for group in parser._groups:
        if rows := arguments(group._arggroup._group_actions):
            title = (
                "All studies"
                if group.name == "deeptweak"
                else (group._arggroup.title or "").partition("\n")[0]
            )
            yield f"## {title}"
            yield table(("option", ""), rows)


def arguments(actions: Iterable[argparse.Action]) -> list[tuple[str, str]]:
    """Return arguments as typed, with their help."""
    shown = [
        vars(action)
        for action in actions
        if action.dest != "help" and action.help != argparse.SUPPRESS
    ]
    return [
        (written(one["option_strings"] or [one["metavar"] or one["dest"]], one), told(one))
        for one in shown
    ]


def commands() -> Iterator[str]:
    """Yield the commands that read runs, with options, and examples of those that measure."""
    yield "# Commands"
    yield (
        f"`{NAME} COMMAND --help`, or `COMMAND STEP --help`, has examples; [below](#measure) are "
        "those of commands that"
        f" measure. In a checkout `python3 -m deeptweak` is `{NAME}`."
    )
    for group, head in GROUPS.items():
        yield f"## {head[0].upper()}{head[1:]}"
        for name in COMMANDS:
            command = cast("CommandModule", import_module(f"analysis.commands.{name}"))
            if group == command.GROUP:
                yield from command_section(name.strip("_").replace("_", "-"), command)
    yield "## Measure"
    yield f"```text\n{examples().rstrip()}\n```"


def command_section(name: str, command: CommandModule) -> Iterator[str]:
    """Yield a command, its steps and their options."""
    parser = argparse.ArgumentParser(prog=name)
    command.arguments(parser)
    if getattr(command, "ANSWERS", False):
        add_render_options(parser)
    elif not any("--json" in action.option_strings for action in parser._actions):
        parser.add_argument("--json", action="store_true", help="write JSON instead of text")
    yield f"### {name}"
    yield f"{command.HELP[0].upper()}{command.HELP[1:]}."
    steps = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in steps:
        helps = {one.dest: one.help or "" for one in action._choices_actions}
        yield table(
            ("step", "", "options"),
            (
                (f"`{name} {step}`", helps.get(step, ""), " ".join(options_of(one)))
                for step, one in action.choices.items()
            ),
        )
    if not steps:
        yield table(("argument", ""), arguments(parser._actions))


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the arguments of a step, options by their longest names."""
    for action in parser._actions:
        if action.dest != "help" and action.help != argparse.SUPPRESS:
            metavar = action.metavar[0] if isinstance(action.metavar, tuple) else action.metavar
            name = action.option_strings[-1] if action.option_strings else metavar or action.dest
            yield f"`{name}`"


def written(names: Iterable[str], of: Mapping[str, Any]) -> str:
    """Write an option as a user types it."""
    metavar = " ".join(of["metavar"]) if isinstance(of.get("metavar"), tuple) else of.get("metavar")
    return ", ".join(
        f"`{name}={metavar}`" if metavar and name.startswith("--") else f"`{name}`"
        for name in names
    )


def told(of: Mapping[str, Any]) -> str:
    """Write an option's help with its choices."""
    text = (of.get("help") or "").replace("%%", "%").replace("%(default)s", str(of.get("default")))
    choices = [str(one) for one in of.get("choices") or ()]
    return text if all(one in text for one in choices) else f"{text}: {', '.join(choices)}"


def json() -> Iterator[str]:
    """Yield the fields of `--json`, from the docstrings of the records."""
    yield "# Fields of `--json`"
    yield (
        "All gains, losses, limits and margins are fractions (0.03 is 3 %); null means unknown. "
        "[run.md](run.md) has the fields of a "
        "saved run."
    )
    yield (
        "- `compare --json`: `runs` (`run_id`, `origin`, `started_utc`, `commit`), `refused`, "
        "`warnings`, `comparisons`, and `unseen`: why "
        "one run detected nothing (`contrasts`, `blocks`, `margin`, `reason`, `aa_log_sd`, `mde`, "
        "`others`, `plan_blocks`, `plan_s`, "
        "`on_this_machine`, `sentence`), null if it detected something.\n"
        "- `gate --json`: `exit_code`, `baseline`, `candidate`, `ruling`, "
        "`warnings`, `rulings`.\n"
        "- `effects --json`: `run` (what was read) and `effects`, an entry per workload and tweak "
        "set."
    )
    for title, record in RECORDS.items():
        yield f"## {title}"
        yield table(
            ("field", ""),
            ((", ".join(f"`{name}`" for name in names), what) for names, what in meanings(record)),
        )


def run() -> Iterator[str]:
    """Yield the fields of a saved run, from the schema."""
    yield "# Fields of a saved run"
    yield (
        "From [`run.schema.json`](../../data/run.schema.json). In a path `*` is a name and `[]` "
        "each element of a list. "
        "[data/README.md](../../data/README.md) has files and conventions. Below the fields are "
        "the "
        "[rows that workloads report](#rows-that-workloads-report), the [columns of "
        "telemetry](#columns-of-telemetry) and those of "
        "[DeepTweak directories](#columns-of-deeptweak-directories)."
    )
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for path, node in documented(schema()):
        first = re.match(r"(?!machine_info)[^.]+\.[^.\[]+(?=[.\[])", path)
        title = first[0] if first else path.partition(".")[0]
        sections.setdefault(title, []).append((f"`{path}`", node["unit"], node["description"]))
    for title, rows in sections.items():
        yield f"## `{title}`"
        yield table(("field", "unit", "meaning"), rows)
    yield from rows_and_columns()


def rows_and_columns() -> Iterator[str]:
    """Yield rows that workloads report, columns of telemetry and of DeepTweak directories."""
    known = yaml.safe_load(ROWS_AND_COLUMNS.read_text(encoding="utf-8"))
    yield "## Rows that workloads report"
    yield (
        "`extra_info.report` has a list of rows under each name. A workload without a report has "
        "no rows."
    )
    for workload, rows in known["rows"].items():
        yield f"### Rows of `{workload}`"
        yield table(
            ("row, or its field", "unit", "meaning"),
            ((in_code(names), unit, what) for names, unit, what in rows),
        )
        if workload in known["facts"]:
            yield f"`extra_info.workload_facts` also has {known['facts'][workload]}."
    yield "## Columns of telemetry"
    yield (
        "In the telemetry file, and with a statistic as suffix in `extra_info.telemetry.summary`. "
        "Columns that are read less often than "
        "the sampler ticks are null in between."
    )
    yield table(
        ("column", "source", "meaning"),
        ((in_code(names), source, what) for names, source, what in known["telemetry"]),
    )
    yield "## Columns of DeepTweak directories"
    yield (
        "Columns that our telemetry lacks. All others get our names and units; MB and KB in these "
        "files are MiB and KiB."
    )
    yield table(
        ("column", "there", "meaning"),
        ((in_code(names), theirs, what) for names, theirs, what in known["deeptweak"]),
    )


def in_code(names: str) -> str:
    """Write names separated by commas, each as code."""
    return ", ".join(f"`{name}`" for name in names.split(", "))


def schema() -> dict[str, Any]:
    """Return the JSON schema of a saved run: msgspec's, with units, meanings and rules added."""
    refs, parts = msgspec.json.schema_components(
        [RunFile, CellRecord], ref_template="#/$defs/{name}"
    )
    for kind in (
        each
        for module in (saved, saved_cell)
        for each in vars(module).values()
        if is_typeddict(each)
    ):
        part = parts[kind.__name__]
        # In the order written.
        part["properties"] = {name: part["properties"][name] for name in kind.__annotations__}
        for name, hint in kind.__annotations__.items():
            for note in (
                note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)
            ):
                unit, _, description = note.partition(": ")
                part["properties"][name] |= {"unit": unit, "description": description}
        part |= {"additionalProperties": saved_cell.OPEN.get(kind, False), **RULES.get(kind, {})}
    parts["BenchmarkRecord"]["properties"]["extra_info"] |= {
        "if": {"required": ["schema_version"]},
        "then": refs[1],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "run.schema.json",
        "title": "A saved run",
        "description": "Written by `python -m docs.generate`. A whole run, as "
        "`--benchmark-json` writes it; `--benchmark-save` keeps the "
        "larger part in a compressed file beside (data/README.md). Stock fields are "
        "pytest-benchmark's and are left open.",
        **refs[0],
        "$defs": parts,
    }


def documented(whole: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every field that DeepTweak adds to pytest-benchmark's file, with its description."""
    for name, place in (
        ("RunRecord", "deeptweak"),
        ("CellRecord", "extra_info"),
        ("MachineInfo", "machine_info"),
    ):
        yield from properties(whole["$defs"][name], place, whole["$defs"])


def properties(
    part: Mapping[str, Any], place: str, defs: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every place of a property in the schema, with its description."""
    if "$ref" in part:
        part = defs[part["$ref"].rpartition("/")[2]]
    for name, inner in part.get("properties", {}).items():
        yield f"{place}.{name}", inner
        yield from properties(inner, f"{place}.{name}", defs)
    for inner in part.get("anyOf", ()):
        yield from properties(inner, place, defs)
    for name, sign in (("additionalProperties", ".*"), ("items", "[]")):
        if isinstance(part.get(name), dict):
            yield from properties(part[name], f"{place}{sign}", defs)


def meanings(record: type) -> list[tuple[list[str], str]]:
    """Return fields and meanings from the lines `name, name: meaning` of a record's docstring.

    Raises: ValueError, if a field is missing.
    """
    text = re.sub(r"\n +", " ", cleandoc(record.__doc__ or ""))
    found = [
        (names.split(", "), what)
        for names, what in re.findall(r"^(\w+(?:, \w+)*): (.+)$", text, flags=re.MULTILINE)
    ]
    named = [name for names, _ in found for name in names]
    if sorted(named) != sorted(one.name for one in fields(record)):
        raise ValueError(f"{record.__name__}: the docstring explains {named}")
    return found


def kernel() -> Iterator[str]:
    """Yield the known properties of kernel settings."""
    yield "# Known properties of kernel settings"
    yield (
        "Generated from [known_keys.py](../../control/known_keys.py), "
        "[lint.py](../../fixtures/tweaks/lint.py) "
        "and [room.py](../../fixtures/tweaks/room.py). The kernel is the version on which a row "
        "was tested, "
        "or the first version for which it holds according to its source; "
        "each row has a test. `*` matches any name, `**` matches anything."
    )
    yield "## Values: side effects, read-back, and order of restoring"
    yield table(
        (
            "key",
            "the kernel",
            "reads back as",
            "also changes",
            "restored",
            "kernel",
            "source",
            "test",
        ),
        (
            (
                readable(known.keys),
                known.says + (f"; {known.marks}" if known.marks else ""),
                READS_BACK[known.reads_back],
                readable(known.moves),
                "; ".join(goes_back(known)),
                known.kernel,
                known.source,
                (
                    f"[{known.test.rpartition('test_')[2].replace('_', ' ')}]"
                    f"(../../{known.test.partition('::')[0]})"
                ),
            )
            for known in KNOWN
        ),
    )
    yield "## One way: never applied"
    yield (
        "If numbers are listed as safe, only other values are refused. Tested in "
        "[test_safety.py](../../tests/tweaks/test_safety.py)."
    )
    rows = [*lint.IRREVERSIBLE, *lint.ORDERS]
    yield table(
        ("key", "why", "safe"),
        (
            (
                f"`{rule.pattern}`",
                rule.why,
                f"from {rule.least}" if rule.least is not None else ", ".join(map(str, rule.safe)),
            )
            for rule in rows
        ),
    )
    yield "## Applied with a warning"
    yield table(
        ("key", "why", "safe"),
        (
            (f"`{rule.pattern}`", rule.why, ", ".join(map(str, rule.safe)))
            for rule in lint.PARTLY_RESTORED
        ),
    )
    yield "## Limits that must leave room beside what runs"
    yield (
        "A limit is refused below current use plus the room. Tested in "
        "[test_room.py](../../tests/tweaks/test_room.py)."
    )
    yield table(
        ("key", "in use", "room"),
        ((readable(limit.keys), limit.what, f"{limit.room:,}") for limit in room.LIMITS),
    )


READS_BACK = {
    "": "",
    "ranges": "ranges, sorted and merged",
    "words": "words in the kernel's order",
    "mask": "a mask in hexadecimal",
    "switch": "0 or 1",
    "bytes": "bytes",
    "pages down": "whole pages, rounded down",
    "power of two": "the next power of two",
    "ticks": "whole ticks, rounded up",
    "numbers": "all numbers of the vector",
}


def goes_back(known: KnownKey) -> Iterator[str]:
    """Yield when a key is restored relative to other keys."""
    if known.marks:
        yield "last, and only if its causes have not restored it"
    if known.moves:
        yield "before the keys that it changes"
    if known.kernels_while:
        yield (
            f"not while {known.kernels_while[0]} is "
            f"{known.kernels_while[1].replace('(?!userspace$).*', 'not userspace')}"
        )
    if known.opens:
        yield f"if it is busy, with {known.opens[0]} = {known.opens[1]} for a moment"


def readable(pattern: str) -> str:
    """Write a regular expression over paths as a reader would."""
    plain = re.sub(r"\[\^/\]\+|\\d\+|\[a-z_\]\+", "*", pattern)
    plain = plain.replace(".*", "**").replace("\\.", ".")
    return f"`{plain}`" if plain else ""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a Markdown table."""
    lines = [list(heads), *(list(row) for row in rows)]
    written_lines = [
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    ]
    return "\n".join([written_lines[0], "|" + "---|" * len(lines[0]), *written_lines[1:]])


def formats() -> Iterator[str]:
    """Yield the table of program outputs that `deeptweak run` reads."""
    yield "# Formats that `deeptweak run` reads"
    yield (
        "The first matching row is used; figures come before steps. Each row is tested against a "
        "recording of the real "
        "program, or a stand-in marked as such, in `tests/command/recordings`."
    )
    for kind, title in ((FIGURES, "Figures of a run"), (STEPS, "Steps")):
        yield f"## {title}"
        yield table(
            ("--format", "what"), ((f"`{row.name}`", row.what) for row in ROWS if row.kind == kind)
        )


# Of commands whose help is no page of `analysis/commands`.
EXIT_CODES: Mapping[str, Mapping[int, str]] = {
    "demo": {0: "judged and written", 2: "bad usage, or the report cannot be written"},
    "completion": {0: "printed", 2: "no such shell"},
    "run": {
        0: "every cell was measured, or skipped with a reason",
        1: "a cell failed",
        2: "bad usage, interrupted, or nothing could be measured, saved or put back",
    },
    "tune": {
        0: "answered, or planned",
        2: "bad usage, or nothing could be measured, saved or put back",
    },
    "doctor": {0: "a run can start", 2: "no run can start"},
    "restore": {
        0: "all is as it was found",
        2: "a setting is stuck, a journal was damaged, or a run is in progress",
    },
    "list": {0: "listed", 2: "no such name"},
    "arrivals": {0: "written", 2: "bad usage, or a file cannot be used"},
    "pytest benchmarks/…": {
        0: "every cell was measured, or skipped with a reason",
        1: "a cell failed, or `--gate` found a regression",
        2: "interrupted, or nothing could be measured, saved or put back",
        3: "`--gate` cannot tell",
        4: "unknown option",
    },
}


def shell() -> Iterator[str]:
    """Yield the exit codes of all commands, tab completion, and the manual page."""
    yield "# Exit codes, tab completion, manual page"
    yield "## Exit codes"
    rows = {**EXIT_CODES, **{name: exit_codes(name) for name in map(command_of, COMMANDS)}}
    yield table(
        ("command", *map(str, range(5))),
        (
            (
                f"`{name}`" if " " in name else f"`{NAME} {name}`",
                *(codes.get(code, "") for code in range(5)),
            )
            for name, codes in rows.items()
        ),
    )
    yield (
        f"`{NAME}` without a command: 2. Ctrl-C: 130, except in a run, which puts the machine "
        "back and ends with 2. "
        "A closed pipe (`| head`) does not change the exit code."
    )
    yield "## Tab completion"
    yield (
        "```sh\n"
        f"{NAME} completion bash > ~/.local/share/bash-completion/completions/{NAME}\n"
        f"{NAME} completion zsh > ~/.zfunc/_{NAME}     # a folder of $fpath\n"
        f"{NAME} completion fish > ~/.config/fish/completions/{NAME}.fish\n"
        "```"
    )
    yield (
        "Commands, steps, options, files, and the names of tweak sets, designs and formats that "
        "ship are completed."
    )
    yield "## Manual page"
    yield f"`man {NAME}`, where the wheel is installed. In a clone: `man -l data/shell/{NAME}.1`."


def exit_codes(name: str) -> dict[int, str]:
    """Return a command's exit codes from its help, or from its steps' help."""
    command = cast("CommandModule", import_module(f"analysis.commands.{name.replace('-', '_')}"))
    text = command.EXAMPLE if "Exit code" in command.EXAMPLE else subcommands.EXIT_CODES
    said = " ".join(text.partition("Exit code")[2].split("\n\n")[0].split())
    return {int(code): meaning for code, meaning in re.findall(r"(\d+): (.*?)\.(?= |$)", said)}


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "catalogue.md": named,
    "commands.md": commands,
    "formats.md": formats,
    "json.md": json,
    "kernel.md": kernel,
    "options.md": options,
    "run.md": run,
    "shell.md": shell,
    "tweaks.md": tweaks,
}


def page(name: str) -> str:
    """Return the text of a reference page, with commands as users type them."""
    head, *parts = PAGES[name]()
    text = "\n\n".join([head, "<!-- Written by `python -m docs.generate`. -->", *parts]) + "\n"
    return re.sub("python -m (?:analysis|fixtures)", NAME, text)


def schema_text() -> str:
    """Return the text of `data/run.schema.json`."""
    return jsonlib.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


def draw() -> None:
    """Draw every picture once."""
    from analysis.load import load
    from analysis.plots import pictures
    from analysis.plots.scene import scene_of
    from analysis.plots.style import written

    scenes = {
        names: scene_of([load(next(ROOT.glob(f"data/runs/{run}.json*")))])
        for run, names in SHOWN.items()
    }
    for names, scene in scenes.items():
        for name in names:
            (PICTURES / f"{name}.svg").write_bytes(written(pictures()[name].draw(scene), "svg"))


if __name__ == "__main__":
    from docs.shell import write

    write()
    draw()
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    for file in PAGES:
        (FOLDER / file).write_text(page(file), encoding="utf-8")
