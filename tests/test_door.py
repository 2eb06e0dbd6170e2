"""`deeptweak`: one help over all commands, their exit codes, and what is installed of it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import analysis.__main__ as judging
import fixtures.__main__ as measuring
from deeptweak import __main__ as door
from fixtures import studies
from tests.sessions import Place

HOUSE = Path(__file__).parents[1]


def called(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["deeptweak", *words])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv(door.STARTED_AS, "")  # which it sets; put back at the test's end
    return door.main()


def test_the_help_has_every_command_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("--help", monkeypatch=monkeypatch) == 0
    shown = [
        line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")
    ]
    of_studies = [command.NAME for command in studies.commands()]
    judged = map(judging.command_of, judging.COMMANDS)
    assert sorted(shown) == sorted(
        {"demo", "completion", *measuring.COMMANDS, *of_studies, *judged}
    )


def test_without_a_command_it_says_what_there_is_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch=monkeypatch) == 2


def test_the_version_is_that_of_pyproject(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert called("--version", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == f"deeptweak {project['version']}\n"
    heads = [
        line
        for line in (HOUSE / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    assert heads[0].split()[1] == project["version"]


CALLED = {
    "deeptweak": "deeptweak",
    "analysis": "python -m analysis",
    "fixtures": "python -m fixtures",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "words", "form"),
    [
        *(
            (module, ["compare", door.DEMO_RUN], "next: {} report data/runs/")
            for module in ("deeptweak", "analysis")
        ),
        *((module, ["compare", "--help"], "  {} compare ") for module in ("deeptweak", "analysis")),
        *((module, ["compre"], "`{} --help`") for module in ("deeptweak", "analysis")),
        *((module, ["list", "--help"], "usage: {} list") for module in ("deeptweak", "fixtures")),
    ],
)
def test_commands_are_called_as_whoever_started_them_called_them(
    module: str, words: list[str], form: str
) -> None:
    environ = {name: value for name, value in os.environ.items() if name != door.STARTED_AS}
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=HOUSE,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert form.format(CALLED[module]) in said
    assert not [name for name in CALLED.values() if name != CALLED[module] and f"{name} " in said]


PROJECT = """
[tool.deeptweak.run]
tweaks = ["thp-always", "./prod.yaml"]
budget = "5m"
turns = true
runs = false
seed = 7
"""


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (
            ["run", "--", "x"],
            ["--tweaks=thp-always", "--tweaks=./prod.yaml", "--budget=5m", "--turns", "--seed=7"],
        ),
        (
            ["run", "--tweaks", "thp-never", "--seed=1", "--", "x", "--budget=1"],
            ["--budget=5m", "--turns"],
        ),
        (["doctor"], []),
    ],
    ids=["all", "what is typed counts alone", "another command"],
)
def test_a_project_sets_the_options_of_a_command_once(
    words: list[str], given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the pyproject.toml of the folder or of one above: the nearest that has a table."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    below = tmp_path / "service/train"
    below.mkdir(parents=True)
    (tmp_path / "service/pyproject.toml").write_text("[project]\nname = 'service'\n")
    monkeypatch.chdir(below)
    passed: list[str] = []

    def measure(words: list[str], **_: object) -> int:
        passed.extend(words)
        return 0

    monkeypatch.setattr(measuring, "main", measure)
    assert called(*words, monkeypatch=monkeypatch) == 0
    assert passed == [words[0], *given, *words[1:]]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[tool.deeptweak.rum]\nseed = 1", "[tool.deeptweak.rum]"),
        ("[tool.deeptweak]\nrun = 'x'", "run is not a table"),
        ("[tool.deeptweak.run.tweaks]\na = 1", "tweaks"),
        ("[tool.deeptweak.run]\nbudget = [", "cannot be read"),
    ],
)
def test_what_a_project_sets_wrongly_is_named_with_its_file(
    text: str,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert called("run", "--", "x", monkeypatch=monkeypatch) == 2
    message = capsys.readouterr().err
    assert str(tmp_path / "pyproject.toml") in message
    assert named in message


@pytest.mark.parametrize(
    ("missing", "extra"), [("kubernetes", "kubernetes"), ("sklearn", "studies")]
)
def test_a_part_that_is_not_installed_says_how_it_is(
    missing: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(*_: object, **__: object) -> int:
        raise ModuleNotFoundError(name=missing)

    monkeypatch.setattr(measuring, "main", without)
    assert called("doctor", monkeypatch=monkeypatch) == 2
    assert (
        f"{missing} is not installed: in the clone, pip install '.[{extra}]'."
        in capsys.readouterr().err
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list", "doctor", "restore"])
def test_what_measures_nothing_needs_no_pytest(command: str, tmp_path: Path) -> None:
    """A machine is restored and inspected with the base install alone, even during another run."""
    without = (
        "import sys; sys.modules.update(dict.fromkeys(['pytest', '_pytest', 'pytest_benchmark', "
        "'xdist']))\n"
    )
    program = f"{without}from fixtures.__main__ import main; sys.exit(main([{command!r}]))"
    environ = {**os.environ, "DEEPTWEAK_STATE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=HOUSE,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("io", "data/runs/io_readahead_2026-11-22_amd-epyc-2cpu.json"),
        ("effects", "data/runs/2026-11-21_gate_amd-epyc-2cpu.json"),
        ("overhead", "data/runs/monitoring-sampler_2026-11-22_amd-epyc-2cpu.json"),
        (
            "plot",
            "--picture=forest",
            "--output",
            "",
            "data/runs/2026-11-21_gate_amd-epyc-2cpu.json",
        ),
    ],
    ids=lambda words: words[0],
)
def test_the_base_reads_runs_without_the_libraries_of_the_extras(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    without = (
        "import sys; sys.modules.update(dict.fromkeys(['statsmodels', 'sklearn', 'pyDOE3', "
        "'simpy', 'pytest']))\n"
    )
    program = f"{without}from analysis.__main__ import main; sys.exit(main(sys.argv[1:]))"
    arguments = [word or str(tmp_path) for word in words]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_demo_replaces_no_file_of_another_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(door.DEMO_REPORT).write_text("notes")
    assert called("demo", monkeypatch=monkeypatch) == 2
    out, err = capsys.readouterr()
    assert (out, Path(door.DEMO_REPORT).read_text()) == ("", "notes")
    assert door.DEMO_REPORT in err
    assert "--output" not in err, "an option that the demo does not take"


@pytest.mark.slow
def test_the_demo_judges_a_saved_run_and_writes_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called("demo", monkeypatch=monkeypatch) == 0
    assert "5 faster" in capsys.readouterr().out
    assert (tmp_path / door.DEMO_REPORT).read_text().startswith("<!DOCTYPE html>")


REPOSITORY = "https://git.example.org/team/deeptweak"


def built_wheel(folder: Path) -> Path:
    """Build the wheel as a release job does, without a network."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install -e '.[dev]'")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(HOUSE),
    ]
    subprocess.run(build, check=True, env={**os.environ, "DEEPTWEAK_REPOSITORY_URL": REPOSITORY})
    [wheel] = folder.glob("*.whl")
    return wheel


