"""Requested settings per tweak set, values read back, and restoring: one row per setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from analysis.answer import Column, Line, Section, Table, Tone, Word
from analysis.checks import READ_BACK, means, same_value
from analysis.terms import AppliedKeys, Cell, Run, SavedTweakSet, Setting
from analysis.wording import counted, listed

GONE = "not there"
State = Literal["held", "failed", "unknown"]
TONES: dict[State, Tone] = {"failed": "bad", "held": "good", "unknown": "open"}
MEANINGS: dict[State, str] = {
    "failed": "not in force or not restored",
    "held": "in force in every measured cell, and restored afterwards",
    "unknown": "not known to have been in force",
}


class SettingRow(NamedTuple):
    """One setting of one tweak set over all its cells; columns list the values that occurred.

    `state` is "failed" if the setting was not in force or not restored, "unknown" if no cell shows
    it; `says` is the explanation.
    """

    kind: str
    key: str
    requested: str
    before: tuple[str, ...]
    observed: tuple[str, ...]
    restored: tuple[str, ...]
    state: State
    says: str


def settings(run: Run) -> Iterator[Section]:
    """Yield a table of all settings, and one of tweak sets with manifests and cell counts."""
    rows: list[list[object]] = []
    sets: list[list[object]] = []
    states = Counter[State]()
    for tweakset in run.tweaksets.values():
        own = [cell for cell in run.cells if cell.tweakset == tweakset.name]
        asked = list(rows_of(run, tweakset, own))
        if asked or tweakset.scripts:
            sets.append([tweakset.name, tweakset.description or None, *_summary(tweakset, own)])
        for row in asked:
            states[row.state] += bool(row.requested)
            name = row.key if row.kind == "sysctl" else f"{row.key} ({row.kind})"
            values = [
                " · ".join(values) or None for values in (row.before, row.observed, row.restored)
            ]
            says = Word(
                row.says if row.state == "held" else f"{row.state}: {row.says}",
                "" if row.state == "held" else TONES[row.state],
            )
            rows.append([tweakset.name, name, row.requested or None, *values, says])
    if not sets:
        yield Section("", [Line("No tweak set of this run changes a setting.")])
        return
    heads = ("tweak set", "setting", "requested", "before", "in force", "restored", "result")
    lines = [
        Line(f"{states[state]} {state}: {meaning}.", tone=TONES[state])
        for state, meaning in MEANINGS.items()
        if states[state]
    ]
    yield Section("", [*lines, Table([Column(head, left=True) for head in heads], rows)])
    facts = ("tweak set", "description", "cells", "manifest", "cells that were not measured")
    yield Section("Tweak sets", [Table([Column(head, left=True) for head in facts], sets)])


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
        if setting.kind == "boot" and measured:
            yield _boot(run, setting)
        elif not answers:
            yield _row(setting, "unknown", f"{unknown}, so it may not have been in force.")
        elif setting.kind in READ_BACK:
            yield _written(setting, answers)
        else:
            yield _limit(setting, measured)
    yield from _side_effects(tweakset, cells)
    yield from _left_alone(cells)


def _row(
    setting: Setting, state: State, says: str, *, observed: tuple[str, ...] = ()
) -> SettingRow:
    return SettingRow(setting.kind, setting.key, setting.value, (), observed, (), state, says)


def _written(setting: Setting, answers: Sequence[tuple[int, AppliedKeys]]) -> SettingRow:
    key = setting.key
    said: dict[str, list[int]] = {}
    for block, applied in answers:
        before, observed, restored = (
            source.get(key) for source in (applied.before, applied.observed, applied.restored)
        )
        if observed is None:
            said.setdefault("not read back", []).append(block)
        elif not means(key, applied.requested.get(key, setting.value), observed):
            said.setdefault(f"not in force: read back as {observed}", []).append(block)
        if before is not None and (restored is None or not same_value(before, restored)):
            said.setdefault(
                f"not restored: {'not read' if restored is None else f'left at {restored}'}", []
            ).append(block)
    if said:
        says = "; ".join(f"{what} ({listed(set(blocks))})" for what, blocks in said.items()) + "."
    elif all(key in applied.already_in_force for _, applied in answers):
        says = "already in force before it was applied, so nothing changed."
    else:
        after = "restored" if setting.kind == "sysctl" else "gone with the workload's process"
        says = f"in force in {len(answers)} of {len(answers)} measured cells, and {after}."
    before, observed, restored = (
        _distinct([getattr(applied, moment).get(key) for _, applied in answers])
        for moment in ("before", "observed", "restored")
    )
    state: State = "failed" if said else "held"
    return SettingRow(setting.kind, key, setting.value, before, observed, restored, state, says)


def _boot(run: Run, setting: Setting) -> SettingRow:
    token = f"{setting.key}={setting.value}" if setting.value else setting.key
    if "cmdline" not in run.machine:
        return _row(setting, "unknown", "the file does not record the kernel command line.")
    if token in str(run.machine["cmdline"]).split():
        return _row(
            setting, "held", "in the kernel command line.", observed=(setting.value or "given",)
        )
    return _row(setting, "failed", "not in the kernel command line.")


def _limit(setting: Setting, cells: Sequence[Cell]) -> SettingRow:
    limits = [cell.limits.get(setting.key) for cell in cells]
    seen = _distinct(
        [
            " ".join(map(str, limit)) if isinstance(limit, list | tuple) else limit
            for limit in limits
        ]
    )
    if not seen:
        return _row(
            setting, "unknown", "the file does not record the value that the workload found."
        )
    return _row(
        setting,
        "held",
        "soft and hard limit that the workload found (-1 is unlimited).",
        observed=seen,
    )


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
        old, new, back = map(_distinct, (before, after, restored))
        yield SettingRow(kind, path, "", old, new, back, "held", says)


def _left_alone(cells: Sequence[Cell]) -> Iterator[SettingRow]:
    blocks: dict[str, list[int]] = {}
    for cell in cells:
        for path in cell.applied.left_alone if cell.applied else ():
            blocks.setdefault(path, []).append(cell.block)
    for path, where in blocks.items():
        says = (
            "another program changed it during the cell, so it was not restored "
            f"({listed(set(where))})."
        )
        yield SettingRow("left alone", path, "", (), (), (), "failed", says)


def _distinct(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(value) for value in values if value is not None))


def _summary(tweakset: SavedTweakSet, cells: Sequence[Cell]) -> list[str | None]:
    measured = sum(cell.outcome == "measured" for cell in cells)
    scripts = counted(tweakset.scripts, "script stage") if tweakset.scripts else ""
    manifest = f"{tweakset.path} (sha256 {tweakset.sha256[:12]}…)" if tweakset.sha256 else ""
    reasons = dict.fromkeys(
        f"{cell.outcome}: {cell.reason}" for cell in cells if cell.outcome != "measured"
    )
    return [
        f"{measured} of {len(cells)} measured",
        ", ".join(filter(None, [scripts, manifest])) or None,
        "; ".join(reasons) or None,
    ]
