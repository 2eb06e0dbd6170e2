"""A run that read another run's data is found by what was generated, or by its throughput with the page cache or the design's order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.studies.io.dlio_published import PublishedRow
from analysis.studies.io.dlio_study import dlio_study
from analysis.studies.io.stale import stale_rows
from tests.dlio_like import Made, folder

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.io.dlio_study import DlioStudy

BIG = {"record_length_bytes": 4 * 1048576}  # 320 files of 4 MiB, 1.25 GiB, where a run's own are 0.3125 GiB
QUICK, SLOW = (1.0, *[0.02] * 39), (2.0, *[0.3] * 39)
GIB_KB = 2**20


def study(where: Path, *made: tuple[str, Made]) -> DlioStudy:
    for name, one in made:
        folder(where / name, one)
    found = dlio_study([where])
    assert not found.refused
    return found


def test_a_data_set_made_for_another_run_and_left_in_place(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    found = study(
        tmp_path,
        ("2", Made()),
        ("2_record_length_bytes_4194304", Made(after_s=100, generates=True, dataset=BIG)),
        ("2_record_length_bytes_4194304", Made(after_s=200, dataset=BIG, loads=SLOW)),
        ("2_prefetch_size_8", Made(after_s=300, loads=SLOW, reader={"prefetch_size": 8})),
    )
    (stale,) = found.stale
    assert stale.id == "2_prefetch_size_8"
    assert stale.evidence == snapshot
    assert [one.run.id for one in found.usable] == ["2", "2_record_length_bytes_4194304"]
    (refused,) = [one for one in found.judged if one not in found.usable]
    assert all(response.value is None for response in refused.responses.values())
    assert (refused.responses["au_whole_percent"].why_missing or "").startswith("stale data")


HARMLESS = {
    "made anew for the next run": (
        ("2_record_length_bytes_4194304", Made(after_s=0, generates=True, dataset=BIG)),
        ("2_record_length_bytes_4194304", Made(after_s=100, dataset=BIG, loads=SLOW)),
        ("2", Made(after_s=200, generates=True)),
        ("2", Made(after_s=300)),
    ),
    # Files of another format have other names: a run on npz after png was made reads its own.
    "another format": (("2_format_png", Made(generates=True, dataset={"format": "png", **BIG})), ("2", Made(after_s=100))),
    "more files": (("8", Made(generates=True, dataset={"num_files_train": 640})), ("2", Made(after_s=100))),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_does_no_harm(case: str, tmp_path: Path) -> None:
    assert study(tmp_path, *HARMLESS[case]).stale == ()


def suspects(where: Path, cached_gib: float, loads: tuple[float, ...] = SLOW) -> DlioStudy:
    """No generation was kept: a run on its own data, one on others, and one whose data nobody saw made."""
    return study(
        where,
        ("2", Made(cached_kb=4 * GIB_KB)),
        ("2_record_length_bytes_4194304", Made(after_s=100, dataset=BIG, loads=SLOW, cached_kb=5 * GIB_KB)),
        ("2_prefetch_size_8", Made(after_s=200, loads=loads, reader={"prefetch_size": 8}, cached_kb=int(cached_gib * GIB_KB))),
    )


def test_throughput_and_a_page_cache_that_stood_still(tmp_path: Path) -> None:
    """It has the samples/s of the run before it and not its own kind's; putting its data back would have freed 0.94 GiB."""
    (stale,) = suspects(tmp_path, 5.0).stale
    assert (stale.id, stale.ran_on) == ("2_prefetch_size_8", "2_record_length_bytes_4194304")
    assert "0.9 GiB" in stale.evidence


@pytest.mark.parametrize(("cached_gib", "loads"), [(4.1, SLOW), (5.0, QUICK)])
def test_a_page_cache_that_moved_or_a_throughput_of_its_own_kind_clears_it(
    tmp_path: Path, cached_gib: float, loads: tuple[float, ...]
) -> None:
    """Its own data were put back: Cached fell by about the difference, so the throughput may be the setting's own doing."""
    assert suspects(tmp_path, cached_gib, loads).stale == ()


def rows(*rates: float) -> list[PublishedRow]:
    """A baseline, a row with other records (4 MiB), and rows after it, in the design's order; MB/s as published."""
    settings = [None, ("record_length_bytes", "4194304"), ("checkpoint", "False"), ("prefetch_size", "2")]
    return [
        PublishedRow(at + 2, "unet3d", 4, setting, 50.0, rate, at) for at, (setting, rate) in enumerate(zip(settings, rates, strict=False))
    ]


def test_published_rows_after_one_that_changed_the_data() -> None:
    """Records of 1 MiB: 100 samples/s, then 80 MB/s / 4 MiB = 20 samples/s; 20.1 after it is that data set, 99 is not."""
    table = rows(100.0, 80.0, 20.1, 99.0)
    (stale,) = stale_rows(table, 2.0**20, {table[1]: 4 * 2.0**20})
    assert (stale.id, stale.ran_on, stale.origin) == ("4_checkpoint_False", "4_record_length_bytes_4194304", "line 4")
    assert "20.10 and 20.00" in stale.evidence
    unordered = [replace(row, order=None) for row in table]
    assert stale_rows(unordered, 2.0**20, {unordered[1]: 4 * 2.0**20}) == []


def test_a_table_by_itself_is_judged_by_its_utilisation() -> None:
    """Nobody knows what record length its MB/s were reckoned with: AU of 20.1 % after 20 % is that data set's, not the baseline's 50."""
    table = [replace(row, au_percent=au) for row, au in zip(rows(1.0, 1.0, 1.0, 1.0), (50.0, 20.0, 20.1, 49.0), strict=True)]
    (stale,) = stale_rows(table, None, {table[1]: 4 * 2.0**20})
    assert stale.id == "4_checkpoint_False"
    assert all(figure in stale.evidence for figure in ("20.10", "20.00", "50.00"))
