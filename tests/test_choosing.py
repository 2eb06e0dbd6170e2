"""Workloads that a session measures: `--workloads`, `--vary`, and those possible on a machine."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import cells, workloads
from fixtures.cells import chosen_workloads
from fixtures.display import plan_lines
from fixtures.options import Options
from fixtures.parameters import Parameter
from fixtures.plan import RunPlan
from fixtures.session import Session
from fixtures.targets.local import Local
from fixtures.terms import BadInput, Metric, Refused, Study, TweakSet
from fixtures.workloads import Workload
from tests.workloads.made import beside

if TYPE_CHECKING:
    from tests.sessions import Place

STUDY = Study(
    "study",
    "Why?",
    ("made", "made:kind=tar"),
    ("memory-reclaim",),
    Metric("throughput_samples_per_s", "higher"),
    blocks=2,
    compares_workloads=True,
)


class Made(Workload):
    """A workload on data sets; a tar cannot be read here, and a zip allows no `readers`."""

    __module__ = "fixtures.workloads.made"
    description = "made up"
    primary = Metric("throughput_samples_per_s", "higher")
    fixed = {"steps": 10, "warmup_steps": 0}
    parameters = {
        "kind": Parameter("raw", "of files", str),
        "readers": Parameter("0", "how many", str),
    }
    essential = ("kind",)
    typical_cell_s = 1.0
    finite = "read them twice"
    reads_data = True

    @classmethod
    def complete(cls, given: Mapping[str, str]) -> dict[str, Any]:
        if given.get("kind") == "zip" and "readers" in given:
            raise BadInput("a zip has no readers")
        return super().complete(given)

    def unavailable_reason(self) -> str | None:
        return "no tar here" if self.params["kind"] == "tar" else None

    @staticmethod
    def outlook(*_: object) -> Iterator[str]:
        return iter(())

    @staticmethod
    def data_sets(*_: object) -> None:
        """They are there."""


@pytest.fixture(autouse=True)
def _made() -> Iterator[None]:
    with beside(Made):
        yield


def options(folder: Path, **given: Any) -> Options:
    return replace(Options(None, None, None, None, 1, resume=False, folder=folder), **given)


def names(folder: Path, target: str = "local", study: Study = STUDY, **given: Any) -> list[str]:
    return chosen_workloads(options(folder, **given), study, target)


def planned(folder: Path, study: Study = STUDY, **given: Any) -> RunPlan:
    found = RunPlan(options(folder, **given), Local(folder))
    found.choose(found.declare(study))
    return found


def test_parameters_are_crossed_and_no_variant_comes_twice(tmp_path: Path) -> None:
    """`kind` takes the place of that in the study's two workloads: 2 x 2 variants are left."""
    found = names(tmp_path, vary=(("kind", ("raw", "tar")), ("readers", ("0", "3"))))
    assert found == ["made", "made:readers=3", "made:kind=tar", "made:kind=tar:readers=3"]


