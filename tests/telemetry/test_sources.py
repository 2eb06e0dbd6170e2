"""Telemetry sources on a recorded /proc and /sys (tests/recordings/linux-6.18-2vcpu/ORIGIN.md)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fixtures.telemetry.proc_sources import usage, watched
from fixtures.telemetry.sampler import SOURCES
from fixtures.telemetry.sources import Converted, Field, KeptOpen, Row, SourceMissing, convert

RECORDINGS = Path(__file__).parents[1] / "recordings/linux-6.18-2vcpu"
HOST = ("cpu", "disk", "memory", "network", "pressure", "vm")
# The recordings were 1.04 s apart; two seconds make the arithmetic plain.
TIMES = (100.0, 102.0)


def recorded(root: Path, when: str) -> Path:
    """Put a recording into the files under `root`, so that open files have the new text."""
    for path in (RECORDINGS / when).rglob("*"):
        if path.is_file():
            to = root / path.relative_to(RECORDINGS / when)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())
    return root


def replay(name: str, tmp_path: Path) -> Converted:
    """One sample before, one after, converted."""
    source = SOURCES[name]()
    source.open(recorded(tmp_path, "before"), None)
    rows: list[Row | None] = [source.sample()]
    recorded(tmp_path, "after")
    rows.append(source.sample())
    out = source.convert(TIMES, rows)
    source.close()
    return out


def test_sources_have_the_names_used_for_missing_values() -> None:
    assert tuple(sorted(SOURCES)) == (
        "cpu",
        "disk",
        "gpm",
        "memory",
        "network",
        "nvml",
        "pressure",
        "process",
        "vm",
    )


def test_cpu_shares_are_of_all_processors_and_fill_the_whole(tmp_path: Path) -> None:
    """User 46485 - 46327 = 158 ticks, system 14723 - 14669 = 54: 212 ticks of 212 were work."""
    out = replay("cpu", tmp_path)
    assert out.columns["cpu_user_percent"] == [None, pytest.approx(100 * 158 / 212, abs=1e-3)]
    assert out.columns["cpu_system_percent"] == [None, pytest.approx(100 * 54 / 212, abs=1e-3)]
    assert out.columns["cpu_idle_percent"] == [None, 0.0]
    assert out.summary["cpu_busy_percent_mean"] == 100.0
    assert out.summary["steal_s"] == 0.0
    # ctxt 671375 - 670679 = 696 in 2 s
    assert out.columns["context_switches_per_s"] == [None, 348.0]


def test_the_sampler_is_not_counted_in_the_run_queue(tmp_path: Path) -> None:
    """Its own process runs whenever it reads: of `procs_running 4` and `4`, one was the reader."""
    assert replay("cpu", tmp_path).columns["run_queue_tasks"] == [3.0, 3.0]


def test_pressure_is_the_share_of_the_interval(tmp_path: Path) -> None:
    """Io some 9167081 - 9164533 = 2548 us of 2 s are 0.1274 %."""
    assert replay("pressure", tmp_path).columns["psi_io_some_percent"] == [
        None,
        pytest.approx(0.1274, abs=1e-3),
    ]


def test_a_disk_sector_is_512_bytes_and_loop_devices_are_ignored(tmp_path: Path) -> None:
    """Writes: 24721672 - 24705144 = 16528, or 8.07 MiB for 8 MiB and metadata; loop0 is no disk."""
    out = replay("disk", tmp_path)
    assert out.summary["disk_written_bytes_total"] == 16528 * 512
    assert out.columns["disk_vda_written_bytes_per_s"] == [None, 16528 * 512 / 2]
    assert not any("loop0" in column for column in out.columns)


def test_loopback_and_hardware_interfaces_alone_are_watched(tmp_path: Path) -> None:
    """7282222408 - 7276973896 bytes over lo; ifb0 has no hardware behind it."""
    out = replay("network", tmp_path)
    assert out.summary["net_lo_tx_bytes_total"] == 5248512
    assert {column.split("_")[1] for column in out.columns} == {"lo", "eth0"}


def test_a_pod_without_hardware_interfaces_watches_all_its_own(tmp_path: Path) -> None:
    for name in ("lo", "eth0"):
        (tmp_path / name / "statistics").mkdir(parents=True)
    assert watched(tmp_path) == ["eth0", "lo"]


def test_parentheses_and_blanks_in_a_name_do_not_shift_fields() -> None:
    """The process's name is `a) R 1 (b c`; os.times() had 0.03 s and 0.15 s; a tick is 10 ms."""
    read = usage((RECORDINGS / "odd_command_stat").read_bytes())
    assert read is not None
    user, system, faults, resident = read
    assert (user, system, faults, resident) == (3, 15, 30304, 31602)


def test_a_cut_off_list_of_children_adopts_no_stranger(tmp_path: Path) -> None:
    """`11 12 ` was cut to `11 1`: process 1 is there, and is none of the workload's."""
    for pid in (1, 10, 11, 12):
        (tmp_path / f"proc/{pid}/task/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/stat").write_bytes((RECORDINGS / "odd_command_stat").read_bytes())
        (tmp_path / f"proc/{pid}/task/{pid}/children").write_bytes(b"11 1" if pid == 10 else b"")
    source = SOURCES["process"]()
    source.open(tmp_path, 10)
    user, system, faults, resident, count = source.sample()
    source.close()
    assert (user, system, faults, resident, count) == (2 * 3, 2 * 15, 2 * 30304, 2 * 31602, 2)


