"""The only reader: a file or folder becomes a `Run`, or is refused by name in one line.

What a run looks like is each format's business (`formats/`); here is how files are found, opened and told apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from .files import not_utf8, place_in, read_whole, reason_of, unpacked
from .formats import record_file, saved_run
from .formats.checked import EDITED
from .terms import Refused, Run, Unreadable

PACKED = ".json.xz"  # a run that somebody has packed (`xz run.json`), to keep many
GLOB = frozenset("*?[")
NO_RUNS = frozenset({"commands", "progress", "scratch"})  # what a folder of saved runs has beside them (fixtures/studies/command, storage)
# In JSON: both halves of a character, half of one (escaped or as it is), any other escape.
ESCAPES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..|[\ud800-\udfff])|\\.")
Reading = TypeVar("Reading")


def load(path: Path | str) -> Run:
    """Read one saved run: a JSON file of ours or of pytest-benchmark, or a DeepTweak directory.

    Raises: Unreadable, with the file's name, what is wrong in it, and what to do.
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
    """Read a run from parsed JSON; `origin` is what messages call it.

    Raises: Unreadable.
    """
    top = saved if isinstance(saved, dict) else {}
    if saved_run.recognises(top):
        return saved_run.from_json(top, origin)
    from .formats import pytest_benchmark

    if pytest_benchmark.recognises(top):
        return pytest_benchmark.from_json(top, origin)
    from .formats import other_tools, strangers

    if other := other_tools.read(top, origin):
        return pytest_benchmark.from_json(other, origin)
    if stranger := strangers.of_json(saved):
        raise Unreadable(f"{origin}: not read here: {stranger}")
    raise Unreadable(
        f"{origin}: not a saved run; name a file of `pytest benchmarks/`, pytest-benchmark, hyperfine, google-benchmark, asv or AIPerf."
    )


def is_deeptweak(folder: Path) -> bool:
    return (folder / "benchmark.csv").is_file() or any(folder.glob("*/benchmark.csv"))


def find(names: Sequence[str]) -> list[Path]:
    """Find the runs that are named: files, quoted globs, folders of saved runs, DeepTweak directories.

    Each comes once, in the order named. A telemetry file or a sidecar is no run and is passed over in a folder.

    Raises: Refused, for a glob that matches nothing and a folder that holds no run: an empty comparison would look like a clean one.
    """
    result: dict[Path, None] = {}
    for name in names:
        if not name:
            raise Refused("an empty name: name a saved run, or . for those in this folder.")
        try:
            result |= dict.fromkeys(_matches(name))
        except (OSError, RuntimeError) as error:
            raise Refused(f"{name}: cannot be read: {reason_of(error)}.") from None
        except (NotImplementedError, ValueError) as error:
            raise Refused(f"{name}: is no pattern for files: {str(error).rstrip('.')}.") from None
    return list(result)


def _matches(name: str) -> list[Path]:
    path = Path(name)
    if not path.exists() and GLOB & set(name):
        root = Path(path.anchor or ".")
        found = root.glob(str(path.relative_to(path.anchor)))
        matches = sorted(one for one in found if (one.suffix != ".xz" or one.name.endswith(PACKED)) and not _stands_beside(one))
        if not matches:
            raise Refused(f"{name}: matches no file that can be seen; see `ls {path.parent}`.")
        return matches
    if path.is_dir() and not is_deeptweak(path):
        nodes = sorted(one for one in path.iterdir() if one.is_dir() and is_deeptweak(one))
        # The last as pytest-benchmark and asv store them.
        matches = _results([*path.glob("*.json"), *path.glob(f"*{PACKED}")]) or nodes or _results(path.glob("*/*.json"))
        if not matches:
            from analysis import studies

            commands = (command_for(path) for command_for in studies.hooks("command_for"))
            raise Refused(f"{name}: {next(filter(None, commands), 'no saved run (*.json) in this folder.')}")
        return matches
    return [path]


def _results(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.parent.name not in NO_RUNS and not _stands_beside(path))


