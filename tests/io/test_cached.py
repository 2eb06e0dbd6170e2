"""The state of the page cache before an epoch is proven, not hoped for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.studies.io import pagecache
from fixtures.terms import Refused

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two of a megabyte."""
    made = [tmp_path / name for name in "ab"]
    for file in made:
        file.write_bytes(bytes(1 << 20))
    return made


def test_files_are_made_cold_and_warm_and_left_alone(files: list[Path]) -> None:
    """As mincore sees them; only evicting has a time."""
    if not pagecache.device_of(files[0].parent):
        pytest.skip("the folder for tests lies on no block device: nothing can be evicted from memory there")
    cold = pagecache.bring_about("cold", files)
    assert cold.resident <= 0.01
    assert cold.evicted_s is not None
    assert pagecache.bring_about("as_found", files).resident == pytest.approx(cold.resident, abs=0.01)
    assert pagecache.bring_about("warm", files) == pagecache.Found(1.0)
    assert pagecache.bring_about("as_found", files) == pagecache.Found(1.0)


@pytest.mark.parametrize(("state", "fraction"), [("cold", 0.011), ("warm", 0.989)])
def test_a_state_that_does_not_come_about_is_refused_with_its_figure(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, state: str, fraction: float
) -> None:
    """Tried three times."""
    tried: list[str] = []
    monkeypatch.setattr(pagecache, "resident", lambda _: fraction)
    monkeypatch.setattr(pagecache, "evict", lambda _: tried.append("cold"))
    monkeypatch.setattr(pagecache, "warm", lambda _: tried.append("warm"))
    with pytest.raises(Refused, match=rf"cache={state}: {fraction:.1%} of the data set is "):
        pagecache.bring_about(state, files)
    assert tried == [state] * 3


def test_a_data_set_larger_than_memory_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 2 PB, all of it a hole."""
    huge = tmp_path / "huge"
    huge.touch()
    try:
        with huge.open("wb") as file:
            file.truncate(1 << 43)
    except OSError:
        pytest.skip("the file system of the folder for tests holds no file of 8 TB")
    monkeypatch.setattr(pagecache, "resident", lambda _: 0.5)
    monkeypatch.setattr(pagecache, "warm", lambda _: None)
    with pytest.raises(Refused, match=r"It has 8.8e\+03 GB and [\d.e+]+ GB of memory are free: choose a smaller sample_scale"):
        pagecache.bring_about("warm", [huge])


def test_a_state_that_is_gone_is_brought_about_anew(files: list[Path]) -> None:
    """And what is still there is left as it is, its figures too."""
    if not pagecache.device_of(files[0].parent):
        pytest.skip("the folder for tests lies on no block device: nothing can be evicted from memory there")
    warm = pagecache.bring_about("warm", files)
    pagecache.evict(files)
    assert pagecache.still("warm", files, warm).resident >= 0.99
    pagecache.evict(files)
    assert pagecache.still("cold", files, pagecache.Found(0.5, 1.25)) == pagecache.Found(0.0, 1.25)


@pytest.mark.parametrize(
    ("state", "fetched", "counted", "says"),
    [
        ("warm", 10_000_000, True, None),
        (
            "warm",
            10_000_001,
            True,
            r"cache=warm: epoch 2 read 1000\.0 MB of the data set, and 10\.0 MB came from storage; 1% may\. .*DAMON",
        ),
        ("cold", 950_000_000, True, None),
        ("cold", 949_999_999, True, r"cache=cold: epoch 2 read 1000\.0 MB of the data set, and 950\.0 MB came from storage; 95% must\."),
        ("cold", 0, True, "and 0.0 MB came from storage"),
        ("cold", 0, False, None),
        ("cold", 1, False, "and 0.0 MB came from storage"),
        ("as_found", 0, True, None),
        ("as_found", 10**9, True, None),
    ],
)
def test_an_epoch_that_fetched_what_its_state_does_not_imply_is_refused(state: str, fetched: int, counted: bool, says: str | None) -> None:  # noqa: FBT001
    """1 GB was read. Where the file system's reads are not counted, nothing fetched is nothing known."""
    if says is None:
        pagecache.must_have_lasted(state, 2, 10**9, fetched, counted=counted)
        return
    with pytest.raises(Refused, match=says):
        pagecache.must_have_lasted(state, 2, 10**9, fetched, counted=counted)


def test_a_megabyte_of_pythons_own_may_come_from_storage() -> None:
    """More than a hundredth of a small data set: libraries whose pages were dropped."""
    pagecache.must_have_lasted("warm", 1, 10**7, 10**6, counted=True)
    with pytest.raises(Refused, match=r"10\.0 MB of the data set, and 1\.0 MB came from storage"):
        pagecache.must_have_lasted("warm", 1, 10**7, 10**6 + 1, counted=True)


def test_more_of_its_own_may_come_while_the_data_set_is_locked_in_memory() -> None:
    """A page of a library brings what is read ahead of it: megabytes. Beyond that it was no library."""
    pagecache.must_have_lasted("warm", 1, 10**7, 64_000_000, counted=True, locked=True)
    with pytest.raises(Refused, match=r"10\.0 MB of the data set, and 64\.0 MB came from storage"):
        pagecache.must_have_lasted("warm", 1, 10**7, 64_000_001, counted=True, locked=True)
