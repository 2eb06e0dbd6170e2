"""Opening what DLIO wrote: JSON in which a figure that could not be taken stands as a bare `NaN`, and YAML as hydra composed it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from analysis.formats.fields import Fields
from analysis.opening import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

DAMAGED = "it was damaged or cut short: run DLIO again, or take the folder from its source"


def json_of(path: Path) -> Fields:
    """Read an object; `NaN` and `Infinity`, which are not JSON and no measurement, are read as absent.

    Raises: Unreadable.
    """
    try:
        return Fields(json.loads(read_whole(path), parse_constant=lambda _word: None), str(path))
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: not a text file; {DAMAGED}.") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"{path}: not JSON at line {error.lineno} column {error.colno} ({error.msg}); {DAMAGED}.") from None
    except ValueError as error:
        raise Unreadable(f"{path}: {one_line(error, 100)}; {DAMAGED}.") from None
    except RecursionError:
        raise Unreadable(f"{path}: nested too deeply for a result of DLIO.") from None


def yaml_of(path: Path) -> object:
    """Read a YAML file.

    Raises: Unreadable.
    """
    import yaml  # noqa: PLC0415  # only such folders need it

    try:
        return yaml.safe_load(read_whole(path))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Unreadable(f"{path}: not YAML ({' '.join(str(error).split())[:120]}); {DAMAGED}.") from None
