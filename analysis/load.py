"""Find saved runs, open them with the files beside them, and tell formats apart.

`formats/` parses each format. A file that cannot be used is refused by name in one line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from control.record import to_rows

from .files import not_utf8, read_whole, reason_of, unpacked
from .formats import saved_run
from .formats.checked import EDITED
from .terms import Refused, Run, Unreadable

REMEDY = "keep the files of a run together, or copy them from their source again"
PACKED = ".json.xz"  # a run compressed by `xz run.json`
GLOB = frozenset("*?[")
# Other entries in a folder of saved runs (fixtures/studies/command, storage).
NO_RUNS = frozenset({"commands", "progress", "scratch"})
OF_ASV = frozenset({"benchmarks.json", "machine.json"})  # beside its results
Reading = TypeVar("Reading")


def load(path: Path | str) -> Run:
    """Read one saved run: DeepTweak's or pytest-benchmark's JSON file, or a DeepTweak directory.

    Raises: Unreadable, with the file's name, what is wrong in it, and what to do.

    Example:
        >>> run = load("exp1.json")
        >>> sorted(run.tweaksets)
        ['stock', 'thp-always']

    """
    path = Path(path)
    try:
        if path.is_dir():
            if is_deeptweak(path):
                from .formats import deeptweak

                return deeptweak.read(path)
            raise Unreadable(f"{path}: is a directory; name one saved run in it (a .json file).")
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {reason_of(error)}.") from None
    return from_json(parsed(path), str(path))


def from_json(saved: object, origin: str) -> Run:
    """Read a run from parsed JSON; messages call it `origin`.

    Raises: Unreadable.
    """
    top = saved if isinstance(saved, dict) else {}
    if saved_run.recognises(top):
        return saved_run.from_json(top, origin)
    from .formats import pytest_benchmark

    if pytest_benchmark.recognises(top):
        return pytest_benchmark.from_json(top, origin)
    from .formats import other_tools

    if other := other_tools.read(top, origin):
        return pytest_benchmark.from_json(other, origin)
    raise Unreadable(
        f"{origin}: not a saved run; name a file of `pytest benchmarks/`, pytest-benchmark, "
        "hyperfine, google-benchmark, asv or AIPerf."
    )


def is_deeptweak(folder: Path) -> bool:
    return (folder / "benchmark.csv").is_file() or any(folder.glob("*/benchmark.csv"))


def find(names: Sequence[str]) -> list[Path]:
    """Find the named runs: files, globs, folders. Raises: Refused, if a glob or folder has none."""
    result: dict[Path, None] = {}
    for name in names:
        if not name:
            raise Refused("empty file name: name a saved run, or . for the runs in this folder.")
        try:
            result |= dict.fromkeys(_matches(name))
        except (OSError, RuntimeError) as error:
            raise Refused(f"{name}: cannot be read: {reason_of(error)}.") from None
        except (NotImplementedError, ValueError) as error:
            raise Refused(f"{name}: not a valid file pattern: {str(error).rstrip('.')}.") from None
    return list(result)


def _matches(name: str) -> list[Path]:
    path = Path(name)
    if not path.exists() and GLOB & set(name):
        root = Path(path.anchor or ".")
        found = root.glob(str(path.relative_to(path.anchor)))
        matches = sorted(
            one
            for one in found
            if (one.suffix != ".xz" or one.name.endswith(PACKED)) and not _stands_beside(one)
        )
        if not matches:
            raise Refused(f"{name}: matches no visible file; see `ls {path.parent}`.")
        return matches
    if path.is_dir() and not is_deeptweak(path):
        nodes = sorted(one for one in path.iterdir() if one.is_dir() and is_deeptweak(one))
        # The second pattern covers the folders of pytest-benchmark and asv.
        matches = (
            _results([*path.glob("*.json"), *path.glob(f"*{PACKED}")])
            or nodes
            or _results(path.glob("*/*.json"))
        )
        if not matches:
            raise Refused(f"{name}: no saved run (*.json) in this folder.")
        return matches
    return [path]


def _results(paths: Iterable[Path]) -> list[Path]:
    return sorted(
        path for path in paths if path.parent.name not in NO_RUNS and not _stands_beside(path)
    )


def _stands_beside(path: Path) -> bool:
    if path.name not in OF_ASV or not path.is_file():
        return False
    try:
        saved = parsed(path)
    except Unreadable:
        return False
    return (
        isinstance(saved, dict)
        and "version" in saved
        and not {"benchmarks", "results"} & saved.keys()
    )


def files_of(run: Run) -> list[Path]:
    path = Path(run.origin)
    if not path.is_dir():
        return [path]
    manifests = {tweakset.path for tweakset in run.tweaksets.values() if tweakset.path}
    return sorted(
        [*path.glob("benchmark.csv"), *path.glob("*/benchmark.csv"), *map(Path, manifests)]
    )


def load_each(names: Sequence[str], refused: list[str]) -> Iterator[Run]:
    """Read runs one by one; add a line to `refused` for each unreadable one and go on."""
    for path in find(names):
        try:
            yield load(path)
        except Unreadable as error:
            refused.append(" ".join(str(error).splitlines()))


def load_some(names: Sequence[str], refused: list[str]) -> list[Run]:
    """Read runs as `load_each` does. Raises: Refused, if none can be read."""
    result = list(load_each(names, refused))
    if not result:
        raise Refused(f"{', '.join(names)}: no run could be used. {' '.join(refused)}".rstrip())
    return result


def read_each(
    runs: Iterable[Run], read: Callable[[Run], Reading], refused: list[str]
) -> list[tuple[Run, Reading]]:
    """Read data from each run; add a line to `refused` if it has none. Raises: Refused, if none."""
    result = []
    for run in runs:
        try:
            result.append((run, read(run)))
        except Refused as error:
            refused.append(str(error))
    if not result:
        raise Refused(refused[0])
    return result


def parsed(path: Path) -> object:
    """Parse a file's JSON together with the record beside it. Raises: Unreadable."""
    content = read_whole(
        path,
        "no such file; `deeptweak run` and `pytest benchmarks/ --benchmark-save=NAME` write one",
    )
    content = unpacked(path, content) if path.name.endswith(PACKED) else content
    try:
        return complete(_parsed(content), path)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error, "a saved run is UTF-8 JSON") from None
    except UnicodeEncodeError:
        raise Unreadable(
            f"{path}: contains half a character (a lone surrogate), which cannot be written; "
            f"{EDITED}."
        ) from None
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"{path}: not JSON at line {error.lineno} column {error.colno} ({error.msg}): it is "
            "not a saved run, or was cut short; copy the file from its source again."
        ) from None
    except ValueError as error:
        raise Unreadable(f"{path}: {error}") from None
    except RecursionError:
        raise Unreadable(f"{path}: nested too deeply for a saved run.") from None


