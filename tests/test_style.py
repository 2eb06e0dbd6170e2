"""The house's style, checked as tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


def _passes(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


@pytest.mark.needs("ruff")
def test_ruff_finds_nothing() -> None:
    """All rules, but for the exceptions that pyproject.toml gives a reason for."""
    _passes(sys.executable, "-m", "ruff", "check", ".")


@pytest.mark.needs("ruff")
def test_the_code_is_formatted() -> None:
    """One format, nobody's taste."""
    _passes(sys.executable, "-m", "ruff", "format", "--check", ".")


@pytest.mark.needs("mypy")
def test_types_hold() -> None:
    """Strict mypy over everything, tests included."""
    _passes(sys.executable, "-m", "mypy")


@pytest.mark.needs("go")
def test_workflows_are_valid() -> None:
    """GitHub Actions files, shell parts included."""
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / ".github/workflows").glob("*.yml"))
    assert files
    _passes("go", "run", ACTIONLINT, *files)


def test_every_suppression_names_its_rule() -> None:
    """A bare `noqa` or `type: ignore` hides more than it was meant to."""
    bare = re.compile(r"#\s*(noqa|type:\s*ignore)(?![:\[])")
    found = [
        f"{p}:{n}" for p in sorted(ROOT.glob("[!.]*/**/*.py")) for n, line in enumerate(p.read_text().splitlines(), 1) if bare.search(line)
    ]
    assert not [f for f in found if Path(f.split(":")[0]).name != Path(__file__).name]
