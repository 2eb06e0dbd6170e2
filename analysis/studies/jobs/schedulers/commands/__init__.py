"""One file per step of `python -m analysis schedule`; the file's name is the step's."""
