"""What the operator leaves on a node, as text: no cluster is asked."""

from __future__ import annotations

import json
import shlex
from typing import Any

from fixtures.cluster import marks

GROUP = "skyhook.nvidia.com"


def left() -> dict[str, Any]:
    """Recorded on a node of KWOK: what the operator of May 2026 (after 0.15, built from its sources) left of three Skyhooks.

    Two were deleted when complete; the third's finalizer was taken off while it waited, the node cordoned, for a pod to end.
    """
    keys = [f"{GROUP}/{what}_{name}" for name in ("site.example.com", "zwei") for what in ("nodeState", "version")]
    keys += [f"{GROUP}/{what}_third" for what in ("cordon", "status", "version")]
    types = [f"{GROUP}/{name}/{what}" for name in ("zwei", "site.example.com", "third") for what in ("NotReady", "Erroring")]
    return {
        "metadata": {"name": "n1", "annotations": dict.fromkeys([*keys, "other"], "x"), "labels": {f"{GROUP}/status_third": "waiting"}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": type_} for type_ in ("Ready", *types)]},
    }


def test_the_commands_take_off_all_marks_of_some_resources_and_no_other() -> None:
    annotate, patch = map(shlex.split, marks.removal(left(), ["site.example.com", "zwei"]).split(" && "))
    keys = [f"{GROUP}/{what}_{name}-" for name in ("site.example.com", "zwei") for what in ("nodeState", "version")]
    assert annotate == ["kubectl", "annotate", "node", "n1", *keys]
    gone = [f"{GROUP}/{name}/{what}" for name in ("site.example.com", "zwei") for what in ("NotReady", "Erroring")]
    assert json.loads(patch[-1]) == {"status": {"conditions": [{"type": type_, "$patch": "delete"} for type_ in gone]}}


def test_the_cordon_goes_with_the_resource_that_made_it_and_before_its_marks() -> None:
    uncordon, annotate, label, _ = map(shlex.split, marks.removal(left(), ["third"]).split(" && "))
    assert uncordon == ["kubectl", "uncordon", "n1"]
    assert annotate[4:] == [f"{GROUP}/{what}_third-" for what in ("cordon", "status", "version")]
    assert label == ["kubectl", "label", "node", "n1", f"{GROUP}/status_third-"]
