"""Names, labels and the operator's marks: valid in Kubernetes, and found again; no cluster."""

from __future__ import annotations

import json
import re
import shlex
import string
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fixtures.kubernetes import names
from fixtures.kubernetes import skyhook as operator

RUN_ID = "0123456789ab"
NODE_NAMES = st.text(string.ascii_lowercase + string.digits + "-.", min_size=1, max_size=253)


@given(NODE_NAMES, NODE_NAMES)
def test_names_of_nodes_stay_short_and_different(one: str, other: str) -> None:
    """A node's name may have 253 characters, a lease's name or a label's value only 63."""
    for made in (names.lease_name, names.node_label):
        assert len(made(one)) <= names.LONGEST
        assert (made(one) == made(other)) == (one == other)
    assert names.journal_name(RUN_ID, one) != names.journal_name("ffffffffffff", one)


def test_a_tweaks_name_is_told_from_everybody_elses() -> None:
    """Part of a label key (`status_<name>`, at most 63 characters); other names stay."""
    assert names.OUR_TWEAK.fullmatch(names.tweak_name(RUN_ID, 999))
    assert len(f"nodeState_{names.tweak_name(RUN_ID, 999)}") <= names.LONGEST
    assert re.fullmatch(r"[a-z0-9-]+", names.tweak_name(RUN_ID, 0))
    for strange in (
        "dt-tuning-1",
        "site-tuning",
        f"dt-{RUN_ID}",
        f"x-dt-{RUN_ID}-1",
        f"dt-{RUN_ID}-1-x",
    ):
        assert not names.OUR_TWEAK.fullmatch(strange)


def test_marks_of_both_groups_are_read() -> None:
    """Marks of deleted resources (recording `skyhook_tuning_apply`; one under the new name)."""
    node = {
        "metadata": {
            "name": "rig-node1",
            "annotations": {
                "skyhook.nvidia.com/nodeState_tune": "{}",
                "skyhook.nvidia.com/status_tune": "complete",
                "nodewright.nvidia.com/version_two_words": "dev",
                "nodewright.nvidia.com/drainStart_drained": "2026-10-06T00:00:00Z",
                "nodewright.nvidia.com/drainBlocked_held": "[]",
                "nodewright.nvidia.com/autoTaint_nodewright.nvidia.com": "true",
                "skyhook.nvidia.com/cordon_late": "true",
                "skyhook.nvidia.com/pause": "true",
                "example.com/status_other": "x",
            },
            "labels": {
                "skyhook.nvidia.com/status_tune": "complete",
                "kubernetes.io/hostname": "rig-node1",
            },
        },
        "status": {
            "conditions": [
                {"type": "Ready"},
                {"type": "skyhook.nvidia.com/fails/NotReady"},
                {"type": "skyhook.nvidia.com/NodesIgnored"},
            ]
        },
    }
    skyhook, nodewright = names.OPERATOR_GROUPS
    drained = {(nodewright, "drained"), (nodewright, "held")}
    assert operator.marked_by(node) == {
        (skyhook, "tune"),
        (nodewright, "two_words"),
        (skyhook, "late"),
        (skyhook, "fails"),
        *drained,
    }
    states = ["skyhook.nvidia.com/nodeState_tune", "skyhook.nvidia.com/status_tune"]
    assert operator.marks_of(node, ["tune"]) == (states, ["skyhook.nvidia.com/status_tune"], [])
    assert operator.marks_of(node, ["fails"]).conditions == ["skyhook.nvidia.com/fails/NotReady"]
    assert operator.cordoned_by(node) == [(skyhook, "late")]
    assert operator.marked_by({"metadata": {"name": "bare"}}) == set()


GROUP = "skyhook.nvidia.com"


def left() -> dict[str, Any]:
    """Marks of three Skyhooks of the operator of May 2026 (after 0.15), recorded on KWOK.

    Two were deleted when complete; the third's finalizer was taken off while it waited, the node
    cordoned, for a pod to end.
    """
    keys = [
        f"{GROUP}/{what}_{name}"
        for name in ("site.example.com", "zwei")
        for what in ("nodeState", "version")
    ]
    keys += [f"{GROUP}/{what}_third" for what in ("cordon", "status", "version")]
    types = [
        f"{GROUP}/{name}/{what}"
        for name in ("zwei", "site.example.com", "third")
        for what in ("NotReady", "Erroring")
    ]
    return {
        "metadata": {
            "name": "n1",
            "annotations": dict.fromkeys([*keys, "other"], "x"),
            "labels": {f"{GROUP}/status_third": "waiting"},
        },
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": type_} for type_ in ("Ready", *types)]},
    }


def test_cleaning_commands_remove_all_marks_of_the_given_names() -> None:
    annotate, patch = map(
        shlex.split, operator.cleaning_commands(left(), ["site.example.com", "zwei"]).split(" && ")
    )
    keys = [
        f"{GROUP}/{what}_{name}-"
        for name in ("site.example.com", "zwei")
        for what in ("nodeState", "version")
    ]
    assert annotate == ["kubectl", "annotate", "node", "n1", *keys]
    gone = [
        f"{GROUP}/{name}/{what}"
        for name in ("zwei", "site.example.com")
        for what in ("NotReady", "Erroring")
    ]
    assert json.loads(patch[-1]) == {
        "status": {"conditions": [{"type": type_, "$patch": "delete"} for type_ in gone]}
    }


def test_uncordon_precedes_the_marks_of_the_cordoning_resource() -> None:
    uncordon, annotate, label, _ = map(
        shlex.split, operator.cleaning_commands(left(), ["third"]).split(" && ")
    )
    assert uncordon == ["kubectl", "uncordon", "n1"]
    assert annotate[4:] == [f"{GROUP}/{what}_third-" for what in ("cordon", "status", "version")]
    assert label == ["kubectl", "label", "node", "n1", f"{GROUP}/status_third-"]
