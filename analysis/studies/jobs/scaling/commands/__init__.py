"""One file per step of `python -m analysis scale`; the file's name is the step's."""
