"""The only reader of saved runs: a pytest-benchmark JSON file with DeepTweak's parts in it becomes a `Run`, or is refused by name.

The metrics are computed anew from each cell's steps, so that a verdict stands on what was timed and not on what another program
made of it. Fields and units are explained in `data/README.md`, their shape in `data/run.schema.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, get_args

from .fields import Fields
from .metrics import disagreements, metrics_of
from .terms import Applied, Better, Cell, Design, Metric, Outcome, Run, Setting, Steps, Study, TweakSet, Unreadable, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
OURS = "deeptweak"

CellKey = tuple[str, str, str, int]


def load(path: Path | str) -> Run:
    """Read one saved run.

    Raises: Unreadable, with the file's name, what is wrong in it, and what to do.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except IsADirectoryError:
        raise Unreadable(f"{path}: is a directory; name one saved run in it (a .json file).") from None
    except FileNotFoundError:
        raise Unreadable(f"{path}: no such file; `pytest benchmarks/ --benchmark-save=NAME` writes one.") from None
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: not a text file; a saved run is UTF-8 JSON.") from None
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}.") from None
    try:
        saved = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise Unreadable(
            f"{path}: not JSON at {where} ({error.msg}); it was damaged or cut short, take the file from its source again."
        ) from None
    except ValueError as error:
        raise Unreadable(f"{path}: {error}") from None
    except RecursionError:
        raise Unreadable(f"{path}: nested too deeply for a saved run.") from None
    return from_json(saved, str(path))


def from_json(saved: object, origin: str) -> Run:
    """Read a run from parsed JSON; `origin` is what messages call it.

    Raises: Unreadable.
    """
    top = Fields(saved, origin)
    if OURS not in top:
        if "benchmarks" in top and "machine_info" in top:
            raise Unreadable(
                f"{origin}: a pytest-benchmark file, but not of DeepTweak: it has no {OURS!r} part; use `pytest-benchmark compare`."
            )
        raise Unreadable(f"{origin}: not a saved run: it has no {OURS!r} part; name a file that `pytest benchmarks/` saved.")
    ours = top.fields(OURS)
    _known_version(ours)
    studies = {name: _study(name, part) for name, part in ours.items("studies")}
    workloads = {name: _workload(name, part) for name, part in ours.items("workloads")}
    tweaksets = {name: _tweakset(name, part) for name, part in ours.items("tweaksets")}
    records = _measured_records(top)
    cells: dict[CellKey, Cell] = {}
    warnings: list[str] = []
    for part in ours.each("cells"):
        key = _key(part)
        for name, described in ((key[0], studies.keys()), (key[1], workloads.keys()), (key[2], tweaksets.keys())):
            if name not in described:
                part.refuse(f"names {name!r}, which the file does not describe")
        if key in cells:
            part.refuse(f"is there twice: {_called(key)}")
        planned = studies[key[0]].blocks
        if not 1 <= key[3] <= planned:
            part.refuse(f"is of block {key[3]}, but its study has blocks 1 to {planned}")
        cells[key] = _cell(part, key, records.pop(key, None), warnings)
    if records:
        key, record = next(iter(records.items()))
        record.refuse(f"measured {_called(key)}, which is not in the list of cells")
    _no_copies(cells, ours)
    warnings += _machine_left_changed(ours)
    host = top.fields("machine_info").optional_mapping(OURS)
    return Run(
        origin=origin,
        run_id=ours.text("run_id"),
        started_utc=ours.text("started_utc"),
        interrupted=ours.flag("interrupted"),
        studies=studies,
        workloads=workloads,
        tweaksets=tweaksets,
        cells=tuple(sorted(cells.values(), key=lambda cell: cell.order)),
        machine=host,
        design=_design(ours.fields("design")),
        warnings=tuple(warnings),
    )


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"holds {word}, which is no measurement and not JSON; the run that wrote it is damaged, measure again.")


def _known_version(part: Fields) -> None:
    version = part.whole("schema_version")
    if version > SCHEMA_VERSION:
        part.refuse(f"has schema_version {version}, newer than {SCHEMA_VERSION}, the newest known here", "update DeepTweak")
    if version < 1:
        part.refuse(f"has schema_version {version}, which never existed")


def _key(part: Fields) -> CellKey:
    return part.text("study"), part.text("workload"), part.text("tweakset"), part.whole("block")


def _called(key: CellKey) -> str:
    study, workload, tweakset, block = key
    return f"study {study}, workload {workload}, tweak set {tweakset}, block {block}"


def _measured_records(top: Fields) -> dict[CellKey, Fields]:
    """Cell records by cell; a benchmark without one was not of a study (somebody's own, in the same session) and is passed over.

    So is one whose cell failed after its steps were timed: the list of cells has the reason.
    """
    records: dict[CellKey, Fields] = {}
    for benchmark in top.each("benchmarks"):
        record = benchmark.fields("extra_info")
        if "schema_version" not in record:
            continue
        _known_version(record)
        if record.one_of("outcome", get_args(Outcome)) != "measured":
            continue
        key = _key(record)
        if key in records:
            record.refuse(f"is there twice: {_called(key)}")
        records[key] = record
    return records