def test_what_is_varied_together_is_looked_at_together(tmp_path: Path) -> None:
    """One parameter after the other would meet an impossible variant that was not requested."""
    study = replace(STUDY, workloads=("made:kind=zip",))
    assert names(tmp_path, study=study, vary=(("readers", ("2",)), ("kind", ("tar",)))) == [
        "made:kind=tar:readers=2"
    ]
    way_out = (
        r"a zip has no readers\. made:kind=zip is the default; name others with "
        r"--workloads=made\.$"
    )
    with pytest.raises(BadInput, match=way_out):
        names(tmp_path, study=study, vary=(("readers", ("2",)),))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"vary": (("kinds", ("raw",)),)},
            "--vary kinds: no parameter 'kinds' in made, made:kind=tar. Did you mean 'kind'",
        ),
        (
            {"vary": (("color", ("red",)),)},
            "--vary color: no parameter 'color' in made, made:kind=tar. Available: kind, readers.",
        ),
        (
            {"vary": (("swappiness", ("1",)),)},
            "Available: kind, readers. For kernel settings, use --tweaks.",
        ),
        ({"vary": (("kind", ("raw",)), ("kind", ("tar",)))}, "--vary kind was given twice"),
        (
            {"vary": (("kind", ("raw",)),), "workloads": "made:kind=tar"},
            "made:kind=tar in --workloads already sets kind",
        ),
        ({"steps": 11}, "--steps=11: made has 10 steps; for more, read them twice"),
        (
            {"design": "switch"},
            (
                "--design=switch runs each step twice, but made can run each step only once: read "
                "them twice"
            ),
        ),
        ({"workloads": "idle", "data": "/x"}, "--io-data=/x: none of idle reads data sets"),
        (
            {"workloads": "made", "target": "kubernetes"},
            "made: it reads a data set, and volumes for data sets are not supported",
        ),
        (
            {"workloads": "capped_inference", "target": "kubernetes"},
            "capped_inference: it controls other processes.*--target=local",
        ),
        (
            {"workloads": "capped_inference", "design": "switch"},
            "runs each step twice, but capped_inference can run each step only once",
        ),
        ({"workloads": " , "}, "names no workload"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        names(tmp_path, **given)


def test_all_workloads_are_those_that_a_target_can_run(tmp_path: Path) -> None:
    """On a cluster without data sets not those that read them; named, such a one is refused."""
    assert "made" in names(tmp_path, workloads="all")
    there = names(tmp_path, workloads="all", target="kubernetes")
    assert not {"made", "capped_inference", "power_profile"} & set(there)
    assert "cnn_train" in there


def test_a_tweak_set_meets_the_variants_it_is_for() -> None:
    sets = [
        TweakSet("tar", workloads=("made:kind=tar",)),
        TweakSet("any", workloads=("made",)),
        TweakSet("other", workloads=("cnn_train",)),
    ]
    found = cells.pairs(["made", "made:kind=tar"], sets, crossed=False)
    assert [pair for pair in found if "stock" not in pair[1]] == [
        ("made:kind=tar", "tar"),
        ("made", "any"),
        ("made:kind=tar", "any"),
    ]


def test_the_study_says_whether_its_workloads_are_the_question(tmp_path: Path) -> None:
    study = replace(STUDY, workloads=("idle", "checkpoint_train"), tweaks=("writeback-eager",))
    for compares, met in ((True, {"idle", "checkpoint_train"}), (False, {"checkpoint_train"})):
        found = planned(tmp_path, replace(study, compares_workloads=compares))
        assert {cell.workload for cell in found.cells.values()} == met
    named = planned(
        tmp_path, replace(study, compares_workloads=True), tweaks="writeback-eager"
    ).cells.values()
    assert {cell.workload for cell in named} == {"checkpoint_train"}


def test_an_order_has_the_folder_of_data_sets_for_who_reads_them(tmp_path: Path) -> None:
    """Below the results, or where `--io-data` says."""
    found = planned(tmp_path, workloads="made,idle")
    data = {cell.workload: found.order_of(cell).data for cell in found.cells.values()}
    assert data == {"made": tmp_path / "datasets", "idle": None}
    elsewhere = planned(tmp_path, workloads="made", data=tmp_path / "there")
    assert {elsewhere.order_of(cell).data for cell in elsewhere.cells.values()} == {
        tmp_path / "there"
    }


def test_each_block_and_run_has_its_own_random_draws(tmp_path: Path) -> None:
    """Runs with --seed=1 and --seed=2 share no stream: pooled, their blocks are replicates.

    Weights of other workloads stay as they are.
    """

    def seeds(workload: str, seed: int) -> set[int]:
        found = planned(tmp_path, workloads=workload, seed=seed, blocks=4)
        return {found.order_of(cell).seed for cell in found.cells.values()}

    of_runs = [seeds("job_stream:jobs=3", seed) for seed in (1, 2, 3)]
    assert [len(one) for one in of_runs] == [4, 4, 4]
    assert len(set().union(*of_runs)) == 12
    assert seeds("idle", 2) == {2}


def test_a_variant_that_cannot_run_is_skipped_with_its_reason(tmp_path: Path) -> None:
    """The study's other variant is measured: stock and its copy in two blocks, a second each."""
    found = planned(tmp_path)
    assert {
        cell.workload: found.why_skipped(cell)
        for cell in found.cells.values()
        if cell.tweakset == "stock"
    } == {
        "made": (),
        "made:kind=tar": ("no tar here",),
    }
    run = Session(options(tmp_path), Local(tmp_path))
    run.choose(run.declare(STUDY))
    lines = list(plan_lines(run, list(run.cells.values())))
    assert "Left out: made:kind=tar: no tar here" in lines
    assert sum("(skipped, see below)" in line for line in lines) == 4
    assert any(line.startswith("Data sets are read from") for line in lines)
    assert "Not in the names of made: kind raw." in lines
    assert lines[-1] == "Expected: about 4 s on 2 cores. Nothing was touched."


def test_a_plan_lists_data_sets_to_make_and_their_extra_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Made,
        "outlook",
        lambda _made, variants, _: [f"{one['kind']} is to be made" for one in variants],
    )
    run = Session(options(tmp_path), Local(tmp_path))
    run.choose(run.declare(STUDY))
    lines = list(plan_lines(run, list(run.cells.values())))
    assert [line for line in lines if line.endswith("is to be made")] == ["raw is to be made"]
    assert (
        lines[-1]
        == "Expected: about 4 s on 2 cores, plus the time to make the data sets. Nothing was "
        "touched."
    )


