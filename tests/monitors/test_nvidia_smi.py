"""nvidia-smi: with a stand-in where there is no GPU, with the real one where there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.nvidia_smi import read_nvidia_smi
from fixtures.studies.monitors.catalogue.nvidia import QUERY
from fixtures.studies.monitors.monitor import load
from tests.monitors import stand_ins
from tests.monitors.watched import watch

nvidia_smi = load("nvidia_smi")


def test_it_watches_until_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, nvidia_smi=stand_ins.NVIDIA_SMI)
    assert nvidia_smi.version() == "NVIDIA-SMI version  : 550.90.12"
    done = watch("nvidia_smi:interval_s=0.02", tmp_path, lambda folder: (nvidia_smi.samples(folder) or 0) >= 3)
    assert done.ended_as_asked
    log = read_nvidia_smi(tmp_path / "stdout")
    assert log.columns == tuple(QUERY.split(","))
    # The signal may have come between the two GPUs of a query.
    assert len(log.gpus["1"].time_s) <= len(log.gpus["0"].time_s) == nvidia_smi.samples(tmp_path)
    assert log.gpus["0"].columns["power.draw"][0] == 17
    assert log.gpus["1"].missing["power.draw"] == "[N/A]"


@pytest.mark.needs("gpu", "nvidia-smi")
def test_the_real_one(tmp_path: Path) -> None:
    done = watch("nvidia_smi:interval_s=0.1", tmp_path, lambda folder: (nvidia_smi.samples(folder) or 0) >= 3)
    assert done.ended_as_asked
    assert read_nvidia_smi(tmp_path / "stdout").columns == tuple(QUERY.split(","))


def test_a_driver_without_a_gpu_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, nvidia_smi="print('No devices found.')")
    assert nvidia_smi.unavailable_reason() == "nvidia-smi lists no GPU"


@given(gpus=st.permutations(range(4)), queries=st.integers(0, 5), cut=st.integers(0, 40))
def test_queries_are_counted_whatever_the_order_of_gpus_and_wherever_it_was_cut(
    tmp_path_factory: pytest.TempPathFactory, gpus: list[int], queries: int, cut: int
) -> None:
    """The lines of the GPU that comes first, if they are whole."""
    folder = tmp_path_factory.mktemp("log")
    lines = [f"2026/11/22 08:00:0{query}, {gpu}, NVIDIA A100, 17 %" for query in range(queries) for gpu in gpus]
    text = "".join(f"{line}\n" for line in ["timestamp, index, name, utilization.gpu [%]", *lines])
    text = text[: len(text) - cut] if lines and cut < len(lines[-1]) else text
    (folder / "stdout").write_text(text)
    whole = text[: text.rfind("\n") + 1].splitlines()[1:]
    assert nvidia_smi.samples(folder) == sum(line.split(", ")[1] == str(gpus[0]) for line in whole)


def test_an_error_in_the_place_of_a_header_is_no_sample(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("Unable to determine the device handle for GPU 0000:07:00.0: Unknown Error\nagain\n")
    assert nvidia_smi.samples(tmp_path) == 0
    assert not nvidia_smi.watches(tmp_path)
