from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analysis.report.pages import page, read, two_pictures

if TYPE_CHECKING:
    from analysis.report.page import HtmlPage


@pytest.fixture
def few_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw two small stand-ins in place of the real pictures."""
    monkeypatch.setattr("analysis.report.page.fitting", two_pictures)


@pytest.fixture(scope="module")
def everything() -> HtmlPage:
    """The report on a run with every verdict and a setting that was not in force."""
    return page(read())