def _stands_beside(path: Path) -> bool:
    """Whether a file is one that asv writes beside its results: what it benchmarks, and where."""
    if path.name not in ("benchmarks.json", "machine.json") or not path.is_file():
        return False
    from .formats import strangers

    try:
        return strangers.of_json(parsed(path)) is not None
    except Unreadable:
        return False


def files_of(run: Run) -> list[Path]:
    path = Path(run.origin)
    if not path.is_dir():
        return [path]
    manifests = {tweakset.path for tweakset in run.tweaksets.values() if tweakset.path}
    return sorted([*path.glob("benchmark.csv"), *path.glob("*/benchmark.csv"), *map(Path, manifests)])


def load_each(names: Sequence[str], refused: list[str]) -> Iterator[Run]:
    """Read runs one after the other; what cannot be read is added to `refused`, one line each, and the rest is read all the same."""
    for path in find(names):
        try:
            yield load(path)
        except Unreadable as error:
            refused.append(" ".join(str(error).splitlines()))


def load_some(names: Sequence[str], refused: list[str]) -> list[Run]:
    """Read runs as `load_each` does. Raises: Refused, where none can be read."""
    result = list(load_each(names, refused))
    if not result:
        raise Refused(f"{', '.join(names)}: no run could be used. {' '.join(refused)}".rstrip())
    return result


def read_each(runs: Iterable[Run], read: Callable[[Run], Reading], refused: list[str]) -> list[tuple[Run, Reading]]:
    """Read something of each run; a run that has none is a line of `refused`. Raises: Refused, with the first reason, where none has."""
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
    """Read the JSON of a file with the record beside it, whatever it says.

    Raises: Unreadable.
    """
    content = read_whole(path, "no such file; `deeptweak run` and `pytest benchmarks/ --benchmark-save=NAME` write one")
    content = unpacked(path, content) if path.name.endswith(PACKED) else content
    try:
        return record_file.complete(_parsed(content), path)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error, "a saved run is UTF-8 JSON") from None
    except UnicodeEncodeError:
        where = _place_of_half(content.decode(json.detect_encoding(content), "surrogatepass"))
        raise Unreadable(f"{path}: holds half of a character at {where}, which no file and no picture can hold; {EDITED}.") from None
    except json.JSONDecodeError as error:
        from .formats import strangers

        if stranger := strangers.of_text(error.doc):
            raise Unreadable(f"{path}: not read here: {stranger}") from None
        where = f"line {error.lineno} column {error.colno}"
        raise Unreadable(
            f"{path}: not JSON at {where} ({error.msg}); it was damaged or cut short, take the file from its source again."
        ) from None
    except ValueError as error:
        raise Unreadable(f"{path}: {error}") from None
    except RecursionError:
        raise Unreadable(f"{path}: nested too deeply for a saved run.") from None


def _parsed(content: bytes) -> object:
    """Parse JSON. Python's own parser says why it is none, or reads the NaN that other tools write for what they could not measure."""
    odd: list[str] = []

    def constant(word: str) -> float:
        odd.append(word)
        return float(word)

    try:
        saved = msgspec.json.decode(content)
    except msgspec.MsgspecError:
        saved = json.loads(content, parse_constant=constant)
        json.dumps(saved, ensure_ascii=False).encode()  # JSON can write half of a character
    if not (isinstance(saved, dict) and saved_run.recognises(saved)):
        return saved
    if odd:
        raise ValueError(f"holds {odd[0]}, which is no measurement and not JSON; the run that wrote it is damaged, measure again.")
    if content.count(b'"') != msgspec.json.encode(saved).count(b'"'):
        json.loads(content, object_pairs_hook=_once_each)
    return saved


def _place_of_half(text: str) -> str:
    half = next((match for match in ESCAPES.finditer(text) if match["half"]), None)
    return "an unknown place" if half is None else place_in(text[: half.start()])


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object of its fields; JSON lets a name stand twice, and which of the two a program believes is its own affair."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise ValueError(f"holds {twice!r} twice in one object; it was edited, take the file from its source again.")
    return made
