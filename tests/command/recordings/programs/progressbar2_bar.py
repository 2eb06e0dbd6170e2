"""A loop under a bar of progressbar2 (progressbar2 4.6.0): `python progressbar2_bar.py SLEEP_S`."""

from __future__ import annotations

import sys

import progressbar
from clock import Clock

clock = Clock(float(sys.argv[1]))
for _ in progressbar.progressbar(range(150)):
    clock.sleep()
    clock.step()
clock.tell()
