"""Statistics for verdicts, plans and descriptions: arrays in, numbers out; no files or tables."""
