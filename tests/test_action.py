"""The GitHub Action that gates: its own scripts run in bash, on made-up runs, with a stand-in for GitHub's CLI."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.composite import Job, run_action
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from collections.abc import Callable

HOUSE = Path(__file__).parents[1]
ACTION = HOUSE / ".github/actions/gate/action.yml"
WORKFLOW = HOUSE / ".github/workflows/benchmarks.yml"
SLOWER = Arm("slower", -0.2, {"vm.swappiness": "1"})
MADE = Made(arms=(STOCK, AGAIN, SLOWER), blocks=8)
MARKER = "<!-- deeptweak-gate -->"

# GitHub's CLI as far as the action uses it: lists comments from a file, notes what was sent, refuses what it is told to.
GH = '''\
#!{python}
"""A stand-in for gh, not the real one."""
import json, os, pathlib, sys
folder, given = pathlib.Path({folder!r}), sys.argv[1:]
method = given[given.index("--method") + 1] if "--method" in given else "GET"
path = next(one for one in given if one.startswith("repos/"))
body = next((pathlib.Path(one.removeprefix("body=@")).read_text() for one in given if one.startswith("body=@")), None)
with (folder / "calls").open("a") as file:
    file.write(json.dumps([method, path, body, os.environ["GH_TOKEN"]]) + "\\n")
if method in {refuses!r}:
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
if method == "GET":
    print((folder / "comments.json").read_text())
'''


class Site:
    """A checkout on a runner, and GitHub as far as the stand-in knows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "project"
        self.workspace.mkdir()
        # The user's project may have such a package too; it is not the one to run.
        (self.workspace / "analysis").mkdir()
        (self.workspace / "analysis/__init__.py").write_text("raise SystemExit('the wrong analysis')")
        self.github = {"token": "the-jobs-own", "event_name": "push"}

    def has(self, made: Made = MADE, name: str = "run.json") -> None:
        """Put a saved run into the checkout."""
        saved_file(self.workspace, made, name)

    def on_pull_request(self, comments: str = "[]", refuses: tuple[str, ...] = ()) -> None:
        """Make the event a pull request's, with these comments."""
        self.github |= {"event_name": "pull_request", "event.pull_request.number": "7"}
        (self.folder / "bin").mkdir()
        (self.folder / "comments.json").write_text(comments)
        gh = self.folder / "bin/gh"
        gh.write_text(GH.format(python=sys.executable, folder=str(self.folder), refuses=refuses))
        gh.chmod(0o755)

    def gate(self, baseline: str = "run.json:stock", candidate: str = "run.json:stock-again", **inputs: str) -> Job:
        """Run the action; by default with a limit of 5 % and no report."""
        given = {"baseline": baseline, "candidate": candidate, "max-regression": "5%", "report": "false", "python": sys.executable}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        return run_action(ACTION, self.workspace, given, self.github, {"PATH": path})

    def calls(self) -> list[list[Any]]:
        """What was asked of GitHub: method, path, body, token."""
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def page(job: Job) -> str:
    return (Path(job.outputs["folder"]) / "gate.md").read_text(encoding="utf-8")


def comment(number: int, body: str, kind: str = "Bot") -> dict[str, Any]:
    """A comment in the form of GitHub's REST API (issues/comments), as far as the action reads it."""
    return {"id": number, "body": body, "user": {"login": "someone", "type": kind}}


def test_green(site: Site) -> None:
    """A copy of stock is no slower than stock."""
    site.has()
    job = site.gate()
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (0, "pass", "0")
    assert "## ✅ Pass" in job.summary
    assert "::notice title=Gate::Pass" in job.log


def test_red(site: Site) -> None:
    """A fifth slower at a limit of 5 %: the job fails, and says so in each of the four places."""
    site.has()
    job = site.gate(candidate="run.json:slower")
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (1, "regression", "1")
    assert "## ❌ Regression" in job.summary
    assert "::error title=Regression%3A cnn_train%2C slower%2C" in job.log
    suite = ET.parse(Path(job.outputs["folder"]) / "gate.junit.xml").find("testsuite")  # noqa: S314  # our own
    assert suite is not None
    assert suite.get("failures") == "1"
    assert page(job) in job.summary


def test_undecided(site: Site) -> None:
    """Two blocks show nothing, and that is no pass."""
    site.has(Made(blocks=2))
    job = site.gate()
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (3, "undecided", "3")
    assert "## ❔ Undecided" in job.summary


def test_a_damaged_file_is_refused_and_named(site: Site) -> None:
    (site.workspace / "run.json").write_text('{"benchmarks": [')
    job = site.gate(baseline="run.json", candidate="run.json")
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (2, "refused", "2")
    assert "Refused: nothing was judged, which is no pass." in job.summary
    assert "    error: run.json: not JSON at line 1" in job.summary
    assert "::error title=Gate refused::error: run.json: not JSON" in job.log
    assert page(job).startswith(MARKER)


