"""`python -m fixtures.studies.io`: data sets by hand, and errors in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.studies.io import __main__ as commands
from fixtures.studies.io.dataset import Spec, ensure

Command = Callable[..., tuple[int, str, str]]
HOUSE = Path(__file__).parents[2]
TINY = Spec("raw", 2, 1, 100.0)
ASKED = "io_train:format=raw:num_files_train=7:record_length_bytes=100:record_length_bytes_stdev=0"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run one command over `tmp_path`. Returns: exit code, what it printed, what it complained of."""

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fixtures.studies.io", *arguments, "--io-data", str(tmp_path)])
        code = commands.main()
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_what_is_generated_is_verified_and_listed(run: Command, tmp_path: Path) -> None:
    """7 files of 10 x 10 bytes."""
    code, out, _ = run("generate", ASKED)
    (folder,) = (entry for entry in tmp_path.iterdir() if entry.is_dir())
    assert (code, out.splitlines()) == (0, [f"data sets: {folder.name} is there, 0.00 MB in 7 files"])
    assert sum(path.stat().st_size for path in folder.glob("train/*")) == 700
    assert run("generate", ASKED.removeprefix("io_train:"))[:2] == (0, f"{folder}: whole, 0.00 MB in 7 files of 1 sample\n")
    listed = run("list")[1].splitlines()
    assert listed[0].startswith(f"{folder.name}: whole, 0.00 MB in 7 files of 1 sample, ")
    assert listed[0].endswith("% in the page cache")
    assert listed[1].startswith("models: bert, bert_v100, ")


def test_what_is_damaged_ends_with_exit_code_2(run: Command, tmp_path: Path) -> None:
    whole, broken = (ensure([Spec("raw", n, 1, 100.0)], tmp_path, print).popitem()[1] for n in (1, 2))
    broken.files[1].unlink()
    code, out, err = run("list")
    assert code == 2
    assert f"{whole.folder.name}: whole" in out
    assert err.startswith(f"error: {broken.files[1]}: missing")


def test_the_option_is_the_one_that_its_errors_name_and_may_stand_before_the_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["fixtures.studies.io", "list", "--io-data", str(tmp_path / "nowhere")])
    assert commands.main() == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/nowhere: no such folder; --io-data names the one that holds the data sets\n"
    monkeypatch.setattr(sys, "argv", ["fixtures.studies.io", "generate", f"--io-data={tmp_path}", ASKED])
    assert commands.main() == 0
    assert "7 files" in capsys.readouterr().out


WRONG = {
    ("generate", "fromat=raw"): "no parameter 'fromat'. Did you mean 'format'?",
    ("generate", "raw"): "'raw': 'raw' is no KEY=VALUE; write io_train:format=raw:sample_scale=4",
    ("generate", "format=npz:format=raw"): "'format=raw' is there twice",
    ("generate", "format=raw:num_files_train=99999:record_length_bytes=1e9"): "GB are free there; nothing was written.",
    ("list", "nothing"): "no data set 'nothing' with a manifest.json; there are: none",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_what_is_wrong_is_said_in_one_line(run: Command, arguments: tuple[str, ...]) -> None:
    code, _, err = run(*arguments)
    assert (code, len(err.splitlines())) == (2, 1)
    assert WRONG[arguments] in err


def test_help_and_the_facts_of_formats_wait_for_no_heavy_library() -> None:
    heavy = "{'numpy', 'torch', 'h5py', 'PIL', 'tfrecord'}"
    facts = "import sys, fixtures.studies.io.__main__; from fixtures.studies.io import formats; list(map(formats.load, formats.names()))"
    check = f"{facts}; sys.exit(', '.join({heavy} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", check], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
