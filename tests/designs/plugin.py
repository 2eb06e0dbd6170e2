"""Plug-in for sessions under test (`-p tests.designs.plugin`): makes the design `chain` known."""

from __future__ import annotations

import sys

from fixtures import designs
from tests.designs import chain

_names = designs.names
sys.modules["fixtures.designs.chain"] = chain
designs.names = lambda: (*_names(), "chain")
