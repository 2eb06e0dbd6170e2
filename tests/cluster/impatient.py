"""Plug-in for sessions under test (`-p tests.cluster.impatient`): for an API server that is away they wait seconds, not a minute."""

from __future__ import annotations

from fixtures.kubernetes.client import Cluster

Cluster.patience_s = 10.0
