"""Parameters as PctoDL publishes them (.json, .pth, .pkl): read without running their code."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor

from analysis.studies.power import parameters
from analysis.terms import Unreadable
from control.power.models import encoded, pickles, reference
from control.power.models.published import COEFFICIENTS, REGRESSORS

if TYPE_CHECKING:
    from control.power.models.reference import Reference
    from tests.analysis.studies.power.command import Power

CURVES = {
    "power_params": {
        "static": {"delta_3": 2e-8, "delta_2": -5e-5, "delta_1": 0.04, "delta_0": 62.0},
        "dynamic": {"gamma_p": 1.2, "P_base": 41.0, "f_ref": 1950.0, "f_min": 210.0},
    },
    "sm_kappa": {"kappa": 5.0, "L_alpha": 0.7, "L_beta": 39.0},
    "throughput_params": {
        "kappa_a": 0.1,
        "kappa_b": 11.0,
        "gamma_t": 0.5,
        "T_start": 300.0,
        "f_ref": 1950.0,
        "f_min": 210.0,
    },
}
RAW = {
    "sm_base_model": {"raw_lambda_sm": -1.5, "raw_gamma_sm": 0.5, "raw_beta_sm": 1.25},
    "mem_base_model": {
        "raw_phi_mem": 64.0,
        "raw_alpha_mem": -0.5,
        "raw_lambda_mem": 0.75,
        "raw_beta_mem": -0.5,
    },
    "mem_system_model": {
        "raw_k1": -0.5,
        "raw_k2": 1.0,
        "raw_alpha": 4.5,
        "raw_beta": 0.5,
        "raw_mu": 0.25,
        "raw_tau": 16.5,
    },
}


def state_dict(values: Mapping[str, float], name: str = "model") -> bytes:
    """A state_dict as torch.save writes it: a zip of a protocol-2 pickle and a file per tensor."""

    def text(word: str) -> bytes:
        return b"X" + struct.pack("<I", len(word)) + word.encode()

    tensors = b"".join(
        text(key)
        + (
            b"ctorch._utils\n_rebuild_tensor_v2\n(("
            + text("storage")
            + b"ctorch\nFloatStorage\n"
            + text(str(at))
            + text("cuda:0")
        )
        + b"K\x01tQK\x00))\x89ccollections\nOrderedDict\n)RtR"
        for at, key in enumerate(values)
    )
    metadata = b"}" + text("_metadata") + b"ccollections\nOrderedDict\n)Rsb"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as there:
        there.writestr(
            f"{name}/data.pkl",
            b"\x80\x02ccollections\nOrderedDict\n)R(" + tensors + b"u" + metadata + b".",
        )
        there.writestr(f"{name}/byteorder", "little")
        for at, value in enumerate(values.values()):
            there.writestr(f"{name}/data/{at}", struct.pack("<f", value))
    return packed.getvalue()


@pytest.fixture(scope="module")
def grown() -> dict[str, Any]:
    """Small regressors, one with its own generator, as files of several versions have them."""
    random = np.random.default_rng(1)
    return {
        own: GradientBoostingRegressor(
            n_estimators=5, max_depth=3, random_state=None if own == "sm" else 0
        ).fit(random.random((60, width)), random.random(60))
        for own, width in reference.FEATURES.items()
    }


@pytest.fixture
def published(tmp_path: Path, grown: dict[str, Any]) -> Path:
    """A network with a set for each memory clock of two GPUs."""
    for name in ("imagenet_mem5001", "imagenet_mem9501", "imagenet_a100_mem1215"):
        for part, said in CURVES.items():
            place = tmp_path / "fitting_results/resnet50" / f"{part}_{name}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(said))
        for part in COEFFICIENTS:
            (place.parent / f"{part}_{name}.pth").write_bytes(state_dict(RAW[part]))
        for own, part in REGRESSORS.items():
            joblib.dump(grown[own], place.parent / f"{part}_{name}.pkl")
    return tmp_path / "fitting_results"


def test_a_published_folder_is_read_as_it_is(published: Path, grown: dict[str, Any]) -> None:
    there = parameters.available(published)
    assert sorted(there) == [
        ("resnet50", "3080Ti", 5001.0),
        ("resnet50", "3080Ti", 9501.0),
        ("resnet50", "A100", 1215.0),
    ]
    model: Any = there["resnet50", "A100", 1215.0]()
    rows = np.random.default_rng(2).random((50, 14))
    for own, width in reference.FEATURES.items():
        assert getattr(model, f"{own}_trees").predict(rows[:, :width]) == pytest.approx(
            grown[own].predict(rows[:, :width]), abs=1e-12
        )
    assert (model.sm_single.lam, model.sm_single.gamma, model.sm_single.beta) == (1.5, 0.5, 1.25)
    assert (
        model.mem_single.phi,
        model.mem_single.exponent,
        model.mem_system.k1,
        model.mem_system.tau,
    ) == (64.0, 0.5, 0.5, 16.5)
    assert (model.throughput.start_images_per_s, model.power.base_w) == (300.0, 41.0)
    assert parameters.available(published / "resnet50").keys() == there.keys()


def test_it_is_converted_to_the_last_bit(published: Path, tmp_path: Path, power: Power) -> None:
    assert len(power("convert", published, "-o", tmp_path / "ours", "--json").json["files"]) == 3
    ours, theirs = parameters.available(tmp_path / "ours"), parameters.available(published)
    assert ours.keys() == theirs.keys()
    assert all(_numbers(ours[key]()) == _numbers(theirs[key]()) for key in ours)
    assert (
        power("partition", published, "--network", "resnet50", "--gpu", "A100", "--cap", "200").code
        == 0
    )


def _numbers(model: Any) -> str:
    made: Reference = model
    return json.dumps(encoded(made))


def test_a_file_alone_and_a_set_that_lacks_one_are_named(published: Path) -> None:
    network = published / "resnet50"
    with pytest.raises(Unreadable, match="name their folder"):
        parameters.available(network / "sm_gbr_model_imagenet_mem5001.pkl")
    (network / "sm_base_model_imagenet_mem5001.pth").unlink()
    with pytest.raises(Unreadable, match=r"sm_base_model_imagenet_mem5001\.pth: cannot be read"):
        parameters.available(published)["resnet50", "3080Ti", 5001.0]()


@pytest.mark.needs("torch")
def test_what_torch_itself_writes_is_read(tmp_path: Path) -> None:
    import torch

    class Made(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.raw_phi_mem = torch.nn.Parameter(torch.tensor(0.1))
            self.raw_beta_mem = torch.nn.Parameter(torch.tensor([-2.5], dtype=torch.float64))

    torch.save(Made().state_dict(), tmp_path / "one.pth")
    assert pickles.tensors((tmp_path / "one.pth").read_bytes(), "one.pth") == {
        "raw_phi_mem": float(np.float32(0.1)),
        "raw_beta_mem": -2.5,
    }


class Runs:
    """An object that runs a program when unpickled."""

    def __init__(self, run: Any, *args: object) -> None:
        self.call = run, args

    def __reduce__(self) -> Any:
        return self.call


def programs(trace: Path) -> dict[str, bytes]:
    """Pickles that leave a file behind when unpickled, each in another way."""
    command = f"touch {trace}"
    array = np.array([Runs(os.system, command)], dtype=object)
    inside = io.BytesIO()
    joblib.dump({"estimators_": array}, inside)
    word = command.encode()
    return {
        "os.system": pickle.dumps(Runs(os.system, command), 0),
        "eval": pickle.dumps(
            {"loss": Runs(eval, f"__import__('pathlib').Path({str(trace)!r}).touch()")}, 4
        ),
        "inside an array of objects": inside.getvalue(),
        "INST": b"(S'" + word + b"'\nios\nsystem\n.",
        "OBJ": b"(cos\nsystem\nS'" + word + b"'\no.",
        "a way round through an allowed package": b"cnumpy.testing._private.utils\nrunstring\n"
        b"(S'import os; os.system(\"" + word + b"\")'\n}tR.",
        "an attribute of an allowed module": b"\x80\x04\x8c\x06joblib"
        b"\x8c\x12parallel.os.system\x93(\x8c" + bytes([len(word)]) + word + b"tR.",
        "after numbers": pickle.dumps([1.0, 2.0, Runs(os.system, command)], 2),
    }


def packed(pickled: bytes) -> bytes:
    """The same inside a .pth."""
    there = io.BytesIO()
    with zipfile.ZipFile(there, "w") as file:
        file.writestr("model/data.pkl", pickled)
    return there.getvalue()


def test_no_program_in_a_file_is_run(tmp_path: Path) -> None:
    for way, pickled in programs(tmp_path / "ran").items():
        for name, raw, read in (
            ("one.pkl", pickled, pickles.load),
            ("one.pth", packed(pickled), pickles.tensors),
        ):
            with pytest.raises(
                Unreadable,
                match="nothing was run" if way != "after numbers" else "run|not a model",
            ):
                read(raw, name)
            assert not (tmp_path / "ran").exists(), way


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None
)
@given(st.data())
def test_a_damaged_file_is_refused_or_read_and_nothing_else(
    grown: dict[str, Any], data: st.DataObject
) -> None:
    written = io.BytesIO()
    joblib.dump(grown["power"], written)
    is_pkl = data.draw(st.booleans())
    raw = bytearray(written.getvalue() if is_pkl else state_dict(RAW["sm_base_model"]))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(raw[: data.draw(st.one_of(st.just(len(raw)), st.integers(0, len(raw))))])
    with suppress(Unreadable):
        pickles.load(content, "damaged") if is_pkl else pickles.tensors(content, "damaged")
