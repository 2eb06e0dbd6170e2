"""Run a composite GitHub Action as the runner does, with its `run` blocks in real bash.

Of `uses` steps, only the inputs are recorded. Supported are `${{ }}` with contexts, `==`, `&&`,
`||`, `always()`; anything else fails the test that meets it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}")
CONTEXT = re.compile(r"[a-z][\w.-]*")


@dataclass
class Job:
    """Outcome: `log` as the runner shows it, `used` the inputs of each used action by step name."""

    contexts: dict[str, str]
    log: str = ""
    exit_code: int = 0
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def value(self, expression: str) -> str:
        """Answer an expression, as the text that it becomes."""
        expression = expression.strip()
        if "||" in expression:
            return next(
                (found for part in expression.split("||") if (found := self.value(part))), ""
            )
        if "&&" in expression:
            values = [self.value(part) for part in expression.split("&&")]
            return values[-1] if all(values) else ""
        if "==" in expression:
            one, other = expression.split("==")
            return "true" if self.value(one) == self.value(other) else ""
        if expression in {"always()", "success()"}:
            return "" if self.exit_code and expression == "success()" else "true"
        if expression[:1] == expression[-1:] == "'":
            return expression[1:-1]
        assert CONTEXT.fullmatch(expression), f"not understood: {expression}"
        return self.contexts.get(expression, "")

    def filled(self, text: str) -> str:
        return TEMPLATE.sub(lambda found: self.value(found[1]), text)


def run_action(
    action: Path,
    workspace: Path,
    inputs: Mapping[str, str],
    github: Mapping[str, str],
    environ: Mapping[str, str],
) -> Job:
    temporary = workspace.parent / "runner-temp"
    temporary.mkdir(exist_ok=True)
    # Every value as it is written: `true` is a text to the runner, not Python's True.
    metadata = yaml.load(action.read_text(encoding="utf-8"), yaml.BaseLoader)  # noqa: S506 only str
    assert inputs.keys() <= metadata["inputs"].keys()
    job = Job(
        {f"github.{name}": value for name, value in github.items()}
        | {"github.action_path": str(action.parent)}
    )
    for name, one in metadata["inputs"].items():
        assert name in inputs or not one.get("required"), f"{name} is required"
        job.contexts[f"inputs.{name}"] = inputs.get(name, job.filled(one.get("default", "")))
    base = {
        "PATH": os.environ["PATH"],
        "HOME": str(workspace.parent),
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_STEP_SUMMARY": str(temporary / "summary"),
        "RUNNER_TEMP": str(temporary),
        **environ,
    }
    for index, step in enumerate(metadata["runs"]["steps"]):
        _run_step(job, step, temporary / f"step-{index}", workspace, base)
    summary = temporary / "summary"
    job.summary = summary.read_text(encoding="utf-8") if summary.exists() else ""
    job.outputs = {name: job.filled(one["value"]) for name, one in metadata["outputs"].items()}
    return job


def _run_step(
    job: Job, step: dict[str, Any], files: Path, workspace: Path, base: Mapping[str, str]
) -> None:
    condition = step.get("if", "success()")
    if not job.value(condition if "always()" in condition else f"success() && {condition}"):
        return
    job.ran.append(step["name"])
    if "uses" in step:
        job.used[step["name"]] = {name: job.filled(value) for name, value in step["with"].items()}
        return
    assert step["shell"] == "bash"
    assert "${{" not in step["run"], "a template in a script lets its value be run; pass it by env"
    script, output = files.with_suffix(".sh"), files.with_suffix(".output")
    script.write_text(step["run"], encoding="utf-8")
    output.touch()
    environ = {**base, "GITHUB_OUTPUT": str(output)} | {
        name: job.filled(value) for name, value in step.get("env", {}).items()
    }
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
    done = subprocess.run(
        command,
        cwd=workspace,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    job.log += done.stdout
    job.exit_code = done.returncode or job.exit_code
    if "id" in step:
        job.contexts[f"steps.{step['id']}.outcome"] = "failure" if done.returncode else "success"
        for line in output.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            job.contexts[f"steps.{step['id']}.outputs.{name}"] = value
