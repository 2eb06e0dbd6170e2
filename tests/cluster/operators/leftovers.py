"""The operators' objects in a cluster: noted before a test; new ones are removed after it.

The real operators leave all this behind, where it would spoil the next test.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from .api import CORE, NODES, STRATEGIC, Api, Gone
from .marks import NAMESPACE, labels_of, name_of, notes_of
from .nodewright import GROUP, LEGACY, NODEWRIGHTS, SKYHOOKS

Object = dict[str, Any]
PATIENCE_S = 40
WORKSPACES = "/apis/kaito.sh/v1beta1/workspaces"


class Leftovers:
    """Resources and marks as they are now; `clear_new` removes what has come since."""

    def __init__(self, api: Api, operator: str) -> None:
        self._api, self._skyhook = api, operator != "kaito"
        self._before = self._resources()
        self._marks = {name_of(n): self._marks_of(n) for n in api.list(NODES)}

    def _resources(self) -> set[str]:
        if self._skyhook:
            return {
                f"{path}/{name_of(h)}"
                for path in (SKYHOOKS, NODEWRIGHTS)
                for h in self._api.list(path)
            }
        return {
            f"/apis/kaito.sh/v1beta1/namespaces/{w['metadata']['namespace']}"
            f"/workspaces/{name_of(w)}"
            for w in self._api.list(WORKSPACES)
        }

    @staticmethod
    def _marks_of(node: Object) -> set[str]:
        conditions = [c["type"] for c in node["status"].get("conditions") or []]
        return {
            key
            for key in (*notes_of(node), *labels_of(node), *conditions)
            if key.startswith((f"{LEGACY}/", f"{GROUP}/"))
        }

    def clear_new(self) -> None:
        """Delete new resources, wait for their pods, and clear new node marks and cordons.

        Finalizers are removed first: the operator is gone.
        """
        for path in self._resources() - self._before:
            with contextlib.suppress(Gone):
                self._api.patch(path, {"metadata": {"finalizers": None}})
            self._api.delete(path)
        if not self._skyhook:
            return
        self._pods_gone()
        for node in self._api.list(NODES):
            self._clean(node)

    def _pods_gone(self) -> None:
        """Wait for package pods without a resource: the ended operator writes no late event."""
        pods = f"{CORE}/namespaces/{NAMESPACE}/pods"
        hooks = {name_of(h) for path in (SKYHOOKS, NODEWRIGHTS) for h in self._api.list(path)}
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            orphans = [
                p
                for p in self._api.list(pods)
                if (labels_of(p).get(f"{LEGACY}/name") or labels_of(p).get(f"{GROUP}/name"))
                not in hooks
            ]
            if not orphans:
                return
            for pod in orphans:
                if "deletionTimestamp" not in pod["metadata"]:
                    self._api.delete(f"{pods}/{name_of(pod)}", grace_s=1)
            time.sleep(0.2)

    def _clean(self, node: Object) -> None:
        new = self._marks_of(node) - self._marks.get(name_of(node), set())
        if not new:
            return
        path = f"{NODES}/{name_of(node)}"
        body: Object = {
            "metadata": {
                part: {k: None for k in node["metadata"].get(part) or {} if k in new}
                for part in ("annotations", "labels")
            }
        }
        if any("/cordon_" in key for key in new):
            body["spec"] = {"unschedulable": None}
        with contextlib.suppress(Gone):
            self._api.patch(path, body)
        kinds = [c["type"] for c in node["status"].get("conditions") or [] if c["type"] in new]
        if kinds:
            gone = [{"type": kind, "$patch": "delete"} for kind in kinds]
            self._api.patch(f"{path}/status", {"status": {"conditions": gone}}, content=STRATEGIC)
