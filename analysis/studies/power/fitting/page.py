"""A fit on a page: what it was fitted to, what was left out, and how wrong it is on rows it was not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.plain import one_line
from control.power.models.own import Own

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .files import Fitted

QUANTITIES = {"throughput_images_per_s": "throughput", "dynamic_power_w": "dynamic power", "power_w": "power"}
HEADS = ("mean |error|", "inside", "median", "95 %", "bias", "in 90 %")
GIVEN = "throughput, given the measured memory utilisation, as the original's stage has it: of partitions that ran, no prediction"
WIDTHS = (14, 10, 10, 10, 10, 10)


def text(one: Fitted) -> str:
    """Lines of text without the last newline."""
    material = one.material
    unit = "" if material.cap_unit == "W" else f", power in {material.cap_unit}" if material.cap_unit != "none" else ", no power"
    others, idle = len(material.others), len(material.static)
    lines = [
        f"{one_line(material.network)} on {one_line(material.gpu)}, memory at {material.mem_mhz:g} MHz{unit}",
        f"  {len(material.anchors)} anchors at {material.clock} {material.anchor:g}, {others} rows at other clocks, {idle} without work",
    ]
    if material.left_out:
        lines.append("  left out: " + ", ".join(f"{count} {why}" for why, count in sorted(material.left_out.items())))
    lines += [f"  finding: {found}" for found in one.findings]
    if isinstance(one.model, Own):
        lines += _errors(one.model.held_out)
        lines += [f"  {GIVEN}:", *_errors(one.given_mem_util)] if one.given_mem_util else []
    else:
        lines.append("  as the original: its scores are in-sample and are not repeated; nothing was held out")
    return "\n".join([*lines, f"  written: {one.path}"])


def _errors(held_out: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    if not held_out:
        return ["  nothing could be held out: too few groups of partitions, batches and clocks"]
    heads = "".join(f"{head:>{width}}" for head, width in zip(HEADS, WIDTHS, strict=True))
    lines = [f"  {'held out by':<12} {'':<14}{heads}  worst group"]
    for grouping, found in held_out.items():
        for quantity, its in found.items():
            shown = [its["mape"], its["inside"], its["median"], its["p95"], its["bias"], its["within_90"]]
            figures = "".join(f"{_percent(one):>{width}}" for one, width in zip(shown, WIDTHS, strict=True))
            worst = f"{its['worst_group']} ({_percent(its['worst_group_mape'])})"
            lines.append(f"  {grouping:<12} {QUANTITIES[quantity]:<14}{figures}  {worst}")
    return lines


def _percent(fraction: float | None) -> str:
    return "–" if fraction is None else f"{100 * fraction:.2f} %"
