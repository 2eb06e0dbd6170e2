from __future__ import annotations

import pytest

from tests.analysis.report.pages import two_pictures


@pytest.fixture
def few_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw two small stand-ins in place of the real pictures."""
    monkeypatch.setattr("analysis.report.pictures.pictures", two_pictures)
