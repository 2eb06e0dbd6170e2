"""The verbs of the API, against a real API server, over a way to it that can be cut."""

from __future__ import annotations

import gc
import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.kubernetes import client
from fixtures.kubernetes.api import (
    CONFIGMAPS,
    NODES,
    PODS,
    ApiError,
    Kind,
    WaitedTooLong,
    apply,
    create,
    delete,
    get,
    list_,
    patch,
)
from fixtures.kubernetes.client import Cluster, Where, connect
from fixtures.kubernetes.settings import laid_over, read_overlay
from fixtures.kubernetes.watch import Follower, Watch, logs, watch
from tests.cluster.line import Line, altered

Object = dict[str, Any]
CRDS = Kind(
    "apiextensions.k8s.io/v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
LONG_S = 100.0


def config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "labels": {"of": "the-test"}}, "data": data}


def short(event: tuple[str, Object]) -> tuple[str, str, str]:
    type_, item = event
    return type_, item["metadata"]["name"], item.get("data", {}).get("x", "")


def test_objects_are_plain_dictionaries_in_and_out(cluster: Cluster) -> None:
    """Create, find, list by label, merge (null deletes), and delete once."""
    create(cluster, CONFIGMAPS, config_map("one", x="1", y="2"))
    found = get(cluster, CONFIGMAPS, "one")
    assert found is not None
    assert (found["kind"], found["data"]) == ("ConfigMap", {"x": "1", "y": "2"})
    assert patch(cluster, CONFIGMAPS, "one", {"data": {"y": None}})["data"] == {"x": "1"}
    items, version = list_(cluster, CONFIGMAPS, labels="of=the-test")
    assert [(item["kind"], item["metadata"]["name"]) for item in items] == [("ConfigMap", "one")]
    assert int(version) >= int(items[0]["metadata"]["resourceVersion"])
    assert list_(cluster, CONFIGMAPS, fields="metadata.name=two")[0] == []
    assert delete(cluster, CONFIGMAPS, "one") is True
    assert delete(cluster, CONFIGMAPS, "one") is False
    assert get(cluster, CONFIGMAPS, "one") is None


def test_apply_creates_and_owns_its_fields(cluster: Cluster) -> None:
    """Ours that are not applied again are gone; all is written by one field manager."""
    apply(cluster, CONFIGMAPS, config_map("one", x="1", y="2"))
    assert apply(cluster, CONFIGMAPS, config_map("one", x="3"))["data"] == {"x": "3"}
    patch(cluster, CONFIGMAPS, "one", {"data": {"x": "4"}})
    fields = get(cluster, CONFIGMAPS, "one")["metadata"]["managedFields"]  # type: ignore[index]
    assert {entry["manager"] for entry in fields} == {"deeptweak"}
    assert apply(cluster, CONFIGMAPS, config_map("one", x="5"))["data"] == {"x": "5"}


def test_stale_patches_and_deletes_of_another_object_are_refused(cluster: Cluster) -> None:
    """A resourceVersion in a patch, a uid in a delete: only if the object is still that one."""
    first = create(cluster, CONFIGMAPS, config_map("one", x="1"))
    second = patch(cluster, CONFIGMAPS, "one", {"data": {"x": "2"}})
    for stale in (
        lambda: patch(
            cluster,
            CONFIGMAPS,
            "one",
            {
                "metadata": {"resourceVersion": first["metadata"]["resourceVersion"]},
                "data": {"x": "3"},
            },
        ),
        lambda: delete(
            cluster, CONFIGMAPS, "one", resource_version=first["metadata"]["resourceVersion"]
        ),
        lambda: delete(cluster, CONFIGMAPS, "one", uid="another"),
    ):
        with pytest.raises(ApiError) as refused:
            stale()
        assert refused.value.status == 409
        assert not refused.value.passing
    assert get(cluster, CONFIGMAPS, "one") == second


def test_a_watch_tells_what_is_there_and_what_happens(cluster: Cluster) -> None:
    """First what is there, then each change, of that name only."""
    create(cluster, CONFIGMAPS, config_map("one", x="1"))
    with watch(cluster, CONFIGMAPS, name="one", deadline_s=LONG_S) as events:
        assert short(next(events)) == ("ADDED", "one", "1")
        create(cluster, CONFIGMAPS, config_map("two", x="9"))
        patch(cluster, CONFIGMAPS, "one", {"data": {"x": "2"}})
        delete(cluster, CONFIGMAPS, "one")
        assert [short(event) for event in itertools.islice(events, 2)] == [
            ("MODIFIED", "one", "2"),
            ("DELETED", "one", "2"),
        ]


