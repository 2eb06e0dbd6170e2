"""`data/run.schema.json`, made of the types in `control/saved.py`, explains saved runs and fits."""

from __future__ import annotations

import copy
import hashlib
import json
import lzma
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from statistics import fmean, median
from typing import Any, cast

import jsonschema
import pytest
import yaml

from analysis.load import parsed
from analysis.terms import (
    Design,
    DesignPoint,
    Factor,
    Metric,
    SavedStudy,
    SavedTweakSet,
    SavedWorkload,
    Setting,
)
from control import saved
from control.record import SCHEMA_VERSION
from docs.generate import ROWS_AND_COLUMNS, documented, schema_text
from docs.generate import SCHEMA as PATH
from fixtures import record
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

DATA = Path(__file__).parents[1] / "data"
# Files of `harness-*` are pytest-benchmark's alone.
SAVED = (".json", ".json.xz")
RUNS = sorted(
    path
    for path in (DATA / "runs").iterdir()
    if path.name.endswith(SAVED) and not path.name.startswith("harness-")
)
SCHEMA: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def alone(path: Path) -> Any:
    """The JSON of a saved run, without the record beside it."""
    content = path.read_bytes()
    return json.loads(lzma.decompress(content) if path.suffix == ".xz" else content)


def in_schema() -> dict[str, Mapping[str, Any]]:
    """Every place the schema names a property at, as the pages write it."""
    return dict(documented(SCHEMA))


def explained(entries: list[list[str]]) -> dict[str, set[str]]:
    """Return the fields of each row of `docs/rows.yaml`, named before the unit or backquoted."""
    names: dict[str, set[str]] = {}
    for fields_of_row, _, meaning in entries:
        row, _, own = fields_of_row.partition(".")
        names.setdefault(row, set()).update(own.split(", "), re.findall(r"`(\w+)`", meaning))
    return names


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_each_field_of_a_reported_row_is_explained(path: Path) -> None:
    known: dict[str, set[str]] = {}
    for entries in yaml.safe_load(ROWS_AND_COLUMNS.read_text(encoding="utf-8"))["rows"].values():
        known |= explained(entries)
    cells = [benchmark["extra_info"] for benchmark in cast("Any", parsed(path))["benchmarks"]]
    rows = [
        (name, row)
        for cell in cells
        for name, rows in cell.get("report", {}).items()
        for row in rows
    ]
    assert {
        (name, field) for name, row in rows for field in row if field not in known.get(name, ())
    } == set()


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_committed_run_is_listed(path: Path) -> None:
    listed = re.findall(r"`([-\w]+)`", (DATA / "README.md").read_text(encoding="utf-8"))
    day = re.sub(r"_(amd|intel|nvidia)-.*", "", path.name)
    assert {day, day.rpartition("_")[0], f"-{day[-2:]}"} & set(listed)


def test_every_field_of_the_schema_has_a_unit_and_most_a_meaning() -> None:
    """A name may say enough (`hostname`); a unit is always there, `–` where there is none."""
    assert not [
        path
        for path, node in in_schema().items()
        if not node.get("unit") or "description" not in node
    ]


def test_the_schema_is_that_of_the_types() -> None:
    assert PATH.read_text(encoding="utf-8") == schema_text(), "run: python -m docs.generate"


READ: dict[type, tuple[Any, set[str]]] = {
    SavedStudy: (saved.StudyRecord, {"name"}),
    Metric: (saved.MetricRecord, set()),
    SavedWorkload: (saved.WorkloadRecord, {"name"}),
    SavedTweakSet: (saved.TweakSetRecord, {"name", "level_of"}),
    Setting: (saved.RequestedSetting, set()),
    Design: (saved.DesignRecord, set()),
    Factor: (saved.FactorRecord, set()),
    DesignPoint: (saved.PointRecord, set()),
}


