"""Requested settings per tweak set, values read back, and restoring: one row per setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from analysis.answer import Column, Line, Section, Table, Tone, Word
from analysis.checks import READ_BACK, means, same_value
from analysis.terms import AppliedKeys, Cell, Run, SavedTweakSet, Setting
from analysis.wording import listed

GONE = "not there"
State = Literal["held", "failed", "unknown"]
# Of each state: its tone, and what it means.
STATES: dict[State, tuple[Tone, str]] = {
    "failed": ("bad", "not in force or not restored"),
    "held": ("good", "in force in every measured cell, and restored afterwards"),
    "unknown": ("open", "not known to have been in force"),
}
HEADS = ("tweak set", "setting", "requested", "before", "in force", "restored", "result")
Values = tuple[str, ...]


class SettingRow(NamedTuple):
    """One setting of one tweak set over all its cells; columns list the values that occurred.

    `state` is "failed" if the setting was not in force or not restored, "unknown" if no cell shows
    it; `says` is the explanation.
    """

    kind: str
    key: str
    requested: str
    state: State
    says: str
    before: Values = ()
    observed: Values = ()
    restored: Values = ()


def settings(run: Run) -> Iterator[Section]:
    """Yield one section: tweak sets with their manifests, and a table of all settings."""
    rows: list[list[object]] = []
    sets: list[Line] = []
    states = Counter[State]()
    for tweakset in run.tweaksets.values():
        own = [cell for cell in run.cells if cell.tweakset == tweakset.name]
        found = list(rows_of(run, tweakset, own))
        manifest = f"{tweakset.path} (sha256 {tweakset.sha256[:12]}…)" if tweakset.sha256 else ""
        about = ": ".join(filter(None, (tweakset.description, manifest)))
        if about and (found or tweakset.scripts):
            sets.append(Line(f"{tweakset.name}: {about}"))
        for row in found:
            states[row.state] += bool(row.requested)
            name = row.key if row.kind == "sysctl" else f"{row.key} ({row.kind})"
            values = [
                " · ".join(values) or None for values in (row.before, row.observed, row.restored)
            ]
            says: object = row.says
            if row.state != "held":
                says = Word(f"{row.state}: {row.says}", STATES[row.state][0])
            rows.append([tweakset.name, name, row.requested or None, *values, says])
    if not rows:
        yield Section("", [Line("No tweak set of this run changes a setting."), *sets])
        return
    lines = [
        Line(f"{states[state]} {state}: {meaning}.", tone=tone)
        for state, (tone, meaning) in STATES.items()
        if states[state]
    ]
    yield Section("", [*lines, Table([Column(head, left=True) for head in HEADS], rows), *sets])


def rows_of(run: Run, tweakset: SavedTweakSet, cells: Sequence[Cell]) -> Iterator[SettingRow]:
    """Yield the outcome of everything that a tweak set requested or was seen to change."""
    measured = [cell for cell in cells if cell.outcome == "measured"]
    answers = [(cell.block, cell.applied) for cell in measured if cell.applied is not None]
    unknown = (
        "the file has no values read back"
        if measured
        else f"no cell of {tweakset.name} was measured"
    )
    for setting in tweakset.requested:
        asked = setting.kind, setting.key, setting.value
        if setting.kind == "boot" and measured:
            yield SettingRow(*asked, *_boot(run, setting))
        elif not answers:
            says = f"{unknown}, so it may not have been in force."
            yield SettingRow(*asked, "unknown", says)
        elif setting.kind in READ_BACK:
            yield _written(setting, answers)
        elif limits := _distinct([_limit(cell.limits.get(setting.key)) for cell in measured]):
            says = "soft and hard limit that the workload found (-1 is unlimited)."
            yield SettingRow(*asked, "held", says, observed=limits)
        else:
            says = "the file does not record the value that the workload found."
            yield SettingRow(*asked, "unknown", says)
    yield from _side_effects(tweakset, cells)
    left_alone: dict[str, list[int]] = {}
    for cell in cells:
        for path in cell.applied.left_alone if cell.applied else ():
            left_alone.setdefault(path, []).append(cell.block)
    for path, blocks in left_alone.items():
        says = (
            "another program changed it during the cell, so it was not restored "
            f"({listed(set(blocks))})."
        )
        yield SettingRow("left alone", path, "", "failed", says)


def _limit(found: object) -> object:
    return " ".join(map(str, found)) if isinstance(found, list | tuple) else found


def _boot(run: Run, setting: Setting) -> tuple[State, str]:
    token = f"{setting.key}={setting.value}" if setting.value else setting.key
    if "cmdline" not in run.machine:
        return "unknown", "the file does not record the kernel command line."
    if token in str(run.machine["cmdline"]).split():
        return "held", "in the kernel command line."
    return "failed", "not in the kernel command line."


def _written(setting: Setting, answers: Sequence[tuple[int, AppliedKeys]]) -> SettingRow:
    key = setting.key
    wrong: dict[str, list[int]] = {}
    for block, applied in answers:
        before, observed, restored = (
            source.get(key) for source in (applied.before, applied.observed, applied.restored)
        )
        if observed is None:
            wrong.setdefault("not read back", []).append(block)
        elif not means(key, applied.requested.get(key, setting.value), observed):
            wrong.setdefault(f"not in force: read back as {observed}", []).append(block)
        if before is not None and (restored is None or not same_value(before, restored)):
            left = "not read" if restored is None else f"left at {restored}"
            wrong.setdefault(f"not restored: {left}", []).append(block)
    if wrong:
        says = "; ".join(f"{what} ({listed(set(blocks))})" for what, blocks in wrong.items()) + "."
    elif all(key in applied.already_in_force for _, applied in answers):
        says = "already in force before it was applied, so nothing changed."
    else:
        after = "restored" if setting.kind == "sysctl" else "gone with the workload's process"
        says = f"in force in {len(answers)} of {len(answers)} measured cells, and {after}."
    columns = (
        _distinct([getattr(applied, moment).get(key) for _, applied in answers])
        for moment in ("before", "observed", "restored")
    )
    state: State = "failed" if wrong else "held"
    return SettingRow(setting.kind, key, setting.value, state, says, *columns)


def _side_effects(tweakset: SavedTweakSet, cells: Sequence[Cell]) -> Iterator[SettingRow]:
    """Yield unrequested changes; in measured cells the script or the harness undid them."""
    applied = [(cell, cell.applied) for cell in cells if cell.applied]
    paths = dict.fromkeys(path for _, keys in applied for path in keys.side_effects)
    known = [keys.by_scripts for _, keys in applied if keys.by_scripts is not None]
    scripted = set().union(*known) if known else set(paths) if tweakset.scripts else set()
    for path in paths:
        before, after, restored = list[object](), list[object](), list[object]()
        for cell, keys in applied:
            if path in keys.side_effects:
                change = keys.side_effects[path]
                first, *last = change if isinstance(change, list | tuple) else (None, change)
                before.append(GONE if first is None else first)
                after += [GONE if one is None else one for one in last]
                if cell.outcome == "measured" and path not in keys.left_alone:
                    restored.append(before[-1])
        whole = len(restored) == len(before)
        ended = "and restored" if whole else f"and known to be restored in {len(restored)}"
        kind, who = (
            ("by its script", "changed by its script")
            if path in scripted
            else ("side effect", "not requested by name: changed with another setting")
        )
        says = f"{who}, in {len(before)} of {len(cells)} cells, {ended}."
        yield SettingRow(kind, path, "", "held", says, *map(_distinct, (before, after, restored)))


def _distinct(values: Sequence[object]) -> Values:
    return tuple(dict.fromkeys(str(value) for value in values if value is not None))
