"""A series of watch events without times: the same for a recording and for a stand-in's run.

Events are put in the server's own order (resourceVersion), for two watches may answer in either
order. What the clock decides is left out: how often a failing container was restarted.
"""

from __future__ import annotations

import json
from typing import Any

from .marks import GROUP, notes_of

Object = dict[str, Any]
LOOPS = ("erroring", "NotReady")  # a failing container is restarted as often as time allows


def collapsed(steps: list[str]) -> list[str]:
    """The steps without the immediate repeats of a failing loop: `e i e i e` is `e i e`."""
    kept: list[str] = []
    for step in steps:
        kept.append(step)
        for length in (2, 3):
            again = kept[-length:]
            if (
                len(kept) >= 2 * length
                and again == kept[-2 * length : -length]
                and any(word in s for s in again for word in LOOPS)
            ):
                del kept[-length:]
                break
    return kept


class Story:
    """The events of all resources; `chapters` are the sequences to compare."""

    def __init__(self) -> None:
        self._events: list[tuple[int, str, str, Object]] = []

    def take(self, kind: str, type_: str, thing: Object) -> None:
        self._events.append((int(thing["metadata"]["resourceVersion"]), kind, type_, thing))

    def chapters(self) -> dict[str, list[str]]:
        """Per resource: statuses with pod stages (`X`), counts, package pods and node states."""
        telling = _Telling()
        for _, kind, type_, thing in sorted(self._events, key=lambda event: event[0]):
            telling.take(kind, type_, thing)
        return {name: collapsed(steps) for name, steps in telling.steps.items()}


class _Telling:
    def __init__(self) -> None:
        self.steps: dict[str, list[str]] = {}
        self._last: dict[str, object] = {}

    def take(self, kind: str, type_: str, thing: Object) -> None:
        tell = {
            "Skyhook": self._resource,
            "Workspace": self._resource,
            "Pod": self._pod,
            "Node": self._node,
        }.get(kind, self._other)
        tell(kind, type_, thing)

    def _say(self, chapter: str, step: str) -> None:
        self.steps.setdefault(chapter, []).append(step)

    def _changed(self, about: str, value: object) -> bool:
        changed = self._last.get(about) != value
        self._last[about] = value
        return changed

    def _resource(self, kind: str, type_: str, thing: Object) -> None:
        name, status = thing["metadata"]["name"], thing.get("status") or {}
        if type_ == "DELETED":
            self._say(name, "gone")
            for about in [
                key
                for key in self._last
                if key.startswith(f"{name} ") and not key.endswith(" state")
            ]:
                del self._last[about]
            return
        now = status.get("status" if kind == "Skyhook" else "state")
        if now and self._changed(f"{name} status", now):
            current = status.get("observedGeneration") == thing["metadata"]["generation"]
            self._say(
                name,
                f"{now} observed={current}" if kind == "Skyhook" and now == "complete" else now,
            )
        if kind == "Workspace":
            conditions = " ".join(
                f"{c['type']}={c['status']}" for c in status.get("conditions") or []
            )
            if conditions and self._changed(f"{name} conditions", conditions):
                self._say(f"{name} conditions", conditions)
        elif "completeNodes" in status and self._changed(f"{name} counts", status["completeNodes"]):
            self._say(f"{name} nodes", status["completeNodes"])

    def _pod(self, _: str, type_: str, pod: Object) -> None:
        text = notes_of(pod).get(f"{GROUP}/package")
        if text is None or type_ != "ADDED":
            return
        about = json.loads(text)
        name, stage = about["skyhook"], f"pod {about['stage']}"
        # Several packages' pods of one stage, in any order.
        if self.steps.get(name, [""])[-1] != stage:
            self._say(name, stage)
        self._say(f"{name} {about['name']} pods", f"{about['version']} {about['stage']}")

    def _node(self, _: str, type_: str, node: Object) -> None:
        for key, value in notes_of(node).items():
            name = key.removeprefix(f"{GROUP}/nodeState_")
            if name == key:
                continue
            state = json.loads(value)
            known = {
                about.split(" ")[1]
                for about in self._last
                if about.startswith(f"{name} ") and about.endswith(" state")
            }
            for package in sorted(known | state.keys()):
                entry = state.get(package)
                step = f"{entry['stage']} {entry['state']}" if entry else "gone"
                if self._changed(f"{name} {package} state", step):
                    self._say(f"{name} {package} node", step)
        cordoned = bool(node["spec"].get("unschedulable"))
        if (
            self._changed("cordoned", cordoned)
            and (cordoned or "cordon" in self.steps)
            and type_ != "DELETED"
        ):
            self._say("cordon", str(cordoned))

    def _other(self, kind: str, type_: str, thing: Object) -> None:
        owners = [
            o["name"]
            for o in thing["metadata"].get("ownerReferences") or []
            if o["kind"] == "Workspace"
        ]
        if kind in ("StatefulSet", "Job") and owners and type_ != "MODIFIED":
            self._say(owners[0], f"{kind} {type_}")
        ended = [
            c["type"]
            for c in (thing.get("status") or {}).get("conditions") or []
            if c["type"] in {"Complete", "Failed"}
        ]
        if kind == "Job" and owners and ended and self._changed(f"{owners[0]} job", ended):
            self._say(owners[0], f"Job {ended[0]}")
