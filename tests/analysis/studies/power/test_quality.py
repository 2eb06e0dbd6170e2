"""The gate: what no GPU does is refused or said, in traces and in parameters; and the commands that ask it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.studies.power import parameters, quality, traces
from analysis.studies.power.traces import PartitionRow
from control.power.models.parameters import FORMAT, VERSION
from tests.analysis.studies.power import made_cpu
from tests.analysis.studies.power.made_reference import falling, reference
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.power.quality import Finding
    from control.power.models.reference import Reference
    from control.power.terms import Model
    from tests.analysis.studies.power.command import Power

PCTODL = REFERENCE / "pctodl"


def row(images_per_s: float = 100.0, power_w: float = 200.0, sm_mhz: float = 1950.0, **others: object) -> PartitionRow:
    said: dict[str, object] = {"throughput_images_per_s": images_per_s, "power_max_w": power_w, "sm_mhz": sm_mhz, "mem_mhz": 5001.0}
    said |= {"network": "one", "shares": (25.0,) * 4, "batches": (16,) * 4, **others}
    return PartitionRow(**said)  # type: ignore[arg-type]  # by name


def kinds(found: list[Finding]) -> list[tuple[str, bool]]:
    return [(one.kind, one.refuses) for one in found]


def test_traces_that_could_be_true_have_nothing() -> None:
    """Two of one clock are one point, and a hundredth less is noise."""
    swept = [row(80.0, 150.0, 900.0), row(100.0, 200.0, 1950.0), row(79.0, 152.0, 900.0), row(99.0, 199.0, 1965.0)]
    assert quality.findings(swept) == []


def test_rows_stored_as_zeros_are_told_apart_from_those_that_say_they_failed() -> None:
    head = ",".join((*traces.COLUMNS, "outcome", "reason")) + "\n"
    rows = traces.parse(head + "m,[5],[24],,9501,0,0,0,0,0,0,,\nm,[5],[32],,9501,,,,,,,oom,out of memory\n", "x")
    assert kinds(quality.findings(rows, "x")) == [("zeros", False), ("failed", False)]


@pytest.mark.parametrize(
    ("wrong", "refuses"),
    [
        (row(-1.0), True),
        (row(power_w=-5.0), True),
        (row(0.0), True),
        (row(shares=(125.0,), batches=(8,)), True),
        (row(power_mean_w=250.0), True),
        (row(mem_util_percent=112.2), False),
    ],
)
def test_what_cannot_be_is_named(wrong: PartitionRow, refuses: bool) -> None:  # noqa: FBT001  # a parameter of the test
    assert kinds(quality.findings([row(), wrong])) == [("impossible", refuses)]


def many(network: str, factor: float = 1.0) -> list[PartitionRow]:
    return [
        row(100.0 * count * factor, 150.0 + count, network=network, shares=(5.0,) * count, batches=(8,) * count) for count in range(1, 9)
    ]


def test_two_equal_numbers_are_no_copy() -> None:
    assert quality.findings([*many("one"), *many("two", 1.001)]) == []
    assert quality.findings([*many("one"), *many("two")[:2]]) == []
    assert quality.findings([*many("one"), *many("two", 1.1)[3:], *many("two")[:3]]) == []


def test_a_measured_curve_that_falls_with_the_clock_is_said_where_it_falls_most() -> None:
    """From 90 at 1200 MHz to 60 at 1950."""
    rows = [row(100.0, 100.0, 900.0), row(90.0, 150.0, 1200.0), row(60.0, 200.0, 1950.0), row(50.0, 90.0, 900.0, batches=(8,) * 4)]
    (found,) = quality.findings(rows)
    assert "33.3%" in found.what
    power = quality.findings([row(90.0, 200.0, 900.0), row(100.0, 150.0, 1950.0)])
    assert [(one.kind, one.what.split()[0]) for one in power] == [("falls", "power")]


def test_a_throttle_stands_in_the_clocks_place_and_activity_in_powers() -> None:
    def point(duty: float, images_per_s: float, activity: float) -> PartitionRow:
        return replace(row(images_per_s), power_max_w=None, sm_mhz=None, extra={"throttle": duty, "cpu_s_per_s": activity})

    assert quality.findings([point(0.5, 50.0, 0.6), point(1.0, 100.0, 1.1)]) == []
    assert kinds(quality.findings([point(0.5, 50.0, 0.6), point(1.0, 40.0, 0.3)])) == [("falls", False), ("falls", False)]


def of(*models: Model) -> dict[quality.Key, Model]:
    return {(model.network, model.gpu, model.mem_mhz): model for model in models}


def apart(network: str) -> Reference:
    """A model that shares nothing with those of `reference`."""
    made = reference(network, busy=70.0)
    return replace(
        made,
        sm_single=replace(made.sm_single, lam=1.0),
        sm_system=replace(made.sm_system, kappa=4.0),
        mem_single=replace(made.mem_single, phi=50.0),
        mem_system=replace(made.mem_system, k2=0.5),
        throughput=replace(made.throughput, gamma=0.5),
        power=replace(made.power, gamma=1.3),
    )


def test_parameters_that_could_be_true_have_nothing_and_a_part_of_others_is_a_copy() -> None:
    one, other = reference("one"), apart("two")
    assert quality.findings_of_models(of(one, other)) == []
    (found,) = quality.findings_of_models(of(one, replace(other, power_trees=one.power_trees)))
    assert (found.kind, found.what.split(":")[0]) == ("copy", "trees of power")


def test_every_answer_that_stands_on_a_copied_set_says_so(tmp_path: Path, power: Power) -> None:
    """`alone` shares nothing; `one` is what `two` is, and the answers are of `two`. A set beside them cannot be read."""
    for model in (apart("alone"), reference("one"), reference("two")):
        parameters.write(model, tmp_path / parameters.file_name(model), "reference")
    head = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "reference",
        "network": "broken",
        "gpu": "3080Ti",
        "mem_mhz": 1,
    }
    (tmp_path / "broken.json").write_text(json.dumps(head))
    setting = ["--shares", "25,25", "--batches", "16,16", "--sm", "900"]
    asked = [
        ["predict", tmp_path, "--network", "two", *setting],
        ["partition", tmp_path, "--network", "two", "--cap", "250"],
    ]
    for args in asked:
        (copy,) = [one for one in power(*args, "--json").json["findings"] if one["kind"] == "copy"]
        assert copy["where"] == "one on 3080Ti at 5001 MHz and two on 3080Ti at 5001 MHz"
    assert power("predict", tmp_path, "--network", "alone", *setting, "--json").json["findings"] == []


def test_own_models_under_another_name_are_copies_and_in_part_too() -> None:
    made = made_cpu.model()
    other = replace(made, network="vgg19", mem_mhz=9501.0)
    copies = [one for one in quality.findings_of_models(of(made, other)) if one.kind == "copy"]
    assert [one.refuses for one in copies] == [True]
    name, surface = next(iter(made.surfaces.items()))
    changed = replace(other, surfaces={**other.surfaces, name: replace(surface, left=surface.left + 0.01)})
    (found,) = [one for one in quality.findings_of_models(of(made, changed)) if one.kind == "copy"]
    assert name not in found.what.split(":")[0].split(", ")


def test_a_model_that_says_what_cannot_be_is_refused() -> None:
    made = reference()
    found = quality.findings_of_models(of(replace(made, throughput_trees=replace(made.throughput_trees, start=-9000.0))))
    assert ("impossible", True) in kinds(found)


@pytest.mark.needs("reference")
def test_the_references_parameters_have_the_defects_that_are_known_of_them() -> None:
    """One memory clock's static power is the other's; one kappa ended on its bound; throughput falls with the clock for 427 of 2630."""
    found = quality.findings_of_models({key: read() for key, read in parameters.available(PCTODL).items()})
    assert sum(one.kind == "static" for one in found) == 4
    assert [one.where.split()[0] for one in found if one.kind == "bound"] == ["efficientnet_v2_m"]
    falls = [one.what for one in found if one.kind == "falls"]
    count = {
        name: sum(int(what.split(" for ")[1].split()[0]) for what in falls if what.startswith(name)) for name in ("throughput", "power")
    }
    assert count == {"throughput": 427, "power": 70}
    assert not any(one.refuses for one in found)


def test_the_command_answers_1_where_something_refuses(
    tmp_path: Path, power: Power, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """Traces that could be true, all that is wrong with others, models that are copies, and no rows."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        traces.write(tmp_path / f"{name}.csv", many(name))
        parameters.write(reference(name), tmp_path / "models" / f"{name}.json", "reference")
    made = falling("three")
    made = replace(made, sm_system=replace(made.sm_system, kappa=19.9997))
    parameters.write(made, tmp_path / "models/three.json", "reference")
    wrong = [row(100.0, 100.0, 900.0), row(60.0, 90.0, 1950.0), row(-1.0, batches=(8,) * 4), row(shares=(125.0,), batches=(8,))]
    traces.write(tmp_path / "wrong.csv", [*wrong, row(mem_util_percent=112.2, batches=(4,) * 4)])
    text = (tmp_path / "wrong.csv").read_text()
    (tmp_path / "wrong.csv").write_text(text + "m,[5],[24],,9501,0,0,0,0,0,0\n")
    traces.write(tmp_path / "none.csv", [])
    calls = [(["one.csv"], 0), (["one.csv", "two.csv"], 1), (["wrong.csv"], 1), (["models"], 1), (["none.csv"], 2)]
    for names, code in calls:
        printed = power("quality", *names)
        assert printed.code == code, names
        assert (printed.out or printed.err) == snapshot(name=" ".join(names))
    found = power("quality", "models/three.json", "--json").json
    assert (found["rows"], found["models"], [one["kind"] for one in found["findings"]]) == (0, 1, ["bound", "falls"])
