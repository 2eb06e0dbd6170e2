"""The record beside a run: put back into the run's JSON, or refused with file name and reason."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.compare import compare
from analysis.load import from_json, load
from analysis.terms import Unreadable
from tests.stored import stored
from tests.synthetic import saved_run

if TYPE_CHECKING:
    Line = dict[str, Any]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return stored(saved_run(), tmp_path, "exp")


def beside(saved: Path) -> Path:
    (path,) = saved.parent.glob("record-*.jsonl.xz")
    return path


def rewrite(saved: Path, content: bytes) -> None:
    path = beside(saved)
    path.write_bytes(content)
    run = json.loads(saved.read_text())
    run["deeptweak"]["record_file"]["sha256"] = hashlib.sha256(content).hexdigest()
    saved.write_text(json.dumps(run))


def test_a_run_and_its_record_are_judged_like_the_single_file(saved: Path) -> None:
    whole = from_json(saved_run(), str(saved))
    assert load(saved) == whole
    assert compare(load(saved)) == compare(whole)


@pytest.mark.parametrize("name", ["gone", "another", "a folder"])
def test_a_run_without_its_record_is_refused(saved: Path, name: str) -> None:
    path = beside(saved)
    packed = path.read_bytes()
    path.unlink()
    if name == "another":
        path.write_bytes(packed[:-1])
    elif name == "a folder":
        path.mkdir()
    with pytest.raises(Unreadable, match=path.name):
        load(saved)


def bend(change: Callable[[list[Line]], object]) -> Callable[[list[Line]], bytes]:
    def bent(lines: list[Line]) -> bytes:
        change(lines)
        return "\n".join(map(json.dumps, lines)).encode()

    return bent


BAD: dict[str, Callable[[list[Line]], bytes]] = {
    "nothing": lambda _: b"",
    "no JSON": lambda _: b"{\n",
    "no run": bend(lambda lines: lines.pop(0)),
    "no such benchmark": bend(lambda lines: lines[1].update(benchmark=10_000)),
    "counted from the end": bend(lambda lines: lines[1].update(benchmark=-1)),
    "rounds of no steps": bend(lambda lines: lines[1].update(rounds="steps", record={})),
    "columns of unequal length": bend(
        lambda lines: lines[1]["record"].update(report={"job": {"@columns": {"a": [1], "b": []}}})
    ),
    "columns that are none": bend(
        lambda lines: lines[1]["record"].update(report={"job": {"@columns": [1]}})
    ),
    "no number": bend(lambda lines: lines[1]["record"]["steps"]["wall_s"].append(float("nan"))),
}


@pytest.mark.parametrize("name", BAD)
def test_a_record_that_does_not_fit_is_refused_by_name(saved: Path, name: str) -> None:
    lines = [json.loads(line) for line in lzma.decompress(beside(saved).read_bytes()).splitlines()]
    rewrite(saved, lzma.compress(BAD[name](lines)))
    with pytest.raises(Unreadable, match=beside(saved).name):
        load(saved)


@given(cut=st.integers(0, 400), value=st.integers(0, 255))
def test_no_damage_is_more_than_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, cut: int, value: int
) -> None:
    path = stored(saved_run(), tmp_path_factory.mktemp("damaged"), "exp")
    packed = bytearray(beside(path).read_bytes())
    packed[cut] ^= value
    rewrite(path, bytes(packed))
    try:
        found = load(path)
    except Unreadable:
        return
    assert found == from_json(saved_run(), str(path))
