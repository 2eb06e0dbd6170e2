"""A run is saved whole or not at all; what was there before stays until then."""

from __future__ import annotations

import errno
import json
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_benchmark.logger import Logger
from pytest_benchmark.storage.file import FileStorage

from analysis.load import parsed
from fixtures.kernel.state_dirs import write_atomically
from fixtures.storage import AtomicStorage
from tests.programs import python
from tests.stored import stored
from tests.synthetic import Made, saved_run

Json = dict[str, Any]
WITH_FULL_DISK = """
import json, random, sys
from pathlib import Path
from pytest_benchmark.logger import Logger
from fixtures.kernel.state_dirs import write_atomically
from fixtures.storage import AtomicStorage
from tests.file_size import file_size_limit
with file_size_limit(4096):
"""


@pytest.fixture
def storage(tmp_path: Path) -> AtomicStorage:
    """As pytest-benchmark makes it for `--benchmark-storage`."""
    return AtomicStorage.like(FileStorage(str(tmp_path), Logger(Logger.QUIET), "machine"))


def with_full_disk(code: str, folder: Path) -> str:
    done = python(WITH_FULL_DISK + textwrap.indent(code, "    "), str(folder))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_reader_never_sees_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content is on disk (fsync) before it gets its name: until then the old file stands."""
    path, seen = tmp_path / "run.json", []
    path.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", lambda _: seen.append(path.read_bytes()))
    write_atomically(path, b"new")
    assert (seen, path.read_bytes()) == ([b"old"], b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_a_full_disk_keeps_the_old_file_and_no_partial_one(tmp_path: Path) -> None:
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


def test_runs_are_numbered_as_by_pytest_benchmark_itself(
    storage: AtomicStorage, tmp_path: Path
) -> None:
    """So that `--benchmark-compare` and `pytest-benchmark list` find them."""
    for name in ("exp", "exp", "other"):
        storage.save({"benchmarks": []}, name)
    assert sorted(p.name for p in (tmp_path / "machine").iterdir()) == [
        "0001_exp.json",
        "0002_exp.json",
        "0003_other.json",
    ]
    assert storage.saved == tmp_path / "machine" / "0003_other.json"
    assert storage.error is None
    paths = storage.query("0002")  # type: ignore[no-untyped-call]
    assert [path.name for path in paths] == ["0002_exp.json"]


@pytest.mark.parametrize(
    ("save", "name"),
    [
        ("save({'benchmarks': ['x' * 100] * 1000}, 'exp')", "0001_exp.json"),
        (
            "save_telemetry('run', {'cell': {'cpu': [random.random() for _ in range(10_000)]}})",
            "telemetry-run.jsonl.xz",
        ),
    ],
)
def test_what_cannot_be_saved_leaves_no_file_and_the_reason(
    tmp_path: Path, save: str, name: str
) -> None:
    out = with_full_disk(
        "storage = AtomicStorage(sys.argv[1], Logger(Logger.QUIET), 'machine')\n"
        f"print(json.dumps([storage.{save}, storage.saved, storage.error.filename]))",
        tmp_path,
    )
    assert json.loads(out) == [None, None, str(tmp_path / "machine" / name)]
    assert list((tmp_path / "machine").iterdir()) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('[]{},:\\"\n 0ab', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text("[],\n0 a", max_size=4), inner, max_size=4)
    ),
)
ROWS = st.lists(st.dictionaries(st.sampled_from(("job", "end_s")), JSON, max_size=2), max_size=4)


@given(report=st.dictionaries(st.sampled_from(("job", "attempt")), ROWS, max_size=2), facts=JSON)
def test_a_run_is_read_back_as_it_was_saved(
    tmp_path_factory: pytest.TempPathFactory, report: Json, facts: object
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    run = saved_run()
    run["benchmarks"].insert(
        1,
        {
            "name": "somebody's own",
            "extra_info": {"anything": 1},
            "stats": {"min": 1.0, "data": [1.0]},
        },
    )
    first, last = run["benchmarks"][0], run["benchmarks"][-1]
    first["extra_info"] |= {"report": report, "workload_facts": {"facts": facts}}
    first["stats"]["data"] = first["extra_info"]["steps"]["wall_s"][
        first["extra_info"]["steps"]["warmup"] :
    ]
    last["stats"]["data"] = [0.5, 0.25]
    assert parsed(stored(run, folder, "exp")) == run


def test_the_file_of_an_interrupted_run_survives_its_resumption(
    storage: AtomicStorage,
) -> None:
    part, whole = saved_run(Made(blocks=3)), saved_run(Made(blocks=4))
    assert part["deeptweak"]["run_id"] == whole["deeptweak"]["run_id"]
    paths = []
    for run in (part, whole):
        storage.save(run, "exp")
        assert storage.saved
        paths.append(storage.saved)
    assert [parsed(path) for path in paths] == [part, whole]


def test_the_json_alone_is_what_pytest_benchmark_compares(storage: AtomicStorage) -> None:
    """Names, statistics, and each cell's metrics, telemetry summary, values in force; no steps."""
    run = saved_run()
    storage.save(run, "exp")
    ((_, content),) = storage.load("0001")  # type: ignore[no-untyped-call]
    for kept, whole in zip(content["benchmarks"], run["benchmarks"], strict=True):
        assert (
            kept["stats"].items()
            >= {name: value for name, value in whole["stats"].items() if name != "data"}.items()
        )
        assert "data" not in kept["stats"]
        assert kept["extra_info"].items() <= whole["extra_info"].items()
        assert {"metrics", "telemetry", "tweak"} <= kept["extra_info"].keys()
        assert "steps" not in kept["extra_info"]
    table = pd.json_normalize(content["benchmarks"])
    assert list(table["extra_info.metrics.step_time_median_s"]) == [
        b["extra_info"]["metrics"]["step_time_median_s"] for b in run["benchmarks"]
    ]
