"""nvidia-smi and dcgmi dmon: real where there is a GPU, or DCGM, else stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.monitors.catalogue.nvidia import QUERY
from fixtures.monitors.monitor import load
from tests.monitors import stand_ins
from tests.monitors.watched import watch

nvidia_smi, dcgmi = load("nvidia_smi"), load("dcgmi")
HEADER = (
    "#Entity   GPUTL             MCUTL             GRACT        \nID                              "
    "                      \n"
)


def table(folder: Path) -> list[dict[str, str]]:
    """The whole rows that nvidia-smi wrote, whose header must name what was queried."""
    head, *rows = [
        line.split(", ")
        for line in (folder / "stdout").read_text().rpartition("\n")[0].splitlines()
    ]
    names = [cell.partition(" [")[0] for cell in head]
    assert names == QUERY.split(",")
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_it_watches_until_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, nvidia_smi=stand_ins.NVIDIA_SMI)
    assert nvidia_smi.version() == "NVIDIA-SMI version  : 550.90.12"
    done = watch(
        "nvidia_smi:interval_s=0.02",
        tmp_path,
        lambda folder: (nvidia_smi.samples(folder) or 0) >= 3,
    )
    assert done.ended_as_asked
    rows = {gpu: [row for row in table(tmp_path) if row["index"] == gpu] for gpu in ("0", "1")}
    # The signal may have come between the two GPUs of a query.
    assert len(rows["1"]) <= len(rows["0"]) == nvidia_smi.samples(tmp_path)
    assert [rows[gpu][0]["power.draw"] for gpu in ("0", "1")] == ["17 W", "[N/A]"]


@pytest.mark.needs("gpu", "nvidia-smi")
def test_the_real_nvidia_smi(tmp_path: Path) -> None:
    done = watch(
        "nvidia_smi:interval_s=0.1", tmp_path, lambda folder: (nvidia_smi.samples(folder) or 0) >= 3
    )
    assert done.ended_as_asked
    assert table(tmp_path)


@given(gpus=st.permutations(range(4)), queries=st.integers(0, 5), cut=st.integers(0, 40))
def test_queries_are_counted_despite_gpu_order_and_cut_lines(
    tmp_path_factory: pytest.TempPathFactory, gpus: list[int], queries: int, cut: int
) -> None:
    """The lines of the GPU that comes first, if they are whole."""
    folder = tmp_path_factory.mktemp("log")
    lines = [
        f"2026/11/22 08:00:0{query}, {gpu}, NVIDIA A100, 17 %"
        for query in range(queries)
        for gpu in gpus
    ]
    text = "".join(f"{line}\n" for line in ["timestamp, index, name, utilization.gpu [%]", *lines])
    text = text[: len(text) - cut] if lines and cut < len(lines[-1]) else text
    (folder / "stdout").write_text(text)
    whole = text[: text.rfind("\n") + 1].splitlines()[1:]
    assert nvidia_smi.samples(folder) == sum(line.split(", ")[1] == str(gpus[0]) for line in whole)


def test_it_watches_until_ctrl_c_and_counts_through_its_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, dcgmi=stand_ins.DCGMI)
    assert dcgmi.version() == "dcgmi  version: 3.3.5"
    done = watch("dcgmi:interval_s=0.1", tmp_path, lambda folder: (dcgmi.samples(folder) or 0) >= 5)
    assert done.code == 0
    assert sum(line.startswith("#Entity") for line in done.lines()) >= 2
    assert dcgmi.samples(tmp_path) == sum(line.startswith("GPU 0 ") for line in done.lines()) >= 5


def test_a_header_alone_is_not_at_work(tmp_path: Path) -> None:
    """It is written before DCGM has agreed to anything: what it refuses comes after."""
    (tmp_path / "stdout").write_text(
        f"{HEADER}Error setting watches. Result: -50: Profiling is not supported for this group "
        "of GPUs\n"
    )
    assert not dcgmi.watches(tmp_path)
    assert dcgmi.samples(tmp_path) == 0


def test_no_values_of_any_gpu_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, dcgmi=f"print({HEADER!r})")
    assert dcgmi.unavailable_reason() == "dcgmi has no values for any GPU: see `dcgmi discovery -l`"
