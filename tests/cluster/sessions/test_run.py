"""A real cluster run, from `pytest benchmarks/ --target=kubernetes` to file, agent or operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fixtures.kubernetes import api as apis
from fixtures.kubernetes.client import ApiRequest, Where, connect, send
from tests.cluster.conftest import fresh_namespace
from tests.cluster.operators.fixtures import HOST_FOLDERS, standing_in
from tests.cluster.runs import ClusterPlace, Here, in_force, place_for
from tests.sessions import Done, Place, another_swappiness, swappiness
from tests.test_session import SCHEMA
from tests.waiting import until as comes

pytestmark = pytest.mark.needs("root", "torch")

Json = dict[str, Any]
WORKLOADS = "idle,cnn_train"
BLOCKS = 3
GOLDEN = Path(__file__).parents[1] / "golden" / "plan.txt"
# Of the set "maps", beside its sysctl.
OF_ITS_PROCESS = {"variables": "MALLOC_ARENA_MAX=1", "process": "Nice=5"}
MOST_REQUESTS = 15  # of a cell's workload by agent


def current(key: str) -> int:
    return int(Path("/proc/sys", *key.split(".")).read_text())


def three_sets(place: ClusterPlace) -> dict[str, dict[str, int]]:
    """Settings that an idle machine does not notice, all with other values than it has."""
    asked = {
        "reclaim": {
            "vm.swappiness": another_swappiness(),
            "vm.vfs_cache_pressure": current("vm.vfs_cache_pressure") + 1,
        },
        "writeback": {"vm.dirty_writeback_centisecs": current("vm.dirty_writeback_centisecs") + 1},
        "maps": {"vm.max_map_count": current("vm.max_map_count") + 1},
    }
    for name, settings in asked.items():
        process = OF_ITS_PROCESS if name == "maps" else {}
        place.manifest(
            name, sysctl="\n".join(f"{key} = {value}" for key, value in settings.items()), **process
        )
    return asked


def sets_of(place: ClusterPlace, *names: str) -> str:
    return "--tweaks=" + ",".join(str(place.folder / f"{name}.yaml") for name in names)


def records(saved: Json) -> dict[str, Json]:
    return {b["extra_info"]["id"]: b["extra_info"] for b in saved["benchmarks"]}


def texts(settings: dict[str, int]) -> dict[str, str]:
    return {key: str(value) for key, value in settings.items()}


# -- the matrix, by the agent


class Matrix:
    """What three tweak sets × two workloads × three blocks have left."""

    def __init__(
        self,
        place: ClusterPlace,
        done: Done,
        asked: dict[str, dict[str, int]],
        before: dict[str, dict[str, int]],
    ) -> None:
        self.place, self.done, self.asked, self.before = place, done, asked, before
        self.saved = place.saved()
        self.records = records(self.saved)


@pytest.fixture(scope="module")
def matrix(here: Here, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """The run itself.

    That nothing of it is left in the cluster, on the node or in its kernel is checked as its place
    is left.
    """
    with (
        fresh_namespace(here.api) as namespace,
        place_for(here, tmp_path_factory.mktemp("matrix"), namespace) as place,
    ):
        asked = three_sets(place)
        before = {name: {key: current(key) for key in settings} for name, settings in asked.items()}
        options = [
            sets_of(place, *asked),
            f"--workloads={WORKLOADS}",
            f"--blocks={BLOCKS}",
            "--steps=3",
            "--benchmark-save=exp1",
        ]
        place.patience_s = 600.0
        done = place.run(*options)
        assert done.code == 0, done.out
        return Matrix(place, done, asked, before)


def test_one_file_is_saved_and_obeys_the_schema(matrix: Matrix) -> None:
    assert [path.name for path in matrix.place.files()] == ["0001_exp1.json"]
    jsonschema.Draft202012Validator(SCHEMA).validate(matrix.saved)
    assert matrix.saved["deeptweak"]["interrupted"] is False


def test_values_before_during_and_after_are_read_from_the_node(
    matrix: Matrix,
) -> None:
    for record in matrix.records.values():
        if record["tweakset"] in matrix.asked:
            tweak, name = record["tweak"], record["tweakset"]
            of_process = {"MALLOC_ARENA_MAX": "1", "Nice": "5"} if name == "maps" else {}
            assert tweak["requested"] == tweak["observed"] == texts(matrix.asked[name]) | of_process
            assert tweak["before"] == texts(matrix.before[name]) | dict.fromkeys(of_process)
            assert tweak["restored"] == texts(matrix.before[name])
    assert matrix.saved["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}
    assert matrix.done.lines("Machine: as it was found (")


def test_each_record_says_where_exactly_it_ran(matrix: Matrix) -> None:
    """A separate pod on that node, from this image, with its agent; and the number of requests."""
    places = [record["place"] for record in matrix.records.values()]
    assert len({place["pod_uid"] for place in places}) == len(places)
    for place in places:
        assert (place["apply"], place["workload_via"], place["host_network"]) == (
            "agent",
            "job",
            False,
        )
        assert (place["node"], place["image"]) == (matrix.place.node, matrix.place.image)
        assert place["image_id"] == place["agent_image_id"]
    assert {record["node"] for record in matrix.records.values()} == {matrix.place.node}


def test_a_cell_takes_few_requests_of_the_api_server(matrix: Matrix) -> None:
    """It is followed by watches, not by asking again and again."""
    counts = {name: record["place"]["api_requests"] for name, record in matrix.records.items()}
    assert all(0 < count <= MOST_REQUESTS for count in counts.values()), counts


# -- the same by the operator


@pytest.fixture(scope="module")
def by_operator(here: Here, crds: list[str], tmp_path_factory: pytest.TempPathFactory) -> Json:
    """Run a set through Skyhook's stand-in; note the kernel's values while its pod was running."""
    del crds
    value, found = another_swappiness(), swappiness()
    with (
        fresh_namespace(here.api) as namespace,
        standing_in("skyhook", here.kubeconfig, here.image) as operator,
        place_for(here, tmp_path_factory.mktemp("operator"), namespace) as place,
    ):
        operator.start(speed=20)
        options = [
            f"--tweaks={place.manifest('reclaim', sysctl=f'vm.swappiness = {value}')}",
            "--blocks=1",
            "--steps=300",
        ]
        folders = operators_folders()
        process = place.start("--apply=skyhook", *options, "--benchmark-save=exp1")
        with in_force(place, process, value):
            pass
        done = place.ended(process)
        assert done.code == 0, done.out + operator.log
        return {
            "saved": place.saved(),
            "value": value,
            "found": found,
            "left": operators_folders() - folders,
        }


def operators_folders() -> set[Path]:
    """What package pods keep on this machine, which is the node."""
    return {path for folder in HOST_FOLDERS for path in folder.glob("dt-*")}


@pytest.mark.needs("reference")
def test_the_operators_values_are_in_force_and_then_removed(
    by_operator: Json,
) -> None:
    """Per the node's record, and per this process's own reading of the kernel while the pod ran.

    What the operator leaves is gone: marks, resources, folders, its file in /etc/sysctl.d (the
    snapshot is compared as the place is left).
    """
    jsonschema.Draft202012Validator(SCHEMA).validate(by_operator["saved"])
    (record,) = [r for r in records(by_operator["saved"]).values() if r["tweakset"] == "reclaim"]
    assert record["tweak"]["observed"] == {"vm.swappiness": str(by_operator["value"])}
    assert (
        record["tweak"]["before"]
        == record["tweak"]["restored"]
        == {"vm.swappiness": str(by_operator["found"])}
    )
    assert (record["place"]["apply"], record["outcome"]) == ("skyhook", "measured")
    assert by_operator["saved"]["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}
    assert by_operator["left"] == set()


# -- settings of a network namespace


def test_a_net_key_puts_all_workloads_on_the_nodes_network(
    place: ClusterPlace,
) -> None:
    """Stock too, or the arms would differ by more than the setting."""
    key = "net.core.somaxconn"
    found, value = current(key), current(key) + 1
    asked = place.manifest("queue", sysctl=f"{key} = {value}")
    process = place.start(f"--tweaks={asked}", "--blocks=1", "--steps=500", "--benchmark-save=net")
    pods: dict[str, bool] = {}
    values: set[int] = set()

    def seen() -> bool:
        for pod in place.workloads():
            pods[pod.metadata.name] = bool(pod.spec.host_network)
            values.add(current(key))
        return process.poll() is not None

    comes(seen, "the session's end")
    done = place.ended(process)
    assert done.code == 0, done.out
    assert (len(pods), set(pods.values()), values) == (3, {True}, {found, value})
    cells = records(place.saved())
    assert [record["place"]["host_network"] for record in cells.values()] == [True] * 3
    (record,) = [r for r in cells.values() if r["tweakset"] == "queue"]
    assert record["tweak"]["observed"] == {key: str(value)}


# -- --plan


def planned(done: Done) -> str:
    """The manifests, from the line that introduces them to the line that ends them."""
    return done.out[done.out.index("Manifests as ") : done.out.index("Expected: ")]


def test_plan_prints_what_it_would_apply_without_a_cluster(tmp_path: Path) -> None:
    """To the letter, for typed settings by the operator.

    There is no cluster to speak to: its kubeconfig does not exist.
    """
    place = Place(
        tmp_path, environment={"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    )
    asked = place.manifest("reclaim", sysctl="vm.swappiness = 10\nvm.dirty_ratio = 30\n")
    done = place.run(
        "--target=kubernetes", "--apply=skyhook", f"--tweaks={asked}", "--blocks=3", "--plan"
    )
    assert done.code == 0, done.out
    assert planned(done) == GOLDEN.read_text()


@pytest.mark.needs("reference")
@pytest.mark.usefixtures("nodewrights")
def test_the_api_server_takes_what_plan_prints(place: ClusterPlace) -> None:
    """Send every document to a dry run with strict validation: no unknown or missing field."""
    asked = place.manifest("reclaim", sysctl="vm.swappiness = 10\nvm.dirty_ratio = 30\n")
    done = place.run("--apply=skyhook", f"--tweaks={asked}", "--plan")
    assert done.code == 0, done.out
    cluster = connect(Where(kubeconfig=str(place.kubeconfig), namespace=place.namespace))
    kinds = {
        kind.kind: kind
        for kind in (apis.LEASES, apis.CONFIGMAPS, apis.PODS, apis.JOBS, apis.NODEWRIGHTS)
    }
    documents = list(yaml.safe_load_all(planned(done).partition("\n")[2]))
    assert [one["kind"] for one in documents] == ["Lease", "ConfigMap", "Pod", "NodeWright", "Job"]
    for one in documents:
        kind = kinds[one["kind"]]
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = send(
            cluster, ApiRequest("POST", kind.url(cluster), "create", kind.resource, query, one)
        )
        assert answer["metadata"]["uid"]
