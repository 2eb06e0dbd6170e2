"""Models of a network on a GPU, one file a kind; and records as JSON, where an annotation says what a field must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np


def encoded(value: Any) -> Any:
    """Write a record, and what is in it, as what JSON has; `decoded` gives the same back, to the last bit."""
    if is_dataclass(value):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: encoded(one) for name, one in value.items()}
    return list(map(encoded, value)) if isinstance(value, tuple | list) else value


def decoded(kind: Any, said: Any, name: str = "it") -> Any:
    """Read what `kind` describes: a dataclass, a number, a text, an array, tuples and mappings of these.

    Raises: KeyError, TypeError, ValueError, OverflowError, for what is none.
    """
    parts = get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        made: Any = kind
        return made(**{field.name: decoded(hints[field.name], said[field.name], field.name) for field in fields(kind)})
    if get_origin(kind) is np.ndarray:
        return np.array(said, dtype=np.int64 if kind == INTEGERS else np.float64)
    if get_origin(kind) is tuple:
        several = (parts[0],) * len(said) if parts[1:] == (Ellipsis,) else parts
        return tuple(decoded(part, one, name) for part, one in zip(several, said, strict=True))
    if get_origin(kind) is Mapping:
        return {str(key): decoded(parts[1], one, str(key)) for key, one in said.items()}
    if get_origin(kind) is UnionType:
        return None if said is None else decoded(parts[0], said, name)
    return _plain(kind, said, name)


def _plain(kind: Any, said: Any, name: str) -> Any:
    if kind is float:
        if isinstance(said, bool) or not isinstance(said, int | float) or not np.isfinite(float(said)):
            raise ValueError(f"{name} is {said!r:.40}, no finite number")
        return float(said)
    if kind in {int, str} and type(said) is not kind:
        raise ValueError(f"{name} is {said!r:.40}, no {'whole number' if kind is int else 'text'}")
    return said


INTEGERS = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
NUMBERS = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
