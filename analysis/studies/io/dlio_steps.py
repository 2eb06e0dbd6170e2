"""The step lists of DLIO's ranks and the clock stamps around them, as epochs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from analysis.terms import Unreadable

from .dlio_config import DAMAGED, json_of
from .terms import GIB, Checkpoint, Epoch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from analysis.formats.fields import Fields

BLOCK = re.compile(r"block(\d+)")
CHECKPOINT = re.compile(r"(?:save_)?ckpt(\d+)")


@dataclass(frozen=True, slots=True)
class RankFiles:
    """What one rank wrote. `stamps` are of the rank itself, or of rank 0 for all where only that wrote any (`shared_clock`)."""

    rank: int
    output: Path
    stamps: Path
    shared_clock: bool


def rank_files(folder: Path, processes: int) -> list[RankFiles]:
    """Find the files of each rank, in the folder or beside it in one that DLIO 2.0.0 named a moment earlier or later.

    Raises: Unreadable, where those of rank 0 are missing.
    """
    result = []
    shared = folder / "per_epoch_stats.json"
    for rank in range(processes):
        home = next((path for path in (folder, *_beside(folder)) if (path / f"{rank}_output.json").is_file()), None)
        if home is not None:
            own = home / f"{rank}_per_epoch_stats.json"
            alone = shared.is_file() and not own.is_file()
            result.append(RankFiles(rank, home / f"{rank}_output.json", shared if alone else own, alone))
    if not result or result[0].rank:
        raise Unreadable(f"{folder / '0_output.json'}: not there; it holds the steps, copy the folder whole.")
    return result


def _beside(folder: Path) -> list[Path]:
    """Sibling folders without a summary, nearest in name (that is, in time) first."""
    siblings = [path for path in folder.parent.iterdir() if path != folder and path.is_dir() and not (path / "summary.json").exists()]
    return sorted(siblings, key=lambda sibling: abs(_stamp_s(sibling.name) - _stamp_s(folder.name)))


def _stamp_s(name: str) -> float:
    try:
        return datetime.strptime(name, "%Y-%m-%d-%H-%M-%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("inf")


def epochs_of(files: Sequence[RankFiles], notes: list[str]) -> tuple[Epoch, ...]:
    """Read all epochs of all ranks; blocks in which no step was taken are left out.

    Raises: Unreadable.
    """
    result: list[Epoch] = []
    for file in files:
        output, stamps = json_of(file.output), None
        for number in sorted(int(key) for key in output.value if key.isdecimal()):
            epoch = output.fields(str(number))
            lists = {name: epoch.optional_fields(name) for name in ("load", "proc", "compute")}
            for block in sorted(int(match[1]) for name in lists["compute"].value if (match := BLOCK.fullmatch(name))):
                load, proc, compute = (lists[name].times(f"block{block}", zero=True) for name in ("load", "proc", "compute"))
                load = _with_first(load, proc, compute) if block > 1 else load
                steps = min(len(load), len(proc), len(compute))
                if max(len(load), len(proc), len(compute)) > steps + 1:
                    epoch.refuse(f"has {len(load)} load, {len(proc)} proc and {len(compute)} compute times in block{block}", DAMAGED)
                if not steps:
                    continue
                stamps = stamps or json_of(file.stamps)
                start_s, end_s = _span(stamps.fields(str(number)).fields(f"block{block}"))
                result.append(Epoch(number, file.rank, start_s, end_s, load[:steps], compute[:steps], proc_s=proc[:steps], block=block))
    result.sort(key=lambda epoch: (epoch.number, epoch.block, epoch.rank))
    if any(file.shared_clock for file in files[1:]) and result:
        notes.append("all ranks are timed by rank 0's stamps, the only ones that this DLIO writes")
    return tuple(result)


def _with_first(load: Sequence[float], proc: Sequence[float], compute: Sequence[float]) -> tuple[float, ...]:
    """Put back the first wait of a block that a checkpoint began: DLIO notes it before it clears the list for the new block."""
    missing = len(load) == len(proc) - 1 == len(compute) - 1
    return (max(0.0, proc[0] - compute[0]), *load) if missing else tuple(load)


def checkpoints_of(files: RankFiles, size_gb: float | None) -> tuple[Checkpoint, ...]:
    """Read the checkpoints that rank 0 wrote; `size_gb` is what DLIO says of them all, in units of 2^30 bytes.

    Raises: Unreadable.
    """
    if not files.stamps.is_file():
        return ()
    stamps, result = json_of(files.stamps), []
    for number in sorted(int(key) for key in stamps.value if key.isdecimal()):
        epoch = stamps.fields(str(number))
        for name in epoch.value:
            if CHECKPOINT.fullmatch(name):
                start_s, end_s = _span(epoch.fields(name))
                result.append(Checkpoint(number, None if size_gb is None else size_gb * GIB, end_s - start_s))
    return tuple(result)


def _span(fields: Fields) -> tuple[float, float]:
    """Start and end in seconds since 1970; only their difference is used."""
    start_s, end_s = (_seconds(fields, name) for name in ("start", "end"))
    if end_s < start_s:
        fields.refuse("ends before it starts", "the clock was set while it ran: run again")
    return start_s, end_s


def _seconds(fields: Fields, name: str) -> float:
    text = fields.text(name)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        fields.refuse(f"has {name} = {text!r}, where a time belongs", DAMAGED)
