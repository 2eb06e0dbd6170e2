"""The cluster under the tests is a real one: its kubelet runs pods of this machine, and goes without a trace."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

from tests.cluster.rig import clients, node, places

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.rig.clients import Client


PATIENCE_S = 120
Json = dict[str, Any]


@pytest.fixture
def pod(image: str, overlay_file: Path, node_name: str) -> Callable[..., Json]:
    """A pod of this machine's Python on the node."""
    overlay = yaml.safe_load(overlay_file.read_text())

    def made(name: str, program: str, **spec: Any) -> Json:  # noqa: ANN401
        container = {
            "name": "main",
            "image": image,
            "command": ["python", "-c", program],
            **overlay.get("container", {}),
            **spec.pop("container", {}),
        }
        whole = {"restartPolicy": "Never", "nodeName": node_name, **overlay.get("spec", {}), **spec, "containers": [container]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": whole}

    return made


def until(found: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:  # noqa: ANN401
    """What is found, as soon as there is something."""
    deadline = time.monotonic() + patience_s
    while not (some := found()):
        assert time.monotonic() < deadline, f"{what} did not come within {patience_s} s"
        time.sleep(0.1)
    return some


def ended(core: Client, namespace: str, name: str) -> str:
    """How a pod ended."""
    phase: str = until(
        lambda: (p := core.read_namespaced_pod(name, namespace).status.phase) in ("Succeeded", "Failed") and p, f"{name}'s end"
    )
    return phase


def test_the_api_server_says_the_version_that_go_mod_names(api: Client) -> None:
    assert clients.of(api, "VersionApi").get_code().git_version.startswith("v1.")


def test_a_job_runs_to_its_end_and_its_log_comes_while_it_runs(api: Client, namespace: str, pod: Callable[..., Json]) -> None:
    core, batch = clients.of(api), clients.of(api, "BatchV1Api")
    program = "import time; print('one', flush=True); time.sleep(2); print('two', flush=True)"
    template = pod("lines", program)
    job = {
        "metadata": {"name": "lines"},
        "spec": {"backoffLimit": 0, "template": {"metadata": template["metadata"], "spec": template["spec"]}},
    }
    batch.create_namespaced_job(namespace, job)
    name = until(lambda: core.list_namespaced_pod(namespace, label_selector="job-name=lines").items, "the Job's pod")[0].metadata.name
    until(lambda: core.read_namespaced_pod(name, namespace).status.phase != "Pending", "its start")
    said = core.read_namespaced_pod_log(name, namespace, follow=True, _preload_content=False)
    with said:
        lines = iter(said)
        first = next(lines)
        still = core.read_namespaced_pod(name, namespace).status.phase
        rest = b"".join(lines)
    assert (first, still, rest) == (b"one\n", "Running", b"two\n")
    until(lambda: batch.read_namespaced_job(name="lines", namespace=namespace).status.succeeded, "the Job's completion")


def test_a_privileged_pod_sees_this_machine_s_kernel_and_processes(api: Client, namespace: str, pod: Callable[..., Json]) -> None:
    """The agent needs it: a sysctl read through the pod's mount of /proc is the kernel's, and process 1 is not the pod's own."""
    core = clients.of(api)
    program = "for name in ('/host/proc/sys/kernel/random/boot_id', '/proc/1/comm'): print(open(name).read(), end='')"
    volumes = [{"name": "proc", "hostPath": {"path": "/proc"}}]
    body = pod("seeing", program, hostPID=True, container={"securityContext": {"privileged": True}})
    body["spec"]["volumes"] = [*body["spec"].get("volumes", []), *volumes]
    container = body["spec"]["containers"][0]
    container["volumeMounts"] = [*container.get("volumeMounts", []), {"name": "proc", "mountPath": "/host/proc"}]
    core.create_namespaced_pod(namespace, body)
    assert ended(core, namespace, "seeing") == "Succeeded"
    boot_id, first = core.read_namespaced_pod_log("seeing", namespace).split()
    node = core.read_node(body["spec"]["nodeName"])
    assert boot_id == node.status.node_info.boot_id
    assert first != "python"


def test_a_pod_can_be_evicted(api: Client, namespace: str, pod: Callable[..., Json]) -> None:
    core = clients.of(api)
    core.create_namespaced_pod(namespace, pod("waiting", "import signal; signal.pause()", terminationGracePeriodSeconds=1))
    until(lambda: core.read_namespaced_pod("waiting", namespace).status.phase == "Running", "its start")
    core.create_namespaced_pod_eviction("waiting", namespace, {"metadata": {"name": "waiting", "namespace": namespace}})
    until(lambda: not core.list_namespaced_pod(namespace).items, "its end")


def test_a_line_given_to_an_attached_pod_is_answered(api: Client, namespace: str, pod: Callable[..., Json]) -> None:
    core = clients.of(api)
    program = "import sys; [print('heard', line, end='', flush=True) for line in sys.stdin]"
    core.create_namespaced_pod(namespace, pod("listening", program, container={"stdin": True, "stdinOnce": True}))
    until(lambda: core.read_namespaced_pod("listening", namespace).status.phase == "Running", "its start")
    line = stream(
        core.connect_get_namespaced_pod_attach, "listening", namespace, stdin=True, stdout=True, stderr=True, _preload_content=False
    )
    line.write_stdin("hello\n")
    assert line.readline_stdout(timeout=PATIENCE_S) == "heard hello"
    line.close()
    # stdinOnce: with the connection its input ends, and so does the program.
    assert ended(core, namespace, "listening") == "Succeeded"


def test_who_may_do_nothing_is_refused(api: Client, namespace: str) -> None:
    """RBAC is in force: an account without a role cannot even list pods, and can as soon as a role says so."""
    core, rbac = clients.of(api), clients.of(api, "RbacAuthorizationV1Api")
    token = core.create_namespaced_service_account_token("default", namespace, {"spec": {"expirationSeconds": 600}}).status.token
    other = _with_token(api, token)
    with pytest.raises(ApiException, match="403"):
        other.list_namespaced_pod(namespace)
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    rbac.create_namespaced_role(namespace, {"metadata": {"name": "reader"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    rbac.create_namespaced_role_binding(namespace, {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": reference})
    assert until(lambda: _listed(other, namespace) is not None, "the right")


def test_fifty_simulated_nodes_run_jobs_and_go(api: Client, namespace: str, kwok_nodes: Callable[..., list[str]]) -> None:
    core, batch = clients.of(api), clients.of(api, "BatchV1Api")
    names = kwok_nodes(50, gpus=1)
    assert core.read_node(names[-1]).status.allocatable["nvidia.com/gpu"] == "1"
    spec = {"nodeName": names[-1], "restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    batch.create_namespaced_job(namespace, {"metadata": {"name": "nothing"}, "spec": {"template": {"spec": spec}}})
    until(lambda: batch.read_namespaced_job("nothing", namespace).status.succeeded, "the simulated Job's completion")


def test_a_simulated_pod_says_what_it_is_told_to(
    api: Client, namespace: str, kwok_nodes: Callable[..., list[str]], cluster_at: dict[str, str]
) -> None:
    """So that a whole run can be played on nodes where nothing runs."""
    if "DEEPTWEAK_RIG_NODE" not in cluster_at or not cluster_at["DEEPTWEAK_RIG_NODE"].startswith("rig-"):
        pytest.skip("this API server cannot reach loopback of this machine")
    core = clients.of(api)
    [name] = kwok_nodes(1, log=["one", "two"])
    spec = {"nodeName": name, "containers": [{"name": "main", "image": "none"}]}
    core.create_namespaced_pod(namespace, {"metadata": {"name": "said"}, "spec": spec})
    until(lambda: core.read_namespaced_pod("said", namespace).status.phase == "Running", "its start")
    assert core.read_namespaced_pod_log("said", namespace) == "one\ntwo\n"


@pytest.mark.needs("reference")
def test_the_operators_definitions_are_served(api: Client, crds: list[str]) -> None:
    assert {"skyhooks.skyhook.nvidia.com", "workspaces.kaito.sh"} <= set(crds)
    found = clients.of(api, "CustomObjectsApi").list_cluster_custom_object("skyhook.nvidia.com", "v1alpha1", "skyhooks")
    assert found["kind"] == "SkyhookList"


def _with_token(api: Client, token: str) -> Client:
    other = type(api.configuration)()
    other.host, other.ssl_ca_cert = api.configuration.host, api.configuration.ssl_ca_cert
    other.api_key = {"authorization": f"Bearer {token}"}
    return clients.of(type(api)(other))


def _listed(core: Client, namespace: str) -> Any:  # noqa: ANN401
    try:
        return core.list_namespaced_pod(namespace)
    except ApiException:
        return None


@pytest.mark.needs("rights of a cluster", "cluster")
@pytest.mark.skipif(bool(os.environ.get("KUBECONFIG")), reason="KUBECONFIG's cluster is not this machine's")
def test_a_cluster_goes_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Nothing of it is left: no program, no bridge, no cgroup, no folder."""
    program = (
        "import time; from tests.cluster.rig import up\nwith up.borrowed() as at: print(at['KUBECONFIG'], flush=True); time.sleep(1e6)"
    )
    with (tmp_path / "said").open("w") as sink:
        borrower = subprocess.Popen(
            [sys.executable, "-c", program], cwd=places.HOUSE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink, text=True
        )
    assert borrower.stdout
    with borrower:
        said = borrower.stdout.readline().strip()
        borrower.kill()
    assert said, (tmp_path / "said").read_text()
    cluster = places.Cluster(Path(said).parent)
    until(lambda: not cluster.folder.exists(), "its end", 10 * PATIENCE_S)  # it waits for the kernel, which other tests hold
    assert not [folder for folder in node.cgroups(cluster) if folder.exists()]
    assert not Path("/sys/class/net", cluster.bridge).exists()
    mark = f"{places.MARK}={cluster.folder}".encode()
    assert not [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""
