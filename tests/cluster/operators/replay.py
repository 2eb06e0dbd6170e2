"""A recording as a script: repeat each client action once the stand-in reaches its moment.

So the recording alone defines a scenario and its required outcome.
"""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cluster.recordings import lines
from tests.waiting import PATIENCE_S

from .api import CORE, NODES, STRATEGIC, Api, ApiFailed
from .marks import GROUP, NAMESPACE, labels_of, name_of, notes_of
from .story import Story
from .view import HOOKS

if TYPE_CHECKING:
    from .fixtures import StandIn

Object = dict[str, Any]
RECORDED_NODE, RECORDED_IMAGE = "rig-node1", "rig.local/busybox:1"
QUIET_S = 1.0  # how long it is watched that nothing more happens
WATCHED = {
    "Skyhook": HOOKS,
    "Workspace": "/apis/kaito.sh/v1beta1/workspaces",
    "Node": NODES,
    "Pod": f"{CORE}/namespaces/{NAMESPACE}/pods",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "Job": "/apis/batch/v1/jobs",
}
HOST_WRITE = re.compile(r"host: write (\w+) to (/proc/sys/vm/dirty\w+)$")
HOST_REMOVE = re.compile(r"host: rm (/etc/sysctl\.d/999-\S+)$")
CLIENT = re.compile(r"(create|patch|delete) (skyhook|job|workspace) (\S+)")
COLLECTIONS = {
    "skyhook": HOOKS,
    "job": "/apis/batch/v1/namespaces/{}/jobs",
    "workspace": "/apis/kaito.sh/v1beta1/namespaces/{}/workspaces",
}
RUNS_ON = "kubernetes.io/hostname"


