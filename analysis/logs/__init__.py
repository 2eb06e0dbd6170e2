"""Readers of what other programs left: one file per program; what could not be read is said line by line, and never taken for 0."""
