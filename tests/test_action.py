"""The GitHub Action that gates: its own scripts in bash, made-up runs, a stand-in for `gh`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from analysis.load import load
from tests.composite import Job, run_action
from tests.programs import PYTHON
from tests.stored import stored
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

HOUSE = Path(__file__).parents[1]
ACTION = HOUSE / ".github/actions/gate/action.yml"
WORKFLOW = HOUSE / ".github/workflows/benchmarks.yml"
SLOWER = Arm("slower", -0.2, {"vm.swappiness": "1"})
MADE = Made(arms=(STOCK, AGAIN, SLOWER), blocks=8)
MARKER = "<!-- deeptweak-gate -->"

# GitHub's CLI as far as the action uses it: lists comments from a file, notes what was sent,
# refuses what it is told to.
GH = '''\
{python}"""A stand-in for gh, not the real one."""
import json, os, pathlib, sys
folder, given = pathlib.Path({folder!r}), sys.argv[1:]
method = given[given.index("--method") + 1] if "--method" in given else "GET"
path = next(one for one in given if one.startswith("repos/"))
files = (one.removeprefix("body=@") for one in given if one.startswith("body=@"))
body = next((pathlib.Path(one).read_text() for one in files), None)
with (folder / "calls").open("a") as file:
    file.write(json.dumps([method, path, body, os.environ["GH_TOKEN"]]) + "\\n")
if method in {refuses!r}:
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
if method == "GET":
    print((folder / "comments.json").read_text())
'''

# An interpreter whose gate has judged already: a page, and an exit code for each candidate; it
# notes the words it was given.
JUDGED = """\
#!/bin/bash
[[ "$*" == "-P -m analysis gate"* ]] || exec "{python}" "$@"
printf '%s\\0' "$@" > "{folder}/words"
for word in "$@"; do
  case "$word" in
    --comment=*) page="${{word#*=}}" ;;
    --comment-key=*) key="${{word#*=}}" ;;
  esac
done
printf '<!-- deeptweak-gate%s -->\\n\\nmade up\\n' "${{key:+ $key}}" > "$page"
[[ "${{@: -1}}" != *:slower ]]
"""


class Site:
    """A checkout on a runner, and GitHub as far as the stand-in knows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "project"
        self.workspace.mkdir()
        # The user's project may have such a package too; it is not the one to run.
        (self.workspace / "analysis").mkdir()
        (self.workspace / "analysis/__init__.py").write_text(
            "raise SystemExit('the wrong analysis')"
        )
        self.github = {"token": "the-jobs-own", "event_name": "push"}

    def has(self, made: Made = MADE, name: str = "run.json") -> None:
        saved_file(self.workspace, made, name)

    def on_pull_request(self, comments: str = "[]", refuses: tuple[str, ...] = ()) -> None:
        """Make the event a pull request's, with these comments."""
        self.github |= {"event_name": "pull_request", "event.pull_request.number": "7"}
        (self.folder / "bin").mkdir()
        (self.folder / "comments.json").write_text(comments)
        gh = self.folder / "bin/gh"
        gh.write_text(GH.format(python=PYTHON, folder=str(self.folder), refuses=refuses))
        gh.chmod(0o755)

    def gate(
        self,
        baseline: str = "run.json:stock",
        candidate: str = "run.json:stock-again",
        **inputs: str,
    ) -> Job:
        """Run the action; by default with a limit of 5 % and no report."""
        given = {
            "baseline": baseline,
            "candidate": candidate,
            "max-regression": "5%",
            "report": "false",
            "python": sys.executable,
        }
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        return run_action(ACTION, self.workspace, given, self.github, {"PATH": path})

    def judged(self, candidate: str = "run.json:stock-again", **inputs: str) -> Job:
        """Run the action with a gate that has judged: `slower` is a regression, all else passes."""
        python = self.folder / "judged"
        python.write_text(JUDGED.format(python=sys.executable, folder=self.folder))
        python.chmod(0o755)
        return self.gate(candidate=candidate, python=str(python), **inputs)

    def words(self) -> list[str]:
        """Return the gate's arguments."""
        return (self.folder / "words").read_text().split("\0")[4:-1]

    def calls(self) -> list[list[Any]]:
        """Return requests to GitHub: method, path, body, token."""
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def page(job: Job) -> str:
    return (Path(job.outputs["folder"]) / "gate.md").read_text(encoding="utf-8")


