"""The compressed file beside a saved run (`data/README.md`): our record of the run and of each cell, and telemetry in another.

Both are lines of JSON; `complete` puts the record back into the JSON that pytest-benchmark reads.
"""

from __future__ import annotations

import hashlib
import io
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from analysis.files import reason_of
from analysis.terms import Unreadable
from control.record import to_rows

MOST_BYTES = 2**30  # uncompressed; the largest run of a day's streams of jobs has 14 million
REMEDY = "keep the files of a run together, or take them from their source again"


class Damaged(Exception):
    """A file beside a run that is not the one the run wrote; the message says which and why."""


def lines_of(run: Path, named: Mapping[str, object]) -> list[bytes]:
    """Read the lines of a file beside a run, named and hashed in it.

    Raises: Damaged, where it is not there, is another one, or holds more than any run does.
    """
    name, digest = named.get("name"), named.get("sha256")
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise Damaged(f"the run names {name!r}, which is not a file beside it")
    path = run.with_name(name)
    try:
        if path.exists() and not path.is_file():
            raise Damaged(f"{name} beside the run is no file; {REMEDY}")
        packed = path.read_bytes()
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise Damaged(f"{name} cannot be read beside the run ({reason}); {REMEDY}") from None
    if hashlib.sha256(packed).hexdigest() != digest:
        raise Damaged(f"{name} is not the file this run wrote (other sha256); {REMEDY}")
    try:
        with lzma.open(io.BytesIO(packed)) as source:
            text = source.read(MOST_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Damaged(f"{name} is damaged ({type(error).__name__}: {error}); {REMEDY}") from None
    if len(text) > MOST_BYTES:
        raise Damaged(f"{name} holds more than {MOST_BYTES >> 20} MiB, which no run does; {REMEDY}")
    return text.splitlines()


def complete(saved: object, path: Path, parse: Callable[[bytes], object]) -> object:
    """Put the record of a run back into its JSON; JSON that names no record is answered as it is (`--benchmark-json` writes it whole).

    Raises: Unreadable, where the file is not beside it, or the two do not fit.
    """
    ours: Any = saved.get("deeptweak") if isinstance(saved, dict) else None
    named = ours.get("record_file") if isinstance(ours, dict) else None
    if not isinstance(named, dict):
        return saved
    try:
        run, *cells = map(parse, lines_of(path, named))
        benchmarks = [dict(one) for one in cast("dict[str, Any]", saved)["benchmarks"]]
        for line in cast("list[Any]", cells):
            benchmark = benchmarks[range(len(benchmarks)).index(line["benchmark"])]  # never one counted from the end
            info = benchmark["extra_info"] = benchmark["extra_info"] | to_rows(line["record"])
            if "rounds" in line:
                rounds = info["steps"]["wall_s"][info["steps"]["warmup"] :] if line["rounds"] == "steps" else line["rounds"]
                benchmark["stats"] = benchmark["stats"] | {"data": rounds}
        return cast("dict[str, Any]", saved) | {"benchmarks": benchmarks, "deeptweak": cast("Any", run)["run"]}
    except Damaged as error:
        raise Unreadable(f"{path}: {error}.") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unreadable(f"{path}: {named.get('name')} does not fit it ({type(error).__name__}: {error}); {REMEDY}.") from None
