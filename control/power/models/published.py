"""The original's parameters: a folder per network, or plain arrays. Nothing is unpickled.

A network's folder has, per set, files `<part>_<set>`: curves in `.json`, coefficients of the priors
in `.pth` (torch), regressors in `.pkl` (joblib). Plain arrays are `fitted_params.json`, keys
`<network>|<set>`, and an .npz of regressors per set. A set is `[dataset][_platform]_mem<MHz>`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from control.errors import Unreadable, one_line
from control.power.catalog import platforms

from . import laws, pickles
from .laws import MemSingle, MemSystem, SmSingle, SmSystem
from .reference import FEATURES, Ensemble, Reference, ensemble_of

if TYPE_CHECKING:
    # Curves and coefficients, and regressors.
    Stored = tuple[dict[str, Any], dict[str, Ensemble]]
    Sets = dict[str, Callable[[], Stored]]

FILE = "fitted_params.json"
DATASET = "imagenet"  # others have no sets of their own
PLATFORMS = {"3080Ti": "", "A100": "a100"}  # the GPU's part in a set's name
TREES = {"sm": "sm", "mem": "mem", "throughput": "tput", "power": "pow"}  # .npz
CURVES = ("power_params", "sm_kappa", "throughput_params")  # .json
COEFFICIENTS = ("sm_base_model", "mem_base_model", "mem_system_model")  # .pth
REGRESSORS = {  # .pkl
    "sm": "sm_gbr_model",
    "mem": "mem_gbr_model",
    "throughput": "throughput_gbr_model",
    "power": "power_dyn_anchor_gbr",
}


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of a folder and its subfolders by relative name; `read` returns a file's bytes."""

    place: Path
    files: Mapping[str, Path]
    read: Callable[[Path], bytes]

    @classmethod
    def of(cls, place: Path, read: Callable[[Path], bytes]) -> Folder:
        paths = [path for pattern in ("*", "*/*") for path in place.glob(pattern)]
        names = {str(path.relative_to(place)): path for path in sorted(paths) if path.is_file()}
        return cls(place, names, read)

    @property
    def networks(self) -> list[str]:
        """Return the original's network folders in this folder, or "" for this folder itself."""
        paths = [PurePosixPath(name) for name in self.files]
        curves = [path for path in paths if path.match(f"{CURVES[0]}*.json")]
        return sorted({"/".join(path.parts[:-1]) for path in curves})

    @property
    def is_published(self) -> bool:
        return FILE in self.files or bool(self.networks)

    def content(self, name: str) -> bytes:
        if name not in self.files:
            raise Unreadable(f"{self.place / name}: cannot be read: No such file or directory.")
        return self.read(self.files[name])

    def json(self, name: str) -> dict[str, Any]:
        said = json_of(self.content(name), str(self.place / name))
        if not isinstance(said, dict):
            raise Unreadable(f"{self.place / name}: has no named parameters.")
        return said


