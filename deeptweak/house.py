"""Find and import the other packages of DeepTweak."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

# Installed, the house lies below this package, so that its rooms' names are nobody's in
# site-packages; else it is this repository.
INSTALLED = Path(__file__).with_name("_house")
HOUSE = INSTALLED if INSTALLED.is_dir() else Path(__file__).parents[1]
ROOMS = ("analysis", "control")  # of the read side


@contextlib.contextmanager
def house_first() -> Iterator[None]:
    """Put DeepTweak's packages first during imports; only imported ones remain afterwards.

    Raises: ImportError, where other modules have the names of these packages.
    """
    for name in ROOMS:
        place = getattr(sys.modules.get(name), "__file__", None)
        if place and not Path(place).is_relative_to(HOUSE):
            raise ImportError(
                f"{place} is imported as {name!r}, which is a package of DeepTweak: load runs in "
                "a process without it."
            )
    sys.path.insert(0, str(HOUSE))
    try:
        yield
    finally:
        sys.path.remove(str(HOUSE))
