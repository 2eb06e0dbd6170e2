"""The house follows CONTRIBUTING.md: imports one way, each file with its purpose and one idea."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
ROOMS = ("analysis", "fixtures", "control", "benchmarks", "tests")
LONGEST = 20_400  # characters that are not white space, so that unpacking a line costs nothing
# Thousand characters that are not white space, and files of Python. Budgets may only fall: a commit
# that raises one gives the reason.
BUDGETS = {
    "fixtures": (1_370, 216),
    "analysis": (1_123, 177),
    "control": (184, 39),
    "benchmarks": (28, 18),
    "tests": (2_320, 465),
}
# Names that say nothing to a stranger, and how many of them are left in each room. They may only
# fall, too.
VAGUE = frozenset(
    {
        "said",
        "asked",
        "told",
        "held",
        "found",
        "wanted",
        "given",
        "why",
        "ours",
        "theirs",
        "there",
        "kept",
        "mine",
        "whose",
    }
)
VAGUE_NAMES = {"fixtures": 346, "analysis": 192, "control": 50}
MOST_FLOORS = 8
MOST_FILES = 25  # of ours, in a session of pytest that runs no benchmark
# Imports allowed across rooms. The wall between the run side and the read side is the saved
# JSON alone.
ALLOWED = {
    "analysis": {"analysis", "control"},
    "fixtures": {"fixtures", "control"},
    "control": {"control"},
    "benchmarks": {"fixtures"},
}

OF_STUDIES = {"commands", "report"}  # of the read side: each command is of some study


def modules(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (HOUSE / room).rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(HOUSE))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each import of a module, nested ones too: (dotted name, level); level 0 is absolute."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_point_one_way(room: str) -> None:
    """`benchmarks` → `fixtures`; `fixtures` and `analysis` import neither each other nor tests."""
    crossing = {
        f"{named(path)} imports {name}"
        for path in modules(room)
        for name, level in imports(path)
        if level == 0 and name.partition(".")[0] in {*ROOMS, "conftest"} - ALLOWED[room]
    }
    assert not crossing


def test_what_is_a_module_s_own_is_imported_by_no_other_folder() -> None:
    """A name with `_` in front that is no module."""
    of_folders = {path.stem for path in modules(*ROOMS[:3])}
    found = {
        f"{named(path)} imports {alias.name}"
        for path in modules(*ROOMS[:-1])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level == 0
        for alias in node.names
        if alias.name.startswith("_") and alias.name not in of_folders
    }
    assert not found


@pytest.mark.parametrize("room", ["analysis", "fixtures"])
def test_terms_import_only_what_both_sides_share(room: str) -> None:
    found = {
        name
        for name, level in imports(HOUSE / room / "terms.py")
        if level or name.partition(".")[0] in {*ROOMS} - {"control"}
    }
    assert not found


def _studies_crossed(side: str) -> set[tuple[str, str]]:
    """(study or file of the core, study whose folder it imports)."""
    found = set()
    for path in modules(side):
        parts = path.relative_to(HOUSE).parts
        own = parts[2] if parts[1] == "studies" and len(parts) > 3 else ""
        if not own and parts[1] in OF_STUDIES:
            continue
        met = {
            name.split(".")[2]
            for name, level in imports(path)
            if level == 0 and name.startswith(f"{side}.studies.")
        }
        found |= {(own or "/".join(parts[1:]), study) for study in met - {own}}
    return found


@pytest.mark.parametrize("side", ["analysis", "fixtures"])
def test_no_study_is_imported_by_another_nor_by_the_core(side: str) -> None:
    assert not _studies_crossed(side)


def test_imports_are_relative_in_a_folder_and_absolute_across() -> None:
    wrong = set()
    for path in modules(*ROOMS[:3]):
        own = ".".join(path.parent.relative_to(HOUSE).parts)
        for name, level in imports(path):
            if level > 1:
                wrong.add(
                    f"{named(path)}: {'.' * level}{name} climbs out of its folder; write it from "
                    "the top"
                )
            elif (
                level == 0
                and name.rpartition(".")[0] == own
                and (path.parent / f"{name.rpartition('.')[2]}.py").exists()
            ):
                wrong.add(f"{named(path)}: {name} is its neighbour; write it with a dot")
    assert not wrong


def _needed(path: Path) -> set[Path]:
    """Return the modules of its room that a module imports, nested too, except for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            origin = (path.parent if node.level else HOUSE).joinpath(
                *(node.module or "").split(".")
            )
            for inner in (origin / alias.name for alias in node.names):
                places = (
                    inner.with_suffix(".py"),
                    inner / "__init__.py",
                    origin.with_suffix(".py"),
                    origin / "__init__.py",
                )
                found |= {*[place for place in places if place.exists()][:1]}
    return found & {*modules(path.relative_to(HOUSE).parts[0])} - {path}


