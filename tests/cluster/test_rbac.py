"""`data/kubernetes/rbac.yaml` suffices for a run, grants only its stated rights; gaps are named."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures.kubernetes import api, names, preflight
from fixtures.kubernetes.api import (
    CONFIGMAPS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    NODEWRIGHTS,
    PODS,
    SKYHOOKS,
    WORKSPACES,
    Kind,
    create,
    delete,
)
from fixtures.kubernetes.client import ApiRequest, Cluster, Where, connect, send
from fixtures.kubernetes.settings import TargetConfig
from fixtures.terms import Refused
from tests.cluster.line import altered

Object = dict[str, Any]
RBAC = Path(__file__).parents[2] / "data/kubernetes/rbac.yaml"
RUN_ID = "0123456789ab"
TWEAK = names.tweak_name(RUN_ID, 1)
GROUP = "rbac.authorization.k8s.io/v1"
CRDS = Kind(
    "apiextensions.k8s.io/v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
KINDS = {
    kind.kind: kind
    for kind in (
        Kind(GROUP, "clusterroles", "ClusterRole", namespaced=False),
        Kind(GROUP, "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Kind(GROUP, "roles", "Role"),
        Kind(GROUP, "rolebindings", "RoleBinding"),
        Kind("v1", "serviceaccounts", "ServiceAccount"),
    )
}
FULL = frozenset({"get", "list", "watch", "create", "patch", "delete"})
SEEN = frozenset({"get", "list", "watch"})
# All that the run side asks for, by part of the file: resource, subresource, verbs, and whether in
# the run's own namespace only.
PARTS: dict[str, list[tuple[Kind, str, frozenset[str], bool]]] = {
    "every run": [
        (NODES, "", SEEN | {"patch"}, False),
        (NAMESPACES, "", frozenset({"get"}), True),
        (LEASES, "", FULL, True),
        (CONFIGMAPS, "", FULL - {"watch"}, True),
        (PODS, "", FULL - {"patch"}, True),
        (PODS, "attach", frozenset({"get", "create"}), True),
        (PODS, "log", frozenset({"get"}), True),
        (EVENTS, "", frozenset({"list"}), True),
        (JOBS, "", FULL - {"watch"}, True),
        (SKYHOOKS, "", frozenset({"list"}), False),
        (NODEWRIGHTS, "", frozenset({"list"}), False),
        (WORKSPACES, "", frozenset({"list"}), True),
    ],
    "skyhook": [
        (SKYHOOKS, "", FULL - {"get", "list"}, False),
        (NODEWRIGHTS, "", FULL - {"get", "list"}, False),
        (PODS, "", frozenset({"list", "watch", "delete"}), False),
        (JOBS, "", frozenset({"list", "watch"}), False),
        (PODS, "log", frozenset({"get"}), False),
        (NODES, "status", frozenset({"patch"}), False),
    ],
    "kaito": [(WORKSPACES, "", FULL - {"list"}, True), (JOBS, "", frozenset({"watch"}), True)],
    "job streams": [
        (JOBS, "", frozenset({"watch"}), True),
        (PODS, "eviction", frozenset({"create"}), True),
    ],
}


def documents(*parts: str) -> list[Object]:
    """The file's objects for every run and the named parts, without its Namespace."""
    found = [one for one in yaml.safe_load_all(RBAC.read_text()) if one["kind"] != "Namespace"]
    optional = {
        "deeptweak-skyhook": "skyhook",
        "deeptweak-kaito": "kaito",
        "deeptweak-job-streams": "job streams",
    }
    return [one for one in found if optional.get(one["metadata"]["name"], "") in {"", *parts}]


@pytest.fixture
def admin(kubeconfig: Path, namespace: str) -> Cluster:
    return connect(Where(kubeconfig=str(kubeconfig), namespace=namespace))


def somebody(
    admin: Cluster, kubeconfig: Path, wanted: list[Object], target: Path, stack: ExitStack
) -> Path:
    """A kubeconfig in `target` for the file's service account; rights end with the stack."""
    suffix = f"-{admin.namespace[-8:]}"
    for one in wanted:
        kind = KINDS[one["kind"]]
        if not kind.namespaced:  # the cluster may have the file's own already
            one["metadata"]["name"] += suffix
        if one.get("roleRef", {}).get("kind") == "ClusterRole":
            one["roleRef"]["name"] += suffix
        for place in (one["metadata"], *one.get("subjects", ())):
            if "namespace" in place:
                place["namespace"] = admin.namespace
        create(admin, kind, one)
        stack.callback(delete, admin, kind, one["metadata"]["name"])
    url = KINDS["ServiceAccount"].url(admin, "deeptweak") + "/token"
    token = send(
        admin, ApiRequest("POST", url, "create", "serviceaccounts/token", body={"spec": {}})
    )["status"]["token"]
    return altered(kubeconfig, target, user={"token": token})


