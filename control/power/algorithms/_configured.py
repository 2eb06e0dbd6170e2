"""What `data/power/algorithms.yaml` says of an algorithm and a network."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path(__file__).parents[3] / "data" / "power" / "algorithms.yaml"


def configured(algorithm: str, network: str) -> Mapping[str, Any]:
    """The algorithm's own keys, and those of the network over them."""
    said = _all()[algorithm]
    networks = said["networks"]
    return {**{key: value for key, value in said.items() if key != "networks"}, **networks.get(network, networks["default"])}


def every_batch() -> tuple[int, ...]:
    """All batches on any ladder, ascending."""
    ladders = [one.get("ladder", ()) for said in _all().values() for one in (said, *said["networks"].values())]
    return tuple(sorted({batch for ladder in ladders for batch in ladder}))


@cache
def _all() -> dict[str, Any]:
    return cast("dict[str, Any]", yaml.safe_load(FILE.read_text(encoding="utf-8")))
