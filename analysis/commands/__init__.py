"""One file per command of `python -m analysis`; the file's name is the command's."""
