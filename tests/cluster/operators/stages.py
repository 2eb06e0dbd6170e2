"""A resource's packages on each node, stage by stage.

apply → config [→ interrupt → post-interrupt]; upgrade; uninstall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import interrupt, packages, seen
from .api import CORE
from .marks import GROUP, NAMESPACE, compact, labels_of, name_of, notes_of, safe_name

if TYPE_CHECKING:
    from .skyhook import Operator
    from .view import View

Object = dict[str, Any]


def as_if_done(view: View, node: Object) -> None:
    """Play the fault left-over: marks of an earlier complete resource of the same name."""
    state = {
        seen.key(p): seen.entry(p, view.last_stage(p), "complete") for p in view.packages.values()
    }
    view.mark(node, status="complete", state=state)
    view.condition(node, complete=True, erroring=False)


def halted(operator: Operator, view: View) -> bool:
    """Whether the resource is paused or disabled; its status and its nodes' say so.

    What runs goes on to the end of its stage.
    """
    status = view.status.get("status")
    for what, word in (("pause", "paused"), ("disable", "disabled")):
        if view.wants(what):
            if status != word:
                operator.config_maps(view)
                for node in view.nodes:
                    fresh = view.marks.status_of(node) is None
                    view.mark(node, status=word)
                    if fresh:
                        view.condition(node, complete=False, erroring=False)
                fields = {"nodeStatus": view.node_statuses()}
                view.write(status=word, **fields)
                view.count()
            return True
    return False


def begin(view: View) -> None:
    """Write unknown, then waiting, for a new or resumed resource, a new node or a new version."""
    status = view.status.get("status")
    first = status in (None, "paused", "disabled")
    for node in view.nodes:
        mark = view.marks.status_of(node)
        upgraded = status == "complete" and any(
            _older(view.state(node), p) for p in view.packages.values()
        )
        if mark is None or first or upgraded:
            if not view.node_done(node) or status is not None:
                view.mark(node, status="waiting")
            view.condition(node, complete=False, erroring=False)
            metadata_map(view, node)
            first = True
    if not first:
        return
    states = {} if status is None else {"nodeState": view.node_states()}
    view.write(status="unknown", nodeStatus=view.node_statuses(), **states)
    view.count()
    view.write(status="waiting")


def block(view: View) -> None:
    """A node of it is labelled to be ignored."""
    if view.status.get("status") == "blocked":
        return
    ignored = view.ignored()
    for node in view.nodes:
        if name_of(node) in ignored:
            view.mark(node, status="blocked")
    view.churn(ignored)
    view.write(status="blocked")


def uninstalling(view: View) -> bool:
    return any(e["stage"] == "uninstall" for n in view.nodes for e in view.state(n).values())


def _older(state: dict[str, Object], package: Object) -> Object | None:
    """The entry of an older version of this package; None if there is none or only a newer one."""
    here = _order(package["version"])
    return next(
        (e for e in state.values() if e["name"] == package["name"] and _order(e["version"]) < here),
        None,
    )


def _order(version: str) -> tuple[tuple[int, str], ...]:
    return tuple(
        (int(part) if part.isdigit() else 0, part) for part in version.lstrip("v").split(".")
    )


def config_changed(view: View) -> bool:
    """Take up a complete resource's changed config map: back to `config`, map changed in place."""
    path = f"{CORE}/namespaces/{NAMESPACE}/configmaps"
    changed: dict[str, list[str]] = {}
    for package in view.packages.values():
        held = view.api.get(f"{path}/{packages.config_map_name(view.name, package)}")
        data, wanted = (held or {}).get("data") or {}, package.get("configMap") or {}
        keys = sorted(k for k in data.keys() | wanted.keys() if data.get(k) != wanted.get(k))
        if held is not None and keys:
            changed[package["name"]] = keys
    if not changed:
        return False
    for node in view.nodes:
        again = {
            seen.key(p): seen.entry(p, "config", "in_progress")
            for p in view.packages.values()
            if p["name"] in changed
        }
        view.mark(node, status="in_progress", state={**view.state(node), **again})
        view.condition(node, complete=False, erroring=False)
    view.write(configUpdates=changed, nodeState=view.node_states(), nodeStatus=view.node_statuses())
    for name, keys in changed.items():
        package = view.packages[name]
        body = {"data": {**dict.fromkeys(keys), **package.get("configMap", {})}}
        view.api.patch(f"{path}/{packages.config_map_name(view.name, package)}", body)
    view.count()
    view.write(status="in_progress")
    return True


