"""From study and command line to cells and design, and a line with a remedy where impossible."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures.design_file import planned as sheet_of
from fixtures.options import Options
from fixtures.plan import RunPlan
from fixtures.session import Session
from fixtures.targets.local import Local
from fixtures.terms import BadInput, Limit, Metric, Refused, Study

KEYS = {"vm.swappiness": "10", "vm.dirty_ratio": "40", "net.core.rmem_max": "500000"}
STUDY = Study(
    "study", "Why?", ("idle",), ("memory-reclaim",), Metric("step_time_p10_s", "lower"), blocks=4
)
HEADER = "order,block,workload,tweakset,vm.swappiness,vm.dirty_ratio,net.core.rmem_max,run,reason\n"
TWELVE_S = Limit(12.0, "12s")


def manifest(folder: Path, name: str = "knobs", keys: dict[str, str] | None = None) -> str:
    """A tweak set of sysctls; a value `1/10` has levels."""
    settings = {key: value.split("/") for key, value in (keys or KEYS).items()}
    path = folder / f"{name}.yaml"
    lines = "\n".join(f"{key} = {levels[-1]}" for key, levels in settings.items())
    package = {
        "version": "1.0.0",
        "image": "ghcr.io/nvidia/skyhook-packages/tuning",
        "configMap": {"sysctl.conf": lines},
    }
    annotations = {
        f"levels.deeptweak/{key}": ", ".join(levels)
        for key, levels in settings.items()
        if len(levels) > 1
    }
    skyhook: dict[str, Any] = {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook"}
    skyhook |= {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"packages": {"tuning": package}},
    }
    path.write_text(yaml.safe_dump(skyhook))
    return str(path)


def planned(folder: Path, **options: Any) -> RunPlan:
    given = Options(manifest(folder), "idle", None, None, 1, resume=False, folder=folder)
    found = RunPlan(replace(given, **options), Local(folder))
    cells = found.declare(STUDY)
    found.choose(cells)
    return found


def by_file(folder: Path, rows: str, header: str = HEADER, **options: Any) -> RunPlan:
    path = folder / "design.csv"
    path.write_text(header + rows)
    return planned(folder, design_file=path, **options)


DECLARED = [("matrix", True), ("turns", True), ("switch", False)]


@pytest.mark.parametrize(("design", "both"), DECLARED)
def test_both_untouched_arms_are_declared_the_baseline(
    tmp_path: Path, design: str, *, both: bool
) -> None:
    """Not with `switch`, where stock is half of each cell."""
    options = Options(
        manifest(tmp_path), "idle", None, None, 1, resume=False, folder=tmp_path, design=design
    )
    found = Session(options, Local(tmp_path))
    found.choose(found.declare(STUDY))
    arms = ["stock", "stock-again"]
    assert found.document()["studies"]["study"].get("baseline") == (arms if both else None)
    assert found.baseline_of("another") == []
    found.monitors["study"] = ("sampler",)
    assert found.baseline_of("study") == []


def test_an_arm_that_was_left_out_is_no_baseline(tmp_path: Path) -> None:
    found = planned(tmp_path, workloads="idle,python_loop")
    assert found.baseline_of("study") == ["stock", "stock-again"]
    cells = found.cells.values()
    found.choose(
        [cell for cell in cells if (cell.workload, cell.tweakset) != ("idle", "stock-again")]
    )
    assert found.baseline_of("study") == []


@pytest.mark.parametrize(
    ("design", "sets"), [("matrix", 1), ("ablation", 7), ("factorial", 7), ("fractional", 7)]
)
def test_each_block_has_stock_its_copy_and_every_point_once(
    tmp_path: Path, design: str, sets: int
) -> None:
    """Of 3 keys: 3 without one, 3 with one, the whole; 2^3 less stock."""
    found = planned(tmp_path, design=design)
    blocks = [
        {cell.tweakset for cell in found.cells.values() if cell.block == block}
        for block in range(1, 5)
    ]
    assert all(block == blocks[0] for block in blocks)
    assert len(found.cells) == 4 * (sets + 2)
    assert blocks[0] >= {"stock", "stock-again", "knobs"}
    assert found.layout.kind == design
    assert len(found.layout.points()) == (0 if design == "matrix" else sets)


def test_a_point_has_its_own_manifest_and_the_whole_the_users(tmp_path: Path) -> None:
    found = planned(tmp_path, design="ablation")
    part, whole = found.tweaksets["knobs.no-vm.dirty_ratio"], found.tweaksets["knobs"]
    assert [(t.key, t.value) for t in part.tweaks] == [
        ("vm.swappiness", "10"),
        ("net.core.rmem_max", "500000"),
    ]
    assert whole.path == str(tmp_path / "knobs.yaml")
    assert part.sha256 != whole.sha256


def test_several_tweak_sets_are_taken_apart_each_by_itself(tmp_path: Path) -> None:
    other = manifest(tmp_path, "other", {"vm.swappiness": "1", "vm.min_free_kbytes": "70000"})
    document = planned(
        tmp_path, design="ablation", tweaks=f"{manifest(tmp_path)},{other}"
    ).layout.document()
    assert {point["tweakset"] for point in document["points"].values()} == {"knobs", "other"}
    assert len([name for name in document["points"] if name.startswith("other")]) == 3


def test_switching_has_the_machine_as_found_in_each_of_its_cells(tmp_path: Path) -> None:
    found = planned(tmp_path, design="switch")
    assert {cell.tweakset for cell in found.cells.values()} == {"knobs", "stock-again"}
    order = found.order_of(next(iter(found.cells.values())))
    assert order.switching is not None
    assert order.steps == order.switching.total
    assert found.layout.document()["kind"] == "switch"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"design": "ablatoin"},
            (
                r"--design=ablatoin: no such design. Did you mean 'ablation'\? Available: matrix, "
                r"ablation, factorial"
            ),
        ),
        ({"design": "ablation", "resolution": 4}, "--resolution=4 needs --design=fractional"),
        (
            {"design": "ablation", "tweaks": "stock"},
            "--design=ablation: needs a tweak set that can be split",
        ),
        (
            {"design": "ablation", "tweaks": "thp-never"},
            "thp-never has one part that can be varied.*--design=matrix",
        ),
        (
            {"design_file": Path("/nowhere/x.csv"), "resume": True},
            "--resume: /nowhere/x.csv does not exist",
        ),
        ({"budget_s": TWELVE_S, "nodes": 2}, "omit -n"),
        ({"budget_s": TWELVE_S, "design_file": Path("x.csv")}, "omit --design-file"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        planned(tmp_path, **options)


def test_a_design_file_is_for_one_study(tmp_path: Path) -> None:
    found = planned(tmp_path, design_file=tmp_path / "new.csv")
    with pytest.raises(BadInput, match="works for a single study: name its file"):
        found.declare(replace(STUDY, name="another"))


@pytest.mark.parametrize("level", ["banana", "1 2 3", "1.5", "0x"])
def test_a_level_of_a_number_that_is_none_is_refused(tmp_path: Path, level: str) -> None:
    says = (
        f"vm.swappiness cannot be set to {level!r}: it needs a whole number, such as '10'. "
        "Correct the level, or drop it."
    )
    keys = KEYS | {"vm.swappiness": f"{level}/10"}
    with pytest.raises(BadInput) as refused:
        planned(tmp_path, design="factorial", tweaks=manifest(tmp_path, "odd", keys))
    assert str(refused.value) == f"{tmp_path}/odd.yaml: {says}"
    with pytest.raises(BadInput) as refused:
        by_file(tmp_path, f"1,1,idle,stock,,,,N,\n2,1,idle,x,{level},,,N,\n")
    assert str(refused.value) == f"{tmp_path}/design.csv, line 3: {says}"


def test_what_a_key_takes_is_known_from_the_machine_too(tmp_path: Path) -> None:
    """The manifest's own value may be the one that is wrong.

    Where the machine cannot be asked, only the manifest speaks.
    """
    odd = manifest(tmp_path, "odd", KEYS | {"vm.swappiness": "many"})
    with pytest.raises(
        BadInput,
        match=r"odd\.yaml: vm\.swappiness cannot be set to 'many': "
        r"it needs a whole number, such as '\d+'\.",
    ):
        planned(tmp_path, design="ablation", tweaks=odd)
    assert planned(tmp_path, tweaks=odd).cells  # in a matrix its own cells say so

    class Elsewhere(Local):
        def values(self, paths: object) -> dict[str, str | None]:  # noqa: ARG002 it answers nothing
            raise Refused("not open")

    given = Options(odd, "idle", None, None, 1, resume=False, folder=tmp_path, design="ablation")
    assert RunPlan(given, Elsewhere(tmp_path)).declare(STUDY)


# -- by file


def test_a_file_equal_to_the_designs_layout_keeps_that_design(
    tmp_path: Path,
) -> None:
    keys = KEYS | {"vm.swappiness": "1/30/10", "vm.min_free_kbytes": "70000"}
    first = planned(
        tmp_path, design="fractional", resolution=4, tweaks=manifest(tmp_path, "more", keys)
    )
    text = sheet_of(first.whole, first.layout).text()
    path = tmp_path / "design.csv"
    path.write_text(text)
    again = planned(
        tmp_path,
        design="fractional",
        resolution=4,
        tweaks=str(tmp_path / "more.yaml"),
        design_file=path,
    )
    assert again.cells == first.cells
    assert again.layout == first.layout
    assert again.layout.taken[0].notes
    other = planned(tmp_path, tweaks=str(tmp_path / "more.yaml"), design_file=path)
    assert (other.layout.kind, other.cells) == ("file", first.cells)


def test_a_file_without_factors_is_a_matrix(tmp_path: Path) -> None:
    rows = "1,1,idle,stock,N,\n2,1,idle,memory-reclaim,N,\n"
    found = by_file(tmp_path, rows, "order,block,workload,tweakset,run,reason\n", tweaks=None)
    assert [cell.tweakset for cell in found.cells.values()] == ["stock", "memory-reclaim"]
    assert found.layout.document() == {"kind": "matrix", "factors": [], "points": {}, "notes": {}}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            "1,1,idle:wait_s=0.0060,stock,,,,N,\n",
            "line 2: workload idle:wait_s=0.0060 must be spelled idle:wait_s=0.006",
        ),
        ("1,1,idel,stock,,,,N,\n", "line 2: No workload 'idel'. Did you mean 'idle'"),
        (
            "1,1,cnn_train,stock,,,,N,\n",
            "line 2: workload cnn_train is not one of --workloads=idle",
        ),
        (
            "1,1,idle,stock,,,,Y,\n2,1,idle,knobs,+,+,+,N,\n",
            r"line 2: is marked Y \(done\): resume that run",
        ),
        ("1,1,idle,stock,1,,,N,\n", "line 2: stock is the untouched machine and has no levels"),
        (
            "1,1,idle,knobs,,+,+,N,\n",
            "line 2: knobs differs from its manifest: use another name",
        ),
        (
            "1,1,idle,knobs.x,+,+,+,N,\n",
            "line 2: knobs.x equals the manifest of knobs: use that name",
        ),
        ("1,1,idle,knobs.x,,,,N,\n", "line 2: knobs.x changes nothing: call it stock"),
        ("1,1,idle,Knobs,,1,,N,\n", "line 2: 'Knobs' is not a valid tweak set name"),
        ("1,1,idle,x,1,,,N,\n2,2,idle,x,2,,,N,\n", "line 3: x has different levels in line 2"),
        (
            "1,1,idle,x,,,\x1b[31m1,N,\n",
            r"line 2: the level of net.core.rmem_max holds a control character, U\+001B",
        ),
        (
            "1,1,idle,x,1\u20291,,,N,\n",
            r"line 2: the level of vm.swappiness holds a paragraph separator, U\+2029",
        ),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_line(
    tmp_path: Path, rows: str, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        by_file(tmp_path, rows)


@pytest.mark.parametrize(
    ("header", "rows", "says"),
    [
        (
            HEADER.replace("vm.dirty_ratio,", ""),
            "1,1,idle,x,+,,N,\n",
            "line 2: vm.dirty_ratio of knobs has no column: add one",
        ),
        (
            HEADER.replace("_max", "_min"),
            "1,1,idle,stock,,,,N,\n",
            "line 1: column 'vm.swappiness': no tweak set in the rows has this key",
        ),
        (
            HEADER.replace("run,", "hat,run,"),
            "1,1,idle,x,+,,,,N,\n",
            "line 1: column 'hat': .* available: net.core.rmem_max, vm.dirty_ratio",
        ),
        (
            HEADER.replace("run,", "hat,run,"),
            "1,1,idle,x,+,,,1,N,\n",
            "line 2: knobs has no key hat: leave that field empty",
        ),
    ],
)
def test_a_column_that_cannot_be_is_refused(
    tmp_path: Path, header: str, rows: str, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        by_file(tmp_path, rows, header)


# -- how long


def test_a_plan_says_what_stands_now_and_which_level_is_none(tmp_path: Path) -> None:
    """A key at its value has no second level on this machine; another spelling is the same."""
    found = {"vm.swappiness": "60\n", "vm.dirty_ratio": "0x28"}
    said = "\n".join(
        planned(tmp_path, design="ablation", tweaks=manifest(tmp_path, "k", KEYS)).layout.lines(
            found
        )
    )
    assert re.search(r"vm.swappiness +as found \(60\), 10\n", said)
    assert re.search(
        r"vm.dirty_ratio +as found \(0x28\), 40 \(already in force: no effect here\)\n", said
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"design": "factorial"}, "a design other than --design=factorial makes. Omit --design,"),
        ({"design": "matrix"}, "a design other than --design=matrix makes"),
        (
            {"design": "fractional", "resolution": 4},
            "makes. Omit --design and --resolution,",
        ),
    ],
)
def test_a_file_that_is_another_design_is_not_taken_for_it(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    """An ablation wrote it: what is asked for beside it is neither done nor dropped in silence."""
    sets = manifest(tmp_path, "four", KEYS | {"vm.min_free_kbytes": "70000"})
    first = planned(tmp_path, design="ablation", tweaks=sets)
    path = tmp_path / "design.csv"
    path.write_text(sheet_of(first.whole, first.layout).text())
    with pytest.raises(BadInput, match=re.escape(says)):
        planned(tmp_path, tweaks=sets, design_file=path, **options)
    assert (
        planned(tmp_path, tweaks=sets, design_file=path, design="ablation").layout.kind
        == "ablation"
    )


def test_a_budget_lays_out_more_blocks_than_it_has_room_for(tmp_path: Path) -> None:
    """A machine several times as fast needs enough: 3 `idle` cells take .2 s; --blocks bounds."""
    found = planned(tmp_path, budget_s=TWELVE_S)
    assert len(found.cells) == 3 * 5 * 20
    assert len(planned(tmp_path, budget_s=TWELVE_S, blocks=6).cells) == 3 * 6


def by_itself(folder: Path, **options: Any) -> RunPlan:
    """A study with a design and a budget of its own, under these options."""
    found = RunPlan(
        replace(
            Options(manifest(folder), "idle", None, None, 1, resume=False, folder=folder), **options
        ),
        Local(folder),
    )
    found.choose(found.declare(replace(STUDY, design="turns", budget_s=12.0)))
    return found


@pytest.mark.parametrize(
    ("options", "design", "budget_s"),
    [
        ({}, "turns", 12.0),
        ({"blocks": 5}, "turns", None),
        ({"budget_s": Limit(30.0, "30s")}, "turns", 30.0),
        ({"design": "matrix"}, "matrix", None),
        ({"design": "ablation"}, "ablation", None),
        ({"workloads": "python_loop", "monitors": "placebo", "tweaks": None}, None, None),
        ({"workloads": "job_stream"}, None, None),
        ({"workloads": "idle,job_stream"}, None, None),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_a_study_supplies_the_design_and_time_not_given(
    tmp_path: Path, options: dict[str, Any], design: str | None, budget_s: float | None
) -> None:
    found = by_itself(tmp_path, **options)
    assert (found.options.design, found.options.budget_s, found.takes_turns) == (
        design,
        budget_s,
        design == "turns",
    )


def test_a_spent_budget_keeps_the_cells_of_other_studies(tmp_path: Path) -> None:
    found = RunPlan(
        Options(manifest(tmp_path), "idle", 2, None, 1, resume=False, folder=tmp_path),
        Local(tmp_path),
    )
    mine, theirs = (found.declare(replace(STUDY, name=name)) for name in ("mine", "theirs"))
    found.choose([*mine, *theirs])
    found.drop(mine[3:])
    assert list(found.cells.values()) == [*mine[:3], *theirs]
    assert list(found.dropped.values()) == mine[3:]


def test_studies_that_are_laid_out_in_two_ways_are_two_runs(tmp_path: Path) -> None:
    found = by_itself(tmp_path)
    with pytest.raises(BadInput, match="different layouts: run each alone"):
        found.declare(replace(STUDY, name="other"))


@pytest.mark.parametrize(("steps", "of_a_slice"), [(8, 4), (12, 4), (48, 4)])
def test_requested_steps_come_in_equal_slices(tmp_path: Path, steps: int, of_a_slice: int) -> None:
    found = by_itself(tmp_path, steps=steps)
    order = found.order_of(next(iter(found.cells.values())))
    assert (order.steps, order.slice_steps) == (steps, of_a_slice)
