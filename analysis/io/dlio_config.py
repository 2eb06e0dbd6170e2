"""What a run of DLIO was asked to do: hydra's composed configuration, flattened to DLIO's own parameter names.

DLIO 2.0.0 says `record_length` where later ones say `record_length_bytes`; both are read. What the configuration leaves out has DLIO's
own default, not ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from analysis.terms import Unreadable

from .dlio_json import yaml_of
from .terms import EXCLUDED_END_STEPS, EXCLUDED_START_STEPS, EXPECTED_AU, PREFETCH_FACTOR

if TYPE_CHECKING:
    from pathlib import Path

OLD_NAMES = {
    "record_length": "record_length_bytes",
    "record_length_stdev": "record_length_bytes_stdev",
    "record_length_resize": "record_length_bytes_resize",
    "model_size": "model_size_bytes",
}
DEFAULTS: Mapping[str, object] = {
    "format": "tfrecord",
    "num_files_train": 8,
    "num_samples_per_file": 1,
    "record_length_bytes": 65536,
    "record_length_bytes_stdev": 0,
    "batch_size": 1,
    "read_threads": 1,
    "prefetch_size": 0,
    "file_shuffle": "off",
    "sample_shuffle": "off",
    "epochs": 1,
    "computation_time": 0.0,
    "au": EXPECTED_AU,
    "exclude_start_steps": EXCLUDED_START_STEPS,
    "exclude_end_steps": EXCLUDED_END_STEPS,
}
SHUFFLES = ("file_shuffle", "sample_shuffle")


class Config:
    """The parameters of one run. `asked` are its overrides: DLIO's dotted key, without `workload.`, to the text that was given.

    `notes` is what a reader should know of them, `old` whether DLIO 2.0.0 as on PyPI ran.
    """

    def __init__(self, params: Mapping[str, object], asked: Mapping[str, str], workload: str | None, origin: str) -> None:
        self.params, self.asked, self.workload, self.origin = params, asked, workload, origin
        self.notes: list[str] = []
        self.old = False

    def whole(self, name: str, least: int = 0) -> int:
        """Answer a whole number. Raises: Unreadable."""
        value = self.params.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or value < least:
            raise Unreadable(f"{self.origin}: has {name} = {value!r}, where a whole number from {least} belongs.")
        return int(value)

    def number(self, name: str) -> float:
        """Answer a finite number above 0. Raises: Unreadable."""
        value = self.params.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise Unreadable(f"{self.origin}: has {name} = {value!r}, where a number above 0 belongs.")
        return float(value)

    @property
    def computation_time_s(self) -> float | None:
        """The computation that each step emulates; the mean of a normal distribution, None of one that is given otherwise."""
        given = self.params.get("computation_time")
        if isinstance(given, Mapping):
            given = given.get("mean")
        return float(given) if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < math.inf else None

    @property
    def only_generates(self) -> bool:
        """Whether it was to make data and not to train on them."""
        return self.params.get("generate_data") is True and self.params.get("train", True) is False

    @property
    def prefetch_factor(self) -> int:
        """Batches that each reader fetches ahead, as DLIO gives it to the DataLoader; where no size is set, the DataLoader's own two."""
        size, threads = self.whole("prefetch_size"), self.whole("read_threads")
        return math.ceil(size / threads) if size and threads else PREFETCH_FACTOR


def config_of(folder: Path, *, old: bool) -> Config:
    """Read `.hydra/config.yaml` and, where it is there, `.hydra/overrides.yaml` of a result folder; `old` is DLIO 2.0.0 as on PyPI.

    Raises: Unreadable: without the configuration neither batch size nor record length is known.
    """
    path = folder / ".hydra" / "config.yaml"
    top = yaml_of(path)
    sections = top.get("workload") if isinstance(top, Mapping) else None
    if not isinstance(sections, Mapping):
        raise Unreadable(f"{path}: has no section workload; it is no configuration of DLIO.")
    overrides = folder / ".hydra" / "overrides.yaml"
    asked, workload = _asked(yaml_of(overrides), overrides) if overrides.exists() else ({}, None)
    flat, ignored = _flat(sections, old=old)
    config = Config({**DEFAULTS, **flat}, asked, workload, str(path))
    config.old = old
    config.notes += [f"{key} is no key of the DLIO that ran, which ignores it without a word" for key in ignored]
    return config


def _flat(sections: Mapping[object, object], *, old: bool) -> tuple[dict[str, object], list[str]]:
    params, ignored = dict[str, object](), list[str]()
    for name, section in sections.items():
        if not isinstance(section, Mapping):
            params[str(name)] = section
        elif name == "model":
            # `name` and `type` would say nothing without their section; a `model_size` here is read by no DLIO and keeps its own name.
            params |= {{"name": "model", "type": "model_type"}.get(str(key), str(key)): value for key, value in section.items()}
        else:
            given = {str(key): value for key, value in section.items()}
            for before, after in OLD_NAMES.items():
                # Each version reads its own spelling; alone, either was meant for the DLIO that ran.
                if before in given and after in given:
                    ignored.append(after if old else before)
                    del given[ignored[-1]]
            params |= {OLD_NAMES.get(key, key): value for key, value in given.items()}
    for name in SHUFFLES:
        if params.get(name) is False:  # YAML's own reading of `off`
            params[name] = "off"
    return params, ignored


def _asked(given: object, path: Path) -> tuple[dict[str, str], str | None]:
    if not isinstance(given, list):
        raise Unreadable(f"{path}: is no list of overrides.")
    asked, workload = dict[str, str](), None
    for one in given:
        key, _, value = str(one).lstrip("+~").partition("=")
        if key == "workload":
            workload = value
        else:
            asked[key.removeprefix("workload.")] = value
    return asked, workload
