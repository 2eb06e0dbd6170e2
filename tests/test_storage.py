"""A run is saved whole or not at all; what was there before stays until then."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_benchmark.logger import Logger
from pytest_benchmark.storage.file import FileStorage

from fixtures.storage import AtomicStorage, columns_in_lines, write_atomically

HOUSE = Path(__file__).parents[1]
# A process that may not write files longer than a page: what a full disk is to a program, without any privilege.
FULL = """
import json, resource, signal, sys
from pathlib import Path
from fixtures.storage import AtomicStorage, write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
"""


@pytest.fixture
def storage(tmp_path: Path) -> AtomicStorage:
    """As pytest-benchmark makes it for `--benchmark-storage`."""
    return AtomicStorage.like(FileStorage(str(tmp_path), Logger(Logger.QUIET), "machine"))


def with_full_disk(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", FULL + code, str(folder)], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_appears_whole_under_its_name_and_nothing_else_does(tmp_path: Path) -> None:
    write_atomically(tmp_path / "run.json", b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("run.json", b"new")]


def test_a_reader_never_sees_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content is on disk (fsync) before it gets its name: until then the old file stands."""
    path, seen = tmp_path / "run.json", []
    path.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", lambda _: seen.append(path.read_bytes()))
    write_atomically(path, b"new")
    assert (seen, path.read_bytes()) == ([b"old"], b"new")


def test_on_a_full_disk_the_old_file_stays_and_no_half_one_is_left(tmp_path: Path) -> None:
    """And the error names the file that was wanted, not the one beside it."""
    path = tmp_path / "run.json"
    path.write_bytes(b"old")
    out = with_full_disk(
        "path = Path(sys.argv[1], 'run.json')\n"
        "try: write_atomically(path, b'x' * 100_000)\n"
        "except OSError as error: print(json.dumps([error.errno, error.filename]))",
        tmp_path,
    )
    assert json.loads(out) == [errno.EFBIG, str(path)]
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("run.json", b"old")]


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(tmp_path / "gone" / "run.json", b"new")
    assert caught.value.filename == str(tmp_path / "gone" / "run.json")


def test_runs_are_numbered_as_by_pytest_benchmark_itself(storage: AtomicStorage, tmp_path: Path) -> None:
    """So that `--benchmark-compare` and `pytest-benchmark list` find them."""
    for name in ("exp", "exp", "other"):
        storage.save({"benchmarks": []}, name)
    assert sorted(p.name for p in (tmp_path / "machine").iterdir()) == ["0001_exp.json", "0002_exp.json", "0003_other.json"]
    assert storage.saved == tmp_path / "machine" / "0003_other.json"
    assert storage.error is None
    assert [path.name for path in storage.query("0002")] == ["0002_exp.json"]  # type: ignore[no-untyped-call]


def test_a_run_that_cannot_be_saved_leaves_no_file_and_the_reason(tmp_path: Path) -> None:
    """No exception: the verdicts are still worth printing."""
    out = with_full_disk(
        "from pytest_benchmark.logger import Logger\n"
        "storage = AtomicStorage(sys.argv[1], Logger(Logger.QUIET), 'machine')\n"
        "storage.save({'benchmarks': ['x' * 100] * 1000}, 'exp')\n"
        "print(json.dumps([storage.saved, storage.error.filename]))",
        tmp_path,
    )
    assert json.loads(out) == [None, str(tmp_path / "machine" / "0001_exp.json")]
    assert list((tmp_path / "machine").iterdir()) == []


def test_telemetry_that_cannot_be_saved_leaves_no_file_and_the_reason(tmp_path: Path) -> None:
    out = with_full_disk(
        "import random\n"
        "from pytest_benchmark.logger import Logger\n"
        "storage = AtomicStorage(sys.argv[1], Logger(Logger.QUIET), 'machine')\n"
        "told = storage.save_telemetry('run', {'cell': {'cpu': [random.random() for _ in range(10_000)]}})\n"
        "print(json.dumps([told, storage.error.filename]))",
        tmp_path,
    )
    assert json.loads(out) == [None, str(tmp_path / "machine" / "telemetry-run.jsonl.gz")]
    assert list((tmp_path / "machine").iterdir()) == []


def test_telemetry_is_one_compressed_file_named_hashed_and_measured(storage: AtomicStorage, tmp_path: Path) -> None:
    columns: dict[str, dict[str, list[float | None]]] = {"a": {"cpu": [1.0, None]}, "b": {"cpu": []}}
    told = storage.save_telemetry("run", columns)
    content = (tmp_path / "machine" / "telemetry-run.jsonl.gz").read_bytes()
    assert told == {"name": "telemetry-run.jsonl.gz", "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    lines = [json.loads(line) for line in gzip.decompress(content).splitlines()]
    assert lines == [{"cell": name, "columns": series} for name, series in columns.items()]


def test_the_same_telemetry_gives_the_same_bytes(storage: AtomicStorage) -> None:
    """Its hash is about the samples, not about when they were written."""
    told = [storage.save_telemetry("run", {"a": {"cpu": [1.0]}}) for _ in range(2)]
    assert told[0] == told[1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('[]{},:\\"\n 0ab', max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("[],\n0 a", max_size=4), inner, max_size=4),
)


@given(JSON)
def test_columns_in_lines_are_the_same_json(value: object) -> None:
    """Whatever stands in texts; a list with anything but numbers stays as it was."""
    assert json.loads(columns_in_lines(json.dumps(value, indent=1))) == value


def test_a_column_of_numbers_is_one_line() -> None:
    """[1.5, null, -2e-07] has no line end left in it, a list of texts keeps its own."""
    written = columns_in_lines(json.dumps({"wall_s": [1.5, None, -2e-7], "names": ["a", "b"]}, indent=1))
    assert written == '{\n "wall_s": [1.5, null, -2e-07],\n "names": [\n  "a",\n  "b"\n ]\n}'
