"""A real cluster for these tests: any `KUBECONFIG`, else a local `rig/`.

It starts with the first test that needs it and ends after the last test of this folder, before
other tests read this kernel's settings.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fixtures.kubernetes.client import Cluster, Where, connect
from tests.cluster.line import Line, to_cluster
from tests.cluster.operators.fixtures import kaito_operator, nodewright_operator, skyhook_operator
from tests.cluster.rig import clients, simulated, up
from tests.cluster.runs import here, place
from tests.cluster.streams import cluster, streams
from tests.needs import requires
from tests.waiting import until

if TYPE_CHECKING:
    from tests.cluster.rig.clients import Client


# Fixtures.
__all__ = [
    "cluster",
    "here",
    "kaito_operator",
    "nodewright_operator",
    "place",
    "skyhook_operator",
    "streams",
]
REFERENCE = Path(__file__).parents[3] / "shared" / "reference"


@pytest.fixture(scope="package")
@requires("rights of a cluster", "cluster")
def cluster_at() -> Iterator[dict[str, str]]:
    """Yield KUBECONFIG and, where known, DEEPTWEAK_RIG_NODE, _IMAGE and _OVERLAY."""
    if os.environ.get("KUBECONFIG"):
        yield {
            name: value
            for name, value in os.environ.items()
            if name == "KUBECONFIG" or name.startswith("DEEPTWEAK_RIG_")
        }
        return
    with up.borrowed() as about:
        yield about


@pytest.fixture(scope="package")
def kubeconfig(cluster_at: dict[str, str]) -> Path:
    return Path(cluster_at["KUBECONFIG"])


@pytest.fixture(scope="package")
def api(kubeconfig: Path) -> Iterator[Client]:
    """Connect as administrator; `clients.of(api, "BatchV1Api")` gives an API group."""
    made = clients.client(kubeconfig)
    yield made
    made.close()


@pytest.fixture(scope="package")
def node_name(cluster_at: dict[str, str], api: Client) -> str:
    ready = [
        node.metadata.name
        for node in clients.of(api).list_node().items
        if any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or ())
    ]
    name: str = cluster_at.get("DEEPTWEAK_RIG_NODE") or ready[0]
    assert name in ready
    return name


@pytest.fixture(scope="package")
def image(cluster_at: dict[str, str]) -> str:
    """Name an image that, with the overlay, has this code, torch and all workload needs."""
    return _told(
        cluster_at,
        "DEEPTWEAK_RIG_IMAGE",
        "the image made from the Dockerfile, as the cluster's nodes know it",
    )


@pytest.fixture(scope="package")
def overlay_file(cluster_at: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file for `--pod-overlay` with that image; empty for a complete image."""
    if found := cluster_at.get("DEEPTWEAK_RIG_OVERLAY"):
        return Path(found)
    empty = tmp_path_factory.mktemp("overlay") / "overlay.yaml"
    empty.write_text("{}\n")
    return empty


@pytest.fixture
def cuttable(kubeconfig: Path, tmp_path: Path, namespace: str) -> Iterator[tuple[Cluster, Line]]:
    """A connection whose way to the server can be cut."""
    with to_cluster(kubeconfig, tmp_path) as (line, over):
        yield connect(Where(kubeconfig=str(over), namespace=namespace)), line


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of three seconds, renewed five times a second: a test need not wait for long."""
    monkeypatch.setattr("fixtures.kubernetes.lease.DURATION_S", 3)
    monkeypatch.setattr("fixtures.kubernetes.lease.RENEW_S", 0.2)


@pytest.fixture
def namespace(api: Client) -> Iterator[str]:
    """A namespace of the test's own; it and its pods are gone afterwards."""
    with fresh_namespace(api) as name:
        yield name


@contextmanager
def fresh_namespace(api: Client) -> Iterator[str]:
    """The same for a scope of your own."""
    core = clients.of(api)
    name = f"deeptweak-test-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})
    accounts = core.list_namespaced_service_account
    until(
        lambda: any(a.metadata.name == "default" for a in accounts(name).items),
        "no default service account",
        every_s=0.05,
    )
    yield name
    core.delete_namespace(name)
    clients.end_pods(api, lambda: core.list_namespaced_pod(name).items)


@pytest.fixture(scope="package")
@requires("reference")
def crds(api: Client) -> Iterator[list[str]]:
    """Install the operators' CustomResourceDefinitions; remove the new ones afterwards."""
    with _defined(api, _texts(REFERENCE / "crds")) as names:
        yield names


@pytest.fixture
def nodewrights(api: Client, crds: list[str]) -> Iterator[list[str]]:
    """Serve NodeWright too: Skyhook's definition with another group, kind and names."""
    (text,) = (text for text in _texts(REFERENCE / "crds") if "kind: Skyhook" in text)
    with _defined(
        api, [text.replace("skyhook", "nodewright").replace("Skyhook", "NodeWright")]
    ) as names:
        yield [*crds, *names]


@contextmanager
def _defined(api: Client, texts: Iterable[str]) -> Iterator[list[str]]:
    definitions = clients.of(api, "ApiextensionsV1Api")
    wanted: dict[str, Any] = {d["metadata"]["name"]: d for d in map(yaml.safe_load, texts)}

    def served() -> dict[str, Any]:
        return {d.metadata.name: d for d in definitions.list_custom_resource_definition().items}

    def going() -> bool:
        return any(name in wanted and d.metadata.deletion_timestamp for name, d in served().items())

    until(lambda: not going(), "definitions that were deleted stay", every_s=0.05)
    there = served().keys()
    for name in wanted.keys() - there:
        definitions.create_custom_resource_definition(wanted[name])

    def established() -> bool:
        found = served()
        ready = {
            name
            for name, d in found.items()
            if any(
                c.type == "Established" and c.status == "True" for c in d.status.conditions or ()
            )
        }
        return wanted.keys() <= ready

    until(established, "the definitions did not come", every_s=0.05)
    yield sorted(wanted)
    for name in wanted.keys() - there:
        definitions.delete_custom_resource_definition(name)
    until(lambda: not going(), "deleted definitions stay", every_s=0.05)


@pytest.fixture
def kwok_nodes(kubeconfig: Path) -> Iterator[Callable[..., list[str]]]:
    """`kwok_nodes(50)`: names of that many simulated nodes; see `rig/simulated.py`.

    They are gone afterwards.
    """
    with ExitStack() as stack:
        yield lambda count, **options: stack.enter_context(
            simulated.nodes(kubeconfig, count, **options)
        )


def _told(cluster_at: dict[str, str], name: str, what: str) -> str:
    if name not in cluster_at:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"set {name} to {what}")
    return cluster_at[name]


def _texts(folder: Path) -> Iterator[str]:
    yield from (path.read_text() for path in sorted(folder.glob("*.yaml")))
