"""One file per command of `python -m analysis power`; the file's name is the command's."""