def run(operator: Operator, view: View, pods: list[Object]) -> None:
    """Make the pods that are due on each node."""
    for node in view.nodes:
        if not view.node_done(node):
            _run_on(
                operator,
                view,
                node,
                [p for p in pods if p["spec"].get("nodeName") == name_of(node)],
            )


def _run_on(operator: Operator, view: View, node: Object, pods: list[Object]) -> None:
    """Make each package's next pod on this node, unless one of it is still there."""
    state = view.state(node)
    wanted = {seen.key(p) for p in view.packages.values()}
    for key, entry in state.items():
        newer = view.packages.get(entry["name"])
        if key not in wanted and not (newer and _older(state, newer)):
            _stage(operator, view, node, dict(entry), "uninstall", pods)
    for package in view.packages.values():
        needs = [view.packages[n] for n in package.get("dependsOn") or {} if n in view.packages]
        stage = next_stage(view, node, package)
        if stage and all(view.package_done(node, p) for p in needs):
            _stage(operator, view, node, package, stage, pods)


def next_stage(view: View, node: Object, package: Object) -> str | None:
    """The stage that this package has to run (again) on this node; None when it is done."""
    state = view.state(node)
    entry = state.get(seen.key(package))
    if entry is None:
        return "upgrade" if _older(state, package) else "apply"
    if entry["state"] != "complete":
        return str(entry["stage"])
    if view.package_done(node, package):
        return None
    return {
        "apply": "config",
        "upgrade": "config",
        "config": "interrupt",
        "interrupt": "post-interrupt",
        "uninstall": "apply",
    }[entry["stage"]]


def _stage(
    operator: Operator, view: View, node: Object, package: Object, stage: str, pods: list[Object]
) -> None:
    """Create this stage's pod and write in_progress; or handle the existing pod."""
    mine = [
        p
        for p in pods
        if labels_of(p).get(f"{GROUP}/package") == f"{package['name']}-{package['version']}"
    ]
    if mine:
        for pod in mine:
            outdated = packages.copy_dir(view.hook, package) not in _args(pod)
            if (
                outdated
                and stage != "uninstall"
                and "deletionTimestamp" not in pod["metadata"]
                and seen.came_to(pod) != ("complete", 0)
            ):
                view.api.delete(f"{operator.pods_path}/{name_of(pod)}")
        return
    if operator.fault != "stuck":
        body = packages.pod(view.hook, package, stage, name_of(node), operator.look)
        if view.api.create(operator.pods_path, body) is None:
            return  # one of this name is still going
        operator.machines.carry_out(name_of(node), package, stage)
        if stage == "interrupt":
            interrupt.began(operator, view, node, package)
    state = view.state(node)
    if seen.key(package) in state and stage == "uninstall":
        operator.config_maps(view)
    view.mark(
        node,
        status="in_progress",
        state={**state, seen.key(package): seen.entry(package, stage, "in_progress")},
    )
    view.condition(node, complete=False, erroring=False)
    metadata_map(view, node)
    view.write(nodeState=view.node_states(), nodeStatus=view.node_statuses())


def _args(pod: Object) -> list[str]:
    return [a for c in pod["spec"]["initContainers"] for a in c.get("args") or []]


def node_settled(view: View, node: Object) -> None:
    """Write a node's conditions from its states and, at the end, its status and uncordon."""
    status = view.marks.status_of(node)
    if view.node_done(node) and status != "complete":
        view.condition(node, complete=True, erroring=False)
        view.mark(node, status="complete", **interrupt.uncordon(view, node))
        metadata_map(view, node)
    elif status == "erroring":
        view.condition(node, complete=False, erroring=True)


def metadata_map(view: View, node: Object) -> None:
    """The config map that tells a package about its node."""
    path = f"{CORE}/namespaces/{NAMESPACE}/configmaps"
    data = {"annotations.json": compact(dict(sorted(notes_of(node).items())))}
    meta = {
        "name": safe_name(view.name, name_of(node), "metadata"),
        "labels": {f"{GROUP}/skyhook-node-meta": view.name},
        "annotations": {f"{GROUP}/Node.name": name_of(node), f"{GROUP}/name": view.name},
        "ownerReferences": packages.owner(view.hook),
    }
    if view.api.create(path, {"metadata": meta, "data": data}) is None:
        view.api.patch(f"{path}/{meta['name']}", {"data": data})
