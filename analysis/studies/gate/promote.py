"""The next baseline: a candidate that passed and was judged whole, copied with the files beside it; any other never becomes one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.arms import Arm, same_runs
from analysis.files import read_whole, resolved, write_whole
from analysis.load import from_json, parsed_bytes
from analysis.terms import Refused, Run, Unreadable
from control.names import first_few

if TYPE_CHECKING:
    from .gate import Gate

BESIDE = re.compile(r"(record|telemetry)-[\w.@+=-]{1,200}\.jsonl\.(gz|xz)")
NEVER_JUDGED = ("stock", "stock-again")  # the machine itself: no tweak of anybody's


@dataclass(frozen=True, slots=True)
class Promotion:
    """Where a candidate was copied to, or why it was not; and why its telemetry is not beside the copy, where it had some."""

    promoted_to: str | None = None
    not_promoted: str | None = None
    without_telemetry: str | None = None


def place(candidate: Arm, target: Path) -> Path:
    """Answer the file that a candidate would become: `target`, or a file of its own name where that is a folder; links are followed.

    Raises: Refused, where the candidate is not one file, or is that file itself.
    """
    source = Path(candidate.runs[0].origin)
    if len(candidate.runs) != 1 or not source.is_file():
        raise Refused(f"{candidate.label}: only a candidate that is one saved file can be promoted.")
    folder = resolved(target)
    path = resolved(folder / source.name) if folder.is_dir() or not target.suffix else folder
    if path == resolved(source):
        raise Refused(f"--promote-to {target}: is the candidate itself; name the baseline's file, or a folder of accepted runs.")
    return path


def promote(base: Arm, candidate: Arm, path: Path, gate: Gate) -> Promotion:
    """Copy the candidate's saved run to the `path` that `place` found, or say why not; the old baseline then stands as it was.

    A baseline that is itself slow makes every later candidate look good. So only a shown pass gets through, and only a run in which
    nothing failed, nothing was left unjudged, and nothing has changed since it was judged.

    Raises: Refused, where it cannot be read any more or written.
    """
    run = candidate.runs[0]
    if gate.ruling != "pass":
        return Promotion(not_promoted="only a pass becomes the next baseline.")
    reason = _unfit(run) or _unjudged(run, gate, same=same_runs(base, candidate))
    if reason is not None:
        return Promotion(not_promoted=reason)
    source = Path(run.origin)
    content = read_whole(source)
    if not _is_still(run, content):
        return Promotion(not_promoted=f"{source} has changed since it was judged.")
    lost = _copy_beside(run, run.telemetry_file, path)
    without = _copy_beside(run, json.loads(content).get("deeptweak", {}).get("record_file") or {}, path)
    if without is not None:
        return Promotion(not_promoted=without)
    write_whole(path, content)
    return Promotion(promoted_to=str(path), without_telemetry=lost)


def _is_still(run: Run, content: bytes) -> bool:
    """Whether a file's bytes, read once more and for the copy, say what was judged."""
    try:
        return from_json(parsed_bytes(content, Path(run.origin)), run.origin) == run
    except Unreadable:
        return False


def _unfit(run: Run) -> str | None:
    if run.interrupted:
        return "its run was interrupted."
    for cell in run.cells:
        if cell.outcome == "failed":
            return f"{cell.id} failed."
        if cell.contradictions:
            return f"{cell.id} contradicts itself: {cell.contradictions[0]}"
    return None


def _unjudged(run: Run, gate: Gate, *, same: bool) -> str | None:
    """Name what the run holds beyond what was judged: it would be what the next candidates are held to."""
    judged = {(ruling.comparison.study, ruling.comparison.workload, ruling.comparison.tweakset) for ruling in gate.rulings}
    controls = {*NEVER_JUDGED, *(ruling.comparison.relative_to for ruling in gate.rulings)}
    if same:  # else the file's own cells under the baseline's name are nobody's baseline yet
        controls |= {ruling.comparison.baseline for ruling in gate.rulings}
    combinations = dict.fromkeys((cell.study, cell.workload, cell.tweakset) for cell in run.cells if cell.outcome != "skipped")
    left = [
        f"{tweakset} under {workload}"
        for study, workload, tweakset in combinations
        if tweakset not in controls and (study, workload, tweakset) not in judged
    ]
    if not left:
        return None
    return f"it holds {first_few(left, 1)}, which was not judged; leave out :TWEAKSET, --workloads and the tweaksets of --limits."


def _copy_beside(run: Run, named: Mapping[str, object], path: Path) -> str | None:
    name, digest = named.get("name"), named.get("sha256")
    if name is None:
        return None
    if not isinstance(name, str) or not BESIDE.fullmatch(name):
        return f"{name!r} is no name of a file that a run writes beside itself."
    try:
        packed = read_whole(Path(run.origin).with_name(name))
    except Unreadable as error:
        return str(error)
    if hashlib.sha256(packed).hexdigest() != digest:
        return f"{name} is not the file this run wrote (other sha256)."
    beside = path.with_name(name)
    if not beside.exists():
        write_whole(beside, packed)
    elif read_whole(beside) != packed:
        return f"{beside} is there already, and another one."
    return None
