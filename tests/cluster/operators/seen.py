"""Node writes after a package pod's events: the half of the operator that knows only pods.

It writes also when the resource is already gone: a pod killed with its resource is noted on the
node as `erroring`.
"""

from __future__ import annotations

import json
from typing import Any

from .api import NODES, Api
from .marks import GROUP, Marks, compact, name_of, notes_of

Object = dict[str, Any]


def about(pod: Object) -> Object | None:
    """The package, version, stage and resource of a pod; None if it is not the operator's."""
    text = notes_of(pod).get(f"{GROUP}/package")
    return dict(json.loads(text)) if text else None


def came_to(pod: Object) -> tuple[str, int] | None:
    """The stage's ("complete", restarts) or ("erroring", restarts); None while it runs or waits."""
    statuses = pod.get("status", {}).get("initContainerStatuses") or []
    for container in statuses:
        ended = container.get("state", {}).get("terminated")
        if ended and ended["exitCode"] != 0:
            return "erroring", int(container["restartCount"])
    ended_well = [c for c in statuses if c.get("state", {}).get("terminated")]
    if statuses and len(ended_well) == len(pod["spec"]["initContainers"]):
        return "complete", 0
    return None


def backs_off(pod: Object) -> bool:
    """Whether the kubelet waits before it restarts a failed container."""
    statuses = pod.get("status", {}).get("initContainerStatuses") or []
    return any(
        (c.get("state", {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff"
        for c in statuses
    )


def runs(pod: Object) -> bool:
    """Whether the kubelet has started the pod: its host changes will then happen in any case."""
    return bool(pod.get("status", {}).get("initContainerStatuses"))


def key(what: Object) -> str:
    return f"{what['name']}|{what['version']}"


def entry(package: Object, stage: str, state: str, restarts: int = 0) -> Object:
    """A package's entry in the node's state; `restarts` is left out at 0, as the operator does."""
    known = {name: package[name] for name in ("name", "version", "image")}
    return {**known, "stage": stage, "state": state, **({"restarts": restarts} if restarts else {})}


def take(api: Api, pod: Object, *, flapping: bool) -> str | None:
    """Note on the node what this pod came to, and remove the pod when it has done its work.

    Returns: what was noted now ("complete", "erroring"), None where there was nothing new.
    """
    what, came = about(pod), came_to(pod)
    node_name = pod["spec"].get("nodeName")
    if what is None or node_name is None or (came is None and not (flapping and backs_off(pod))):
        return None
    node = api.get(f"{NODES}/{node_name}")
    if node is None:
        return None
    marks = Marks(what["skyhook"])
    state = marks.state_of(node)
    old = state.get(key(what))
    ended, restarts = came or ("erroring", int((old or {}).get("restarts", 0)))
    new = entry(what, what["stage"], ended, restarts)
    deleted = "deletionTimestamp" in pod["metadata"]
    status = marks.status_of(node)
    if ended == "complete":
        if deleted:
            return None
        if old is not None and old["stage"] == what["stage"] and old["state"] != "complete":
            _write(api, node, marks, _after(state, what, new), None)
        return "complete"
    flaps_again = flapping and status == "in_progress"
    if old is None or old["stage"] != what["stage"] or (old == new and not flaps_again):
        return None
    _write(api, node, marks, {**state, key(what): new}, None if status == "paused" else "erroring")
    return "erroring"


def _after(state: dict[str, Object], what: Object, new: Object) -> dict[str, Object]:
    """The state with this stage complete: drop an uninstalled package, replace an upgraded one."""
    if what["stage"] == "uninstall":
        return {k: v for k, v in state.items() if k != key(what)}
    if what["stage"] == "upgrade":
        state = {k: v for k, v in state.items() if v["name"] != what["name"]}
    return {**state, key(what): new}


def _write(
    api: Api, node: Object, marks: Marks, state: dict[str, Object], status: str | None
) -> None:
    notes = {marks.state: compact(dict(sorted(state.items())))}
    meta: Object = {"annotations": notes}
    if status:
        notes[marks.status] = status
        meta["labels"] = {marks.status: status}
    api.patch(f"{NODES}/{name_of(node)}", {"metadata": meta})
