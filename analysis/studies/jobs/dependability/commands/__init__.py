"""The steps of `python -m analysis depend`, a file each."""
