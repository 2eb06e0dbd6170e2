"""Parameters: the reference's folder and our files agree; anything else is refused."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.power import parameters
from analysis.terms import Refused, Unreadable
from control.power import catalog
from control.power.models import encoded
from control.power.models import published as reference_folder
from control.power.models.parameters import model_of
from control.power.terms import Model, Partition
from tests.analysis.studies.power.command import model_at
from tests.analysis.studies.power.made_reference import reference
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


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


def test_what_is_written_is_read_to_the_last_bit(tmp_path: Path) -> None:
    made = reference()
    found = model_at(folder(tmp_path, made))
    assert (found.network, found.gpu, found.mem_mhz, found.sm_range_mhz) == (
        "made_up",
        "3080Ti",
        5001.0,
        (210.0, 1950.0),
    )
    assert says_the_same(made, found)


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
    """Reference folder → our JSON → the same predictions, to the last bit, for all ten."""
    theirs = {key: read() for key, read in parameters.available(PCTODL).items()}
    ours = parameters.available(folder(tmp_path, *theirs.values()))
    assert ours.keys() == theirs.keys()
    assert all(says_the_same(model, ours[key]()) for key, model in theirs.items())


@reads_reference
def test_a_gpu_without_parameters_of_its_own_gets_no_other_ones() -> None:
    with pytest.raises(Refused, match="densenet201 on A100"):
        parameters.models_for(PCTODL, "densenet201", "A100")


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
    """All; data set, GPU; GPU; GPU, memory clock; data set, memory clock; memory clock; none."""
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
    """A missing set is answered with the list of existing ones; a folder has one of each."""
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
    with pytest.raises(Unreadable, match="is not a network"):
        model_at(tmp_path)


def test_a_file_is_written_whole_or_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is detected in a file beside it."""
    place = tmp_path / "one.json"
    parameters.write(reference(), place)
    before = place.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refused, match="No space"):
        parameters.write(reference("other"), place)
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


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


PATHS = [
    *[("sm_single", name) for name in ("lam", "gamma", "beta")],
    *[("mem_system", name) for name in ("k1", "tau")],
    *[("power", name) for name in ("static_w", "base_w", "low_mhz")],
    *[
        ("sm_trees", name)
        for name in (
            "features",
            "start",
            "rate",
            "sizes",
            "left",
            "right",
            "feature",
            "threshold",
            "value",
        )
    ],
    *[(name,) for name in ("sm_trees", "throughput", "gflops", "million_parameters")],
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.sampled_from(PATHS), JSON)
def test_whatever_stands_in_a_file_it_is_a_model_or_refused(
    path: tuple[str, ...], value: object
) -> None:
    """In one sentence; a readable model answers, with numbers or with none."""
    said = {"kind": "reference", **encoded(reference())}
    at = said
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    try:
        model = model_of(said, "there.json")
    except Unreadable as refused:
        assert str(refused).startswith("there.json: ")  # noqa: PT017  # either answer is right
    else:
        with np.errstate(all="ignore"):
            assert len(model.anchor([Partition((25.0,), (16,))]).throughput_images_per_s) == 1


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
    """An array of objects would be unpickled, which runs code; it is refused."""
    (tmp_path / reference_folder.FILE).write_text('{"m|imagenet_mem5001": {}}')
    np.savez(tmp_path / "m__imagenet_mem5001.npz", sm_n=np.array([{"a": 1}], dtype=object))
    with pytest.raises(Unreadable, match="Object arrays"):
        model_at(tmp_path)
