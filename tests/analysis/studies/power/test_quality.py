"""Traces and parameters that no GPU could yield are reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.studies.power import parameters, quality, traces
from analysis.studies.power.traces import PartitionRow
from tests.analysis.studies.power.made_reference import falling
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.power.quality import Defect
    from control.power.terms import Model
    from tests.analysis.studies.power.command import Power

PCTODL = REFERENCE / "pctodl"


def row(
    images_per_s: float = 100.0, power_w: float = 200.0, sm_mhz: float = 1950.0, **others: object
) -> PartitionRow:
    said: dict[str, object] = {
        "throughput_images_per_s": images_per_s,
        "power_max_w": power_w,
        "sm_mhz": sm_mhz,
        "mem_mhz": 5001.0,
    }
    said |= {"network": "one", "shares": (25.0,) * 4, "batches": (16,) * 4, **others}
    return PartitionRow(**said)  # type: ignore[arg-type]  # by name


def kinds(found: list[Defect]) -> list[str]:
    return [one.kind for one in found]


def test_a_curve_that_falls_with_the_clock_names_its_worst_drop() -> None:
    """From 90 at 1200 MHz to 60 at 1950."""
    rows = [
        row(100.0, 100.0, 900.0),
        row(90.0, 150.0, 1200.0),
        row(60.0, 200.0, 1950.0),
        row(50.0, 90.0, 900.0, batches=(8,) * 4),
    ]
    (found,) = quality.findings(rows)
    assert "33.3%" in found.what
    power = quality.findings([row(90.0, 200.0, 900.0), row(100.0, 150.0, 1950.0)])
    assert [(one.kind, one.what.split()[0]) for one in power] == [("falls", "power")]


def test_a_throttle_replaces_the_clock_and_activity_the_power() -> None:
    def point(duty: float, images_per_s: float, activity: float) -> PartitionRow:
        return replace(
            row(images_per_s),
            power_max_w=None,
            sm_mhz=None,
            extra={"throttle": duty, "cpu_s_per_s": activity},
        )

    assert quality.findings([point(0.5, 50.0, 0.6), point(1.0, 100.0, 1.1)]) == []
    assert kinds(quality.findings([point(0.5, 50.0, 0.6), point(1.0, 40.0, 0.3)])) == [
        "falls",
        "falls",
    ]


def of(*models: Model) -> dict[quality.Key, Model]:
    return {(model.network, model.gpu, model.mem_mhz): model for model in models}


@pytest.mark.needs("reference")
def test_the_reference_parameters_have_their_known_defects() -> None:
    """Throughput falls with the clock for 427 of 2630."""
    found = quality.findings_of_models(
        {key: read() for key, read in parameters.available(PCTODL).items()}
    )
    assert {one.kind for one in found} == {"falls"}
    falls = [one.what for one in found]
    count = {
        name: sum(int(what.split(" for ")[1].split()[0]) for what in falls if what.startswith(name))
        for name in ("throughput", "power")
    }
    assert count == {"throughput": 427, "power": 70}


def test_the_command(
    tmp_path: Path, power: Power, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text(
        traces.as_csv([row(), row(80.0, 150.0, 900.0)]), encoding="utf-8"
    )
    parameters.write(falling("three"), tmp_path / "models/three.json")
    (tmp_path / "wrong.csv").write_text(
        traces.as_csv([row(100.0, 100.0, 900.0), row(60.0, 90.0, 1950.0)]), encoding="utf-8"
    )
    text = (tmp_path / "wrong.csv").read_text()
    (tmp_path / "wrong.csv").write_text(text + "m,[5],[24],,9501,0,0,0,0,0,0\n")
    (tmp_path / "none.csv").write_text(traces.as_csv([]), encoding="utf-8")
    for names, code in (("one.csv",), 0), (("wrong.csv", "models"), 0), (("none.csv",), 2):
        printed = power("quality", *names)
        assert printed.code == code, names
        assert (printed.out or printed.err) == snapshot(name=" ".join(names))
    found = power("quality", "models/three.json", "--json").json
    assert (found["rows"], found["models"], [one["kind"] for one in found["findings"]]) == (
        0,
        1,
        ["falls"],
    )
