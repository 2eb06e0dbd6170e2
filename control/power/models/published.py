"""The original's parameters, as published or as plain arrays.

Published are a folder a network (`fitting_results/resnet50/`) and in it, of each set, files
`<part>_<set>`: curves in `.json`, the coefficients of the priors in `.pth` (torch), regressors in
`.pkl` (joblib, scikit-learn). Plain arrays are `fitted_params.json`, keys `<network>|<set>`, and
beside it one .npz of regressors a set. Nothing is unpickled: `pickles` reads what is in them.

A set is named `[dataset][_platform]_mem<MHz>`. The original looks a network's set up by names that
say less and less; the first that is there is used. Data sets other than imagenet have no sets of
their own, so imagenet's are used for all.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from control.errors import Unreadable, one_line
from control.power.catalog import platforms

from . import laws, pickles
from .laws import MemSingle, MemSystem, SmSingle, SmSystem
from .reference import FEATURES, Ensemble, Reference

if TYPE_CHECKING:
    # Path below the folder → content, which may be read when it is asked for.
    Files = Mapping[str, bytes]
    # Where it is from, curves and coefficients, regressors.
    Stored = tuple[str, dict[str, Any], dict[str, Ensemble]]

FILE = "fitted_params.json"
DATASET = "imagenet"
PLATFORMS = {"3080Ti": "", "A100": "a100"}  # the GPU's part in a set's name
TREES = {"sm": "sm", "mem": "mem", "throughput": "tput", "power": "pow"}
CURVES = ("power_params", "sm_kappa", "throughput_params")  # .json
COEFFICIENTS = ("sm_base_model", "mem_base_model", "mem_system_model")  # .pth
# .pkl
REGRESSORS = {
    "sm": "sm_gbr_model",
    "mem": "mem_gbr_model",
    "throughput": "throughput_gbr_model",
    "power": "power_dyn_anchor_gbr",
}


def is_one(files: Files) -> bool:
    return FILE in files or bool(_networks(files))


def available(
    files: Files, place: PurePath
) -> dict[tuple[str, str, float], Callable[[], Reference]]:
    """Return the models by network, GPU and memory clock (MHz), each with its reader.

    Raises: Unreadable.
    """
    if FILE in files:
        sets = _plain_sets(files, place)
    else:
        sets = {
            network or place.name: _published_sets(files, place, network)
            for network in _networks(files)
        }
    return {
        (network, gpu, mem_mhz): partial(_model, there[name], (network, gpu, mem_mhz))
        for network, there in sets.items()
        for gpu, known in platforms().items()
        for mem_mhz in known.searched_mem_mhz
        if (name := set_for(there, gpu, mem_mhz)) is not None
    }


def set_for(there: Iterable[str], gpu: str, mem_mhz: float) -> str | None:
    """Return which of a network's sets the original would use, or None.

    With all that is known of it, then without the memory clock, the data set, both …; each step may
    find what another GPU was fitted on.
    """
    own = PLATFORMS.get(gpu, gpu.lower())
    mem = f"mem{mem_mhz:g}"
    steps = [(DATASET, own, mem), (DATASET, own), (own,), (own, mem), (DATASET, mem), (mem,), ()]
    names = set(there)
    return next((name for step in steps if (name := "_".join(filter(None, step))) in names), None)


def _networks(files: Files) -> list[str]:
    """Return the original's network folders in this folder, or "" for this folder itself."""
    paths = map(PurePosixPath, files)
    return sorted(
        {
            "/".join(path.parts[:-1])
            for path in paths
            if len(path.parts) <= 2 and path.match(f"{CURVES[0]}*.json")
        }
    )


def _published_sets(files: Files, place: PurePath, folder: str) -> dict[str, Callable[[], Stored]]:
    first = str(PurePosixPath(folder, CURVES[0]))
    suffixes = sorted(
        name.removeprefix(first).removesuffix(".json")
        for name in files
        if name.startswith(first) and name.endswith(".json")
    )
    return {
        suffix.removeprefix("_"): partial(_published, files, place, folder, suffix)
        for suffix in suffixes
    }


def _published(files: Files, place: PurePath, folder: str, suffix: str) -> Stored:
    """Read a set. Raises: Unreadable, naming the missing or damaged file."""

    def file(part: str, ending: str) -> tuple[bytes, str]:
        name = str(PurePosixPath(folder, f"{part}{suffix}{ending}"))
        return _content(files, place, name), str(place / name)

    said: dict[str, Any] = {name: _json(*file(name, ".json")) for name in CURVES}
    said |= {name: pickles.tensors(*file(name, ".pth")) for name in COEFFICIENTS}
    stored = {own: file(name, ".pkl") for own, name in REGRESSORS.items()}
    grown = {
        own: pickles.guarded(entry[1], partial(_grown, FEATURES[own], pickles.load(*entry)))
        for own, entry in stored.items()
    }
    return f"{place / folder}: its set {one_line(suffix) or 'without a name'}", said, grown


def _content(files: Files, place: PurePath, name: str) -> bytes:
    try:
        return files[name]
    except KeyError:
        raise Unreadable(f"{place / name}: cannot be read: No such file or directory.") from None