def test_a_watch_from_a_version_on_tells_only_what_came_after(cluster: Cluster) -> None:
    create(cluster, CONFIGMAPS, config_map("one", x="1"))
    _, version = list_(cluster, CONFIGMAPS)
    create(cluster, CONFIGMAPS, config_map("two", x="2"))
    with watch(
        cluster, CONFIGMAPS, labels="of=the-test", resource_version=version, deadline_s=LONG_S
    ) as events:
        assert short(next(events)) == ("ADDED", "two", "2")


def test_a_watch_ends_at_its_deadline_though_nothing_comes(cluster: Cluster) -> None:
    """The error says of what, and for how long."""
    error = r"configmaps nobody: no expected event within 0\.5 s"
    with (
        watch(cluster, CONFIGMAPS, name="nobody", deadline_s=0.5) as events,
        pytest.raises(WaitedTooLong, match=error),
    ):
        list(events)


@pytest.mark.parametrize("trouble", ["close", "hang"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_watch_ends_at_its_deadline_though_the_server_is_away(
    cuttable: tuple[Cluster, Line],
    trouble: str,
    begun: bool,  # noqa: FBT001
) -> None:
    """Before its first answer or during a watch; the server refuses connections or is silent."""
    watched, line = cuttable
    create(watched, CONFIGMAPS, config_map("one", x="1"))
    if not begun:
        getattr(line, trouble)()
    with watch(watched, CONFIGMAPS, name="one", deadline_s=1.0) as events:
        if begun:
            assert short(next(events)) == ("ADDED", "one", "1")
            getattr(line, trouble)()
        with pytest.raises(WaitedTooLong, match="configmaps one: "):
            next(events)


def test_an_abandoned_watch_releases_its_connection(cluster: Cluster) -> None:
    """Not closing it is fine: a collected open socket would warn, and warnings are errors here."""
    create(cluster, CONFIGMAPS, config_map("one", x="1"))
    for event in Watch(cluster, CONFIGMAPS, name="one"):
        if short(event)[2] == "2":
            break
        patch(cluster, CONFIGMAPS, "one", {"data": {"x": "2"}})
    gc.collect()


def test_a_watch_is_stopped_from_another_thread(cluster: Cluster) -> None:
    """Whoever waits for the next event gets the iterator's end, though nothing comes."""
    events = Watch(cluster, CONFIGMAPS, labels="of=the-test")
    stopper = threading.Timer(0.3, events.stop)
    stopper.start()
    assert list(events) == []
    stopper.join()
    assert list(events) == []


def test_a_watch_is_stopped_while_the_server_is_away(cuttable: tuple[Cluster, Line]) -> None:
    watched, line = cuttable
    line.close()
    events = Watch(watched, CONFIGMAPS, labels="of=the-test")
    threading.Timer(0.3, events.stop).start()
    assert list(events) == []


def test_a_signal_ends_a_watch(cluster: Cluster) -> None:
    """Ctrl-C and SIGTERM get through a wait for an event."""

    def ended(*_: object) -> None:
        raise SystemExit(3)

    before = signal.signal(signal.SIGALRM, ended)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with (
            pytest.raises(SystemExit),
            watch(cluster, CONFIGMAPS, name="nobody", deadline_s=LONG_S) as events,
        ):
            list(events)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_watch_goes_on_after_its_connection_broke(
    cluster: Cluster, cuttable: tuple[Cluster, Line]
) -> None:
    """What happens while the server cannot be reached is told afterwards, once, in order."""
    watched, line = cuttable
    with watch(watched, CONFIGMAPS, labels="of=the-test", deadline_s=LONG_S) as events:
        create(cluster, CONFIGMAPS, config_map("one", x="1"))
        assert short(next(events)) == ("ADDED", "one", "1")
        line.close()
        patch(cluster, CONFIGMAPS, "one", {"data": {"x": "2"}})
        delete(cluster, CONFIGMAPS, "one")
        create(cluster, CONFIGMAPS, config_map("two", x="3"))
        threading.Timer(0.5, line.open).start()
        assert [short(event) for event in itertools.islice(events, 3)] == [
            ("MODIFIED", "one", "2"),
            ("DELETED", "one", "2"),
            ("ADDED", "two", "3"),
        ]


@pytest.fixture
def young(cluster: Cluster, namespace: str) -> Iterator[Kind]:
    """A kind that the server has known only briefly, without any history."""
    plural = f"things{namespace[-8:]}"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {
        "group": "test.example",
        "names": {"plural": plural, "kind": plural.capitalize()},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        ],
    }
    definition = f"{plural}.test.example"
    create(cluster, CRDS, {"metadata": {"name": definition}, "spec": spec})
    with watch(cluster, CRDS, name=definition, deadline_s=LONG_S) as events:
        assert any(
            "Established"
            in {
                c["type"]
                for c in item.get("status", {}).get("conditions") or ()
                if c["status"] == "True"
            }
            for _, item in events
        )
    kind = Kind("test.example/v1", plural, plural.capitalize())
    yield kind
    delete(cluster, CRDS, definition)


def test_what_the_server_has_forgotten_is_found_by_listing_anew(
    cluster: Cluster, cuttable: tuple[Cluster, Line], young: Kind
) -> None:
    """410 Gone: DELETED, ADDED and MODIFIED as needed; both for an object remade under its name."""
    watched, line = cuttable
    for name in ("changed", "gone", "made-anew", "same"):
        create(cluster, young, config_map(name, x="1"))
    with Follower(watched) as follower:
        follower.watch(young, labels="of=the-test")
        events = ((seen.type, seen.object) for seen in follower.seen(LONG_S) if seen.kind)
        assert len(list(itertools.islice(events, 4))) == 4
        create(cluster, young, config_map("late", x="1"))
        assert short(next(events)) == ("ADDED", "late", "1")
        patch(cluster, young, "same", {"data": {"x": "0"}})
        assert short(next(events)) == ("MODIFIED", "same", "0")
        line.close()
        patch(cluster, young, "changed", {"data": {"x": "2"}})
        delete(cluster, young, "gone")
        delete(cluster, young, "late")
        delete(cluster, young, "made-anew")
        create(cluster, young, config_map("made-anew", x="3"))
        create(cluster, young, config_map("new", x="4"))
        follower._watches[
            0
        ].version = "1"  # from before there were any of that kind: the server answers 410
        line.open()
        told = [short(event) for event in itertools.islice(events, 6)]
        assert told == [
            ("DELETED", "gone", "1"),
            ("DELETED", "made-anew", "1"),
            ("DELETED", "late", "1"),
            ("MODIFIED", "changed", "2"),
            ("ADDED", "made-anew", "3"),
            ("ADDED", "new", "4"),
        ]
        patch(cluster, young, "same", {"data": {"x": "5"}})
        assert short(next(events)) == ("MODIFIED", "same", "5")


def test_a_server_that_stays_away_is_named(cuttable: tuple[Cluster, Line]) -> None:
    """Watch and request wait for the cluster's patience, then name server and kubeconfig."""
    watched, line = cuttable
    watched.patience_s = 0.5
    line.close()
    for asking in (
        lambda: get(watched, CONFIGMAPS, "one"),
        lambda: next(iter(Watch(watched, CONFIGMAPS, resource_version="0"))),
    ):
        with pytest.raises(ApiError) as away:
            asking()
        assert away.value.status == 0
        assert away.value.passing
        assert f"https://127.0.0.1:{line.port}" in str(away.value)
        assert "over-the-line.kubeconfig" in str(away.value)


def test_after_one_timeout_later_requests_try_the_server_once(
    cuttable: tuple[Cluster, Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it answers again: the run is to end, but a returned server gets full patience."""
    cluster, line = cuttable
    monkeypatch.setattr(client, "GONE_S", 0.0)
    cluster.patience_s = 1.0

    def attempts() -> int:
        before = cluster.requests
        with pytest.raises(ApiError):
            list_(cluster, PODS)
        return cluster.requests - before

    line.close()
    first, second = attempts(), attempts()
    line.open()
    assert list_(cluster, PODS)[0] == []
    line.close()
    assert (first > 1, second, attempts() > 1) == (True, 1, True)


def test_a_request_waits_for_a_server_that_is_away_for_a_moment(
    cluster: Cluster, cuttable: tuple[Cluster, Line]
) -> None:
    create(cluster, CONFIGMAPS, config_map("one", x="1"))
    asking, line = cuttable
    line.close()
    threading.Timer(0.5, line.open).start()
    assert get(asking, CONFIGMAPS, "one") is not None


def test_a_create_whose_answer_got_lost_is_not_an_error(cuttable: tuple[Cluster, Line]) -> None:
    """It is sent again; the conflict returns the existing object. An older one stays an error."""
    asking, line = cuttable
    line.swallow()
    assert create(asking, CONFIGMAPS, config_map("one", x="1"))["data"] == {"x": "1"}
    with pytest.raises(ApiError) as twice:
        create(asking, CONFIGMAPS, config_map("one", x="1"))
    assert (twice.value.status, twice.value.reason) == (409, "AlreadyExists")


def test_requests_are_counted_a_watch_once(cluster: Cluster) -> None:
    """A watch is the list and the watch itself, however many events come."""
    before = cluster.requests
    create(cluster, CONFIGMAPS, config_map("one", x="1"))
    with watch(cluster, CONFIGMAPS, labels="of=the-test", deadline_s=LONG_S) as events:
        next(events)
        for value in "23":
            patch(cluster, CONFIGMAPS, "one", {"data": {"x": value}})
            next(events)
    assert cluster.requests - before == 1 + 2 + 2


def test_a_kind_that_is_not_installed_is_told(cluster: Cluster) -> None:
    """The error says which resource, and that its operator may be missing."""
    nowhere = Kind("nowhere.example/v1", "things", "Thing")
    with pytest.raises(
        ApiError, match=r"list things.nowhere.example: .* serves no such resource .* operator"
    ):
        list_(cluster, nowhere)
    assert get(cluster, nowhere, "one") is None


def test_a_refusal_carries_the_servers_words(cluster: Cluster) -> None:
    with pytest.raises(
        ApiError, match=r"create configmaps: .* answers 422 Invalid: .*must consist of lower case"
    ) as refused:
        create(cluster, CONFIGMAPS, config_map("NOT A NAME"))
    assert (refused.value.status, refused.value.verb, refused.value.resource) == (
        422,
        "create",
        "configmaps",
    )


def test_all_namespaces_are_listed_only_when_asked_for(cluster: Cluster, namespace: str) -> None:
    create(cluster, CONFIGMAPS, config_map("one"))
    assert {item["metadata"]["namespace"] for item in list_(cluster, CONFIGMAPS)[0]} == {namespace}
    assert "kube-system" in {
        item["metadata"]["namespace"] for item in list_(cluster, CONFIGMAPS, namespace="")[0]
    }


def test_an_unverified_server_does_not_warn(kubeconfig: Path, tmp_path: Path) -> None:
    """`insecure-skip-tls-verify` is the kubeconfig owner's choice; here warnings are errors."""
    without = {"certificate-authority-data": None, "certificate-authority": None}
    path = altered(
        kubeconfig, tmp_path / "insecure", about=without | {"insecure-skip-tls-verify": True}
    )
    assert list_(connect(Where(kubeconfig=str(path))), NODES)[1]


@pytest.fixture
def pod(
    cluster: Cluster, image: str, overlay_file: Path, node_name: str
) -> Callable[[str, str], None]:
    """A pod of this machine's Python that runs a program."""

    def start(name: str, program: str) -> None:
        container = {"name": "main", "image": image, "command": ["python", "-uc", program]}
        spec = {
            "restartPolicy": "Never",
            "nodeName": node_name,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        create(
            cluster,
            PODS,
            laid_over(read_overlay(overlay_file), {"metadata": {"name": name}, "spec": spec}),
        )
        with watch(cluster, PODS, name=name, deadline_s=LONG_S) as events:
            assert any(item["status"]["phase"] != "Pending" for _, item in events)

    return start


def test_a_log_comes_line_by_line_while_it_is_written(
    cluster: Cluster, pod: Callable[[str, str], None]
) -> None:
    """So does an unterminated last line; late output is awaited only as long as asked."""
    pod(
        "talks",
        "import sys, time; print('one'); time.sleep(2); print('two'); sys.stdout.write('thr'); "
        "sys.stdout.flush(); sys.stdout.write('ee')",
    )
    with logs(cluster, "talks", follow=True, within_s=LONG_S) as log:
        assert list(log) == [b"one", b"two", b"three"]
    assert list(logs(cluster, "talks", tail=1)) == [b"three"]
    pod("is-silent", "import time; print('one'); time.sleep(1000)")
    with logs(cluster, "is-silent", follow=True, within_s=2.0) as log:
        lines = iter(log)
        assert next(lines) == b"one"
        with pytest.raises(WaitedTooLong, match=r"get pods/log: nothing came for 2 s"):
            next(lines)
    with logs(cluster, "is-silent", follow=True, within_s=None) as log:
        threading.Timer(0.5, log.stop).start()
        assert list(log) == [b"one"]
