"""One resource with its nodes, as the operator sees it, and every write of its status.

Each method is one write of the real operator, in its words: watchers of the stand-in see the same
single steps. What only people read (Events, counts by compartment, other conditions) is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from . import seen
from .api import NODES, STRATEGIC, Api
from .marks import GROUP, Marks, compact, labels_of, name_of, notes_of

Object = dict[str, Any]
HOOKS = f"/apis/{GROUP}/v1alpha1/skyhooks"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class View:
    """A Skyhook and its matching nodes, kept up to date by its own writes."""

    def __init__(self, api: Api, hook: Object, nodes: list[Object]) -> None:
        self.api, self.hook, self.nodes = api, hook, nodes
        self.name = name_of(hook)
        self.marks = Marks(self.name)
        self.path = f"{HOOKS}/{self.name}"
        self.packages: dict[str, Object] = {
            n: {**p, "name": n} for n, p in (hook["spec"].get("packages") or {}).items()
        }

    @property
    def status(self) -> Object:
        """The resource's status, empty before the operator's first word."""
        return self.hook.get("status") or {}

    @property
    def generation(self) -> int:
        return int(self.hook["metadata"]["generation"])

    def wants(self, what: str) -> bool:
        """Whether the annotation `pause` or `disable` is set. `spec.pause` means nothing."""
        return notes_of(self.hook).get(f"{GROUP}/{what}") == "true"

    def state(self, node: Object) -> dict[str, Object]:
        return self.marks.state_of(node)

    def updated(self, package: Object) -> bool:
        """Whether this package ran before and had only its config map changed since."""
        return package["name"] in (self.status.get("configUpdates") or {})

    def last_stage(self, package: Object) -> str:
        return (
            "post-interrupt" if package.get("interrupt") and not self.updated(package) else "config"
        )

    def package_done(self, node: Object, package: Object) -> bool:
        """Whether this package of this version has ended its last stage on this node."""
        entry = self.state(node).get(seen.key(package))
        return (
            entry is not None
            and entry["state"] == "complete"
            and entry["stage"] in {self.last_stage(package), "post-interrupt"}
        )

    def node_done(self, node: Object) -> bool:
        """Whether every package is done on this node and none is left of an earlier spec."""
        wanted = {seen.key(p) for p in self.packages.values()}
        return set(self.state(node)) == wanted and all(
            self.package_done(node, p) for p in self.packages.values()
        )

    def done(self) -> bool:
        """Whether every node is done: true also where there is no node at all."""
        return all(map(self.node_done, self.nodes))

    def complete(self) -> bool:
        """Whether the status says complete (which is not the same as done)."""
        return self.status.get("status") == "complete"

    def write(self, **fields: object) -> None:
        self.hook = self.api.patch(f"{self.path}/status", {"status": fields})

    def meta(self, body: Object) -> None:
        """One write of the resource itself; raises its generation where the spec changes."""
        self.hook = self.api.patch(self.path, body)

    def mark(
        self,
        node: Object,
        *,
        status: str | None = None,
        state: dict[str, Object] | None = None,
        **more: object,
    ) -> None:
        """Write the operator's node annotations and label at once (and `spec`, for a cordon)."""
        notes: dict[str, object] = {}
        meta: Object = {"annotations": notes}
        if state is not None:
            notes[self.marks.state] = compact(dict(sorted(state.items())))
        if status is not None:
            notes[self.marks.status] = status
            meta["labels"] = {self.marks.status: status}
        notes.update(more.pop("annotations", {}))  # type: ignore[call-overload]
        if not notes and not more:
            return
        self._renew(node, self.api.patch(f"{NODES}/{name_of(node)}", {"metadata": meta, **more}))

    def condition(self, node: Object, *, complete: bool, erroring: bool) -> None:
        """The two node conditions, written where they differ."""
        wanted = self.marks.conditions(complete=complete, erroring=erroring)
        have = {c["type"]: c["status"] for c in node["status"].get("conditions") or []}
        changed = [
            {**c, "lastTransitionTime": now(), "lastHeartbeatTime": now()}
            for c in wanted
            if have.get(c["type"]) != c["status"]
        ]
        if changed:
            path = f"{NODES}/{name_of(node)}/status"
            self._renew(
                node, self.api.patch(path, {"status": {"conditions": changed}}, content=STRATEGIC)
            )

    @staticmethod
    def _renew(node: Object, now_is: Object) -> None:
        node.clear()
        node.update(now_is)

    def node_statuses(self) -> dict[str, str]:
        """Each node's own status, as the resource repeats it."""
        return {name_of(n): self.marks.status_of(n) or "waiting" for n in self.nodes}

    def node_states(self) -> dict[str, dict[str, object]]:
        """Each node's packages for the resource; null where gone, so that the merge removes it."""
        old = self.status.get("nodeState") or {}
        states: dict[str, dict[str, object]] = {}
        for node in self.nodes:
            new, was = self.state(node), old.get(name_of(node)) or {}
            gone: dict[str, object] = dict.fromkeys(was.keys() - new.keys())
            states[name_of(node)] = {
                **gone,
                **{
                    k: {**dict.fromkeys(was.get(k, {}).keys() - v.keys()), **v}
                    for k, v in new.items()
                },
            }
        return states

    def progress(self) -> None:
        states, statuses = self.node_states(), self.node_statuses()
        if self.status.get("nodeState", {}) != states or self.status.get("nodeStatus") != statuses:
            self.write(nodeState=states, nodeStatus=statuses)

    def churn(self, ignored: Iterable[str] = ()) -> None:
        """Rewrite the two conditions that change only lastTransitionTime at each reconcile."""
        skipped = ", ".join(ignored)
        text = (
            f"Node [{skipped}] has ignore label set. Skipping."
            if skipped
            else "No nodes have ignore label set."
        )
        said = {
            "TaintNotTolerable": {"status": "False", "message": "All nodes have tolerable taints."},
            "NodesIgnored": {"status": str(bool(skipped)), "message": text},
        }
        fields = {"lastTransitionTime": now()}
        self.write(
            conditions=[
                {"type": f"{GROUP}/{name}", "reason": name, **about, **fields}
                for name, about in said.items()
            ]
        )

    def completed(self) -> None:
        """Complete with `0/1`, then `1/1`; the only write of observedGeneration."""
        states = {"nodeState": self.node_states(), "nodeStatus": self.node_statuses()}
        self.write(status="complete", observedGeneration=self.generation, **states)
        time.sleep(0.015)
        self.count()

    def count(self) -> None:
        done = 0 if self.status.get("status") == "paused" else sum(map(self.node_done, self.nodes))
        counted = f"{done}/{len(self.nodes)}"
        if self.status.get("completeNodes") != counted:
            self.write(completeNodes=counted)

    def ignored(self) -> list[str]:
        return [name_of(n) for n in self.nodes if labels_of(n).get(f"{GROUP}/ignore") == "true"]