def lines_of(run: Path, named: Mapping[str, object]) -> list[bytes]:
    """Read the lines of a file beside a run, which records its hash. Raises: Unreadable."""
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
    """Merge the record beside a run into its JSON, if it names one. Raises: Unreadable."""
    ours: Any = saved.get("deeptweak") if isinstance(saved, dict) else None
    named = ours.get("record_file") if isinstance(ours, dict) else None
    if not isinstance(named, dict):
        return saved
    whole = cast("dict[str, Any]", saved)
    lines = lines_of(path, named)
    try:
        run, *cells = map(msgspec.json.Decoder().decode, lines)
        benchmarks = [dict(one) for one in whole["benchmarks"]]
        for line in cells:
            # Refuse an index from the end.
            benchmark = benchmarks[range(len(benchmarks)).index(line["benchmark"])]
            info = benchmark["extra_info"] = benchmark["extra_info"] | to_rows(line["record"])
            if "rounds" in line:
                rounds = line["rounds"]
                if rounds == "steps":
                    rounds = info["steps"]["wall_s"][info["steps"]["warmup"] :]
                benchmark["stats"] = benchmark["stats"] | {"data": rounds}
        return whole | {"benchmarks": benchmarks, "deeptweak": run["run"]}
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unreadable(
            f"{path}: {named.get('name')} does not match it ({type(error).__name__}: {error}); "
            f"{REMEDY}."
        ) from None


def _parsed(content: bytes) -> object:
    odd: list[str] = []

    def constant(word: str) -> float:
        odd.append(word)
        return float(word)

    try:
        saved = msgspec.json.decode(content)
    except msgspec.MsgspecError:
        saved = json.loads(content, parse_constant=constant)
        json.dumps(saved, ensure_ascii=False).encode()  # JSON can express a lone surrogate
    if not (isinstance(saved, dict) and saved_run.recognises(saved)):
        return saved
    if odd:
        raise ValueError(
            f"contains {odd[0]}, which is neither a measurement nor JSON; the run is damaged, so "
            "measure again."
        )
    if content.count(b'"') != msgspec.json.encode(saved).count(b'"'):
        json.loads(content, object_pairs_hook=_once_each)
    return saved


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object; refuse a repeated name, which programs resolve in different ways."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise ValueError(
            f"contains {twice!r} twice in one object; the file was edited: copy it again from its "
            "source."
        )
    return made