@pytest.mark.parametrize("read_as", READ)
def test_what_is_read_is_there_and_what_is_required_always_is(read_as: Any) -> None:
    """The reader takes the fields of these by name; `made` are those that it makes itself."""
    written, made = READ[read_as]
    read = {
        field.name: field.default is MISSING and field.default_factory is MISSING
        for field in fields(read_as)
    }
    assert read.keys() - made <= written.__annotations__.keys()
    assert {name for name, required in read.items() if required} - made <= written.__required_keys__


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "made",
    [
        Made(),
        Made(baseline=("stock", "stock-again")),
        Made(
            workloads=("cnn_train", "lora_finetune"),
            primaries={"lora_finetune": ("step_time_p10_s", "lower")},
        ),
        Made(
            arms=(
                STOCK,
                AGAIN,
                Arm(
                    "sysctls",
                    requested={"vm.swappiness": "1"},
                    already_in_force=["vm.swappiness"],
                    warnings=["odd"],
                ),
                Arm(
                    "boot",
                    requested={"isolcpus": "2-3"},
                    kind="boot",
                    broken={1: ("skipped", "not in /proc/cmdline")},
                ),
                Arm("script", scripts=2, side_effects={"/proc/sys/vm/swappiness": ["60", "1"]}),
            )
        ),
    ],
    ids=["smallest", "both untouched arms", "two workloads", "all kinds of tweak sets"],
)
def test_made_up_runs_obey_the_schema_that_real_ones_obey(made: Made) -> None:
    """So that a test of the read side never stands on a file that the run side would not write."""
    VALIDATOR.validate(saved_run(made))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_committed_run_obeys_the_schema(path: Path) -> None:
    VALIDATOR.validate(parsed(path))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_the_json_of_a_committed_run_alone_has_what_was_measured(path: Path) -> None:
    """Metrics, telemetry, settings for pytest-benchmark, jq, pandas; `stats` of measured steps."""
    without = alone(path)["benchmarks"]
    whole: Any = parsed(path)
    for one, full in zip(without, whole["benchmarks"], strict=True):
        assert {"metrics", "telemetry", "tweak"} <= one["extra_info"].keys()
        measured_s = record.rounds_s(full["extra_info"])
        assert one["stats"]["rounds"] == len(measured_s)
        figures = {
            "min": min(measured_s),
            "mean": fmean(measured_s),
            "median": median(measured_s),
            "max": max(measured_s),
        }
        assert {name: one["stats"][name] for name in figures} == pytest.approx(figures, rel=1e-9)


def test_the_files_of_data_runs_belong_to_its_runs_and_are_small() -> None:
    """At most 4 MiB in all."""
    named = []
    for path in RUNS:
        ours = cast("Any", parsed(path))["deeptweak"]
        named += [ours["telemetry_file"]] if ours["telemetry_file"] else []
        named.append(alone(path)["deeptweak"]["record_file"])
    for file in named:
        content = (DATA / "runs" / file["name"]).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (
            file["sha256"],
            file["bytes"],
        )
    files = [path for path in (DATA / "runs").iterdir() if path.is_file()]
    assert {path.name for path in files if path.suffixes[-2:] == [".jsonl", ".xz"]} == {
        file["name"] for file in named
    }
    assert sum(path.stat().st_size for path in files) <= 4 * 2**20


def test_a_benchmark_of_no_study_may_stand_beside_the_cells() -> None:
    run = saved_run()
    run["benchmarks"].append({"name": "somebody's own", "extra_info": {"anything": 1}})
    VALIDATOR.validate(run)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("deeptweak", "unexplained"), 1),
        (("deeptweak", "schema_version"), SCHEMA_VERSION + 1),
        (("deeptweak", "started_utc"), "yesterday"),
        (("deeptweak", "cells", 0, "reason"), "measured cells have none"),
        (("deeptweak", "studies", "made_up", "margin"), 3),
        (("benchmarks", 0, "extra_info", "unexplained"), 1),
        (("benchmarks", 0, "extra_info", "steps", "wall_s"), [0.0]),
        (("benchmarks", 0, "extra_info", "metrics", "step_time_p10_s"), 0),
    ],
)
def test_what_the_readme_does_not_explain_is_refused(
    place: tuple[str | int, ...], value: object
) -> None:
    run: Any = copy.deepcopy(saved_run())
    part = run
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(run)