@pytest.fixture
def allowed(
    admin: Cluster, kubeconfig: Path, tmp_path: Path
) -> Iterator[Callable[[list[Object]], Cluster]]:
    """`allowed(documents)`: a connection of the file's service account with those rights only."""
    with ExitStack() as stack:
        path = tmp_path / "somebody.kubeconfig"
        yield lambda wanted: connect(
            Where(str(somebody(admin, kubeconfig, wanted, path, stack)), None, admin.namespace)
        )


def may(cluster: Cluster, verb: str, kind: Kind, subresource: str = "", **where: str) -> bool:
    about = {
        "verb": verb,
        "group": kind.api_version.rpartition("/")[0],
        "resource": kind.plural,
        "subresource": subresource,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": about | where},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = send(
        cluster, ApiRequest("POST", path, "create", "selfsubjectaccessreviews", body=body)
    )
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize("part", [None, "skyhook", "kaito", "job streams"])
def test_each_part_allows_what_it_says_and_no_more(
    allowed: Callable[[list[Object]], Cluster], part: str | None
) -> None:
    """Try every verb on all resources that the run side names, plus others, in two namespaces."""
    cluster = allowed(documents(*([part] if part else [])))
    granted = PARTS["every run"] + (PARTS[part] if part else [])
    strangers = [KINDS["ClusterRole"], KINDS["ServiceAccount"], Kind("v1", "secrets", "Secret")]
    resources = {
        (kind, subresource) for rules in PARTS.values() for kind, subresource, _, _ in rules
    }
    for kind, subresource in sorted(
        resources
        | {(kind, "") for kind in [*strangers, CRDS]}
        | {(PODS, "exec"), (PODS, "eviction")},
        key=str,
    ):
        for verb in sorted(FULL | {"update", "deletecollection"}):
            for place in (cluster.namespace, "kube-system"):
                expected = any(
                    (kind, subresource) == (of, sub)
                    and verb in verbs
                    and (place == cluster.namespace or not own)
                    for of, sub, verbs, own in granted
                )
                assert may(cluster, verb, kind, subresource, namespace=place) == expected, (
                    f"{verb} {kind.resource}/{subresource} in {place}"
                )


def asked_for() -> Iterator[tuple[str, str, str]]:
    """The run side's requests as far as its source names the kind: place, verb, name in `api`."""
    verbs = {
        "get": ["get"],
        "list_": ["list"],
        "watch": ["list", "watch"],
        "apply": ["patch", "create"],
    }
    for path in sorted((RBAC.parents[2] / "fixtures").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and len(node.args) > 1:
                verb = getattr(node.func, "attr", getattr(node.func, "id", ""))
                kind = getattr(node.args[1], "attr", getattr(node.args[1], "id", ""))
                if verb in {*verbs, "create", "patch", "delete"} and isinstance(
                    getattr(api, kind, None), Kind
                ):
                    yield from (
                        (f"{path.name}:{node.lineno}", one, kind) for one in verbs.get(verb, [verb])
                    )


def test_what_the_run_side_asks_for_is_granted() -> None:
    """Else users on a strictly managed cluster would find a new request without its right."""
    granted = {
        (verb, kind) for rules in PARTS.values() for kind, _, verbs, _ in rules for verb in verbs
    }
    found = list(asked_for())
    assert len(found) > 30
    assert [one for one in found if (one[1], getattr(api, one[2])) not in granted] == []


@pytest.mark.parametrize("part", [None, "skyhook", "kaito"])
def test_a_run_needs_its_parts_rights_and_names_the_missing_ones(
    allowed: Callable[[list[Object]], Cluster], part: str | None
) -> None:
    """Each alone: the first part suffices for `--apply=agent`; others are needed where used."""
    cluster = allowed(documents(*([part] if part else [])))
    runs: dict[str | None, tuple[TargetConfig, Kind | None]] = {
        None: (TargetConfig(Where(), ""), None),
        "skyhook": (TargetConfig(Where(), ""), SKYHOOKS),
        "kaito": (TargetConfig(Where(), "", via="kaito"), None),
    }
    lacking = {
        "skyhook": "create skyhooks.skyhook.nvidia.com",
        "kaito": f"create workspaces.kaito.sh in namespace {cluster.namespace}",
    }
    for of, (settings, kind) in runs.items():
        if of in {None, part}:
            preflight.require_rights(cluster, settings, kind)
        else:
            with pytest.raises(Refused, match=lacking[str(of)]):
                preflight.require_rights(cluster, settings, kind)
