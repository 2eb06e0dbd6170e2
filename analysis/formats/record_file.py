"""The compressed files beside a saved run (`data/README.md`): its record, and its telemetry.

Both are lines of JSON; `complete` merges the record into the JSON that pytest-benchmark reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from analysis.files import read_whole, unpacked
from analysis.terms import Unreadable
from control.record import to_rows

REMEDY = "keep the files of a run together, or copy them from their source again"


def lines_of(run: Path, named: Mapping[str, object]) -> list[bytes]:
    """Read the lines of a file beside a run, which records the file's name and hash.

    Raises: Unreadable, if it is missing, is a different file, or holds more than any run does.
    """
    name, digest = named.get("name"), named.get("sha256")
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise Unreadable(f"{run}: names {name!r}, which is not a file beside it; {REMEDY}.")
    path = run.with_name(name)
    packed = read_whole(path, f"not beside {run.name}; {REMEDY}")
    if hashlib.sha256(packed).hexdigest() != digest:
        raise Unreadable(
            f"{run}: {name} is not the file that this run wrote (sha256 differs); {REMEDY}."
        )
    return unpacked(path, packed).splitlines()


def complete(saved: object, path: Path) -> object:
    """Merge a run's record into its JSON; return JSON that names no record unchanged.

    `--benchmark-json` writes such complete JSON.

    Raises: Unreadable, if the file is not beside it, or the two do not match.
    """
    ours: Any = saved.get("deeptweak") if isinstance(saved, dict) else None
    named = ours.get("record_file") if isinstance(ours, dict) else None
    if not isinstance(named, dict):
        return saved
    lines = lines_of(path, named)
    try:
        run, *cells = map(msgspec.json.Decoder().decode, lines)
        benchmarks = [dict(one) for one in cast("dict[str, Any]", saved)["benchmarks"]]
        for line in cells:
            # Refuse an index from the end.
            benchmark = benchmarks[range(len(benchmarks)).index(line["benchmark"])]
            info = benchmark["extra_info"] = benchmark["extra_info"] | to_rows(line["record"])
            if "rounds" in line:
                rounds = (
                    info["steps"]["wall_s"][info["steps"]["warmup"] :]
                    if line["rounds"] == "steps"
                    else line["rounds"]
                )
                benchmark["stats"] = benchmark["stats"] | {"data": rounds}
        return cast("dict[str, Any]", saved) | {"benchmarks": benchmarks, "deeptweak": run["run"]}
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unreadable(
            f"{path}: {named.get('name')} does not match it ({type(error).__name__}: {error}); "
            f"{REMEDY}."
        ) from None
