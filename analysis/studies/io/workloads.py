"""The parameters of DLIO's workloads, as `data/io/` holds them for both sides of the house."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parents[3] / "data" / "io"


def own_parameters(model: str) -> Mapping[str, object]:
    """Answer a workload's parameters by its name, `unet3d_a100` or `unet3d`; without an accelerator, its default one. Empty if unknown."""
    import yaml  # noqa: PLC0415  # only this question needs it

    base = next((path for path in sorted(FOLDER.glob("*.yaml")) if model == path.stem or model.startswith(f"{path.stem}_")), None)
    if base is None:
        return {}
    said = yaml.safe_load(base.read_text(encoding="utf-8"))
    accelerators = said.get("accelerators") or {}
    named = [part for part in model.removeprefix(base.stem).split("_") if part in accelerators]
    return {**said.get("parameters", {}), **accelerators.get((named or [said.get("accelerator")])[0], {})}
