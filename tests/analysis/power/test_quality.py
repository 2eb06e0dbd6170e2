"""The gate: what no GPU does is refused or said, in traces and in parameters; and the commands that ask it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.power import parameters, quality, quality_of_models, traces
from analysis.power.traces import Row
from tests.analysis.power import made_cpu
from tests.analysis.power.made_reference import falling, reference
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.power.quality import Finding
    from analysis.power.terms import Model

PCTODL = REFERENCE / "pctodl"


def row(images_per_s: float = 100.0, power_w: float = 200.0, sm_mhz: float = 1950.0, **others: object) -> Row:
    said: dict[str, object] = {"throughput_images_per_s": images_per_s, "power_max_w": power_w, "sm_mhz": sm_mhz, "mem_mhz": 5001.0}
    said |= {"network": "one", "shares": (25.0,) * 4, "batches": (16,) * 4, **others}
    return Row(**said)  # type: ignore[arg-type]  # by name


def kinds(found: list[Finding]) -> list[tuple[str, bool]]:
    return [(one.kind, one.refuses) for one in found]


def test_traces_that_could_be_true_have_nothing() -> None:
    """Two of one clock are one point, and a hundredth less is noise."""
    swept = [row(80.0, 150.0, 900.0), row(100.0, 200.0, 1950.0), row(79.0, 152.0, 900.0), row(99.0, 199.0, 1965.0)]
    assert quality.findings(swept) == []


def test_rows_stored_as_zeros_are_told_apart_from_those_that_say_they_failed() -> None:
    head = ",".join((*traces.COLUMNS, "outcome", "reason")) + "\n"
    rows = traces.parse(head + "m,[5],[24],,9501,0,0,0,0,0,0,,\nm,[5],[32],,9501,,,,,,,oom,out of memory\n", "x")
    zeros, failed = quality.findings(rows, "x")
    assert (zeros.kind, zeros.what) == ("zeros", "1 of 2 rows stored as zeros; they failed, and were left out: line 2.")
    assert (failed.kind, failed.what) == ("failed", "1 of 2 rows failed; they were left out: line 3.")
    assert not zeros.refuses


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
def test_what_cannot_be_is_named(wrong: Row, refuses: bool) -> None:  # noqa: FBT001  # a parameter of the test
    assert kinds(quality.findings([row(), wrong])) == [("impossible", refuses)]


def many(network: str, factor: float = 1.0) -> list[Row]:
    return [
        row(100.0 * count * factor, 150.0 + count, network=network, shares=(5.0,) * count, batches=(8,) * count) for count in range(1, 9)
    ]


def test_numbers_of_another_network_are_a_copy() -> None:
    (found,) = quality.findings([*many("one"), *many("two")])
    assert (found.kind, found.refuses) == ("copy", True)
    assert found.what == "one and two have the same numbers in 8 of 8 common configurations: one is a copy of the other."
    assert quality.findings([*many("one"), *many("two", 1.001)]) == []


def test_two_equal_numbers_are_no_copy() -> None:
    assert quality.findings([*many("one"), *many("two")[:2]]) == []
    assert quality.findings([*many("one"), *many("two", 1.1)[3:], *many("two")[:3]]) == []


def test_a_measured_curve_that_falls_with_the_clock_is_said_where_it_falls_most() -> None:
    rows = [row(100.0, 100.0, 900.0), row(90.0, 150.0, 1200.0), row(60.0, 200.0, 1950.0), row(50.0, 90.0, 900.0, batches=(8,) * 4)]
    (found,) = quality.findings(rows)
    assert (
        found.what == "throughput falls by more than 3% with the clock in 2 steps of 1 configurations, at worst by 33.3% from 1200 to 1950."
    )
    power = quality.findings([row(90.0, 200.0, 900.0), row(100.0, 150.0, 1950.0)])
    assert [(one.kind, one.what.split()[0]) for one in power] == [("falls", "power")]


def test_a_throttle_stands_in_the_clocks_place_and_activity_in_powers() -> None:
    def point(duty: float, images_per_s: float, activity: float) -> Row:
        return replace(row(images_per_s), power_max_w=None, sm_mhz=None, extra={"throttle": duty, "cpu_s_per_s": activity})

    assert quality.findings([point(0.5, 50.0, 0.6), point(1.0, 100.0, 1.1)]) == []
    assert kinds(quality.findings([point(0.5, 50.0, 0.6), point(1.0, 40.0, 0.3)])) == [("falls", False), ("falls", False)]


def of(*models: Model) -> dict[quality_of_models.Key, Model]:
    return {(model.network, model.gpu, model.mem_mhz): model for model in models}


def test_parameters_that_could_be_true_have_nothing() -> None:
    assert quality_of_models.findings(of(reference())) == []


def test_a_model_that_is_anothers_is_refused() -> None:
    copies = [one for one in quality_of_models.findings(of(reference("one"), reference("two"))) if one.kind == "copy"]
    assert copies == [quality.Finding("copy", "two on 3080Ti at 5001 MHz", "it is a copy of one on 3080Ti at 5001 MHz.", refuses=True)]


def test_so_is_a_part_of_one() -> None:
    one, other = reference("one"), reference("two", busy=70.0)
    other = replace(
        other,
        sm_single=replace(other.sm_single, lam=1.0),
        sm_system=replace(other.sm_system, kappa=4.0),
        mem_single=replace(other.mem_single, phi=50.0),
        mem_system=replace(other.mem_system, k2=0.5),
        throughput=replace(other.throughput, gamma=0.5),
        power=replace(other.power, gamma=1.3),
    )
    assert quality_of_models.findings(of(one, other)) == []
    (found,) = quality_of_models.findings(of(one, replace(other, power_trees=one.power_trees)))
    assert (found.kind, found.what) == ("copy", "trees of power: a copy of what one on 3080Ti at 5001 MHz has.")


def test_own_models_under_another_name_are_copies_and_in_part_too() -> None:
    made = made_cpu.model()
    other = replace(made, network="vgg19", mem_mhz=9501.0)
    copies = [one for one in quality_of_models.findings(of(made, other)) if one.kind == "copy"]
    assert [(one.what, one.refuses) for one in copies] == [("it is a copy of resnet50 on cpu at 0 MHz.", True)]
    name, surface = next(iter(made.surfaces.items()))
    changed = replace(other, surfaces={**other.surfaces, name: replace(surface, left=surface.left + 0.01)})
    (found,) = [one for one in quality_of_models.findings(of(made, changed)) if one.kind == "copy"]
    assert "a copy of what resnet50 on cpu at 0 MHz has." in found.what
    assert name not in found.what.split(":")[0].split(", ")


def test_a_parameter_on_the_bound_of_its_fit_is_said() -> None:
    made = reference()
    (found,) = quality_of_models.findings(of(replace(made, sm_system=replace(made.sm_system, kappa=19.9997))))
    assert (found.kind, found.what) == ("bound", "kappa of the SM prior is 20, on the bound of its fit (0.1 to 20): it did not converge.")


def test_a_model_whose_throughput_falls_with_the_clock_is_said() -> None:
    """It starts at 5000 images/s and ends at most at 1000."""
    (found,) = quality_of_models.findings(of(falling()))
    assert (found.kind, found.what.split(";")[0].split(" for ")[1]) == ("falls", "263 of the 263 partitions of the grid.")


def test_a_model_that_says_what_cannot_be_is_refused() -> None:
    made = reference()
    found = quality_of_models.findings(of(replace(made, throughput_trees=replace(made.throughput_trees, start=-9000.0))))
    assert ("impossible", True) in kinds(found)


@pytest.mark.needs("reference")
def test_the_references_parameters_have_the_defects_that_are_known_of_them() -> None:
    """One memory clock's static power is the other's; one kappa ended on its bound; throughput falls with the clock for 427 of 2630."""
    found = quality_of_models.findings({key: read() for key, read in parameters.available(PCTODL).items()})
    assert sum(one.kind == "static" for one in found) == 4
    assert [one.where for one in found if one.kind == "bound"] == ["efficientnet_v2_m on 3080Ti at 9501 MHz"]
    falls = [one.what for one in found if one.kind == "falls"]
    count = {
        name: sum(int(what.split(" for ")[1].split()[0]) for what in falls if what.startswith(name)) for name in ("throughput", "power")
    }
    assert count == {"throughput": 427, "power": 70}
    assert not any(one.refuses for one in found)


def test_the_command_answers_1_where_something_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces.write(tmp_path / "one.csv", many("one"))
    traces.write(tmp_path / "two.csv", many("two"))
    assert main(["power", "quality", str(tmp_path / "one.csv")]) == 0
    assert "8 rows: 0 findings; 0 refuse." in capsys.readouterr().out
    assert main(["power", "quality", str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]) == 1
    assert "! one and two have the same numbers" in capsys.readouterr().out


def test_traces_without_rows_are_nothing_to_trust(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces.write(tmp_path / "none.csv", [])
    assert main(["power", "quality", str(tmp_path / "none.csv")]) == 2
    assert "none.csv: no rows; there is nothing to look at." in capsys.readouterr().err


def test_the_command_says_the_same_to_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters.write(falling(), tmp_path / "one.json", "reference")
    assert main(["power", "quality", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["models"], [one["kind"] for one in said["findings"]]) == (0, 1, ["falls"])
