"""Short names for variants of a workload: what sets each apart from the others of a run, for where a whole name has no room."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .terms import Workload

# A workload of ours with parameters; names of other tools hold colons too (`test_x.py::test_y`).
_VARIANT = re.compile(r"[\w-]+(?::\w+=[^:=]+)+")
_NUMBER = re.compile(r"[-+.0-9e]+")


def short_names(workloads: Mapping[str, Workload]) -> dict[str, str]:
    """Name → what to call it: `hdf5 · warm` for `io_train:format=hdf5:read_threads=2:cache=warm` where all others have two readers.

    A workload without variants keeps its name. Never are two alike.
    """
    families: dict[str, list[str]] = {}
    for name in workloads:
        families.setdefault(name.partition(":")[0], []).append(name)
    shown = {name: name for name in workloads}
    for base, names in families.items():
        if len(names) > 1 and all(name == base or _VARIANT.fullmatch(name) for name in names):
            words = _apart(names, workloads)
            shown |= {name: " · ".join([base] * (len(families) > 1) + words[name]) or base for name in names}
    return shown if len(set(shown.values())) == len(shown) else {name: name for name in workloads}


def _apart(names: Sequence[str], workloads: Mapping[str, Workload]) -> dict[str, list[str]]:
    given = {name: dict(part.split("=", 1) for part in name.split(":")[1:]) for name in names}
    mentioned = Counter(key for own in given.values() for key in own)
    level = {name: {key: given[name].get(key, str(workloads[name].params.get(key, ""))) for key in mentioned} for name in names}
    differ = [key for key in mentioned if len({level[name][key] for name in names}) > 1]
    return {
        name: [_said(key, level[name][key]) for key in differ if level[name][key] and (mentioned[key] > 1 or key in given[name])]
        for name in names
    }


def _said(key: str, level: str) -> str:
    return f"{key}={level}" if _NUMBER.fullmatch(level) or level in {"on", "off"} else level
