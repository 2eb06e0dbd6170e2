"""A run's changes are journalled in the cluster before they are made, whatever happens then."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fixtures.kubernetes import journal as journals
from fixtures.kubernetes import names
from fixtures.kubernetes.api import CONFIGMAPS, create
from fixtures.kubernetes.client import Cluster, Where, connect
from fixtures.kubernetes.journal import NodeJournal
from fixtures.kubernetes.settings import IMAGE
from fixtures.terms import Refused

NODE = "some-node.example.com"
OURS, THEIRS = "0123456789ab", "ba9876543210"
CELL: dict[str, Any] = {"label": "writeback-eager", "journal": "j", "resources": [], "boot": None}
LONG_S = 100.0


@pytest.fixture
def another(kubeconfig: Path, namespace: str) -> Cluster:
    """The connection of whoever finishes what the first one began."""
    return connect(Where(kubeconfig=str(kubeconfig), namespace=namespace))


def test_what_was_begun_is_found_by_anybody_until_it_is_clean(
    cluster: Cluster, another: Cluster
) -> None:
    """What is in force; in between and afterwards: whose it is, and that nothing is."""
    journal = NodeJournal(cluster, OURS, NODE).open()
    [found] = NodeJournal.unfinished(another)
    assert (found.run_id, found.node, found.cell) == (OURS, NODE, None)
    run = json.loads(found.object["data"]["run.json"])
    assert (
        run.items()
        >= {
            "run_id": OURS,
            "node": NODE,
            "namespace": cluster.namespace,
            "pid": os.getpid(),
        }.items()
    )
    for n in range(2):
        journal.begin({**CELL, "label": str(n)})
        assert NodeJournal.unfinished(another)[0].cell == {**CELL, "label": str(n)}
        journal.clean()
        assert NodeJournal.unfinished(another)[0].cell is None
    journal.close()
    assert NodeJournal.unfinished(another) == []


def test_journals_of_all_runs_and_nodes_are_listed(cluster: Cluster) -> None:
    """By labels that say the run and the node; other ConfigMaps are none."""
    create(cluster, CONFIGMAPS, {"metadata": {"name": "of-somebody-else"}})
    long = "a" * 100
    for run_id, node in ((OURS, NODE), (OURS, long), (THEIRS, NODE)):
        NodeJournal(cluster, run_id, node).open()
    found = NodeJournal.unfinished(cluster)
    assert {(journal.run_id, journal.node) for journal in found} == {
        (OURS, NODE),
        (OURS, long),
        (THEIRS, NODE),
    }
    assert {journal.object["metadata"]["labels"][names.NODE] for journal in found} == {
        NODE,
        names.digest(long),
    }
    for journal in found:
        journal.close()


def test_a_run_must_restore_what_it_left_before_it_continues(
    cluster: Cluster, another: Cluster
) -> None:
    """A worker that was killed and started anew: its journal says what it left.

    One that left nothing goes on with it.
    """
    journal = NodeJournal(cluster, OURS, NODE).open()
    assert (
        NodeJournal(another, OURS, NODE).open().object["metadata"]["uid"]
        == journal.object["metadata"]["uid"]
    )
    journal.begin(CELL)
    with pytest.raises(
        Refused, match=r"'writeback-eager' is in force there\. .*restore --target=kubernetes"
    ):
        NodeJournal(another, OURS, NODE).open()
    assert NodeJournal.unfinished(another)[0].cell == CELL


SPOILT: dict[str, dict[str, Any]] = {
    "cell no JSON": {"cell.json": "{"},
    "cell a list": {"cell.json": "[1]"},
    "resources a number": {"cell.json": '{"resources": 7}'},
    "resources of numbers": {"cell.json": '{"resources": [7]}'},
    "boot a text": {"cell.json": '{"boot": "x"}'},
    "run no JSON": {"run.json": "}"},
    "no run": {"labels": {}, "run.json": "{}"},
    "run no run's id": {"labels": {names.RUN: "everything"}},
}


@pytest.mark.parametrize("what", SPOILT)
def test_one_that_nobody_can_go_by_is_named_with_what_to_do(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = journals.manifest(OURS, NODE, "bench", {"image": "i"})
    cluster = cast("Cluster", SimpleNamespace(namespace="bench"))
    monkeypatch.setattr(journals, "list_", lambda *_, **__: ([body], ""))
    NodeJournal.unfinished(cluster)[0].refuse_unreadable()
    for key, value in SPOILT[what].items():
        (body["metadata"] if key == "labels" else body["data"])[key] = value
    [journal] = NodeJournal.unfinished(cluster)
    with pytest.raises(
        Refused,
        match=f"bench/{journal.name} cannot be used: .*`kubectl delete configmap -n bench "
        f"{journal.name}`",
    ):
        journal.refuse_unreadable()


@pytest.mark.parametrize(
    ("agent", "named", "text"),
    [
        (
            {"image": "r.io/x:1", "pod-overlay": "my pods.yaml"},
            (),
            "--image=r.io/x:1 '--pod-overlay=my pods.yaml'",
        ),
        ({"image": "r.io/x:1", "pod-overlay": "pods.yaml"}, ("image",), "--pod-overlay=pods.yaml"),
        ({"image": IMAGE, "pod-overlay": ""}, (), ""),
        ({"image": "x; reboot", "command": "sh"}, (), "'--image=x; reboot'"),
        ({"image": "x\x1b[2J"}, (), ""),
        ({"image": ["x"]}, (), ""),
        ("x", (), ""),
    ],
)
def test_agent_options_in_a_journal_are_quoted_for_a_shell(
    agent: Any, named: tuple[str, ...], text: str
) -> None:
    """Anybody may have written them: they are shown, and who knows them gives them to `restore`."""
    journal = NodeJournal(cast("Cluster", SimpleNamespace(namespace="bench")), OURS, NODE)
    journal._object = {"data": {"run.json": json.dumps({"agent": agent})}}
    assert journal.agent_options(named) == text
