"""What a run is about to change is in the cluster before it is changed, whatever happens to the run then."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from fixtures.kubernetes import names
from fixtures.kubernetes.api import CONFIGMAPS, create, get, watch
from fixtures.kubernetes.client import Cluster, Where, connect
from fixtures.kubernetes.journal import Journal
from fixtures.terms import Refused

if TYPE_CHECKING:
    from pathlib import Path


NODE = "some-node.example.com"
OURS, THEIRS = "0123456789ab", "ba9876543210"
CELL = {"label": "writeback-eager", "apply": "agent", "resources": [], "unschedulable": False, "boot_id": "b"}
RECORD = json.dumps({"kind": "begin", "values": {"/proc/sys/vm/dirty_ratio": "20"}}).encode()
LONG_S = 100.0


@pytest.fixture
def cluster(kubeconfig: Path, namespace: str) -> Cluster:
    """A connection that works in the test's own namespace."""
    return connect(Where(kubeconfig=str(kubeconfig), namespace=namespace))


@pytest.fixture
def another(kubeconfig: Path, namespace: str) -> Cluster:
    """The connection of whoever finishes what the first one began."""
    return connect(Where(kubeconfig=str(kubeconfig), namespace=namespace))


def test_what_was_begun_is_found_by_anybody_until_it_is_clean(cluster: Cluster, another: Cluster) -> None:
    """Byte by byte what the agent wrote; in between and afterwards: whose it is, and that nothing is in force."""
    journal = Journal(cluster, OURS, NODE).open()
    [found] = Journal.unfinished(another)
    assert (found.run_id, found.node, found.cell, found.begin_record) == (OURS, NODE, None, None)
    assert found.run.items() >= {"run_id": OURS, "node": NODE, "namespace": cluster.namespace, "pid": os.getpid()}.items()
    for n in range(2):
        journal.begin({**CELL, "label": str(n)}, RECORD + str(n).encode())
        [found] = Journal.unfinished(another)
        assert (found.cell, found.begin_record) == ({**CELL, "label": str(n)}, RECORD + str(n).encode())
        journal.clean()
        assert (Journal.unfinished(another)[0].cell, Journal.unfinished(another)[0].begin_record) == (None, None)
    journal.close()
    assert Journal.unfinished(another) == []


def test_each_of_the_three_writings_is_one_request(cluster: Cluster) -> None:
    before = cluster.requests
    journal = Journal(cluster, OURS, NODE).open()
    journal.begin(CELL, RECORD)
    journal.clean()
    assert cluster.requests - before == 3


def test_journals_of_all_runs_and_nodes_are_listed(cluster: Cluster) -> None:
    """By labels that say the run and the node; other ConfigMaps are none."""
    create(cluster, CONFIGMAPS, {"metadata": {"name": "of-somebody-else"}})
    long = "a" * 100
    for run_id, node in ((OURS, NODE), (OURS, long), (THEIRS, NODE)):
        Journal(cluster, run_id, node).open()
    found = Journal.unfinished(cluster)
    assert {(journal.run_id, journal.node) for journal in found} == {(OURS, NODE), (OURS, long), (THEIRS, NODE)}
    assert {journal.object["metadata"]["labels"][names.NODE] for journal in found} == {NODE, names.digest(long)}
    for journal in found:
        journal.close()


def test_a_run_that_left_something_in_force_must_put_it_back_first(cluster: Cluster, another: Cluster) -> None:
    """A worker that was killed and started anew: its journal says what it left. One that left nothing goes on with it."""
    journal = Journal(cluster, OURS, NODE).open()
    assert Journal(another, OURS, NODE).open().object["metadata"]["uid"] == journal.object["metadata"]["uid"]
    journal.begin(CELL, RECORD)
    with pytest.raises(Refused, match=r"says that 'writeback-eager' is in force there\. .*restore --target=kubernetes"):
        Journal(another, OURS, NODE).open()
    assert Journal.unfinished(another)[0].begin_record == RECORD


def test_what_does_not_fit_into_a_configmap_is_refused_before_anything_changes(cluster: Cluster) -> None:
    """A ConfigMap takes one MiB: random bytes do not become smaller; a large node's text does (here to a fiftieth)."""
    journal = Journal(cluster, OURS, NODE).open()
    with pytest.raises(Refused, match=r"takes 1\d\d\d KiB even compressed, and a ConfigMap holds 1024 KiB.* Nothing was changed"):
        journal.begin(CELL, os.urandom(1 << 20))
    assert Journal.unfinished(cluster)[0].cell is None
    fits = os.urandom((1 << 20) - 1024)
    journal.begin(CELL, fits)
    assert Journal.unfinished(cluster)[0].begin_record == fits
    journal.begin(CELL, RECORD * 100_000)
    assert Journal.unfinished(cluster)[0].begin_record == RECORD * 100_000


def test_what_the_journal_owns_goes_with_it(cluster: Cluster) -> None:
    """Pods, Jobs and Workspaces of a run name it as their owner: whoever deletes the journal deletes them."""
    journal = Journal(cluster, OURS, NODE).open()
    create(cluster, CONFIGMAPS, {"metadata": {"name": "owned", "ownerReferences": names.owner(journal.object)}})
    with watch(cluster, CONFIGMAPS, name="owned", deadline_s=LONG_S) as events:
        assert next(events)[0] == "ADDED"
        journal.close()
        assert "DELETED" in (type_ for type_, _ in events)
    assert get(cluster, CONFIGMAPS, "owned") is None
