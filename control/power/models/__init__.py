"""Models of a network on a GPU, one file per kind, and their records as JSON."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
import numpy as np

T = TypeVar("T")
INTEGERS = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
NUMBERS = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]


def encoded(record: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.to_builtins(record, enc_hook=np.ndarray.tolist))


def decoded(kind: type[T], said: Any) -> T:
    """Convert JSON values to a record.

    Raises: msgspec.ValidationError, ValueError, TypeError, OverflowError, for what is none.
    """
    return msgspec.convert(said, kind, dec_hook=_array)


def _array(kind: Any, values: Any) -> Any:
    return np.array(values, dtype=np.int64 if kind == INTEGERS else np.float64)
