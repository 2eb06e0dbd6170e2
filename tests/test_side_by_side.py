"""All tests in two processes: what is heard of either, and what makes both fail."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.side_by_side import shown, worse

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
