"""One file per step of `python -m analysis jobs`; the file's name is the step's."""
