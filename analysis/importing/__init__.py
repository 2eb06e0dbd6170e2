"""Runs of other tools made into one of ours: what was kept is kept, what was never known stays unknown."""
