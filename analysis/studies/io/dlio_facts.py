"""What DLIO notes beside its step lists: where the data lay, the machine, when it began, and its own figures."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.opening import read_whole
from analysis.terms import Unreadable

from .dlio_json import DAMAGED, yaml_of
from .terms import GIB, MIB, Host

if TYPE_CHECKING:
    from analysis.formats.fields import Fields

    from .dlio_config import Config

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")


def reported_in(summary: Fields | None) -> dict[str, object]:
    """Answer DLIO's own figures, under its own names."""
    if summary is None:
        return {}
    return {**summary.optional_mapping("metric"), "data_size_per_host_GB": summary.value.get("data_size_per_host_GB")}


def record_length_of(reported: Mapping[str, object]) -> float | None:
    """The record length that DLIO counted with, of its two rates; None where it reports none of them."""
    rate, mb = (reported.get(name) for name in ("train_throughput_mean_samples_per_second", "train_io_mean_MB_per_second"))
    if not (isinstance(rate, float) and isinstance(mb, float) and 0 < rate < math.inf and 0 < mb < math.inf):
        return None
    return mb * MIB / rate


def dataset_of(folder: Path, config: Config) -> dict[str, object]:
    """What the run was to read. Its folder is relative to where the job ran, which hydra notes: two jobs may use the same name."""
    hydra = folder / ".hydra" / "hydra.yaml"
    top = yaml_of(hydra) if hydra.is_file() else None
    result: object = top
    for key in ("hydra", "runtime", "cwd"):
        result = result.get(key) if isinstance(result, Mapping) else None
    return {
        "folder": str(Path(str(result or "")) / str(config.params.get("data_folder", ""))),
        "format": config.params.get("format"),
        "files": config.optional_whole("num_files_train"),
        "samples_per_file": config.optional_whole("num_samples_per_file"),
    }


def host_of(summary: Fields) -> Host:
    """Answer the machine as DLIO saw it."""
    memory = summary.value.get("host_memory_GB")
    cpus = summary.value.get("host_cpu_count")
    cached = str(summary.optional_mapping("host_meminfo").get("Cached", "")).removesuffix(" kB")
    return Host(
        name=summary.optional_text("hostname"),
        hosts=summary.whole("num_hosts") if summary.has("num_hosts") else None,
        cpus=cpus[0] if isinstance(cpus, list) and cpus and isinstance(cpus[0], int) else None,
        memory_bytes=sum(memory) * GIB if isinstance(memory, list) and all(isinstance(one, int | float) for one in memory) else None,
        cached_bytes=float(cached) * 1024 if cached.isdecimal() else None,
    )


def started_of(folder: Path, summary: Fields | None) -> str | None:
    """When it began, by its summary or its log; DLIO writes UTC without saying so."""
    text = summary.optional_text("start") if summary else None
    log = folder / "dlio.log"
    if text is None and log.is_file():
        match = STAMP.search(read_whole(log).decode(errors="replace"))
        text = match[0] if match else None
    try:
        return text and datetime.fromisoformat(text).replace(tzinfo=UTC).isoformat()
    except ValueError:
        raise Unreadable(f"{folder / 'summary.json'}: has start = {text!r}, where a time belongs; {DAMAGED}.") from None


def number_of(fields: Fields, name: str) -> float | None:
    """Answer a number, None where there is none."""
    value = fields.value.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
