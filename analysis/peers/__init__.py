"""How others decide: one file a peer, its rule written anew from its own source, with its own constants.

A file that is put here is found by its name. It holds `RULES`; `tests/analysis/test_peers.py` says what a rule must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from analysis.stats.sessions import Sessions

    Alarms = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rule:
    """A way of calling a difference.

    `says` is the rule in words with its constants, `source` where it was read. `runs` is how many runs an arm it needs at least.
    `alarms` answers, for every session, whether it calls.
    """

    name: str
    says: str
    source: str
    runs: int
    alarms: Callable[[Sessions], Alarms]


def rules() -> list[Rule]:
    """Collect the rules of all peers, by file name."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")
    return [rule for name in files for rule in import_module(f"analysis.peers.{name}").RULES]