def _metric(part: Fields) -> Metric:
    better: Better = "lower" if part.one_of("better", get_args(Better)) == "lower" else "higher"
    return Metric(part.text("name"), better)


def _study(name: str, part: Fields) -> Study:
    margin = part.positive("margin")
    if margin >= 1:
        part.refuse(f"has the margin {margin}, which is a fraction (0.03 is 3 %)")
    return Study(name, part.text("question"), margin, part.whole("blocks"), _metric(part.fields("primary")))


def _workload(name: str, part: Fields) -> Workload:
    primary = _metric(part.fields("primary")) if part.has("primary") else None
    return Workload(name, primary, part.optional_text("description") or "", part.optional_mapping("params"))


def _tweakset(name: str, part: Fields) -> TweakSet:
    return TweakSet(
        name=name,
        requested=tuple(Setting(one.text("kind"), one.text("key"), one.text("value")) for one in part.each("requested")),
        scripts=len(part.each("scripts")) if part.has("scripts") else 0,
        description=part.optional_text("description") or "",
        path=part.optional_text("path"),
        sha256=part.optional_text("sha256"),
        warnings=part.texts("warnings") if part.has("warnings") else (),
    )


def _design(part: Fields) -> Design:
    steps = part.whole("steps") if part.has("steps") else None
    return Design(part.whole("seed"), part.whole("blocks"), steps, part.texts("order"))


def _cell(part: Fields, key: CellKey, record: Fields | None, warnings: list[str]) -> Cell:
    outcome = part.one_of("outcome", get_args(Outcome))
    name, reason, order = part.text("id"), part.optional_text("reason"), part.whole("order")
    if outcome != "measured":
        if record is not None:
            record.refuse(f"was saved as measured, but the list of cells says {outcome}: {_called(key)}")
        return Cell(name, *key, order, "failed" if outcome == "failed" else "skipped", reason or "no reason was recorded")
    if record is None:
        part.refuse(f"is said to be measured, but no benchmark holds it: {_called(key)}")
    steps = _steps(record.fields("steps"))
    try:
        metrics = metrics_of(steps)
    except ArithmeticError:
        record.refuse("has steps of which no finite metrics can be made")
    contradictions = tuple(disagreements(record.known_numbers("metrics", metrics), metrics))
    warnings += [f"{name}: {line}" for line in contradictions]
    return Cell(
        name,
        *key,
        order,
        "measured",
        steps=steps,
        metrics=metrics,
        applied=_applied(record),
        facts=record.optional_mapping("workload_facts"),
        limits=record.optional_mapping("limits"),
        boot_id=record.fields("environment").optional_text("boot_id") if record.has("environment") else None,
        contradictions=contradictions,
    )


def _no_copies(cells: Mapping[CellKey, Cell], ours: Fields) -> None:
    """Refuse two blocks of one arm with the same times, in all steps or in the measured ones: a copy is no second measurement.

    A single step, or steps that all took equally long, can be alike by chance where the clock is coarse; `effect` looks at those.
    """
    seen: dict[tuple[str, str, str, tuple[float, ...]], Cell] = {}
    for (*arm, _), cell in cells.items():
        if cell.steps is None:
            continue
        for times in {cell.steps.wall_s, cell.steps.wall_s[cell.steps.warmup :]}:
            first = seen.setdefault((arm[0], arm[1], arm[2], times), cell)
            if first is not cell and len(set(times)) > 1:
                ours.refuse(f"has {first.id} and {cell.id} with identical wall_s: one is a copy of the other and no measurement")


def _steps(part: Fields) -> Steps:
    wall_s = part.times("wall_s")
    warmup = part.whole("warmup")
    steps = Steps(
        wall_s=wall_s,
        samples=part.counts("samples"),
        tokens=part.counts("tokens") if part.has("tokens") else None,
        cpu_s=part.times("cpu_s", zero=True) if part.has("cpu_s") else None,
        warmup=warmup,
    )
    for column, values in (("samples", steps.samples), ("tokens", steps.tokens), ("cpu_s", steps.cpu_s)):
        if values is not None and len(values) != len(wall_s):
            part.refuse(f"has {len(values)} {column} for {len(wall_s)} wall_s")
    if warmup >= len(wall_s):
        part.refuse(f"has {len(wall_s)} steps of which {warmup} are warm-up: none was measured")
    if not sum(steps.samples[warmup:]):
        part.refuse("has no samples in its measured steps")
    return steps


def _applied(record: Fields) -> Applied:
    if not record.has("tweak"):
        return Applied({}, {}, {}, {})
    part = record.fields("tweak")
    requested, before, observed, restored = map(part.optional_mapping, ("requested", "before", "observed", "restored"))
    already = part.texts("already_in_force") if part.has("already_in_force") else ()
    side_effects, left_alone = part.optional_mapping("side_effects"), part.optional_mapping("left_alone")
    return Applied(requested, before, observed, restored, frozenset(already), side_effects, left_alone)


def _machine_left_changed(ours: Fields) -> list[str]:
    if not ours.has("machine_check"):
        return []
    check = ours.fields("machine_check")
    changed: Mapping[str, object] = check.optional_mapping("changed")
    if check.flag("restored") and not changed:
        return []
    names = ", ".join(sorted(changed)[:5]) or "values that were not named"
    return [f"the machine was not as before when the run ended: {names}."]
