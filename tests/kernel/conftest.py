"""What the tests of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import fake_root


@pytest.fixture
def fake(tmp_path: Path) -> fake_root.FakeRoot:
    """A small machine made of files, and a folder for its journal."""
    return fake_root.make(tmp_path)
