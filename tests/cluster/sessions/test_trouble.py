"""Runs in trouble on a real cluster: each gives the cause, in the cell or at the end.

That nothing is left in the cluster, on the node and in its kernel is checked as each test leaves
its `place`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from fixtures.kernel import pods
from fixtures.kubernetes.client import Where, connect
from tests.cluster.line import to_cluster
from tests.cluster.rig import clients
from tests.cluster.runs import LOOK_EVERY_S, ClusterPlace, in_force, swappiness_is
from tests.cluster.test_rbac import documents, somebody
from tests.sessions import Done, another_swappiness, ctrl_c, swappiness, terminate, until
from tests.test_session import SCHEMA
from tests.waiting import until as comes

if TYPE_CHECKING:
    import subprocess

    from tests.cluster.operators.fixtures import StandIn

pytestmark = pytest.mark.needs("root")

Json = dict[str, Any]
ONLY_THE_SET = ("-k", "reclaim")  # of the three cells that a set and the two stocks make
STEPS = "--steps=300"
ENDLESS = "--steps=1000000"  # half an hour and more: it is told to stop


def reclaim(place: ClusterPlace) -> str:
    """One harmless set, `reclaim`; a second call asks for the same."""
    path = place.folder / "reclaim.yaml"
    if path.exists():
        return f"--tweaks={path}"
    return f"--tweaks={place.manifest('reclaim', sysctl=f'vm.swappiness = {another_swappiness()}')}"


def asked(place: ClusterPlace) -> int:
    text = yaml.safe_load((place.folder / "reclaim.yaml").read_text())["spec"]["packages"][
        "tuning"
    ]["configMap"]["sysctl.conf"]
    return int(text.rpartition("=")[2])


def cells(place: ClusterPlace) -> list[Json]:
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    found: list[Json] = saved["deeptweak"]["cells"]
    return found


def refused(done: Done, *words: str) -> None:
    """Nothing was measured, exit code 2, and one line says why; nobody has to read a traceback."""
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    assert all(word in done.out for word in words), done.out


# -- the operator


@pytest.fixture
def operator(crds: list[str], skyhook_operator: StandIn) -> StandIn:
    del crds
    return skyhook_operator


def by_operator(place: ClusterPlace, *more: str) -> Done:
    return place.run(
        "--apply=skyhook",
        reclaim(place),
        "--blocks=1",
        "--steps=3",
        "--benchmark-save=x",
        *ONLY_THE_SET,
        *more,
    )


@pytest.mark.needs("reference")
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("absent", "No operator processes Skyhook"),
        ("stuck", "not complete after 15 s"),
        ("erroring", "no such thing"),
        ("image-missing", "registry.invalid/tuning"),
        ("lies", "is complete, but node"),
        ("left-over", "Nothing ran"),
        ("dies-midway", "the operator is not running"),
    ],
)
def test_an_operator_fault_fails_the_cell_with_its_reason(
    place: ClusterPlace, operator: StandIn, fault: str, words: str
) -> None:
    """The run reaches its end, and the operator's work is undone, even if the operator is gone."""
    operator.start(fault=fault, speed=20)
    done = by_operator(place, "--patience=15")
    assert done.code == 2, done.out
    (cell,) = cells(place)
    assert cell["outcome"] == "failed"
    assert words in cell["reason"], cell["reason"]
    assert done.lines("NOT MEASURED: reclaim: ")
    check = place.saved()["deeptweak"]["machine_check"]
    forced = [note for note in check.pop("notes", []) if "its finalizer was removed" in note]
    assert (check, len(forced)) == ({"changed": {}, "restored": True}, fault == "dies-midway")


# -- what happens to pods


def evict_pod(place: ClusterPlace) -> None:
    """As `kubectl drain` does, and an operator's interrupt."""
    name = place.pod("workload").metadata.name
    clients.of(place.api).create_namespaced_pod_eviction(
        name, place.namespace, {"metadata": {"name": name, "namespace": place.namespace}}
    )