def comment(number: int, body: str, kind: str = "Bot") -> dict[str, Any]:
    """Return a comment as in GitHub's REST API (issues/comments), as far as the action reads it."""
    return {"id": number, "body": body, "user": {"login": "someone", "type": kind}}


@pytest.mark.parametrize(
    ("made", "code", "ruling", "head"),
    [(MADE, 0, "pass", "✅ Pass"), (Made(blocks=2), 3, "undecided", "❔ Can't tell")],
)
def test_green_or_undecided(site: Site, made: Made, code: int, ruling: str, head: str) -> None:
    site.has(made)
    job = site.gate()
    assert (job.exit_code, job.outputs["ruling"]) == (code, ruling)
    assert job.outputs["exit-code"] == str(code)
    assert f"## {head}" in job.summary


def test_red(site: Site) -> None:
    """A fifth slower at a limit of 5 %: the job fails, and says so in each of the four places."""
    site.has()
    job = site.gate(candidate="run.json:slower")
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (
        1,
        "regression",
        "1",
    )
    assert "## ❌ Regression" in job.summary
    assert "title=Regression%3A cnn_train%2C slower%2C" in job.log
    suite = ET.parse(Path(job.outputs["folder"]) / "gate.junit.xml").find("testsuite")  # noqa: S314
    assert suite is not None
    assert suite.get("failures") == "1"
    assert page(job) in job.summary


def test_a_damaged_file_is_refused_and_named(site: Site) -> None:
    (site.workspace / "run.json").write_text('{"benchmarks": [')
    job = site.gate(baseline="run.json", candidate="run.json")
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (2, "refused", "2")
    assert "## ⛔ Refused" in job.summary
    assert "    error: run.json: " in job.summary
    assert "title=Gate refused::error: run.json: " in job.log
    assert page(job).startswith(MARKER)


def test_a_crash_is_no_regression(site: Site) -> None:
    """Python exits with 1 on a traceback too; nothing was judged, so no tweak is to blame."""
    job = site.gate(python="/bin/false")
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (2, "refused", "2")


def test_all_is_kept_before_the_job_fails(site: Site) -> None:
    job = site.judged("run.json:slower")
    kept = "Keep what was written"
    assert (job.exit_code, job.ran.index(kept) < job.ran.index("Verdict")) == (1, True)
    assert job.used[kept] == {
        "name": "deeptweak-gate",
        "path": job.outputs["folder"],
        "overwrite": "true",
    }


def test_the_first_comment_is_posted(site: Site) -> None:
    site.on_pull_request(
        json.dumps([comment(1, "Nice work!", "User"), comment(2, f"I quote {MARKER}")])
    )
    job = site.judged()
    listed, posted = site.calls()
    assert listed[:2] == ["GET", "repos/owner/project/issues/7/comments?per_page=100"]
    assert posted == ["POST", "repos/owner/project/issues/7/comments", page(job), "the-jobs-own"]


def test_the_second_updates_the_first(site: Site) -> None:
    """One comment, not one for each push; `gh` may write two pages of comments as two lists."""
    pages = [
        [comment(1, "Nice work!", "User")],
        [comment(41, f"{MARKER}\r\n\n## ✅ Pass"), comment(42, f"{MARKER}\n")],
    ]
    site.on_pull_request("".join(map(json.dumps, pages)))
    job = site.judged("run.json:slower")
    assert site.calls()[1:] == [
        ["PATCH", "repos/owner/project/issues/comments/41", page(job), "the-jobs-own"]
    ]


def test_a_refused_gate_updates_the_comment_too(site: Site) -> None:
    site.on_pull_request(json.dumps([comment(5, "<!-- deeptweak-gate gpu -->\n\n## ✅ Pass")]))
    job = site.gate(baseline="nothing.json", key="gpu")
    assert site.calls()[1][:2] == ["PATCH", "repos/owner/project/issues/comments/5"]
    assert "Refused" in site.calls()[1][2]
    assert job.exit_code == 2