def available(folder: Folder) -> dict[tuple[str, str, float], Callable[[], Reference]]:
    """Return the models by network, GPU and memory clock (MHz), each with its reader.

    Raises: Unreadable.
    """
    if FILE in folder.files:
        sets = _plain_sets(folder)
    else:
        sets = {
            network or folder.place.name: _published_sets(folder, network)
            for network in folder.networks
        }
    return {
        (network, gpu, mem_mhz): partial(_model, folder.place, there[name], network, gpu, mem_mhz)
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


def _published_sets(folder: Folder, network: str) -> Sets:
    first = str(PurePosixPath(network, CURVES[0]))
    suffixes = [
        name.removeprefix(first).removesuffix(".json")
        for name in folder.files
        if name.startswith(first) and name.endswith(".json")
    ]
    return {
        suffix.removeprefix("_"): partial(_published, folder, network, suffix)
        for suffix in suffixes
    }


def _published(folder: Folder, network: str, suffix: str) -> Stored:
    def name(part: str, ending: str) -> str:
        return str(PurePosixPath(network, f"{part}{suffix}{ending}"))

    def file(part: str, ending: str) -> tuple[bytes, str]:
        return folder.content(name(part, ending)), str(folder.place / name(part, ending))

    said: dict[str, Any] = {part: folder.json(name(part, ".json")) for part in CURVES}
    said |= {part: pickles.tensors(*file(part, ".pth")) for part in COEFFICIENTS}
    forests = {own: file(part, ".pkl") for own, part in REGRESSORS.items()}
    return said, {
        own: pickles.guarded(place, partial(_grown, FEATURES[own], pickles.load(content, place)))
        for own, (content, place) in forests.items()
    }


def _grown(features: int, forest: pickles.Foreign) -> Ensemble:
    said = forest.state
    if said["loss"] != "squared_error" or said["n_features_in_"] != features:
        raise ValueError(
            f"its regressor has a loss other than squared_error, or not {features} features"
        )
    trees = [tree.state["tree_"].state for tree in pickles.array(said["estimators_"])]
    nodes = np.concatenate([pickles.array(tree["nodes"]) for tree in trees])
    return ensemble_of(
        features,
        float(pickles.array(said["init_"].state["constant_"]).item()),
        float(said["learning_rate"]),
        [len(pickles.array(tree["nodes"])) for tree in trees],
        [nodes[name] for name in ("left_child", "right_child", "feature", "threshold")],
        np.concatenate([pickles.array(tree["values"]).ravel() for tree in trees]),
    )


def _plain_sets(folder: Folder) -> dict[str, Sets]:
    sets: dict[str, Sets] = {}
    for key, said in folder.json(FILE).items():
        if not isinstance(said, dict):
            raise Unreadable(
                f"{folder.place / FILE}: has no parameter sets (keys like "
                "'resnet50|imagenet_mem5001')."
            )
        network, _, name = key.partition("|")
        sets.setdefault(network, {})[name] = partial(_plain, folder, f"{network}__{name}.npz", said)
    return sets


def _plain(folder: Folder, file: str, said: dict[str, Any]) -> Stored:
    try:
        with np.load(io.BytesIO(folder.content(file)), allow_pickle=False) as there:
            return said, {own: _trees(name, own, there) for own, name in TREES.items()}
    except (KeyError, TypeError, ValueError, EOFError, BadZipFile) as error:
        raise Unreadable(f"{folder.place / file}: is damaged: {one_line(error)}.") from None


def _trees(name: str, own: str, arrays: Mapping[str, Any]) -> Ensemble:
    start, rate = (float(value) for value in arrays[f"{name}_init_lr"])
    parts = ("children_left", "children_right", "feature", "threshold")
    return ensemble_of(
        FEATURES[own],
        start,
        rate,
        arrays[f"{name}_n"],
        [arrays[f"{name}_{part}"] for part in parts],
        arrays[f"{name}_value"],
    )


def json_of(content: bytes, file: str) -> Any:
    """Read a file's JSON. Raises: Unreadable."""
    try:
        return json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{file}: is not JSON: {one_line(error)}.") from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _model(
    place: Path, read: Callable[[], Stored], network: str, gpu: str, mem_mhz: float
) -> Reference:
    said, grown = read()
    try:
        return _reference(said, grown, network, gpu, mem_mhz)
    except (KeyError, TypeError, ValueError) as error:
        where = f"{place}: the set of {one_line(network)} on {gpu} at {mem_mhz:g} MHz"
        raise Unreadable(f"{where} is damaged: {one_line(repr(error))}.") from None


def _reference(
    said: dict[str, Any], grown: dict[str, Ensemble], network: str, gpu: str, mem_mhz: float
) -> Reference:
    sm, system = said["sm_base_model"], said["sm_kappa"]
    mem, more = said["mem_base_model"], said["mem_system_model"]
    curve, static = said["throughput_params"], said["power_params"]["static"]
    dynamic = said["power_params"]["dynamic"]
    trees: dict[str, Any] = {f"{name}_trees": its for name, its in grown.items()}
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
            *(curve[name] for name in ("kappa_a", "kappa_b", "gamma_t", "T_start")),
            *(curve[name] for name in ("f_min", "f_ref")),
        ),
        power=laws.PowerCurve(
            (static["delta_3"], static["delta_2"], static["delta_1"], static["delta_0"]),
            *(dynamic[name] for name in ("P_base", "gamma_p", "f_min", "f_ref")),
        ),
        **trees,
    )