def test_a_crash_is_no_regression(site: Site) -> None:
    """Python answers 1 for a traceback too; nothing was judged, and nobody should look for a slow tweak."""
    crash = site.folder / "python-that-crashes"
    crash.write_text("#!/bin/sh\necho Traceback >&2\nexit 1\n")
    crash.chmod(0o755)
    job = site.gate(python=str(crash))
    assert (job.exit_code, job.outputs["ruling"], job.outputs["exit-code"]) == (2, "refused", "2")


def test_all_is_kept_before_the_job_fails(site: Site) -> None:
    site.has()
    job = site.gate(candidate="run.json:slower")
    assert job.ran.index("Keep what was written") < job.ran.index("Verdict")
    assert job.used["Keep what was written"] == {"name": "deeptweak-gate", "path": job.outputs["folder"], "overwrite": "true"}


def test_a_report_of_the_runs_is_written(site: Site) -> None:
    """Of one file named twice, once; with all its tweak sets, whichever is judged."""
    site.has()
    job = site.gate(report="true")
    html = Path(job.outputs["report"])
    assert html.parent == Path(job.outputs["folder"])
    assert "slower" in html.read_text(encoding="utf-8")


def test_a_report_that_fails_changes_no_verdict(site: Site) -> None:
    site.has()
    (site.workspace / "baselines").mkdir()
    for seed in range(11):  # more than a report holds
        site.has(Made(arms=(STOCK, AGAIN), blocks=4, seed=seed), f"baselines/{seed}.json")
    job = site.gate(baseline="baselines/", report="true")
    assert "::warning title=Gate::The report could not be written" in job.log
    assert job.outputs["report"] == ""
    assert job.exit_code == int(job.outputs["exit-code"])


def test_the_first_comment_is_posted(site: Site) -> None:
    site.has()
    site.on_pull_request(json.dumps([comment(1, "Nice work!", "User"), comment(2, f"I quote {MARKER}")]))
    job = site.gate()
    listed, posted = site.calls()
    assert listed[:2] == ["GET", "repos/owner/project/issues/7/comments?per_page=100"]
    assert posted == ["POST", "repos/owner/project/issues/7/comments", page(job), "the-jobs-own"]


def test_the_second_updates_the_first(site: Site) -> None:
    """One comment, not one for each push; `gh` may write two pages of comments as two lists."""
    site.has()
    pages = [[comment(1, "Nice work!", "User")], [comment(41, f"{MARKER}\r\n\n## ✅ Pass"), comment(42, f"{MARKER}\n")]]
    site.on_pull_request("".join(map(json.dumps, pages)))
    job = site.gate(candidate="run.json:slower")
    assert site.calls()[1:] == [["PATCH", "repos/owner/project/issues/comments/41", page(job), "the-jobs-own"]]


def test_a_comment_that_a_person_wrote_is_left_alone(site: Site) -> None:
    """Who can edit the comment could edit the verdict."""
    site.has()
    site.on_pull_request(json.dumps([comment(1, f"{MARKER}\n\n## ✅ Pass", "User")]))
    site.gate()
    assert [call[0] for call in site.calls()] == ["GET", "POST"]


def test_a_refused_gate_updates_the_comment_too(site: Site) -> None:
    """Else the last pass would stand there."""
    site.on_pull_request(json.dumps([comment(5, f"{MARKER}\n\n## ✅ Pass")]))
    job = site.gate(baseline="nothing.json")
    assert site.calls()[1][:2] == ["PATCH", "repos/owner/project/issues/comments/5"]
    assert "Refused" in site.calls()[1][2]
    assert job.exit_code == 2


def test_several_gates_keep_a_comment_each(site: Site) -> None:
    site.has()
    site.on_pull_request(json.dumps([comment(1, MARKER), comment(2, "<!-- deeptweak-gate gpu -->")]))
    job = site.gate(key="gpu")
    assert site.calls()[1][:2] == ["PATCH", "repos/owner/project/issues/comments/2"]
    assert job.used["Keep what was written"]["name"] == "deeptweak-gate-gpu"
    refused = site.gate(baseline="nothing.json", key="gpu")
    assert page(refused).startswith("<!-- deeptweak-gate gpu -->\n")


@pytest.mark.parametrize(("refuses", "said"), [(("POST",), "the token may not write one."), (("GET",), "could not be read.")])
def test_a_fork_without_permission_gets_a_notice_and_the_same_verdict(site: Site, refuses: tuple[str, ...], said: str) -> None:
    site.has()
    site.on_pull_request(refuses=refuses)
    job = site.gate(candidate="run.json:slower")
    assert "::notice title=Gate::No comment on the pull request:" in job.log
    assert said in job.log
    assert job.exit_code == 1


def test_a_runner_without_the_cli_gets_a_notice(site: Site) -> None:
    site.has()
    site.on_pull_request()
    (site.folder / "bin/gh").unlink()
    job = site.gate()
    assert "this runner has no GitHub CLI (gh)." in job.log
    assert job.exit_code == 0


