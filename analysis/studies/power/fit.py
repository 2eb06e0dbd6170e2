"""Traces on disk to parameters on disk: measured rows sorted into anchors, clock series and static power, fitted, and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.answer import Answer, Line, Part, marked, of_parts, text_table
from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Refused
from control.power.algorithms.steady import PROMISED
from control.power.models.own import Own

from . import fit_original, fit_own, parameters, quality
from .material import Material, gather, networks
from .traces import PartitionRow, parse

if TYPE_CHECKING:
    from control.power.models.reference import Reference

    from .quality import Finding


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, what it was fitted to, where it was written, and what is wrong with the traces.

    `given_mem_util`: see `fit_own.judge_memory_stage`; it belongs to the traces, and no prediction is made so.
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
        model = _own(material, sources) if kind == "own" else fit_original.fit(material)
        path = output / parameters.file_name(model)
        parameters.write(model, path, "own" if kind == "own" else "reference")
        stage = fit_own.judge_memory_stage(material) if kind == "own" else {}
        fitted.append(Fitted(model, material, path, findings, stage))
    return fitted


def answer(fits: Sequence[Fitted]) -> Answer:
    """Return each fit: what it was made from, its findings, and its errors."""
    return of_parts({"fits": list(map(document, fits))}, (part for fitted in fits for part in ("", *parts(fitted))))


def document(fitted: Fitted) -> dict[str, Any]:
    """Return a fit for programs."""
    material = fitted.material
    return {
        "network": material.network,
        "gpu": material.gpu,
        "mem_mhz": material.mem_mhz,
        "path": str(fitted.path),
        "anchors": len(material.anchors),
        "others": len(material.others),
        "static": len(material.static),
        "left_out": dict(material.left_out),
        "findings": list(fitted.findings),
        "guard": fitted.model.guard if isinstance(fitted.model, Own) else None,
        "held_out": dict(fitted.model.held_out) if isinstance(fitted.model, Own) else None,
        "held_out_given_mem_util": dict(fitted.given_mem_util) or None,
    }


def _own(material: Material, sources: Sequence[dict[str, str]]) -> Own:
    model = fit_own.judge(material, fit_own.fit(material))
    left_out = dict(material.left_out)
    counts = {"anchors": len(material.anchors), "others": len(material.others), "static": len(material.static), "left_out": left_out}
    return replace(model, sources={"files": list(sources), **counts})


def _read(traces: Sequence[Path]) -> tuple[list[PartitionRow], list[dict[str, str]], tuple[str, ...]]:
    """All rows of files and folders, each file's name and hash, and what is wrong with them. Raises: Refused, for what cannot be read."""
    files = [file for place in traces for file in (sorted(place.glob("*.csv")) if place.is_dir() else [place])]
    if not files:
        raise Refused(f"{', '.join(map(str, traces))}: no .csv files in it.")
    rows: list[PartitionRow] = []
    sources = []
    result: list[Finding] = []
    for file in dict.fromkeys(files):
        content = read_whole(file)
        its = parse(_decoded(content, file), str(file))
        rows += its
        result += quality.findings(its, file.name)
        sources.append({"name": file.name, "sha256": sha256(content).hexdigest()})
    return rows, sources, tuple(f"{finding.where}: {finding.what}" for finding in result)


def _decoded(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(f"{file}: is no text in UTF-8; a file of traces is CSV.") from None


QUANTITY_NAMES = {"throughput_images_per_s": "throughput", "power_w": "power"}
HEADS = ("mean |error|", "inside", "median", "95 %", "bias", "guarded")
GIVEN = "throughput, given the measured memory utilisation, as the original's stage has it: of partitions that ran, no prediction"


def parts(fitted: Fitted) -> Iterator[Part]:
    """What is to be known of a fit: what it was made from, its findings, and how wrong it is on rows it was not shown."""
    material = fitted.material
    unit = "" if material.cap_unit == "W" else f", power in {material.cap_unit}" if material.cap_unit != "none" else ", no power"
    others, idle = len(material.others), len(material.static)
    yield Line(f"{material.network} on {material.gpu}, memory at {material.mem_mhz:g} MHz{unit}", tone="strong")
    yield f"{len(material.anchors)} anchors at {material.clock} {material.anchor:g}, {others} rows at other clocks, {idle} without work"
    if material.left_out:
        yield "left out: " + ", ".join(f"{count} {reason}" for reason, count in sorted(material.left_out.items()))
    yield from marked(("finding:", f"{result}") for result in fitted.findings)
    if isinstance(fitted.model, Own):
        yield _errors(fitted.model.held_out)
        if fitted.model.guard is not None:
            yield f"guard band: predicted power times {fitted.model.guard:.3f}, for {PROMISED:.0%} of rows held out by partition or clock"
        if fitted.given_mem_util:
            yield f"{GIVEN}:"
            yield _errors(fitted.given_mem_util)
    else:
        yield "as the original: its scores are in-sample and are not repeated; nothing was held out"
    yield f"written: {fitted.path}"


def _errors(held_out: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Part:
    if not held_out:
        return "nothing could be held out: too few groups of partitions, batches and clocks"
    rows = []
    for grouping, result in held_out.items():
        for quantity, its in result.items():
            shown = [its["mape"], its["inside"], its["median"], its["p95"], its["bias"], its["guarded"]]
            worst = f"{its['worst_group']} ({_percent(its['worst_group_mape'])})"
            rows.append([grouping, QUANTITY_NAMES[quantity], *map(_percent, shown), worst])
    return text_table(["held out by", "", *HEADS, "worst group"], rows, left=2)


def _percent(fraction: float | None) -> str:
    return "–" if fraction is None else f"{100 * fraction:.2f} %"
