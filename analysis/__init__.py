"""The read side: saved runs in, verdicts out. It touches no machine and imports nothing of the run side."""
