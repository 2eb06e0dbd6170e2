"""The words of queueing. Times in seconds, rates per second; `scv` is a squared coefficient of variation, variance over mean squared."""

from __future__ import annotations
