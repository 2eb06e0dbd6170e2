"""From trace files to parameter files: rows sorted into anchors, clock series and static power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.answer import Answer, Line, Part, marked, of_parts, text_table
from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Refused
from control.power.algorithms.steady import PROMISED

from . import fit_original, fit_own, parameters, quality
from .material import Material, gather, networks
from .traces import PartitionRow, read

if TYPE_CHECKING:
    from control.power.models.own import Own
    from control.power.models.reference import Reference

QUANTITY_NAMES = {"throughput_images_per_s": "throughput", "power_w": "power"}
HEADS = ("mean |error|", "median", "95 %", "bias", "guarded")
SHOWN = ("mape", "median", "p95", "bias", "guarded")
GIVEN = (
    "throughput, given the measured memory utilisation, as in the original's stage: only for "
    "partitions that ran, not a prediction"
)


def answer(
    traces: Sequence[Path], gpu: str, output: Path, *, kind: str, network: str | None = None
) -> Answer:
    """Fit every network and memory clock in the traces, write the models, report errors.

    Raises: Refused, if the traces have nothing to fit, or lack the requested network, and for an
    invalid name of a GPU.
    """
    if not gpu.strip() or not gpu.isprintable():
        raise Refused(f"--gpu {one_line(repr(gpu), 40)}: not a valid GPU name.")
    files = [
        file
        for place in traces
        for file in (sorted(place.glob("*.csv")) if place.is_dir() else [place])
    ]
    if not files:
        raise Refused(f"{', '.join(map(str, traces))}: no .csv files found.")
    rows_of = {file: read(file) for file in files}
    sources = [
        {"name": file.name, "sha256": sha256(read_whole(file)).hexdigest()} for file in rows_of
    ]
    found = [
        finding for file, its in rows_of.items() for finding in quality.findings(its, file.name)
    ]
    rows = [row for its in rows_of.values() for row in its]
    materials = [gather(rows, *key, gpu) for key in _wanted(rows, network)]
    findings = [f"{finding.where}: {finding.what}" for finding in found]
    output.mkdir(parents=True, exist_ok=True)
    documents: list[dict[str, Any]] = []
    page: list[Part] = []
    for material in materials:
        counts = {
            "anchors": len(material.anchors),
            "others": len(material.others),
            "static": len(material.static),
            "left_out": dict(material.left_out),
        }
        model: Own | Reference
        known: dict[str, Any] = dict.fromkeys(("guard", "held_out", "held_out_given_mem_util"))
        if kind == "own":
            own = fit_own.judge(material, fit_own.fit(material))
            model = replace(own, sources={"files": sources, **counts})
            known = {"guard": own.guard, "held_out": dict(own.held_out)}
            # This figure describes the traces; predictions are not made this way.
            known["held_out_given_mem_util"] = fit_own.judge_memory_stage(material) or None
        else:
            model = fit_original.fit(material)
        path = output / parameters.file_name(model)
        parameters.write(model, path)
        names = {name: getattr(material, name) for name in ("network", "gpu", "mem_mhz")}
        documents.append({**names, "path": str(path), **counts, "findings": findings, **known})
        page += ["", *_parts(material, findings, known, path)]
    return of_parts({"fits": documents}, page)


def _wanted(rows: Sequence[PartitionRow], network: str | None) -> list[tuple[str, float]]:
    every = networks(rows)
    wanted = [key for key in every if network in {None, key[0]}]
    if not wanted:
        names = ", ".join(sorted({one_line(name) for name, _ in every})) or "none"
        asked = one_line(network) if network else "any network"
        raise Refused(f"No rows of {asked} in these traces; available: {names}.")
    return wanted


def _parts(
    material: Material, findings: Sequence[str], known: Mapping[str, Any], path: Path
) -> Iterator[Part]:
    unit = {"W": "", "none": ", no power"}.get(material.cap_unit, f", power in {material.cap_unit}")
    name = f"{material.network} on {material.gpu}, memory at {material.mem_mhz:g} MHz{unit}"
    others, idle = len(material.others), len(material.static)
    yield Line(name, tone="strong")
    anchors = f"{len(material.anchors)} anchors at {material.clock} {material.anchor:g}"
    yield f"{anchors}, {others} rows at other clocks, {idle} without work"
    if material.left_out:
        yield "left out: " + ", ".join(
            f"{count} {reason}" for reason, count in sorted(material.left_out.items())
        )
    yield from marked(("finding:", finding) for finding in findings)
    if known["held_out"] is None:
        yield (
            "as in the original, nothing was held out; its in-sample scores are not repeated here"
        )
    else:
        yield _errors(known["held_out"])
        if known["guard"] is not None:
            held = f"for {PROMISED:.0%} of rows held out by partition or clock"
            yield f"guard band: predicted power times {known['guard']:.3f}, {held}"
        if known["held_out_given_mem_util"]:
            yield f"{GIVEN}:"
            yield _errors(known["held_out_given_mem_util"])
    yield f"written: {path}"


def _errors(held_out: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Part:
    if not held_out:
        return "nothing could be held out: too few groups of partitions, batches and clocks"
    rows = [
        [
            grouping,
            QUANTITY_NAMES[quantity],
            *(_percent(its[name]) for name in SHOWN),
        ]
        for grouping, result in held_out.items()
        for quantity, its in result.items()
    ]
    return text_table(["held out by", "", *HEADS], rows, left=2)


def _percent(fraction: float | None) -> str:
    return "–" if fraction is None else f"{100 * fraction:.2f} %"
