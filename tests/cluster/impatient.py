"""Plug-in for tested sessions (`-p tests.cluster.impatient`): wait seconds for a lost server."""

from __future__ import annotations

from fixtures.kubernetes.client import Cluster

Cluster.patience_s = 10.0