@pytest.mark.parametrize("inputs", [{"comment": "false"}, {}])
def test_no_comment_where_none_was_asked_for_or_there_is_no_pull_request(site: Site, inputs: dict[str, str]) -> None:
    site.has()
    site.on_pull_request()
    if not inputs:
        site.github["event_name"] = "push"
    site.gate(**inputs)
    assert site.calls() == []


def test_the_baseline_moves_after_a_pass_and_only_then(site: Site) -> None:
    site.has()
    baseline = site.folder / "baseline.json"
    red = site.gate(candidate="run.json:slower", promote_to=str(baseline))
    assert "Not promoted" in red.log
    held = site.gate(promote_to=str(baseline))
    assert "it holds slower under cnn_train, which was not judged" in held.log
    assert not baseline.exists()
    site.has(Made(arms=(STOCK, AGAIN), blocks=8))
    site.gate(promote_to=str(baseline))
    assert baseline.read_bytes() == (site.workspace / "run.json").read_bytes()


def test_limits_and_relative_to_reach_the_gate(site: Site) -> None:
    """At a limit of 40 % a fifth is no regression; a run of another day is judged by what its tweak sets gain over its own stock."""
    site.has()
    site.has(Made(arms=(STOCK, AGAIN, SLOWER), blocks=8, seed=2, base_s=0.060), "monday.json")
    (site.workspace / "limits.yml").write_text("max_regression: 40%\ntweaksets: [slower]\n")
    job = site.gate("run.json", "monday.json", max_regression="", limits="limits.yml", relative_to="stock")
    assert job.outputs["ruling"] == "pass"
    assert "relative to stock" in job.summary


@pytest.mark.parametrize("name", ['"; touch seen; "', "$(touch seen)", "`touch seen`", "--junit=seen", "a\nb"])
def test_inputs_are_words_and_never_commands(site: Site, name: str) -> None:
    site.has()
    job = site.gate(candidate=name, baseline=name)
    assert not (site.workspace / "seen").exists()
    assert job.outputs["ruling"] == "refused"
    assert job.exit_code == 2


def test_a_key_that_could_end_the_marker_is_refused(site: Site) -> None:
    site.has()
    job = site.gate(key="x --> y")
    assert "key: letters, digits, _ and . alone" in job.log
    assert job.exit_code == 2


def test_without_an_interpreter_the_action_makes_itself_one(site: Site) -> None:
    """Shown with a stand-in for python3, whose venv notes what pip is asked for and otherwise is this interpreter."""
    site.has()
    (site.folder / "bin").mkdir()
    python3 = site.folder / "bin/python3"
    python3.write_text(f"""#!/bin/bash
mkdir -p "$3/bin"
printf '%s\\n' '#!/bin/bash' '[[ "$2" != pip ]] || exec echo "$@" >> "{site.folder}/pip"' 'exec "{sys.executable}" "$@"' > "$3/bin/python"
chmod +x "$3/bin/python"
""")
    python3.chmod(0o755)
    assert site.gate(python="").outputs["ruling"] == "pass"
    assert (site.folder / "pip").read_text() == f"-m pip install --quiet {HOUSE}\n"


def the_workflows(name: str) -> str:
    """A script of the example workflow, by its step's name."""
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["bench"]["steps"]
    return str(next(step["run"] for step in steps if step.get("name") == name))


@pytest.fixture
def first_run(tmp_path: Path) -> Callable[[str, str], subprocess.CompletedProcess[str]]:
    """Look for a baseline on a machine where a run has just been saved."""
    saved = tmp_path / ".benchmarks/Linux"
    saved.mkdir(parents=True)
    saved_file(saved, Made(), "0001_ci.json")
    script = the_workflows("Find this machine's baseline")

    def look(first: str, matrix: str) -> subprocess.CompletedProcess[str]:
        files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GITHUB_REPOSITORY": "owner/project", "FIRST": first, "MATRIX": matrix}
        command = ["bash", "-e", "-c", script]
        return subprocess.run(command, cwd=tmp_path, env=environ | files, capture_output=True, text=True, check=False)

    return look


def test_a_machine_without_a_baseline_does_not_pass(
    first_run: Callable[[str, str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = first_run("false", "success")
    assert done.returncode == 3
    assert "::error title=No baseline::" in done.stdout
    assert "has no baseline, so nothing was judged" in (tmp_path / "summary").read_text()


def test_a_person_can_take_the_first(first_run: Callable[[str, str], subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    """It is not judged by itself: no path is answered, so that the gate does not run."""
    done = first_run("true", "success")
    assert done.returncode == 0
    assert "::warning title=First baseline::" in done.stdout
    assert not (tmp_path / "output").exists()
    (baseline,) = tmp_path.glob("deeptweak-baselines/owner/project/*/baseline.json")
    assert first_run("true", "success").returncode == 0
    assert (tmp_path / "output").read_text() == f"path={baseline}\n"


def test_a_broken_run_is_no_first_baseline(first_run: Callable[[str, str], subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    assert first_run("true", "failure").returncode == 3
    assert not list(tmp_path.glob("deeptweak-baselines/**/baseline.json"))
