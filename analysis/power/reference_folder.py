"""The original's parameters as plain arrays: `fitted_params.json`, keys `<network>|<set>`, and beside it one .npz of regressors a set.

A set is named `[dataset][_platform]_mem<MHz>`. The original looks a network's set up by names that say less and less; the first that is
there is used. Data sets other than imagenet have no sets of their own, so imagenet's are used for all.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from analysis.opening import must_be_file, read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

from . import curves
from .platforms import platforms
from .predictor import Reference
from .priors import MemSingle, MemSystem, SmSingle, SmSystem
from .trees import Ensemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

FILE = "fitted_params.json"
DATASET = "imagenet"
PLATFORMS = {"3080Ti": "", "A100": "a100"}  # the GPU's part in a set's name
TREES = {"sm": "sm", "mem": "mem", "throughput": "tput", "power": "pow"}


def is_one(place: Path) -> bool:
    """Is this such a folder, or its file of parameters?"""
    return place.name == FILE if not place.is_dir() else (place / FILE).exists()


def available(place: Path) -> dict[tuple[str, str, float], Callable[[], Reference]]:
    """Answer the models by network, GPU and memory clock (MHz), each with what reads it. Raises: Unreadable."""
    folder = place if place.is_dir() else place.parent
    said = _said(folder / FILE)
    names: dict[str, list[str]] = {}
    for key in said:
        network, _, one = key.partition("|")
        names.setdefault(network, []).append(one)
    return {
        (network, gpu, mem_mhz): partial(_model, folder, said[f"{network}|{name}"], (network, gpu, mem_mhz), name)
        for network, there in names.items()
        for gpu, known in platforms().items()
        for mem_mhz in known.searched_mem_mhz
        if (name := set_for(there, gpu, mem_mhz)) is not None
    }


def set_for(there: Iterable[str], gpu: str, mem_mhz: float) -> str | None:
    """Answer which of a network's sets the original would use, None where it would find none.

    With all that is known of it, then without the memory clock, the data set, both …; each step may find what another GPU was fitted on.
    """
    own = PLATFORMS.get(gpu, gpu.lower())
    mem = f"mem{mem_mhz:g}"
    steps = [(DATASET, own, mem), (DATASET, own), (own,), (own, mem), (DATASET, mem), (mem,), ()]
    names = set(there)
    return next((name for step in steps if (name := "_".join(filter(None, step))) in names), None)


def _said(file: Path) -> dict[str, Any]:
    try:
        said = json.loads(read_whole(file))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{file}: is no JSON: {one_line(error)}.") from None
    if not isinstance(said, dict) or not all(isinstance(one, dict) for one in said.values()):
        raise Unreadable(f"{file}: has no parameter sets, keys as in 'resnet50|imagenet_mem5001'.")
    return said


def _model(folder: Path, said: dict[str, Any], key: tuple[str, str, float], name: str) -> Reference:
    network = key[0]
    file = folder / f"{network}__{name}.npz"
    if file.parent != folder:  # a key of the file must not lead out of its folder
        raise Unreadable(f"{folder / FILE}: {one_line(network)} is no name of a network.")
    try:
        grown = _trees(file)
        return _reference(said, grown, *key)
    except KeyError as error:
        raise Unreadable(f"{folder / FILE}: {one_line(network)}|{one_line(name)} has no {error}.") from None
    except (TypeError, ValueError, EOFError, BadZipFile) as error:
        raise Unreadable(f"{file}: is damaged: {one_line(error)}.") from None


def _trees(file: Path) -> dict[str, Ensemble]:
    must_be_file(file)
    with np.load(file, allow_pickle=False) as there:
        arrays = {name: there[name] for name in there.files}
    grown = {}
    for own, name in TREES.items():
        start, rate = (float(value) for value in arrays[f"{name}_init_lr"])
        left = arrays[f"{name}_children_left"].astype(np.int64)
        grown[own] = Ensemble(
            features={"sm": 13, "mem": 11, "throughput": 14, "power": 8}[own],
            start=start,
            rate=rate,
            sizes=arrays[f"{name}_n"].astype(np.int64),
            left=left,
            right=arrays[f"{name}_children_right"].astype(np.int64),
            feature=np.where(left < 0, 0, arrays[f"{name}_feature"]).astype(np.int64),
            threshold=np.where(left < 0, 0.0, arrays[f"{name}_threshold"]).astype(np.float64),
            value=arrays[f"{name}_value"].astype(np.float64),
        )
    return grown


def _reference(said: dict[str, Any], grown: dict[str, Ensemble], network: str, gpu: str, mem_mhz: float) -> Reference:
    sm, system = said["sm_base_model"], said["sm_kappa"]
    mem, more = said["mem_base_model"], said["mem_system_model"]
    kinetic, static, dynamic = said["throughput_params"], said["power_params"]["static"], said["power_params"]["dynamic"]
    return Reference(
        network,
        gpu,
        mem_mhz,
        sm_single=SmSingle(abs(sm["raw_lambda_sm"]), abs(sm["raw_gamma_sm"]), sm["raw_beta_sm"]),
        sm_system=SmSystem(system["L_alpha"], system["L_beta"], system["kappa"]),
        # φ is kept as what softplus makes positive, the others by their absolute value.
        mem_single=MemSingle(
            float(np.logaddexp(0, mem["raw_phi_mem"])), abs(mem["raw_alpha_mem"]), abs(mem["raw_lambda_mem"]), mem["raw_beta_mem"]
        ),
        mem_system=MemSystem(*(abs(more[f"raw_{name}"]) for name in ("k1", "k2", "alpha", "beta", "mu", "tau"))),
        throughput=curves.ThroughputCurve(
            kinetic["kappa_a"], kinetic["kappa_b"], kinetic["gamma_t"], kinetic["T_start"], kinetic["f_min"], kinetic["f_ref"]
        ),
        power=curves.PowerCurve(
            (static["delta_3"], static["delta_2"], static["delta_1"], static["delta_0"]),
            dynamic["P_base"],
            dynamic["gamma_p"],
            dynamic["f_min"],
            dynamic["f_ref"],
        ),
        sm_trees=grown["sm"],
        mem_trees=grown["mem"],
        throughput_trees=grown["throughput"],
        power_trees=grown["power"],
    )