class Open(Local):
    """A machine that is opened without holding anything."""

    def open(self, *_: object) -> None:  # type: ignore[override]
        """Hold nothing."""

    def close(self) -> None:
        """Let go of nothing."""


def test_data_sets_are_made_once_for_cells_that_will_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[object], Path]] = []

    def data_sets(
        _made: Workload,
        variants: Sequence[Mapping[str, object]],
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        asked.append(([one["readers"] for one in variants], folder))
        say("half of it")

    monkeypatch.setattr(Made, "data_sets", data_sets)
    run = Session(options(tmp_path, vary=(("readers", ("0", "3")),)), Open(tmp_path))
    run.choose(run.declare(STUDY))
    said: list[str] = []
    run.tell = said.append
    run.open()
    assert (asked, said) == ([(["0", "3"], tmp_path / "datasets")], ["half of it"])


def test_a_disk_that_is_too_small_ends_it_before_the_first_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def data_sets(*_: object) -> None:
        raise Refused("3 GB are needed and 1 is free")

    monkeypatch.setattr(Made, "data_sets", data_sets)
    run = Session(options(tmp_path), Open(tmp_path))
    run.choose(run.declare(STUDY))
    with pytest.raises(Refused, match="3 GB are needed"):
        run.open()
    assert not run.records


def test_a_workload_of_a_target_is_no_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "_BROUGHT", {})
    workloads.bring("phi-4", Workload({"steps": 1, "warmup_steps": 0}))
    assert names(tmp_path, target="kubernetes") == ["phi-4"]
    with pytest.raises(
        BadInput, match=r"--vary kind: no parameter 'kind' in phi-4. Available: none"
    ):
        names(tmp_path, vary=(("kind", ("raw",)),))


def test_a_study_is_called_as_its_file_is() -> None:
    declared = {
        file.stem: ast.parse(file.read_text())
        for file in (Path(__file__).parents[1] / "benchmarks").glob("*.py")
        if "STUDY =" in file.read_text()
    }
    called = {
        stem: word.value.value
        for stem, module in declared.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Study"
        for word in node.keywords
        if word.arg == "name" and isinstance(word.value, ast.Constant)
    }
    assert called
    assert called == {stem: stem.removeprefix("bench_") for stem in declared}


@pytest.mark.parametrize(
    ("named", "studies"),
    [
        ("benchmarks/", {"bench_kernel_tweaks"}),
        ("benchmarks/bench_io_patterns.py", {"bench_io_patterns"}),
        (
            "benchmarks/bench_kernel_tweaks.py benchmarks/bench_io_patterns.py",
            {"bench_kernel_tweaks", "bench_io_patterns"},
        ),
    ],
)
def test_studies_other_than_the_main_job_must_be_named(
    place: Place, named: str, studies: set[str]
) -> None:
    command = [sys.executable, "-m", "pytest", *named.split(), "--collect-only", "-q"]
    done = place.call(
        *command,
        f"--benchmark-storage={place.storage}",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
    )
    assert done.code == 0, done.out
    assert set(re.findall(r"benchmarks/(\w+)\.py", done.out)) == studies
