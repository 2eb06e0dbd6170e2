"""What a run of DLIO was asked to do: hydra's composed configuration, flattened to DLIO's own parameter names.

A copy of a result folder often lacks the hidden folder it is in; then the log says some of it. DLIO 2.0.0 says `record_length` where later
ones say `record_length_bytes`; both are read. What the configuration leaves out has DLIO's own default.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.files import read_whole
from analysis.formats.fields import Fields
from analysis.plain import one_line
from analysis.terms import Unreadable

from .terms import EXCLUDED_END_STEPS, EXCLUDED_START_STEPS, EXPECTED_AU, PREFETCH_FACTOR

if TYPE_CHECKING:
    from pathlib import Path

DAMAGED = "it was damaged or cut short: run DLIO again, or take the folder from its source"
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
# What the log says: samples per file * files / batch size / ranks; what each computation was set to.
STEPS = re.compile(r"Max steps per epoch: \d{1,9} = (\d{1,9}) \* (\d{1,9}) / ([1-9]\d{0,8}) / \d{1,9} \(samples per file")
COMPUTATION = re.compile(r"\(set value: (?:\{'mean': )?(\d{1,9}(?:\.\d{1,20})?)\}?\)")
SHUFFLES = ("file_shuffle", "sample_shuffle")


def json_of(path: Path) -> Fields:
    """Read an object; DLIO's bare `NaN`, which is no measurement, is read as absent. Raises: Unreadable."""
    try:
        return Fields(json.loads(read_whole(path), parse_constant=lambda _word: None), str(path))
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: not a text file; {DAMAGED}.") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"{path}: not JSON at line {error.lineno} column {error.colno} ({error.msg}); {DAMAGED}.") from None
    except ValueError as error:
        raise Unreadable(f"{path}: {one_line(error, 100)}; {DAMAGED}.") from None
    except RecursionError:
        raise Unreadable(f"{path}: nested too deeply for a result of DLIO.") from None


def yaml_of(path: Path) -> object:
    """Read what hydra composed. Raises: Unreadable."""
    import yaml  # noqa: PLC0415  # only such folders need it

    try:
        return yaml.safe_load(read_whole(path))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Unreadable(f"{path}: not YAML ({' '.join(str(error).split())[:120]}); {DAMAGED}.") from None


@dataclass
class Config:
    """The parameters of one run. `asked` are its overrides: DLIO's dotted key, without `workload.`, to the text that was given.

    `old`: DLIO 2.0.0 as on PyPI ran. `known`: these are all its parameters.
    """

    params: Mapping[str, object]
    asked: Mapping[str, str]
    workload: str | None
    origin: str
    old: bool
    notes: list[str]
    known: bool = True

    def optional_whole(self, name: str, least: int = 0) -> int | None:
        """Answer a whole number; None where nothing says it. Raises: Unreadable."""
        return self.whole(name, least) if self.known or name in self.params else None

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
        """The computation that each step emulates: its mean, or None where it is given otherwise."""
        given = self.params.get("computation_time")
        if isinstance(given, Mapping):
            given = given.get("mean")
        return float(given) if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < math.inf else None

    @property
    def only_generates(self) -> bool:
        """Whether it was to make data and not to train on them."""
        return self.params.get("generate_data") is True and self.params.get("train", True) is False

    @property
    def prefetch_factor(self) -> int | None:
        """Batches that each reader fetches ahead, as DLIO gives it to the DataLoader; its own two where no size is set."""
        if not self.known:
            return None
        size, threads = self.whole("prefetch_size"), self.whole("read_threads")
        return math.ceil(size / threads) if size and threads else PREFETCH_FACTOR


def config_of(folder: Path, *, old: bool) -> Config:
    """Read the configuration and overrides of a result folder, or what its log says of them. Raises: Unreadable."""
    path = folder / ".hydra" / "config.yaml"
    overrides = folder / ".hydra" / "overrides.yaml"
    asked, workload = _asked(yaml_of(overrides), overrides) if overrides.exists() else ({}, None)
    if not path.exists():
        return _of_log(folder / "dlio.log", asked, workload, old=old)
    top = yaml_of(path)
    sections = top.get("workload") if isinstance(top, Mapping) else None
    if not isinstance(sections, Mapping):
        raise Unreadable(f"{path}: has no section workload; it is no configuration of DLIO.")
    flat, ignored = _flat(sections, old=old)
    notes = [f"{key} is no key of the DLIO that ran, which ignores it without a word" for key in ignored]
    return Config({**DEFAULTS, **flat}, asked, workload, str(path), old, notes)


def _of_log(log: Path, asked: Mapping[str, str], workload: str | None, *, old: bool) -> Config:
    text = read_whole(log).decode(errors="replace") if log.is_file() else ""
    steps, computation = STEPS.search(text), COMPUTATION.search(text)
    names = ("num_samples_per_file", "num_files_train", "batch_size")
    params: dict[str, object] = dict(zip(names, map(int, steps.groups()), strict=True)) if steps else {}
    if computation:
        params["computation_time"] = float(computation[1])
    note = (
        "its configuration (.hydra/config.yaml) is not there: no other run is held against it, and the steps left out are DLIO's own choice"
    )
    return Config(params, asked, workload, str(log), old, [note], known=False)


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
