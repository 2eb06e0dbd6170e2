"""The words of prediction: what was measured under which factors, how well a model tells what it never saw, and what it says of a point."""

from __future__ import annotations
