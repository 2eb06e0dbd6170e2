"""What the operator leaves on a node, as text: no cluster is asked."""

from __future__ import annotations

import json
import shlex

from fixtures.cluster import marks

GROUP = "nodewright.nvidia.com"


def test_the_commands_take_off_all_marks_of_one_resource_and_no_other() -> None:
    keys = {f"{GROUP}/{what}_{name}": "x" for what in ("nodeState", "status", "version") for name in ("site", "other")}
    conditions = [{"type": "Ready"}, *({"type": f"{GROUP}/{name}/NotReady"} for name in ("site", "other"))]
    node = {
        "metadata": {"name": "n1", "annotations": keys, "labels": {f"{GROUP}/status_site": "complete"}},
        "status": {"conditions": conditions},
    }
    annotate, label, patch = map(shlex.split, marks.removal(node, "site").split(" && "))
    assert annotate == ["kubectl", "annotate", "node", "n1", *(f"{GROUP}/{what}_site-" for what in ("nodeState", "status", "version"))]
    assert label == ["kubectl", "label", "node", "n1", f"{GROUP}/status_site-"]
    assert json.loads(patch[-1]) == {"status": {"conditions": [{"type": f"{GROUP}/site/NotReady", "$patch": "delete"}]}}
