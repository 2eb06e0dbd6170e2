"""Fixtures for tests of monitors."""

from __future__ import annotations

from tests.monitors.made_up import made

__all__ = ["made"]  # a fixture
