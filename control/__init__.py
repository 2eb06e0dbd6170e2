"""Functions that both sides share, and decisions during a run: pure, without files or clock."""
