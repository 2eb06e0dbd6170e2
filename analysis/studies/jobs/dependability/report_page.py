"""What faults cost, as text of at most 100 columns and as JSON."""

from __future__ import annotations
