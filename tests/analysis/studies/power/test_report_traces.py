"""The step `power traces`: a saved profile becomes trace files that read back as measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.load import from_json
from analysis.studies.power.traces import read, rows_of
from tests.synthetic import STOCK, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from tests.analysis.studies.power.command import Power

JSON = dict[str, Any]
POINTS = (
    "shares=4x25:batches=16",
    "shares=50+2x25:batches=4+8+8:throttle=0.5",
    "shares=2x50:batches=64",
    "shares=50:batches=256",
    "model=static",
)


def profile(**other: str) -> JSON:
    """Five CPU points: the third ran out of memory, the fourth was skipped, the fifth is idle."""
    names = [f"power_profile:{one}" for one in POINTS]
    saved = saved_run(Made(arms=(STOCK,), workloads=names, blocks=1, steps=3, warmup=0))
    ours = saved["deeptweak"]
    for name in names:
        params = {
            "backend": "cpu",
            "model": "mobilenet_v2",
            "shares": "50",
            "batches": "4",
            "throttle": "1",
            "sm_mhz": "",
            "mem_mhz": "",
        }
        ours["workloads"][name]["params"] = params | dict(
            part.split("=") for part in name.split(":")[1:]
        )
    outcomes = {
        names[2]: ("failed", "Point oom: 2 x 64 images need 3 GiB, 2 GiB are free."),
        names[3]: ("skipped", "power back-end cpu: 8 processes are the most here"),
    }
    for cell in ours["cells"]:
        if cell["workload"] in outcomes:
            cell["outcome"], cell["reason"] = outcomes[cell["workload"]]
    kept = []
    for one in saved["benchmarks"]:
        record = one["extra_info"]
        if record["workload"] not in outcomes:
            record["report"] = {
                "point": [_point(names.index(record["workload"])) | other],
                "probe": [{"backend": "cpu"}],
            }
            kept.append(one)
    saved["benchmarks"] = kept
    return saved


def _point(at: int) -> JSON:
    shares, batches = (
        ([25.0] * 4, [16] * 4)
        if at == 0
        else ([50.0, 25.0, 25.0], [4, 8, 8])
        if at == 1
        else ([], [])
    )
    return {
        "model_name": "static" if at == 4 else "mobilenet_v2",
        "p_list": shares,
        "b_list": batches,
        "target_freq": None,
        "mem_freq": None,
        "sm_freq": None,
        "sm_util": None,
        "mem_util": None,
        "throughput_total": 0.0 if at == 4 else 123.5,
        "power_avg": None,
        "power_max": None,
        "outcome": "measured",
        "reason": None,
        "backend": "cpu",
        "power_source": "none",
        "throttle": 0.5 if at == 1 else 1.0,
        "cpu_s_per_s": 0.02 if at == 4 else 1.9,
        "image_size": 64,
        "images": [10.0] * len(shares),
    }


def saved(folder: Path, content: JSON) -> str:
    path = folder / "profile.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def test_a_profile_becomes_a_file_per_network_by_back_end(
    tmp_path: Path, power: Power, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, profile())
    printed = power("traces", "profile.json", "-o", "traces")
    assert (printed.page, printed.err) == snapshot
    rows = {
        (one.shares, one.batches): one for one in read(tmp_path / "traces/cpu/mobilenet_v2.csv")
    }
    mixed, lost = rows[(50.0, 25.0, 25.0), (4, 8, 8)], rows[(50.0, 50.0), (64, 64)]
    assert mixed.throughput_images_per_s == 123.5
    assert mixed.extra == {
        "backend": "cpu",
        "power_source": "none",
        "throttle": 0.5,
        "cpu_s_per_s": 1.9,
    }
    assert mixed.power_mean_w is None
    assert (lost.outcome, lost.throughput_images_per_s, "3 GiB" in lost.reason) == (
        "oom",
        None,
        True,
    )
    (idle,) = read(tmp_path / "traces/cpu/static.csv")
    assert (idle.network, idle.shares, idle.extra["cpu_s_per_s"]) == ("static", (), 0.02)
    refused: list[str] = []
    assert [
        one.outcome
        for one in rows_of(from_json(profile(p_list="__import__('os')"), "made.json"), refused)
    ] == ["oom"]
    assert refused == snapshot(name="refused")


@pytest.mark.parametrize("name", ["../../etc/passwd", ".hidden", "a/b"])
def test_a_network_of_a_name_that_leads_elsewhere_is_no_file(
    tmp_path: Path, name: str, power: Power
) -> None:
    printed = power("traces", saved(tmp_path, profile(model_name=name)), "-o", tmp_path / "t")
    assert (printed.code, bool(printed.err)) == (2, True)
    assert not (tmp_path / "etc").exists()


def test_another_run_is_refused_with_what_to_do(tmp_path: Path, power: Power) -> None:
    printed = power("traces", saved_file(tmp_path), "-o", tmp_path / "t")
    assert (printed.code, "bench_power_profile" in printed.err) == (2, True)
    assert not (tmp_path / "t").exists()
