"""All tests in two processes: what is heard of either, and what makes both fail."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.side_by_side import FEW, again, last_failed, shown, worse, worth_another_look

if TYPE_CHECKING:
    from pathlib import Path

OK, FAILED, INTERRUPTED, NONE = (int(code) for code in (0, 1, 2, pytest.ExitCode.NO_TESTS_COLLECTED))
KILLED = -9


@pytest.mark.parametrize(
    ("one", "other", "status"),
    [
        (OK, OK, OK),
        (OK, FAILED, FAILED),
        (FAILED, INTERRUPTED, INTERRUPTED),
        (OK, NONE, OK),
        (FAILED, NONE, FAILED),
        (NONE, NONE, NONE),
        (OK, KILLED, KILLED),
        (NONE, KILLED, KILLED),
    ],
)
def test_all_is_well_only_if_both_are(one: int, other: int, status: int) -> None:
    """With `-k` one of them may have nothing to run."""
    assert worse(one, other) == worse(other, one) == status


def test_what_was_said_meanwhile_and_what_is_said_yet_comes_whole_and_in_order(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It has written a lot before anybody looks, and goes on."""
    program = "import sys\nfor n in range(20000): print(n)\nsys.stdout.flush()\nsys.stdin.readline()\nprint('last')\nsys.exit(3)"
    with (tmp_path / "said").open("w+b") as said:
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=said)
        while os.fstat(said.fileno()).st_size < len("".join(f"{n}\n" for n in range(20000))):
            assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        assert shown(process, said.fileno()) == 3
    assert capfd.readouterr().out.split() == [*map(str, range(20000)), "last"]


@pytest.mark.parametrize(
    ("failed", "worth"),
    [
        ([], False),
        (["tests/test_notebook.py::test_it_plans"], True),
        ([f"tests/test_a.py::test_{n}" for n in range(FEW)], True),
        ([f"tests/test_a.py::test_{n}" for n in range(FEW + 1)], False),
        (["tests/test_a.py::test_b", "tests/node/test_kill.py::test_any_moment[3]"], False),
        (["tests/test_session.py::test_the_machine_is_put_back"], False),
        (["tests/test_a.py"], False),  # could not even be collected
    ],
)
def test_a_few_failures_are_looked_at_again_unless_putting_back_is_at_stake(failed: list[str], worth: bool) -> None:  # noqa: FBT001
    """Many have a cause in the code, and a crash that left a setting behind need not come again."""
    assert worth_another_look(failed) == worth


def test_what_failed_is_read_from_the_cache_of_a_real_run_and_told_when_it_passes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It fails as long as a file is missing; another one fails always."""
    file = tmp_path / "test_once.py"
    file.write_text(f"import os\ndef test_there(): assert os.path.exists({str(tmp_path / 'there')!r})\ndef test_never(): assert 0\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "-o", f"cache_dir={tmp_path / 'cache'}"]
    assert subprocess.run([*command, str(file)], cwd=tmp_path, check=False).returncode == FAILED
    failed = [f"{tmp_path}/{one}" for one in last_failed(tmp_path / "cache")]
    assert [one.rpartition("::")[2] for one in failed] == ["test_there", "test_never"]
    (tmp_path / "there").touch()
    capfd.readouterr()
    assert again(command, failed) == FAILED
    assert "UNSTEADY" not in capfd.readouterr().out
    assert again(command, failed[:1]) == OK
    assert f"UNSTEADY: these failed, and passed when nothing ran beside them:\n  {failed[0]}" in capfd.readouterr().out
    assert last_failed(tmp_path / "nothing") == []
