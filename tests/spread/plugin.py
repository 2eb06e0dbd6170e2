"""Plug-in for sessions (`-p tests.spread.plugin`): the target `fleet`, with independent nodes."""

from __future__ import annotations

import sys

from fixtures import targets
from fixtures.kernel import lock
from tests.spread import fleet

_names = targets.names
sys.modules["fixtures.targets.fleet"] = fleet
targets.names = lambda: (*_names(), "fleet")
lock.machine_held = lock.held  # nothing of this machine is changed: the lock of each node is enough