def delete_agent(place: ClusterPlace) -> None:
    clients.of(place.api).delete_namespaced_pod(place.pod("agent").metadata.name, place.namespace)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (evict_pod, "vict"),
        (delete_agent, "Its pod was deleted|The Pod .* was deleted from outside"),
    ],
)
def test_what_is_done_to_a_cells_pods_fails_that_cell_alone(
    place: ClusterPlace, trouble: Callable[[ClusterPlace], None], words: str
) -> None:
    """In the middle of a cell with a setting in force.

    The next is measured, with a new agent where the agent was lost.
    """
    process = place.start(reclaim(place), "--blocks=2", STEPS, "--benchmark-save=x", *ONLY_THE_SET)
    with in_force(place, process, asked(place), doomed=trouble is not delete_agent):
        trouble(place)
    done = place.ended(process)
    assert done.code == 1, done.out
    first, second = cells(place)
    assert (first["outcome"], second["outcome"]) == ("failed", "measured")
    assert re.search(words, first["reason"]), first["reason"]
    check = place.saved()["deeptweak"]["machine_check"]
    assert (check["changed"], check["restored"]) == ({}, True)


# -- the API server


def test_an_api_server_away_for_20_s_costs_only_the_running_cell(
    place: ClusterPlace, as_somebody: Callable[..., None]
) -> None:
    """The agent, left alone, puts the node back at once; the cell that ran is not to be trusted.

    The next one is measured.
    """
    as_somebody("nothing is left out")
    with to_cluster(place.kubeconfig, place.folder) as (line, over):
        direct, place.kubeconfig = place.kubeconfig, over
        process = place.start(
            reclaim(place), "--blocks=2", STEPS, "--benchmark-save=x", *ONLY_THE_SET
        )
        with in_force(place, process, asked(place)):
            line.close()
        time.sleep(20)
        line.open()
        done = place.ended(process)
        place.kubeconfig = direct
    assert done.code == 1, done.out
    first, second = cells(place)
    assert (first["outcome"], second["outcome"]) == ("failed", "measured"), first
    check = place.saved()["deeptweak"]["machine_check"]
    assert (check["changed"], check["restored"]) == ({}, True), check


def test_without_the_api_server_the_node_restores_itself(
    place: ClusterPlace,
) -> None:
    """Leftovers are in the cluster only; `restore` removes them once the server is back."""
    found = swappiness()
    with to_cluster(place.kubeconfig, place.folder) as (line, over):
        direct, place.kubeconfig = place.kubeconfig, over
        impatient = ("-p", "tests.cluster.impatient")
        process = place.start(
            *impatient, reclaim(place), "--blocks=2", STEPS, "--benchmark-save=x", *ONLY_THE_SET
        )
        with in_force(place, process, asked(place)):
            line.close()
        comes(lambda: swappiness_is(found), "the node puts itself back")
        done = place.ended(process)
        place.kubeconfig = direct
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    assert done.lines("THE MACHINE WAS NOT PUT BACK"), done.out
    assert done.lines("python -m fixtures restore --target=kubernetes --kubeconfig=")
    finished = place.restore()
    assert finished.code == 0, finished.out


# -- what may not be, and what is not there


@pytest.fixture
def as_somebody(place: ClusterPlace) -> Iterator[Callable[..., None]]:
    """`as_somebody("pods/attach", "skyhook")`: those parts of rbac.yaml, less that resource."""
    admin = connect(Where(str(place.kubeconfig), None, place.namespace))

    def become(missing: str, *parts: str) -> None:
        wanted = documents(*parts)
        for rule in (rule for one in wanted for rule in one.get("rules", ())):
            rule["resources"] = [
                resource for resource in rule["resources"] if resource != missing
            ] or ["nothing"]
        place.kubeconfig = somebody(
            admin, place.kubeconfig, wanted, place.folder / "somebody.kubeconfig", stack
        )

    with ExitStack() as stack:
        yield become


