"""Traces on disk to parameters on disk."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from analysis.opening import read_whole
from analysis.plain import one_line
from analysis.studies.power import parameters, quality
from analysis.studies.power.traces import parse
from analysis.terms import Refused
from control.power.models.own import Own

from . import held_out, memory_stage, original, own
from .material import gather, networks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from analysis.studies.power.quality import Finding
    from analysis.studies.power.traces import Row
    from control.power.models.reference import Reference

    from .material import Material


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, what it was fitted to, where it was written, and what the quality gate found in the traces.

    `given_mem_util`: see `memory_stage.judge`; it belongs to the traces, and no prediction is made so.
    """

    model: Own | Reference
    material: Material
    path: Path
    findings: tuple[str, ...] = ()
    given_mem_util: Mapping[str, Any] = field(default_factory=dict)


def fit(traces: Sequence[Path], gpu: str, output: Path, *, kind: str, network: str | None = None) -> list[Fitted]:
    """Fit every network and memory clock in the traces, and write each into the folder `output`.

    Raises: Refused, if the traces have nothing that can be fitted, or not the network asked for, and for a GPU of no name.
    """
    if not gpu.strip() or not gpu.isprintable():
        raise Refused(f"--gpu {one_line(repr(gpu), 40)}: no name of a GPU.")
    rows, sources, findings = _read(traces)
    there = [key for key in networks(rows) if network in {None, key[0]}]
    if not there:
        names = ", ".join(sorted({one_line(name) for name, _ in networks(rows)})) or "none"
        raise Refused(f"No rows of {one_line(network) if network else 'any network'} in these traces; networks there: {names}.")
    materials = [gather(rows, *key, gpu) for key in there]
    output.mkdir(parents=True, exist_ok=True)
    fitted = []
    for material in materials:
        model = _own(material, sources) if kind == "own" else original.fit(material)
        path = output / parameters.file_name(model)
        parameters.write(model, path, "own" if kind == "own" else "reference")
        stage = memory_stage.judge(material) if kind == "own" else {}
        fitted.append(Fitted(model, material, path, findings, stage))
    return fitted


def document(one: Fitted) -> dict[str, Any]:
    """What is to be known of a fit, for programs."""
    material = one.material
    return {
        "network": material.network,
        "gpu": material.gpu,
        "mem_mhz": material.mem_mhz,
        "path": str(one.path),
        "anchors": len(material.anchors),
        "others": len(material.others),
        "static": len(material.static),
        "left_out": dict(material.left_out),
        "findings": list(one.findings),
        "held_out": dict(one.model.held_out) if isinstance(one.model, Own) else None,
        "held_out_given_mem_util": dict(one.given_mem_util) or None,
    }


def _own(material: Material, sources: Sequence[dict[str, str]]) -> Own:
    model = held_out.judge(material, own.fit(material))
    left_out = dict(material.left_out)
    counts = {"anchors": len(material.anchors), "others": len(material.others), "static": len(material.static), "left_out": left_out}
    return replace(model, sources={"files": list(sources), **counts})


def _read(traces: Sequence[Path]) -> tuple[list[Row], list[dict[str, str]], tuple[str, ...]]:
    """All rows of files and folders, each file's name and hash, and what the quality gate notes.

    Raises: Refused, for what cannot be read and for what the gate refuses.
    """
    files = [file for place in traces for file in (sorted(place.glob("*.csv")) if place.is_dir() else [place])]
    if not files:
        raise Refused(f"{', '.join(map(str, traces))}: no .csv files in it.")
    rows: list[Row] = []
    sources = []
    found: list[Finding] = []
    for file in dict.fromkeys(files):
        content = read_whole(file)
        its = parse(_decoded(content, file), str(file))
        rows += its
        found += quality.findings(its, file.name)
        sources.append({"name": file.name, "sha256": sha256(content).hexdigest()})
    found += [one for one in quality.findings(rows, "all files together") if one.kind == "copy"]
    bad = next((one for one in found if one.refuses), None)
    if bad:
        raise Refused(f"{bad.where}: {bad.what} Nothing is fitted to such traces; mend or leave out these rows.")
    return rows, sources, tuple(f"{one.where}: {one.what}" for one in found)


def _decoded(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(f"{file}: is no text in UTF-8; a file of traces is CSV.") from None
