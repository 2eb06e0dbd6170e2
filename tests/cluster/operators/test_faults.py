"""Each fault that can be asked of the Skyhook stand-in is what its name says: a client under test must be able to rely on it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.operators.api import CORE, NODES, Api
from tests.cluster.operators.marks import GROUP, NAMESPACE, Marks
from tests.cluster.operators.skyhook import STALE_S
from tests.cluster.operators.view import collection
from tests.kernel_lock import kernel_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.operators.fixtures import StandIn

pytestmark = pytest.mark.needs("root", "reference")

KEY = Path("/proc/sys/vm/dirty_expire_centisecs")
NAME = "faulty"
PATIENCE_S = 120
Object = dict[str, Any]


@pytest.fixture
def server(kubeconfig: Path) -> Iterator[Api]:
    """The stand-in's own client."""
    with contextlib.closing(Api(str(kubeconfig))) as api:
        yield api


@pytest.fixture
def put_back() -> Iterator[str]:
    """The value that a test's package sets; the old one is put back. Nobody else has this kernel."""
    with kernel_held():
        before = KEY.read_text()
        yield "2999" if before.strip() != "2999" else "2998"
        KEY.write_text(before)
    Path("/etc/sysctl.d/999-tuning-tuning.conf").unlink(missing_ok=True)


@pytest.fixture
def make(server: Api, node_name: str, put_back: str, crds: list[str], skyhook_operator: StandIn) -> Callable[[], None]:  # noqa: ARG001 before it
    """Create the resource."""
    package = {"version": "1.1.4", "image": "x/tuning", "configMap": {"sysctl.conf": f"vm.dirty_expire_centisecs={put_back}"}}
    spec = {"nodeSelectors": {"matchLabels": {"kubernetes.io/hostname": node_name}}, "packages": {"tuning": package}}
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Skyhook", "metadata": {"name": NAME}, "spec": spec}
    return lambda: _not_none(server.create(collection(GROUP), body))


def _not_none(made: Object | None) -> None:
    assert made is not None, f"{NAME} is there already"


def hook(server: Api) -> Object:
    """The resource's status."""
    return dict((server.get(f"{collection(GROUP)}/{NAME}") or {}).get("status") or {})


def pods(server: Api) -> list[Object]:
    return server.list(f"{CORE}/namespaces/{NAMESPACE}/pods", labelSelector=f"{GROUP}/name={NAME}")


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.05)


def complete(server: Api) -> bool:
    found = server.get(f"{collection(GROUP)}/{NAME}") or {}
    status = found.get("status") or {}
    return status.get("status") == "complete" and status.get("observedGeneration") == found["metadata"]["generation"]


def test_without_a_fault_the_value_is_set(server: Api, make: Callable[[], None], skyhook_operator: StandIn, put_back: str) -> None:
    """The measure of all others: complete, and the node has the value."""
    skyhook_operator.start()
    make()
    until(lambda: complete(server), "complete")
    assert KEY.read_text().strip() == put_back


def test_lies(server: Api, make: Callable[[], None], skyhook_operator: StandIn) -> None:
    """Pods ran and it says complete: only the readback proves that nothing changed."""
    before = KEY.read_text()
    skyhook_operator.start(fault="lies")
    make()
    until(lambda: pods(server), "a pod")
    until(lambda: complete(server), "complete")
    assert KEY.read_text() == before


def test_left_over(server: Api, make: Callable[[], None], skyhook_operator: StandIn) -> None:
    """Complete at once, and no pod was made."""
    before = KEY.read_text()
    skyhook_operator.start(fault="left-over")
    make()
    until(lambda: complete(server), "complete")
    assert not pods(server)
    assert KEY.read_text() == before


def test_stuck(server: Api, make: Callable[[], None], skyhook_operator: StandIn) -> None:
    """In progress, and no pod."""
    skyhook_operator.start(fault="stuck")
    make()
    until(lambda: hook(server).get("status") == "in_progress", "in_progress")
    time.sleep(2)
    assert hook(server)["status"] == "in_progress"
    assert not pods(server)


def test_absent(server: Api, make: Callable[[], None], skyhook_operator: StandIn) -> None:
    """Not a word."""
    skyhook_operator.start(fault="absent")
    make()
    time.sleep(1)
    assert hook(server) == {}


def test_erroring(server: Api, make: Callable[[], None], skyhook_operator: StandIn) -> None:
    """`erroring` is there for a moment only: a watch sees it, a look does not."""
    seen: list[str] = []
    server.follow(collection(GROUP), lambda _, thing: seen.append((thing.get("status") or {}).get("status", "")))
    skyhook_operator.start(fault="erroring")
    make()
    until(lambda: "erroring" in seen, "erroring")
    until(lambda: hook(server).get("status") == "in_progress", "in_progress again")


def test_image_missing(server: Api, make: Callable[[], None], skyhook_operator: StandIn) -> None:
    """The pod says why; the status never does."""

    def reasons() -> set[str]:
        waiting = [c.get("state", {}).get("waiting", {}) for p in pods(server) for c in p["status"].get("initContainerStatuses") or []]
        return {w.get("reason", "") for w in waiting}

    skyhook_operator.start(fault="image-missing")
    make()
    until(lambda: reasons() & {"ErrImagePull", "ImagePullBackOff"}, "a pod whose image cannot be pulled")
    assert hook(server)["status"] == "in_progress"


def test_dies_midway(server: Api, make: Callable[[], None], skyhook_operator: StandIn, node_name: str) -> None:
    """The operator ends while its pod runs; started again, it goes on."""
    skyhook_operator.start(fault="dies-midway", brief=False)
    make()
    assert skyhook_operator.wait() == 70
    assert hook(server)["status"] == "in_progress"
    assert Marks(NAME).state in (server.send("GET", f"{NODES}/{node_name}")["metadata"]["annotations"])
    skyhook_operator.restart()
    until(lambda: complete(server), "complete")


def stale(server: Api) -> bool:
    found = server.get(f"{collection(GROUP)}/{NAME}") or {}
    return bool(found["status"]["status"] == "complete" and found["status"]["observedGeneration"] < found["metadata"]["generation"])


def test_stale_complete(server: Api, make: Callable[[], None], skyhook_operator: StandIn) -> None:
    """After a change it says complete for a second, and observedGeneration alone tells that this is the old one."""
    skyhook_operator.start(fault="stale-complete")
    make()
    until(lambda: complete(server), "complete")
    changed = {"spec": {"packages": {"tuning": {"configMap": {"sysctl.conf": "vm.dirty_expire_centisecs=2997"}}}}}
    begun = time.monotonic()
    server.patch(f"{collection(GROUP)}/{NAME}", changed)
    until(lambda: not stale(server), "another status")
    assert time.monotonic() - begun >= STALE_S
    until(lambda: complete(server), "complete again")
    assert KEY.read_text().strip() == "2997"
