"""Parameters: the reference's folder and our files agree; anything else is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.studies.power import parameters
from analysis.terms import Refused, Unreadable
from control.power import catalog
from control.power.models import published as reference_folder
from tests.analysis.studies.power.command import model_at
from tests.analysis.studies.power.made_reference import reference
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from control.power.terms import Model


PCTODL = REFERENCE / "pctodl"
reads_reference = pytest.mark.needs("reference")


def folder(place: Path, *models: Model) -> Path:
    for model in models:
        parameters.write(model, place / parameters.file_name(model))
    return place


def says_the_same(one: Model, other: Model) -> bool:
    partitions = catalog.grid()
    here, there = one.anchor(partitions), other.anchor(partitions)
    clock = np.array([810.0])
    return all(
        np.array_equal(*pair)
        for pair in (
            (here.sm_util_percent, there.sm_util_percent),
            (here.mem_util_percent, there.mem_util_percent),
            (one.throughput_images_per_s(here, clock), other.throughput_images_per_s(there, clock)),
            (one.power_w(here, clock), other.power_w(there, clock)),
        )
    )


@reads_reference
def test_the_references_folder_has_ten_models_of_four_networks() -> None:
    there = parameters.available(PCTODL)
    assert len(there) == 10
    assert {key[0] for key in there} == {
        "densenet201",
        "efficientnet_v2_m",
        "mobilenet_v2",
        "resnet50",
    }
    assert {key[1:] for key in there} == {("3080Ti", 5001.0), ("3080Ti", 9501.0), ("A100", 1215.0)}
    assert all(
        (model.network, model.gpu, model.mem_mhz) == key
        for key, read in there.items()
        for model in [read()]
    )


@reads_reference
def test_the_references_models_say_the_same_out_of_our_own_files(tmp_path: Path) -> None:
    theirs = {key: read() for key, read in parameters.available(PCTODL).items()}
    ours = parameters.available(folder(tmp_path, *theirs.values()))
    assert ours.keys() == theirs.keys()
    assert all(says_the_same(model, ours[key]()) for key, model in theirs.items())


@pytest.mark.parametrize(
    ("there", "gpu", "mem_mhz", "found"),
    [
        (["imagenet_mem5001", "mem5001"], "3080Ti", 5001.0, "imagenet_mem5001"),
        (
            ["imagenet_a100_mem1215", "imagenet_mem1215", "a100_mem1215"],
            "A100",
            1215.0,
            "imagenet_a100_mem1215",
        ),
        (["imagenet_a100", "a100_mem1215"], "A100", 1215.0, "imagenet_a100"),
        (["a100", "a100_mem1215"], "A100", 1215.0, "a100"),
        (["a100_mem1215", "imagenet_mem1215"], "A100", 1215.0, "a100_mem1215"),
        (["imagenet_mem1215", "mem1215"], "A100", 1215.0, "imagenet_mem1215"),
        (["mem1215", ""], "A100", 1215.0, "mem1215"),
        (["", "imagenet_mem5001"], "A100", 1215.0, ""),
        (["imagenet_mem5001"], "A100", 1215.0, None),
        (["imagenet_mem9501"], "3080Ti", 5001.0, None),
    ],
)
def test_sets_are_looked_up_in_the_originals_order(
    there: list[str], gpu: str, mem_mhz: float, found: str | None
) -> None:
    assert reference_folder.set_for(there, gpu, mem_mhz) == found


@pytest.mark.parametrize(
    ("gpu", "clocks"), [("3080Ti", (5001.0, 9501.0)), ("H200", (2619.0, 3201.0))]
)
def test_models_of_a_gpu_are_by_memory_clock_best_first(
    tmp_path: Path, gpu: str, clocks: tuple[float, ...]
) -> None:
    """A known GPU's board idles at 810 MHz, where nothing is searched.

    Other files of a folder are left alone.
    """
    every = (*clocks, 810.0) if gpu == "3080Ti" else clocks
    there = folder(tmp_path, *(reference(gpu=gpu, mem_mhz=mem_mhz) for mem_mhz in every))
    (tmp_path / "notes.json").write_text('{"format": "something else"}')
    found = parameters.models_for(there, "made_up", gpu)
    assert (
        list(found) == [model.mem_mhz for model in found.values()] == sorted(clocks, reverse=True)
    )


def test_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "twice"):
        Path(name).mkdir()
    folder(Path("twice"), reference())
    parameters.write(reference(busy=10.0), Path("twice/again.json"))
    messages = []
    for name in ("empty", "twice"):
        with pytest.raises(Refused) as refused:
            parameters.available(Path(name))
        messages.append(str(refused.value).replace(f"{tmp_path}/", ""))
    assert messages == snapshot


def test_an_invented_network_stays_in_its_folder(tmp_path: Path) -> None:
    assert (
        parameters.file_name(replace(reference(), network="../../etc/x"))
        == "..%2F..%2Fetc%2Fx_3080Ti_mem5001.json"
    )
    names = [
        parameters.file_name(replace(reference(), network=name))
        for name in ("a/b", "a-b", "a%2Fb", "a_b")
    ]
    assert len(set(names)) == 4
    (tmp_path / reference_folder.FILE).write_text('{"../x|imagenet_mem5001": {}}')
    with pytest.raises(Unreadable, match="cannot be read"):
        model_at(tmp_path)


DAMAGED: list[dict[str, object]] = [
    {"version": 2},
    {"kind": "pickle"},
    {"network": ""},
    {"mem_mhz": "fast"},
    {"power": {}},
    {"sm_trees": {}},
    {"sm_single": {"lam": None, "gamma": 1, "beta": 1}},
    {"gflops": "many"},
    {"throughput": {**asdict(reference().throughput), "low_mhz": 2000.0}},
]


def test_a_damaged_file_is_refused(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (file,) = folder(tmp_path, reference()).iterdir()
    whole, messages = json.loads(file.read_text()), []
    for change in DAMAGED:
        file.write_text(json.dumps(whole | change))
        with pytest.raises(Unreadable) as refused:
            model_at(tmp_path)
        messages.append(str(refused.value).replace(f"{tmp_path}/", ""))
    assert messages == snapshot


@pytest.mark.parametrize(
    "text",
    ["{", "NaN", '{"format": "deeptweak-power-model", "mem_mhz": NaN}', "[1]", "[" * 100_000],
)
def test_what_is_no_model_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.json").write_text(text)
    with pytest.raises(Unreadable):
        model_at(tmp_path / "one.json")


@reads_reference
def test_a_damaged_copy_of_the_references_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / reference_folder.FILE).write_bytes((PCTODL / reference_folder.FILE).read_bytes())
    with pytest.raises(Unreadable, match="cannot be read"):
        model_at(tmp_path, "resnet50", "3080Ti", 5001.0)
    (tmp_path / "resnet50__imagenet_mem5001.npz").write_bytes(b"PK no archive")
    with pytest.raises(Unreadable, match="is damaged"):
        model_at(tmp_path, "resnet50", "3080Ti", 5001.0)


def test_nothing_in_an_archive_is_executed(tmp_path: Path) -> None:
    (tmp_path / reference_folder.FILE).write_text('{"m|imagenet_mem5001": {}}')
    np.savez(tmp_path / "m__imagenet_mem5001.npz", sm_init_lr=np.array([{"a": 1}], dtype=object))
    with pytest.raises(Unreadable, match="Object arrays"):
        model_at(tmp_path)
