"""What the operator left on a node about our resources goes; what is anybody else's stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.kubernetes.api import NODES, create, delete, get, patch
from fixtures.kubernetes.skyhook import clean_node, marked_by_us

if TYPE_CHECKING:
    from fixtures.kubernetes.client import Cluster


Object = dict[str, Any]
OURS = "dt-0123456789ab-3"
OF_OTHER_RUN = "dt-ba9876543210-1"
OF_SAME_RUN = f"{OURS}1"
SITE = "site-tuning"
GROUPS = ("skyhook.nvidia.com", "nodewright.nvidia.com")


@pytest.fixture
def node(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A node without a machine: an object like any, which nobody but the test changes."""
    name = f"bare-{namespace[-8:]}"
    create(
        cluster,
        NODES,
        {
            "metadata": {
                "name": name,
                "labels": {"kept": "label"},
                "annotations": {"kept": "annotation"},
            }
        },
    )
    yield name
    delete(cluster, NODES, name)


def mark(cluster: Cluster, node: str, name: str, group: str = GROUPS[0]) -> None:
    """As the operator does for a resource that is complete (recording `skyhook_tuning_apply`)."""
    annotations = {
        f"{group}/nodeState_{name}": "{}",
        f"{group}/status_{name}": "complete",
        f"{group}/version_{name}": "dev",
    }
    patch(
        cluster,
        NODES,
        node,
        {
            "metadata": {
                "annotations": annotations,
                "labels": {f"{group}/status_{name}": "complete"},
            }
        },
    )
    conditions = [
        {"type": f"{group}/{name}/{what}", "status": "False", "reason": "Complete"}
        for what in ("NotReady", "Erroring")
    ]
    patch(
        cluster,
        NODES,
        node,
        {"status": {"conditions": conditions}},
        subresource="status",
        strategic=True,
    )


def cordon(cluster: Cluster, node: str, *by: str) -> None:
    """Cordon like the operator (recording `skyhook_interrupt`) or, without `by`, like kubectl."""
    annotations = {f"{GROUPS[0]}/cordon_{name}": "true" for name in by}
    patch(
        cluster,
        NODES,
        node,
        {"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}},
    )


def seen(cluster: Cluster, node: str) -> str:
    """All that is on a node, in one text."""
    found = get(cluster, NODES, node)
    assert found is not None
    found["metadata"].pop("managedFields")
    return str(found)


def unschedulable(cluster: Cluster, node: str) -> bool:
    found = get(cluster, NODES, node)
    assert found is not None
    return bool(found["spec"].get("unschedulable"))


@pytest.mark.parametrize("group", GROUPS)
def test_our_marks_go_and_all_others_stay(cluster: Cluster, node: str, group: str) -> None:
    """For both of the operator's names; other marks of the run, other runs and the site stay."""
    for name in (OURS, OF_SAME_RUN, OF_OTHER_RUN, SITE):
        mark(cluster, node, name, group)
    before = get(cluster, NODES, node)
    assert before is not None
    assert marked_by_us(before) == {OURS, OF_SAME_RUN, OF_OTHER_RUN}
    assert marked_by_us(before, "0123456789ab") == {OURS, OF_SAME_RUN}
    clean_node(cluster, node, [OURS])
    text = seen(cluster, node)
    # Annotations, label, conditions; OURS is the beginning of OF_SAME_RUN.
    assert (
        text.count(OURS)
        == text.count(OF_SAME_RUN)
        == text.count(OF_OTHER_RUN)
        == text.count(SITE)
        == 3 + 1 + 2
    )
    assert "kept" in text


@pytest.mark.parametrize(
    ("by", "stays"),
    [((OURS,), False), ((OURS, SITE), True), ((SITE,), True), ((), True)],
    ids=["ours", "ours and the site's", "the site's", "a person's"],
)
def test_a_cordon_is_lifted_only_if_it_was_ours(
    cluster: Cluster,
    node: str,
    by: tuple[str, ...],
    stays: bool,  # noqa: FBT001
) -> None:
    cordon(cluster, node, *by)
    mark(cluster, node, OURS)
    clean_node(cluster, node, [OURS])
    assert unschedulable(cluster, node) == stays
    assert OURS not in seen(cluster, node)
    assert (SITE in seen(cluster, node)) == (SITE in by)


def test_foreign_resource_names_are_refused_without_any_cleaning(
    cluster: Cluster, node: str
) -> None:
    """Not even what is ours among them: whoever asks for that is mistaken."""
    for name in (OURS, SITE):
        mark(cluster, node, name)
    with pytest.raises(ValueError, match=f"{SITE}: not resources of this project"):
        clean_node(cluster, node, [OURS, SITE])
    assert seen(cluster, node).count(OURS) == 3 + 1 + 2