def _grown(features: int, forest: pickles.Foreign) -> Ensemble:
    """Extract the trees from a GradientBoostingRegressor."""
    said = forest.state
    if said["loss"] != "squared_error" or said["n_features_in_"] != features:
        raise ValueError(
            f"its regressor has a loss other than squared_error, or not {features} features"
        )
    trees = [tree.state["tree_"].state for tree in pickles.array(said["estimators_"])]
    nodes = np.concatenate([pickles.array(tree["nodes"]) for tree in trees])
    return Ensemble(
        features=features,
        start=float(pickles.array(said["init_"].state["constant_"]).item()),
        rate=float(said["learning_rate"]),
        sizes=np.array([len(pickles.array(tree["nodes"])) for tree in trees]),
        value=np.concatenate([pickles.array(tree["values"]).ravel() for tree in trees]).astype(
            np.float64
        ),
        **_inner(nodes["left_child"], nodes["right_child"], nodes["feature"], nodes["threshold"]),
    )


def _plain_sets(files: Files, folder: PurePath) -> dict[str, dict[str, Callable[[], Stored]]]:
    said = _json(files[FILE], str(folder / FILE))
    if not all(isinstance(one, dict) for one in said.values()):
        raise Unreadable(
            f"{folder / FILE}: has no parameter sets (keys like 'resnet50|imagenet_mem5001')."
        )
    sets: dict[str, dict[str, Callable[[], Stored]]] = {}
    for key, one in said.items():
        network, _, name = key.partition("|")
        sets.setdefault(network, {})[name] = partial(_plain, files, folder, network, name, one)
    return sets


def _plain(files: Files, folder: PurePath, network: str, name: str, said: dict[str, Any]) -> Stored:
    file = folder / f"{network}__{name}.npz"
    if file.parent != folder:  # a key of the file must not lead out of its folder
        raise Unreadable(f"{folder / FILE}: {one_line(network)} is not a network's name.")
    content = _content(files, folder, file.name)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as there:
            arrays = {name: there[name] for name in there.files}
        return (
            f"{folder / FILE}: {one_line(network)}|{one_line(name)}",
            said,
            {own: _trees(name, own, arrays) for own, name in TREES.items()},
        )
    except (KeyError, TypeError, ValueError, EOFError, BadZipFile) as error:
        raise Unreadable(f"{file}: is damaged: {one_line(error)}.") from None


def _trees(name: str, own: str, arrays: dict[str, Any]) -> Ensemble:
    start, rate = (float(value) for value in arrays[f"{name}_init_lr"])
    parts = [
        arrays[f"{name}_{part}"]
        for part in ("children_left", "children_right", "feature", "threshold")
    ]
    return Ensemble(
        features=FEATURES[own],
        start=start,
        rate=rate,
        sizes=arrays[f"{name}_n"].astype(np.int64),
        value=arrays[f"{name}_value"].astype(np.float64),
        **_inner(*parts),
    )


def _inner(left: Any, right: Any, feature: Any, threshold: Any) -> dict[str, Any]:
    """Convert the branches of trees to `Ensemble`'s form, in which leaves have no test."""
    left = left.astype(np.int64)
    return {
        "left": left,
        "right": right.astype(np.int64),
        "feature": np.where(left < 0, 0, feature).astype(np.int64),
        "threshold": np.where(left < 0, 0.0, threshold).astype(np.float64),
    }


def _json(content: bytes, file: str) -> dict[str, Any]:
    said = json_of(content, file)
    if not isinstance(said, dict):
        raise Unreadable(f"{file}: has no named parameters.")
    return said


def json_of(content: bytes, file: str) -> Any:
    """Read a file's JSON. Raises: Unreadable."""
    try:
        return json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{file}: is not JSON: {one_line(error)}.") from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _model(read: Callable[[], Stored], key: tuple[str, str, float]) -> Reference:
    where, said, grown = read()
    try:
        return _reference(said, grown, *key)
    except KeyError as error:
        raise Unreadable(f"{where} has no {error}.") from None
    except (TypeError, ValueError) as error:
        raise Unreadable(f"{where} is damaged: {one_line(error)}.") from None


def _reference(
    said: dict[str, Any], grown: dict[str, Ensemble], network: str, gpu: str, mem_mhz: float
) -> Reference:
    sm, system = said["sm_base_model"], said["sm_kappa"]
    mem, more = said["mem_base_model"], said["mem_system_model"]
    kinetic, static, dynamic = (
        said["throughput_params"],
        said["power_params"]["static"],
        said["power_params"]["dynamic"],
    )
    return Reference(
        network,
        gpu,
        mem_mhz,
        sm_single=SmSingle(abs(sm["raw_lambda_sm"]), abs(sm["raw_gamma_sm"]), sm["raw_beta_sm"]),
        sm_system=SmSystem(system["L_alpha"], system["L_beta"], system["kappa"]),
        # φ is kept as what softplus makes positive, the others by their absolute value.
        mem_single=MemSingle(
            float(np.logaddexp(0, mem["raw_phi_mem"])),
            abs(mem["raw_alpha_mem"]),
            abs(mem["raw_lambda_mem"]),
            mem["raw_beta_mem"],
        ),
        mem_system=MemSystem(
            *(abs(more[f"raw_{name}"]) for name in ("k1", "k2", "alpha", "beta", "mu", "tau"))
        ),
        throughput=laws.ThroughputCurve(
            kinetic["kappa_a"],
            kinetic["kappa_b"],
            kinetic["gamma_t"],
            kinetic["T_start"],
            kinetic["f_min"],
            kinetic["f_ref"],
        ),
        power=laws.PowerCurve(
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
