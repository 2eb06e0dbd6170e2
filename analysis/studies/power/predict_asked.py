"""What a user asked to be predicted: settings typed, or rows of a file of traces, each by the model of its network and memory clock."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from analysis.plain import one_line
from analysis.terms import Refused
from control.power.terms import CLOCK, NAMED, WATTS, Partition, Setting

from . import parameters, traces
from .predicting import predict
from .quality import clock_of
from .quality_of_models import copies_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from control.power.terms import Model

    from .predicting import Predicted
    from .quality import Finding
    from .traces import Row


@dataclass(frozen=True, slots=True)
class Asked:
    """A setting of a network on a GPU. A `mem_mhz` of None is the only one there is a model of."""

    network: str
    gpu: str
    partition: Partition
    sm_mhz: float
    mem_mhz: float | None


def predicted(path: Path, settings: Sequence[Asked]) -> list[Predicted]:
    """Predict each setting by the model that `path` has of it, in order. Raises: Refused."""
    said: dict[int, Predicted] = {}
    for network, gpu in dict.fromkeys((one.network, one.gpu) for one in settings):
        chosen = [number for number, one in enumerate(settings) if (one.network, one.gpu) == (network, gpu)]
        models = _models(path, network, gpu)
        found = predict(models, [_setting(settings[number], models) for number in chosen])
        said.update(zip(chosen, found, strict=True))
    return [said[number] for number in range(len(settings))]


def of_rows(path: Path, rows: Iterable[Row], network: str | None, gpu: str | None, mem_mhz: float | None) -> list[Asked]:
    """Answer what rows of traces ask for: partition, clock (as it was, or as asked) and memory clock. What is named outdoes the row.

    Raises: Refused.
    """
    asked = []
    names: dict[str, tuple[str, str]] = {}
    for row in rows:
        if row.network == traces.STATIC:
            continue
        clock = clock_of(row)
        if clock is None:
            raise Refused(f"line {row.line}: no clock, neither sm_freq nor target_freq.")
        if row.network not in names:
            names[row.network] = only(path, network or row.network, gpu)
        chosen = mem_mhz if mem_mhz is not None else row.mem_mhz
        asked.append(Asked(*names[row.network], Partition(row.shares, row.batches), clock, chosen))
    if not asked:
        raise Refused("no row to predict.")
    return asked


def only(path: Path, network: str | None, gpu: str | None) -> tuple[str, str]:
    """Answer which network and GPU are meant; what `path` has only one of need not be named. Raises: Refused, with what there is."""
    there = sorted({key[:2] for key in parameters.available(path)})
    fitting = [key for key in there if network in {None, key[0]} and gpu in {None, key[1]}]
    if len(fitting) != 1:
        known = "; ".join(f"{one_line(one)} on {one_line(other)}" for one, other in fitting or there)
        wanted = " on ".join(one_line(word) for word in (network, gpu) if word is not None) or "any"
        raise Refused(f"{path}: {wanted}: {len(fitting) or 'no'} models; there are {known}. Say which with --network and --gpu.")
    return fitting[0]


def copies(path: Path, asked: Sequence[Asked], found: Sequence[Predicted]) -> list[Finding]:
    """Answer what the models behind predictions share with others, which one of each pair has no right to. Raises: Refused."""
    return copies_of({(one.network, one.gpu, said.setting.mem_mhz) for one, said in zip(asked, found, strict=True)}, path)


def document(path: Path, asked: Sequence[Asked], found: Sequence[Predicted]) -> dict[str, Any]:
    """Write predictions for programs; names and units are those of the terms, or of the model where it knows no watts or no clock."""
    return {
        "parameters": str(path),
        "predictions": [
            {"network": one.network, "gpu": one.gpu, **in_units(asdict(said), said.cap_unit, said.clock)}
            for one, said in zip(asked, found, strict=True)
        ],
        "findings": [asdict(one) for one in copies(path, asked, found)],
    }


def in_units(said: Mapping[str, Any], cap_unit: str, clock: str) -> dict[str, Any]:
    """Rename what is no W (`power_w`, `cap_w`) and no MHz (`sm_mhz`) in a document, at any depth: `cpu_s_per_s`, `throttle`."""
    names = {} if clock == CLOCK else {"sm_mhz": clock}
    if cap_unit != WATTS:
        unit = NAMED.get(cap_unit, "unknown")
        names |= {"power_w": unit, "cap_w": f"cap_{unit}"}
    return {names.get(key, key): in_units(value, cap_unit, clock) if isinstance(value, dict) else value for key, value in said.items()}


def _models(path: Path, network: str, gpu: str) -> dict[float, Model]:
    there = parameters.available(path)
    return {key[2]: read() for key, read in there.items() if key[:2] == (network, gpu)}


def _setting(asked: Asked, models: dict[float, Model]) -> Setting:
    if asked.mem_mhz is None and len(models) > 1:
        known = ", ".join(f"{mhz:g}" for mhz in models)
        raise Refused(f"{one_line(asked.network)} on {one_line(asked.gpu)}: models of memory clocks {known} MHz; say which with --mem.")
    return Setting(asked.partition, asked.sm_mhz, next(iter(models)) if asked.mem_mhz is None else asked.mem_mhz)
