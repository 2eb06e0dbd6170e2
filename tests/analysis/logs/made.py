"""Logs as dcgmi and nvidia-smi write them, made from numbers: what is read from them must be what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

A100, DISPLAY = "NVIDIA A100-SXM4-40GB", "NVIDIA DGX Display"
BEGAN = datetime(2023, 2, 21, 15, 16, 55)  # noqa: DTZ001  # nvidia-smi names no zone
WIDTH = 14


def dcgmi(fields: Mapping[str, str], rows: Sequence[tuple[str, Sequence[float | None]]], *, header_every: int = 15) -> str:
    lines = []
    for at, (entity, values) in enumerate(rows):
        if at % header_every == 0:
            lines += ["#Entity   " + "".join(one.ljust(WIDTH) + " " for one in fields), "ID        " + "".join(_unit(fields))]
        lines.append(entity.ljust(10) + "".join(("N/A" if one is None else repr(one)).ljust(WIDTH) + " " for one in values))
    return "\n".join(lines) + "\n"


def _unit(fields: Mapping[str, str]) -> list[str]:
    return [unit.ljust(WIDTH) + " " for unit in fields.values()]


@dataclass(frozen=True)
class Smi:
    """A log of nvidia-smi: `utils` gives by tick the utilisation of each GPU, whose names are `names`; None is [N/A]."""

    names: Sequence[str]
    utils: Sequence[Sequence[int | None]]
    stamped: bool = False
    index: bool = False
    header: bool = True
    cell_units: bool = True
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    query_s: float = 0.002  # what asking one GPU takes

    def lines(self) -> list[str]:
        heads = [*["index"] * self.index, "name", *["timestamp"] * self.stamped, "utilization.gpu [%]", "memory.total [MiB]"]
        found = [", ".join([*heads, *self.extra])] if self.header else []
        for tick, utils in enumerate(self.utils):
            for at, (name, util) in enumerate(zip(self.names, utils, strict=True)):
                stamp = BEGAN + timedelta(seconds=(1.006 + self.query_s * (len(self.names) - 1)) * tick + self.query_s * at)
                cells = [*[str(at)] * self.index, name, *[f"{stamp:%Y/%m/%d %H:%M:%S}.{stamp.microsecond // 1000:03}"] * self.stamped]
                cells += ["[N/A]" if util is None else self._cell(util, "%"), self._cell(4096 if name == DISPLAY else 40960, "MiB")]
                found.append(", ".join([*cells, *(values[tick * len(self.names) + at] for values in self.extra.values())]))
        return found

    def text(self) -> str:
        return "\n".join(self.lines()) + "\n"

    def _cell(self, value: int, unit: str) -> str:
        return f"{value} {unit}" if self.cell_units else str(value)
