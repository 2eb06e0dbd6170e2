"""Make runs of other tools into one of ours: DeepTweak's directories, and files that stock pytest-benchmark saved.

A stock file does not say what was tweaked: --tweakset names it, and the files after it are its runs, block by block. What a source did
not record (what the kernel answered, which samples were used) stays unknown.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from analysis.files import must_be_a_name, must_be_new, read_whole, write_whole
from analysis.importing import MergeSource, document
from analysis.load import files_of, find, from_json, load, parsed
from analysis.terms import Refused, Run
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse


GROUP = "tool"
HELP = "runs of other tools as one of ours"
EXAMPLE = f"""\
examples:
  {JUDGE} import data/one_node_one_gpu --output study.json             a DeepTweak directory
  {JUDGE} import --tweakset stock base-*.json --tweakset exp1 exp1-*.json --output exp1.json
                                                                                  stock files, a block each

The first run of each tweak set is block 1, the second block 2, as they are named: name them in the order in which they ran.
Exit code 0: saved. 2: bad usage, or a file cannot be used; nothing was written.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="a DeepTweak directory, or a file of stock pytest-benchmark")
    parser.add_argument(
        "--tweakset",
        nargs="+",
        action="append",
        default=[],
        metavar=("NAME", "SOURCE"),
        help="what was tweaked in these stock files; without SOURCE, in those named before",
    )
    parser.add_argument("--workload", metavar="NAME", help="call the only workload of each source so (default: its own name)")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE.json", help="where to save the run")
    parser.add_argument("--force", action="store_true", help="overwrite FILE.json")


def run(args: argparse.Namespace) -> int:
    output: Path = args.output
    must_be_new(output, force=args.force)
    for name in (one for one, *_ in args.tweakset):
        must_be_a_name(name, "a tweak set")
    if args.workload is not None:
        must_be_a_name(args.workload, "a workload")
    sources = [_source(path, name, args.workload) for name, paths in _named(args) for path in paths]
    must_be_new(output, force=args.force, sources=[path for source in sources for path in files_of(source.run)])
    files = [(path, hashlib.sha256(read_whole(path)).hexdigest()) for source in sources for path in files_of(source.run)]
    saved, packed = document(sources, files)
    content = json.dumps(saved, indent=1, allow_nan=False).encode()
    written = from_json(json.loads(content), str(output))  # what could not be read again is not written
    if packed is not None:
        write_whole(output.with_name(str(written.telemetry_file["name"])), packed)
    write_whole(output, content)
    for warning in written.warnings:
        print("warning:", warning, file=sys.stderr)
    print(json.dumps(_as_json(written, files), indent=2) if args.json else _told(written, len(sources)))
    return 0


def _named(args: argparse.Namespace) -> Iterator[tuple[str | None, list[Path]]]:
    groups: list[tuple[str, list[str]]] = [(name, paths) for name, *paths in args.tweakset]
    bare = [name for name, paths in groups if not paths]
    if len(bare) > 1 or bool(bare) > bool(args.sources):
        raise Refused(f"--tweakset {bare[-1]}: name the files of this tweak set after it.")
    if args.sources:
        yield (bare[0] if bare else None), find(args.sources)
    elif not groups:
        raise Refused("nothing to import: name a DeepTweak directory or files of pytest-benchmark.")
    for name, paths in groups:
        if paths:
            yield name, find(paths)


def _source(path: Path, tweakset: str | None, workload: str | None) -> MergeSource:
    loaded = load(path)
    stats: dict[str, Any] = {}
    if loaded.format == "pytest-benchmark":
        stats = {one["fullname"]: one["stats"] for one in cast("Any", parsed(path))["benchmarks"]}
    return MergeSource(path, loaded, tweakset, workload, stats)


def _as_json(saved: Run, files: Sequence[tuple[Path, str]]) -> dict[str, object]:
    return {
        "run_id": saved.run_id,
        "output": saved.origin,
        "telemetry_file": saved.telemetry_file.get("name"),
        "sources": [str(path) for path, _ in files],
        "tweaksets": list(saved.tweaksets),
        "baseline": saved.baseline,
        "workloads": list(saved.workloads),
        "blocks": saved.design.blocks,
        "cells": len(saved.cells),
        "warnings": list(saved.warnings),
    }


def _told(saved: Run, sources: int) -> str:
    cells, arms = _counted(len(saved.cells), "cell"), _counted(len(saved.tweaksets), "tweak set")
    made_of = f"{arms} ({', '.join(saved.tweaksets)}; baseline {saved.baseline}), {_counted(len(saved.workloads), 'workload')}"
    return f"{saved.origin}: {cells} from {_counted(sources, 'source')}: {made_of}, {_counted(saved.design.blocks, 'block')}."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
