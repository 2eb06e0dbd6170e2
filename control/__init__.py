"""Pure functions that both sides share, and decisions during a run; no files, no clock."""