@pytest.mark.needs("reference")
@pytest.mark.usefixtures("crds")
def test_all_missing_rights_are_named_before_anything_changes(
    place: ClusterPlace, as_somebody: Callable[..., None]
) -> None:
    """One of every run's, and the operator's part of the file: `--apply=skyhook` is the default."""
    as_somebody("pods/attach")
    done = by_operator(place)
    refused(
        done,
        "get pods/attach",
        "create skyhooks.skyhook.nvidia.com",
        "patch nodes/status",
        "data/kubernetes/rbac.yaml",
    )
    assert "THE MACHINE WAS NOT PUT BACK" not in done.out
    assert place.files() == []


# -- told to stop


def stopped_and_resumed(
    place: ClusterPlace, stop: Callable[[subprocess.Popen[str]], None], *more: str
) -> None:
    """In the middle of the set's cell, with others finished before it or not."""
    found = swappiness()
    options = (reclaim(place), "--blocks=1", STEPS, "--benchmark-save=one", *more)
    process = place.start(*options)
    with in_force(place, process, asked(place)):
        stop(process)
    done = place.ended(process)
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    assert swappiness_is(found)
    part = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(part)
    assert part["deeptweak"]["interrupted"] is True
    assert part["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}
    before = {b["extra_info"]["id"]: b["extra_info"] for b in part["benchmarks"]}

    again = place.run(*options, "--resume")
    assert again.code == 0, again.out
    whole = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(whole)
    after = {b["extra_info"]["id"]: b["extra_info"] for b in whole["benchmarks"]}
    assert len(after) == 3
    assert whole["deeptweak"]["interrupted"] is False
    assert whole["deeptweak"]["run_id"] == part["deeptweak"]["run_id"]
    assert {name: after[name] for name in before} == before


def test_a_stopped_run_restores_the_node_saves_and_can_resume(
    place: ClusterPlace,
) -> None:
    stopped_and_resumed(place, ctrl_c)


@pytest.mark.needs("reference")
def test_a_script_that_outlives_its_pod_changes_nothing_later(
    place: ClusterPlace, operator: StandIn
) -> None:
    """Ctrl-C in a 15 s apply.sh; force-deleted pod: gone from the API, alive within its grace."""
    operator.start(speed=20)
    begun = place.folder / "begun"
    script = f"touch {begun}; sleep 15; echo {another_swappiness()} > /proc/sys/vm/swappiness\n"
    package = {
        "version": "1.1.1",
        "image": "nvcr.io/shellscript",
        "configMap": {"apply.sh": script},
    }
    about = {
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "Skyhook",
        "metadata": {"name": "reclaim"},
    }
    path = place.folder / "reclaim.yaml"
    path.write_text(yaml.safe_dump({**about, "spec": {"packages": {"slow": package}}}))
    found = swappiness()
    process = place.start(
        "--apply=skyhook",
        f"--tweaks={path}",
        "--blocks=1",
        STEPS,
        "--benchmark-save=one",
        *ONLY_THE_SET,
    )
    until(begun.exists, process, LOOK_EVERY_S)
    ctrl_c(process)
    comes(lambda: not place.resources(), "the operator lets go of it")
    core = clients.of(place.api)
    for pod in core.list_namespaced_pod("skyhook").items:
        with clients.if_there():
            core.delete_namespaced_pod(pod.metadata.name, "skyhook", grace_period_seconds=0)
    assert pods.steps(Path("/")), "the script is still there"
    done = place.ended(process)
    assert (pods.steps(Path("/")), swappiness()) == ({}, found), done.out
    assert done.lines("Machine: as it was found"), done.out


# -- before it, others


def test_a_node_held_by_another_run_is_refused_with_its_holder(
    place: ClusterPlace,
) -> None:
    process = place.start(
        reclaim(place), "--blocks=1", ENDLESS, "--benchmark-save=x", *ONLY_THE_SET
    )
    with in_force(place, process, asked(place)):
        pass
    second = place.call(*place.command(reclaim(place), "--blocks=1", "--steps=3", *ONLY_THE_SET))
    restored = place.restore()
    still = swappiness_is(asked(place))
    terminate(process)
    done = place.ended(process)
    assert done.code == 2, done.out
    refused(second, f"{place.node}: held by run ", f"process {process.pid} on ")
    assert (restored.code, still) == (2, True), restored.out
    assert "that run puts the node back itself" in restored.out