def metadata_of(archive: zipfile.ZipFile) -> str:
    [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return archive.read(name).decode()


@pytest.mark.slow
def test_a_wheel_installs_deeptweak_alone_and_works_from_there(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(built_wheel(tmp_path)) as archive:
        assert "deeptweak/py.typed" in archive.namelist()
        assert [
            name
            for name in archive.namelist()
            if name.endswith(".data/data/share/man/man1/deeptweak.1")
        ]
        assert f"Project-URL: Issues, {REPOSITORY}/issues" in metadata_of(archive).splitlines()
        tops = {name.split("/")[0] for name in archive.namelist()}
        archive.extractall(tmp_path / "site")
    assert {name for name in tops if not name.endswith((".dist-info", ".data"))} == {"deeptweak"}
    show = [
        sys.executable,
        "-P",
        "-m",
        "deeptweak",
        "compare",
        str(tmp_path / "site/deeptweak/_house" / door.DEMO_RUN),
    ]
    done = subprocess.run(
        show,
        cwd=tmp_path / "site",
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "5 faster" in done.stdout
    notebook = f"""
import deeptweak, pathlib
runs = deeptweak.load(pathlib.Path(deeptweak.__file__).parent / "_house/{door.DEMO_RUN}")
print(len(runs.cells()), sum(deeptweak.compare(runs).verdicts() == "improved"),
      deeptweak.report(runs, "r.html").stat().st_size > 0)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", notebook],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "336 5 True\n"), done.stderr


TRAIN = (
    "import os, time\nfor step in range(40):\n    time.sleep(0.01)\n    print(f'step {step + 1}', "
    "flush=True)\n"
)


@pytest.mark.usefixtures("kernel_unchanged")
@pytest.mark.needs("session")
def test_an_installed_wheel_measures_a_script_on_its_own(tmp_path: Path) -> None:
    """Dependencies are lent from this environment, to need no network; the wheel itself is not."""
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin/python"
    wheel = built_wheel(tmp_path)
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    [site] = environment.glob("lib/python*/site-packages")
    # Of which `.pth` files, that of this repository too, are not read.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "train.py").write_text(TRAIN)
    place = Place(tmp_path)
    deeptweak = str(environment / "bin/deeptweak")
    words = [
        "run",
        "--tweaks=malloc-keep-memory",
        "--blocks=2",
        f"--storage={place.storage}",
        "--",
        str(python),
        "train.py",
    ]
    environ = {
        name: value
        for name, value in place.env().items()
        if name not in {"PYTHONPATH", door.STARTED_AS}
    }
    done = subprocess.run(
        [deeptweak, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {cell["extra_info"]["tweakset"] for cell in place.saved()["benchmarks"]} >= {
        "stock",
        "malloc-keep-memory",
    }
    assert str(HOUSE) not in done.stdout + done.stderr
    answer = [deeptweak, "compare", str(place.files()[-1])]
    assert subprocess.run(answer, cwd=tmp_path, env=environ, check=False).returncode == 0
