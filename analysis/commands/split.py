"""Write one file per tweak set, with equal test names in all of them, so that stock pytest-benchmark compares between tweak sets.

pytest-benchmark sets side by side what has the same name; in a saved run the name holds the tweak set. The files hold its own fields only.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from analysis.answer import Answer, Column, Section, Table
from analysis.files import must_be_a_name, must_be_new, write_whole
from analysis.load import from_json, parsed
from analysis.subcommands import option, signature
from analysis.terms import Cell, Refused, Run
from control.called import JUDGE

ANSWERS = True
GROUP = "run"
HELP = "one file per tweak set, for `pytest-benchmark compare`"
EXAMPLE = f"""\
example:
  {JUDGE} split .benchmarks/*/0001_exp1.json --output by-tweak
  pytest-benchmark compare by-tweak/stock.json by-tweak/thp-always.json --group-by=fullname --columns=median,mean,rounds

pytest-benchmark takes the rounds of one cell for all there is to know; which difference is more than noise, `compare` says.
Exit code 0: written. 2: bad usage, or the run cannot be used; nothing was written.
"""

KEPT_OF_RUN = ("machine_info", "commit_info", "datetime", "version")
KEPT_OF_CELL = ("group", "options", "stats")


@signature
def run(
    run: Path = option("RUN.json", "a file saved by `pytest benchmarks/ --benchmark-save=NAME`", type=Path),
    *,
    output: Path = option("DIR", "folder for TWEAKSET.json; made where it is not there", required=True, type=Path),
    force: bool = option("", "overwrite files in DIR"),
) -> Answer:
    content = parsed(run)
    saved = from_json(content, str(run))
    if saved.format != "deeptweak":
        raise Refused(f"{run}: is not a saved run of ours (`{JUDGE} import` makes one of a DeepTweak directory).")
    parts = split(saved, cast("Mapping[str, Any]", content))
    paths = {name: output / f"{must_be_a_name(name, 'a tweak set')}.json" for name in parts}
    for path in paths.values():
        must_be_new(path, force=force, sources=[run])
    for name, part in parts.items():
        write_whole(paths[name], json.dumps(part, indent=1).encode())
    counts = {str(paths[name]): len(part["benchmarks"]) for name, part in parts.items()}
    files = " ".join(shlex.quote(path) for path in counts)
    return Answer(
        title=f"Run {saved.run_id}: {len(counts)} file{'s' if len(counts) > 1 else ''} written",
        sections=[Section("", [Table((Column("file", left=True), Column("benchmarks")), list(counts.items()))])],
        next=f"pytest-benchmark compare {files} --group-by=fullname --columns=median,mean,rounds",
        data={"files": counts},
    )


arguments = run.arguments


def split(saved: Run, parsed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Divide a run's parsed JSON by tweak set: name → a stock file. Cells that were not measured are in none, as ever.

    Raises: Refused, where nothing was measured, or a cell's benchmark does not bear its id.
    """
    entries = {one["extra_info"].get("id"): one for one in parsed["benchmarks"] if one["extra_info"].get("outcome") == "measured"}
    parts: dict[str, dict[str, Any]] = {}
    for cell in saved.cells:
        if cell.outcome != "measured":
            continue
        top = {name: parsed[name] for name in KEPT_OF_RUN if name in parsed}
        if cell.id not in entries:
            raise Refused(f"{saved.origin}: no benchmark has the extra_info.id {cell.id!r}, though this cell was measured; it was edited.")
        part = parts.setdefault(cell.tweakset, {**top, "benchmarks": []})
        part["benchmarks"].append(_without_tweakset(entries[cell.id], cell, saved.run_id))
    if not parts:
        raise Refused(f"{saved.origin}: no cell was measured; there is nothing to split.")
    return parts


def _without_tweakset(entry: Mapping[str, Any], cell: Cell, run_id: str) -> dict[str, Any]:
    written, param = f"{cell.workload}-{cell.tweakset}-b{cell.block}", f"{cell.workload}-b{cell.block}"
    names = {name: str(entry.get(name)) for name in ("name", "fullname")}
    return {
        **{name: entry[name] for name in KEPT_OF_CELL if name in entry},
        **{name: text.replace(written, param) if written in text else param for name, text in names.items()},
        "param": param,
        "params": {"workload": cell.workload, "block": cell.block},
        "extra_info": {"run_id": run_id, "id": cell.id, "tweakset": cell.tweakset},
    }