@pytest.mark.parametrize("room", ["analysis", "control", "fixtures"])
def test_imports_go_in_no_circle_and_down_few_floors(room: str) -> None:
    """A folder's modules share a floor; imports from another folder are at least one floor down."""
    floors: dict[Path, int] = {}
    for path in TopologicalSorter(
        {path: _needed(path) for path in modules(room)}
    ).static_order():  # its CycleError names the circle
        floors[path] = max(
            (floors[other] + (other.parent != path.parent) for other in _needed(path)), default=1
        )
    assert max(floors.values()) <= MOST_FLOORS, [
        named(path) for path in floors if floors[path] > MOST_FLOORS
    ]


def test_the_read_side_writes_to_no_record() -> None:
    """Those of `terms` that are not frozen rely on it."""
    from analysis.terms import Cell, Comparison

    fields = {field.name for kind in (Cell, Comparison) for field in dataclasses.fields(kind)}
    written = {
        f"{named(path)}: {ast.unparse(node)}"
        for path in modules("analysis")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr in fields
        if not (isinstance(node.value, ast.Name) and node.value.id == "self")
    }
    assert not written


def test_every_module_says_what_it_is() -> None:
    silent = [
        named(path)
        for path in modules(*ROOMS[:-1])
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent


def test_a_class_name_stands_for_one_class() -> None:
    places: dict[str, list[str]] = {}
    for path in modules(*ROOMS[:-1], "deeptweak", "docs"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(named(path))
    assert not {name: files for name, files in places.items() if len(files) > 1}


def size(path: Path) -> int:
    return len("".join(path.read_text(encoding="utf-8").split()))


def test_no_module_is_longer_than_one_idea() -> None:
    assert not [named(path) for path in modules(*ROOMS[:-1]) if size(path) > LONGEST]


@pytest.mark.parametrize("room", BUDGETS)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    files = modules(room)
    thousands, count = BUDGETS[room]
    assert sum(size(path) for path in files) <= 1000 * thousands
    assert len(files) <= count


def test_one_room_starts_processes() -> None:
    """There each has its session, its end with ours and its deadline; elsewhere one is missed."""
    starts = re.compile(
        r"\bPopen\b|\bsubprocess\.\w|\bos\.(?:fork|forkpty|posix_spawn|system|popen)\b"
    )
    rooms = {
        named(path.parent)
        for path in modules(*ROOMS[:-1])
        if starts.search(path.read_text(encoding="utf-8"))
    }
    assert rooms == {"fixtures/process"}


def _bound_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


@pytest.mark.parametrize("room", VAGUE_NAMES)
def test_names_say_what_a_thing_is(room: str) -> None:
    vague = [
        f"{named(path)}: {name}"
        for path in modules(room)
        for name in _bound_names(path)
        if name.strip("_") in VAGUE
    ]
    assert len(vague) <= VAGUE_NAMES[room], "\n".join(vague)


def test_names_of_tests_have_at_most_60_characters() -> None:
    long = re.compile(r"def (test_\w{56,})")
    assert not {
        f"{named(path)}: {name}"
        for path in modules("tests")
        for name in long.findall(path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("module", ["analysis.load", "analysis.compare", "analysis.__main__"])
def test_reading_a_run_waits_for_no_heavy_library(module: str) -> None:
    """A session of pytest imports them at its end, and `--help` should not take a second."""
    heavy = "{'numpy', 'scipy', 'pandas', 'matplotlib', 'torch', 'rich'}"
    check = f"import sys, {module}; sys.exit(', '.join({heavy} & sys.modules.keys()) or 0)"
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=HOUSE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--collect-only", "tests/test_architecture.py"]],
    ids=["help", "a test"],
)
def test_a_session_without_benchmarks_imports_few_of_our_files(arguments: list[str]) -> None:
    check = (
        "import pytest, sys; status = pytest.main(sys.argv[1:]); here = sys.path[0] + '/'; "
        "files = [f for m in list(sys.modules.values()) if (f := getattr(m, '__file__', None) or "
        "'').startswith(here)]; "
        "files = [f for f in files if 'site-packages' not in f]; "
        f"print(*files, sep='\\n', file=sys.stderr); sys.exit(status or len(files) > {MOST_FILES})"
    )
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path[0] = {str(HOUSE)!r}; {check}",
        *arguments,
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
