"""The steps of `python -m analysis queue`, one file each."""
