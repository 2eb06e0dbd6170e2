"""A model of a machine without clocks and power sensor: throttles, CPU seconds per second."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.studies.power import fit_own, parameters
from analysis.studies.power.material import gather
from analysis.studies.power.traces import PartitionRow

if TYPE_CHECKING:
    from control.power.models.own import Own

DUTIES = (0.25, 0.5, 1.0)


def rows() -> list[PartitionRow]:
    """`resnet50`: share s at duty d takes 0.02·s·d CPU seconds per second, output in proportion."""
    return [
        PartitionRow(
            "resnet50",
            (share,) * count,
            (batch,) * count,
            throughput_images_per_s=share * count * duty * batch / (batch + 2.0),
            extra={"throttle": duty, "cpu_s_per_s": 0.02 * share * count * duty, "backend": "cpu"},
        )
        for share in (25.0, 50.0, 100.0)
        for count in (1, 2)
        for batch in (1, 8)
        for duty in DUTIES
    ]


@cache
def model() -> Own:
    """The model fitted to them."""
    return fit_own.fit(gather(rows(), "resnet50", 0.0, "cpu"))


def folder(place: Path) -> Path:
    """Its parameters."""
    parameters.write(model(), place / parameters.file_name(model()))
    return place
