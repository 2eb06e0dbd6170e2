"""The verbs of the API, against a real API server, over a way to it that can be cut."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.kubernetes import client
from fixtures.kubernetes.api import (
    CONFIGMAPS,
    PODS,
    ApiError,
    Kind,
    WaitedTooLong,
    create,
    delete,
    get,
    list_,
    patch,
)
from fixtures.kubernetes.watch import Follower, watch

if TYPE_CHECKING:
    from fixtures.kubernetes.client import Cluster
    from tests.cluster.line import Line

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


def test_a_create_whose_answer_got_lost_is_not_an_error(cuttable: tuple[Cluster, Line]) -> None:
    """It is sent again; the conflict returns the existing object. An older one stays an error."""
    asking, line = cuttable
    line.swallow()
    assert create(asking, CONFIGMAPS, config_map("one", x="1"))["data"] == {"x": "1"}
    with pytest.raises(ApiError) as twice:
        create(asking, CONFIGMAPS, config_map("one", x="1"))
    assert (twice.value.status, twice.value.reason) == (409, "AlreadyExists")