def test_several_gates_keep_a_comment_each(site: Site) -> None:
    site.on_pull_request(
        json.dumps([comment(1, MARKER), comment(2, "<!-- deeptweak-gate gpu -->")])
    )
    job = site.judged(key="gpu")
    assert site.calls()[1][:2] == ["PATCH", "repos/owner/project/issues/comments/2"]
    assert [used["name"] for used in job.used.values()] == ["deeptweak-gate-gpu"]


@pytest.mark.parametrize(
    ("refuses", "said"),
    [(("POST",), "may not write"), (("GET",), "not be read"), (None, "no GitHub CLI")],
)
def test_a_notice_replaces_a_comment_that_cannot_be_written(
    site: Site, refuses: tuple[str, ...] | None, said: str
) -> None:
    site.on_pull_request(refuses=refuses or ())
    if refuses is None:
        (site.folder / "bin/gh").unlink()
    job = site.judged("run.json:slower")
    (notice,) = (line for line in job.log.splitlines() if line.startswith("::notice title=Gate::"))
    assert said in notice
    assert job.exit_code == 1


@pytest.mark.parametrize("inputs", [{"comment": "false"}, {}])
def test_no_comment_is_written_without_a_request_or_pull_request(
    site: Site, inputs: dict[str, str]
) -> None:
    site.on_pull_request()
    if not inputs:
        site.github["event_name"] = "push"
    site.judged(**inputs)
    assert site.calls() == []


@pytest.mark.parametrize(
    "name", ['"; touch seen; "', "$(touch seen)", "`touch seen`", "--junit=seen", "a\nb"]
)
def test_inputs_are_words_and_never_commands(site: Site, name: str) -> None:
    job = site.judged(name, baseline=name, limits=name)
    assert not (site.workspace / "seen").exists()
    assert job.outputs["ruling"] == "pass"
    assert [word for word in site.words() if word.removeprefix("--limits=") == name] == [
        f"--limits={name}",
        name,
        name,
    ]


def test_a_key_that_could_end_the_marker_is_refused(site: Site) -> None:
    site.has()
    job = site.gate(key="x --> y")
    assert "key: letters" in job.log
    assert job.exit_code == 2


def the_workflows(name: str) -> str:
    """A script of the example workflow, by its step's name."""
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["bench"]["steps"]
    return str(next(step["run"] for step in steps if step.get("name") == name))


@pytest.fixture
def first_run(tmp_path: Path) -> Callable[[str, str], subprocess.CompletedProcess[str]]:
    """Look for a baseline on a machine where a run has just been saved."""
    saved = tmp_path / ".benchmarks/Linux"
    saved.mkdir(parents=True)
    stored(saved_run(), saved, "ci")
    script = the_workflows("Find this machine's baseline")

    def look(first: str, matrix: str) -> subprocess.CompletedProcess[str]:
        files = {
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        }
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "GITHUB_REPOSITORY": "owner/project",
            "FIRST": first,
            "MATRIX": matrix,
        }
        command = ["bash", "-e", "-c", script]
        return subprocess.run(
            command, cwd=tmp_path, env=environ | files, capture_output=True, text=True, check=False
        )

    return look


def test_a_machine_without_a_baseline_does_not_pass(
    first_run: Callable[[str, str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = first_run("false", "success")
    assert done.returncode == 3
    assert "::error title=No baseline::" in done.stdout
    assert "no baseline" in (tmp_path / "summary").read_text()


def test_a_person_can_take_the_first(
    first_run: Callable[[str, str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = first_run("true", "success")
    assert done.returncode == 0
    assert "::warning title=First baseline::" in done.stdout
    assert not (tmp_path / "output").exists()
    (baseline,) = tmp_path.glob("deeptweak-baselines/owner/project/*/baseline.json")
    assert load(baseline).run_id == "made-up-1"
    assert first_run("true", "success").returncode == 0
    assert (tmp_path / "output").read_text() == f"path={baseline}\n"
