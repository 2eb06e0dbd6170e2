"""One file per step of `python -m analysis predict`."""
