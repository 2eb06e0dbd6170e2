"""Other people's programs: found, asked once, never waited for without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.monitors import programs
from fixtures.monitors.monitor import load
from tests.monitors import stand_ins

NAMES = {"nvidia-smi": "nvidia_smi", "perf": "perf_stat", "py-spy": "py_spy"} | {
    name: name for name in ("dcgmi", "ncu", "nsys")
}
OF_OTHERS = {program: load(name) for program, name in NAMES.items()}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_an_absent_program_is_named_with_how_to_get_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_ins.nothing(tmp_path / "bin", monkeypatch)
    known = OF_OTHERS[name]
    why = known.unavailable_reason()
    assert why is not None
    assert why.startswith(f"{name} is neither beside this Python nor on PATH: ")
    assert "install" in why or "comes with" in why
    assert known.version() is None


@pytest.mark.parametrize("name", sorted(set(OF_OTHERS) - {"py-spy", "perf"}))
def test_one_that_fails_is_quoted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is not loaded, or the daemon does not run: the reason quotes the program."""
    words = "It has failed because it couldn't communicate."
    stand_ins.put(
        tmp_path / "bin",
        monkeypatch,
        **{name.replace("-", "_"): stand_ins.FAILS.replace("WORDS", repr(words))},
    )
    why = OF_OTHERS[name].unavailable_reason()
    assert why is not None
    assert why.startswith(f"{name} failed with status 9 ({words})")


def test_one_that_never_answers_is_given_up_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver may hang whoever asks it."""
    monkeypatch.setattr(programs, "ANSWER_WITHIN_S", 1.0)
    stand_ins.put(tmp_path / "bin", monkeypatch, nvidia_smi=stand_ins.NEVER_ANSWERS)
    nvidia_smi = load("nvidia_smi")
    assert (
        nvidia_smi.unavailable_reason()
        == "nvidia-smi did not respond within 1 s: is the driver's kernel module loaded (`lsmod | "
        "grep nvidia`)?"
    )
    assert nvidia_smi.version() is None
    assert not [
        one
        for one in Path("/proc").glob("[0-9]*/cmdline")
        if str(tmp_path).encode() in said_by(one)
    ]


def said_by(cmdline: Path) -> bytes:
    try:
        return cmdline.read_bytes()
    except OSError:  # it has ended
        return b""


def test_daemons_are_found_by_name(tmp_path: Path) -> None:
    """The kernel keeps 15 characters of a name; a process may end while it is looked at."""
    for pid, comm in {
        7: "nv-hostengine",
        12: "python",
        30: "nv-hostengine",
        41: "a-name-of-sixte",
    }.items():
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/comm").write_text(f"{comm}\n")
    (tmp_path / "proc/50").mkdir()
    assert programs.pids("nv-hostengine", tmp_path) == [7, 30]
    assert programs.pids("a-name-of-sixteen-and-more", tmp_path) == [41]
    assert os.getpid() in programs.pids(Path("/proc/self/comm").read_text().rstrip())