def test_without_lists_of_children_the_process_alone_is_measured(
    tmp_path: Path,
) -> None:
    (tmp_path / "proc/10").mkdir(parents=True)
    (tmp_path / "proc/10/stat").write_bytes((RECORDINGS / "odd_command_stat").read_bytes())
    source = SOURCES["process"]()
    source.open(tmp_path, 10)
    out = source.convert(TIMES, [source.sample(), source.sample()])
    source.close()
    assert out.columns["process_rss_bytes"] == [31602.0 * os.sysconf("SC_PAGE_SIZE")] * 2
    assert "CONFIG_PROC_CHILDREN" in out.missing["process_descendants"]


@pytest.mark.parametrize(("name", "device"), [("disk", "vda"), ("network", "eth0")])
def test_a_device_that_goes_is_named_with_its_reason(
    name: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, read = SOURCES[name](), KeptOpen.read
    source.open(recorded(tmp_path, "before"), None)

    def gone(self: KeptOpen) -> bytes:
        if device in self.path.parts:
            raise OSError(19, "No such device")
        return read(self)

    monkeypatch.setattr(KeptOpen, "read", gone)
    missing = source.convert(TIMES, [source.sample(), source.sample()]).missing
    source.close()
    assert missing[f"{'net' if name == 'network' else name}_{device}"].endswith("No such device")


@pytest.mark.parametrize("name", HOST)
def test_a_source_absent_from_this_machine_names_its_path(name: str, tmp_path: Path) -> None:
    source = SOURCES[name]()
    with pytest.raises(SourceMissing, match=str(tmp_path)):
        source.open(tmp_path, None)
    source.close()


@pytest.mark.parametrize("name", HOST)
def test_an_empty_file_never_gives_zeros(name: str, tmp_path: Path) -> None:
    recorded(tmp_path, "before")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    source = SOURCES[name]()
    try:
        source.open(tmp_path, None)
    except SourceMissing:
        return
    out = source.convert(TIMES, [source.sample(), source.sample()])
    source.close()
    assert not out.columns
    assert out.missing


@pytest.mark.parametrize("name", HOST)
def test_a_file_emptied_under_the_sampler_ends_its_values(name: str, tmp_path: Path) -> None:
    source = SOURCES[name]()
    source.open(recorded(tmp_path, "before"), None)
    rows: list[Row | None] = [source.sample()]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    rows.append(source.sample())
    source.close()
    assert all(value is None for value in rows[1] or ())


def test_a_line_this_kernel_does_not_have_is_named(tmp_path: Path) -> None:
    """A kernel without NUMA balancing has no numa_pages_migrated."""
    recorded(tmp_path, "before")
    vmstat = tmp_path / "proc/vmstat"
    vmstat.write_text(
        "\n".join(
            line
            for line in vmstat.read_text().splitlines()
            if not line.startswith("numa_pages_migrated")
        )
        + "\n"
    )
    source = SOURCES["vm"]()
    source.open(tmp_path, None)
    out = source.convert(TIMES, [source.sample(), source.sample()])
    source.close()
    assert out.missing == {
        "numa_pages_migrated_per_s": "/proc/vmstat has no number at `numa_pages_migrated`"
    }
    assert "numa_pages_migrated_total" not in out.summary


def test_pressure_switched_off_says_how_it_is_switched_on(tmp_path: Path) -> None:
    recorded(tmp_path, "before")
    shutil.rmtree(tmp_path / "proc/pressure")
    with pytest.raises(SourceMissing, match="psi=1"):
        SOURCES["pressure"]().open(tmp_path, None)


def test_a_counter_reset_is_left_out_of_values_and_total() -> None:
    """10 -> 30 -> 5 -> 8: 20 and 3 are known, what was counted around the reset is not.

    Rate mean: 23 in the 2 s that are known.
    """
    rows: list[Row | None] = [(10,), (30,), (5,), (8,)]
    out = convert(
        (0.0, 1.0, 2.0, 3.0), rows, (Field("x_per_s", "rate", 1.0, ("mean",), "x_total"),), {}
    )
    assert out.columns["x_per_s"] == [None, 20.0, None, 3.0]
    assert out.summary == {"x_per_s_mean": 11.5, "x_total": 23.0}


def test_the_mean_of_a_rate_weighs_by_time() -> None:
    """100 in 1 s and 0 in 9 s are 10 a second, not 50."""
    out = convert(
        (0.0, 1.0, 10.0), [(0,), (100,), (100,)], (Field("x_per_s", "rate", 1.0, ("mean",)),), {}
    )
    assert out.summary == {"x_per_s_mean": 10.0}


def test_a_single_sample_has_no_rate_and_says_why() -> None:
    out = convert((0.0,), [(5,)], (Field("x_per_s", "rate", total="x_total"),), {})
    assert out.columns == {}
    assert out.summary == {}
    assert "needs two" in out.missing["x_per_s"]