class Replay:
    """One recording, done again with the stand-in on `node`."""

    def __init__(self, recording: str, api: Api, stand_in: StandIn, node: str, image: str) -> None:
        self._lines, self._api, self._stand_in = lines(recording), api, stand_in
        self._node, self._image = node, image
        self._told, self._lock = Story(), threading.Lock()
        self._expected = Story()
        self._host: dict[str, Any] = {}
        self._names = {m[3] for line in self._lines if (m := CLIENT.match(line.action))}
        self._ended = False
        self._whole = Story()
        for line in self._lines:
            if line.object and line.kind in WATCHED:
                self._whole.take(line.kind, line.type_, line.object)
        self._all = self._mine(self._whole.chapters())
        for name in self._names:
            self._forget(name)
        for kind, path in WATCHED.items():
            api.follow(path, self._hear(kind))

    def _hear(self, kind: str) -> Any:
        def take(type_: str, thing: Object) -> None:
            if self._ended or (kind == "Node" and name_of(thing) != self._node):
                return
            with self._lock:
                self._told.take(kind, type_, thing)

        return take

    def run(self) -> None:
        """Repeat each recorded action in turn; compare before each and at noted leftovers."""
        for line in self._lines:
            if line.object and line.kind in WATCHED:
                self._expected.take(line.kind, line.type_, line.object)
            elif line.host:
                self._host.update(line.host)
            elif line.leftover:
                self._as_far()
                self._until(
                    lambda recorded=line.leftover: self._left(recorded),
                    f"left behind ({line.leftover['when']})",
                )
            elif line.action:
                self._as_far()
                self._act(line.action, line.body)
        self._as_far(whole=True)
        self._ended = True

    def _mine(self, chapters: dict[str, list[str]]) -> dict[str, list[str]]:
        return {
            key: steps
            for key, steps in chapters.items()
            if key == "cordon" or key.split(" ")[0] in self._names
        }

    def _as_far(self, *, whole: bool = False) -> None:
        """Wait for the recorded story so far; the stand-in may be ahead on the recorded way."""

        def apart() -> str:
            with self._lock:
                told = self._mine(self._told.chapters())
            wanted = self._mine((self._whole if whole else self._expected).chapters())
            wrong = []
            for chapter in sorted(self._all.keys() | told.keys()):
                now, then, all_ = (
                    told.get(chapter, []),
                    wanted.get(chapter, []),
                    self._all.get(chapter, []),
                )
                if len(now) < len(then) or now != all_[: len(now)]:
                    wrong.append(
                        f"{chapter}:\n  recorded {then}\n  told     {now}\n  in all   {all_}"
                    )
            return "\n".join(wrong)

        self._until(apart, "statuses and stages")

    def _until(self, apart: Any, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while difference := apart():
            assert time.monotonic() < deadline, (
                f"{what} differ from the recording after {PATIENCE_S} s:\n{difference}\n"
                f"{self._stand_in.log}"
            )
            time.sleep(0.1)

    def _act(self, action: str, body: Object | None) -> None:
        if found := CLIENT.match(action):
            self._client(found[1], found[2], found[3], self._here(body))
        elif action.startswith("patch node (") and body:
            self._api.patch(f"{NODES}/{self._node}", body)
        elif action.startswith("patch node rig-node1 (remove") and body:
            self._host_is()
            self._api.patch(f"{NODES}/{self._node}", body)
        elif action == "stop the operator process":
            self._stand_in.stop()
        elif action == "start the operator":
            self._stand_in.restart()
        elif found := HOST_WRITE.match(action):
            self._host_is()
            Path(found[2]).write_text(found[1])
            self._host["vm." + Path(found[2]).name] = int(found[1])
        elif found := HOST_REMOVE.match(action):
            Path(found[1]).unlink(missing_ok=True)
            self._host["/etc/sysctl.d/999-*"] = {}
        elif (
            " idle " in f" {action}"
            or "paused" in action
            or "status" in action
            or "state" in action
        ):
            time.sleep(QUIET_S)  # the recording's client watched that nothing happens
            self._as_far()

    def _here(self, body: Object | None) -> Object | None:
        """The recorded body, for this cluster's node and image."""
        text = (
            json.dumps(body)
            .replace(RECORDED_NODE, self._node)
            .replace(RECORDED_IMAGE, self._image)
            .replace('"Never"}', '"IfNotPresent"}')
        )
        text = (
            text.replace("<rig>/data/out", "/var/lib/kaito-stand-in/out")
            .replace('"bench/pool"', f'"{RUNS_ON}"')
            .replace('"cpu"', f'"{self._node}"')
        )
        changed: Object | None = json.loads(text)
        return changed

    def _client(self, verb: str, kind: str, name: str, body: Object | None) -> None:
        path = COLLECTIONS[kind].format("default")
        if verb == "create":
            assert self._api.create(path, body or {}) is not None, f"{kind} {name} is there already"
        elif verb == "patch":
            self._api.patch(f"{path}/{name}", body or {})
        else:
            self._api.delete(f"{path}/{name}")

    def _host_is(self) -> None:
        def apart() -> str:
            here: dict[str, Any] = {
                key: int(Path(f"/proc/sys/{key.replace('.', '/')}").read_text())
                for key in self._host
                if key.startswith("vm.")
            }
            here["/etc/sysctl.d/999-*"] = {
                p.name: p.read_text() for p in Path("/etc/sysctl.d").glob("999-*")
            }
            return "\n".join(
                f"{k}: recorded {self._host[k]!r}, here {v!r}"
                for k, v in here.items()
                if self._host.get(k) != v
            )

        self._until(apart, "host values")

    def _left(self, recorded: Object) -> str:
        """What differs between what the recording says is left behind and what is."""
        node = self._api.send("GET", f"{NODES}/{self._node}")
        pods = [
            p
            for p in self._api.list(WATCHED["Pod"])
            if labels_of(p).get(f"{GROUP}/name") in self._names
        ]
        maps = [
            m
            for m in self._api.list(f"{CORE}/namespaces/{NAMESPACE}/configmaps")
            if notes_of(m).get(f"{GROUP}/name") in self._names
        ]

        def mine(marks: dict[str, str]) -> dict[str, str]:
            ours = {
                k: v
                for k, v in marks.items()
                if k.startswith(f"{GROUP}/") and any(k.endswith(f"_{n}") for n in self._names)
            }
            return {k: re.sub(r',"restarts":\d+', "", v) for k, v in ours.items()}

        def conditions(of: list[Object]) -> list[tuple[str, ...]]:
            ours = [
                c
                for c in of
                if c["type"].split("/")[1:2] and c["type"].split("/")[1] in self._names
            ]
            return sorted((c["type"], c["status"], c["reason"], c["message"]) for c in ours)

        pairs = {
            "annotations": (mine(recorded["node annotations"]), mine(notes_of(node))),
            "labels": (mine(recorded["node labels"]), mine(labels_of(node))),
            "conditions": (
                conditions(recorded["node conditions"]),
                conditions(node["status"]["conditions"]),
            ),
            "cordoned": (bool(recorded["unschedulable"]), bool(node["spec"].get("unschedulable"))),
            "pods": (len(recorded["skyhook pods"]), len(pods)),
            "config maps": (len(recorded["configmaps"]), len(maps)),
        }
        return "\n".join(
            f"{k}:\n  recorded {a}\n  here     {b}" for k, (a, b) in pairs.items() if a != b
        )

    def clean(self) -> None:
        self._ended = True
        for kind, collected in COLLECTIONS.items():
            for name in self._names:
                path = f"{collected.format('default')}/{name}"
                if (found := self._api.get(path)) is not None:
                    if kind != "job" and found["metadata"].get("finalizers"):
                        self._api.patch(path, {"metadata": {"finalizers": None}})
                    self._api.delete(path)
        for name in self._names:
            self._forget(name)

    def _forget(self, name: str) -> None:
        keys = [f"{GROUP}/{what}_{name}" for what in ("nodeState", "status", "version", "cordon")]
        node = self._api.send("GET", f"{NODES}/{self._node}")
        if any(k in notes_of(node) or k in labels_of(node) for k in keys):
            meta = {"annotations": dict.fromkeys(keys), "labels": {keys[1]: None}}
            self._api.patch(f"{NODES}/{self._node}", {"metadata": meta})
        types = [f"{GROUP}/{name}/NotReady", f"{GROUP}/{name}/Erroring"]
        have = {c["type"] for c in node["status"]["conditions"]}
        gone = [{"type": t, "$patch": "delete"} for t in types if t in have]
        if gone:
            try:
                self._api.patch(
                    f"{NODES}/{self._node}/status",
                    {"status": {"conditions": gone}},
                    content=STRATEGIC,
                )
            except ApiFailed as failed:
                print(failed)
