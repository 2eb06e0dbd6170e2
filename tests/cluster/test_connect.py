"""A run's cluster and user; without a cluster, a sentence that names the places searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from fixtures.kubernetes import client as module
from fixtures.kubernetes.api import PODS, ApiError, create
from fixtures.kubernetes.client import Where, connect
from fixtures.kubernetes.settings import laid_over, read_overlay
from fixtures.kubernetes.watch import logs, watch
from fixtures.terms import BadInput, Refused
from tests.cluster.line import altered

NOWHERE = "https://127.0.0.1:1"


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every kubeconfig that a test does not name, and any pod; do not wait for servers."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(module, "FIRST_ANSWER_S", 0.0)


def written(path: Path, *contexts: str, user: dict[str, Any] | None = None, **cluster: Any) -> str:
    entries = [
        {"name": name, "context": {"cluster": "c", "user": "u", "namespace": f"of-{name}"}}
        for name in contexts
    ]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": NOWHERE, **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}],
        "contexts": entries,
        **({"current-context": contexts[0]} if contexts else {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return str(path)


def test_without_a_kubeconfig_every_place_tried_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        connect(Where())
    for place in ("--kubeconfig", "KUBECONFIG", f"{tmp_path}/.kube/config", "service account"):
        assert place in str(refused.value)


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_kubeconfig_that_is_named_and_not_there_is_refused(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one at home is not taken instead: it may be another cluster's."""
    written(tmp_path / ".kube" / "config", "home")
    missing = str(tmp_path / "missing")
    if by == "environment":
        monkeypatch.setenv("KUBECONFIG", missing)
    with pytest.raises(
        Refused,
        match=f"{missing}: the kubeconfig given by "
        f".*{'KUBECONFIG' if by == 'environment' else '--kubeconfig'} does not exist",
    ):
        connect(Where(kubeconfig=missing if by == "option" else None))


def test_the_option_comes_before_the_environment_before_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which one was read is in the error of the server that is not there."""
    written(tmp_path / ".kube" / "config", "home")
    with pytest.raises(ApiError, match=r"\.kube/config \(context home\)"):
        connect(Where())
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "by-environment", "environment"))
    with pytest.raises(ApiError, match=r"by-environment \(context environment\)"):
        connect(Where())
    with pytest.raises(ApiError, match=r"by-option \(context option\)"):
        connect(Where(kubeconfig=written(tmp_path / "by-option", "option")))


def test_an_unknown_context_is_answered_with_those_there_are(tmp_path: Path) -> None:
    path = written(tmp_path / "k", "one", "two")
    with pytest.raises(Refused, match=r"three.*--context \(one, two\)"):
        connect(Where(kubeconfig=path, context="three"))
    with pytest.raises(Refused, match=r"--context \(none\)"):
        connect(Where(kubeconfig=written(tmp_path / "empty")))


@pytest.mark.parametrize("text", ["", "[]", "clusters: [", "contexts: 3", "contexts: [{}]"])
def test_what_is_no_kubeconfig_is_refused_with_its_path(text: str, tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(Refused, match=str(path)):
        connect(Where(kubeconfig=str(path)))


def test_a_context_without_its_cluster_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k"
    written(path, "one")
    path.write_text(path.read_text().replace("name: c", "name: d"))
    with pytest.raises(Refused, match=f"{path}: .*clusters list"):
        connect(Where(kubeconfig=str(path)))


@pytest.mark.parametrize(
    ("server", "first_answer_s", "says"),
    [
        (
            NOWHERE,
            0.0,
            (
                f"the API server {NOWHERE} .*cannot be reached: .*Connection refused.* Check that "
                "it is running"
            ),
        ),
        (
            "https://nowhere.invalid:6443",
            0.0,
            r"https://nowhere\.invalid:6443 .* has a name that cannot be resolved",
        ),
        ("https://no address", 1000.0, "has an invalid address: .*no address"),  # at once
    ],
)
def test_a_server_that_is_not_there_is_named(
    server: str, first_answer_s: float, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_ANSWER_S", first_answer_s)
    with pytest.raises(ApiError, match=says):
        connect(Where(kubeconfig=written(tmp_path / "k", "one", server=server)))


@pytest.mark.parametrize("command", ["no-such-plugin", "./plugin"])
def test_a_credentials_plugin_that_does_not_work_is_told(command: str, tmp_path: Path) -> None:
    """The client library would log it and go on as nobody."""
    script = tmp_path / "plugin"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o700)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": command}
    with pytest.raises(Refused, match=f"the credentials plugin '{command}' gave no credentials"):
        connect(Where(kubeconfig=written(tmp_path / "k", "one", user={"exec": plugin})))


def test_a_context_without_a_kubeconfig_is_refused_in_a_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pod's service account has no contexts; nor does the error hide that."""
    monkeypatch.setattr(module, "load_incluster_config", lambda _: None)
    with pytest.raises(BadInput, match="--context=one needs a kubeconfig"):
        connect(Where(context="one"))


def test_namespace_is_from_the_option_then_context_then_default(
    kubeconfig: Path, tmp_path: Path
) -> None:
    """And the server has said its version."""
    assert connect(Where(kubeconfig=str(kubeconfig))).namespace == "default"
    path = altered(kubeconfig, tmp_path / "k", namespace="of-the-context")
    cluster = connect(Where(kubeconfig=str(path)))
    assert cluster.namespace == "of-the-context"
    assert cluster.version.startswith("v1.")
    assert connect(Where(kubeconfig=str(path), namespace="asked-for")).namespace == "asked-for"


def test_a_token_that_the_server_does_not_know_is_told(kubeconfig: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ApiError, match=r"does not accept the credentials .*Log in again"
    ) as refused:
        connect(
            Where(
                kubeconfig=str(
                    altered(kubeconfig, tmp_path / "k", user={"token": "of-somebody-else"})
                )
            )
        )
    assert refused.value.status == 401


@pytest.mark.parametrize(
    "wrong",
    [{"tls-server-name": "somebody.else"}, {"certificate-authority-data": "bm9uZQ=="}],
    ids=str,
)
def test_a_certificate_that_does_not_fit_is_told_at_once(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    """The server's, or the one that the kubeconfig has.

    Waiting does not change it: it is not tried again.
    """
    monkeypatch.setattr(module, "FIRST_ANSWER_S", 1000.0)
    with pytest.raises(
        ApiError, match=r"cannot be reached over TLS: .*certificate-authority"
    ) as refused:
        connect(Where(kubeconfig=str(altered(kubeconfig, tmp_path / "k", about=wrong))))
    assert not refused.value.passing


def test_the_environment_is_read_at_connection_not_per_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Setting a token makes the library read proxies, while pytest changes the environment."""
    monkeypatch.setattr(module, "send", lambda *_, **__: {"gitVersion": "v1.0.0"})
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    cluster = connect(Where(kubeconfig=written(tmp_path / "k", "home")))

    def changed_meanwhile() -> None:
        raise KeyError("PYTEST_CURRENT_TEST")

    monkeypatch.setattr("kubernetes.client.configuration.getproxies", changed_meanwhile)
    assert cluster.headers()["Authorization"] == "Bearer t"
    assert cluster.client.configuration.proxy == "http://127.0.0.1:3128"


def test_in_a_pod_its_service_account_is_used(
    kubeconfig: Path, namespace: str, image: str, overlay_file: Path, node_name: str
) -> None:
    """Its token, authority and namespace: a run in the cluster needs no kubeconfig."""
    admin = connect(Where(kubeconfig=str(kubeconfig), namespace=namespace))
    program = (
        "from fixtures.kubernetes.client import *; found = connect(Where()); "
        "print(found.namespace, found.version, found.source)"
    )
    container: dict[str, Any] = {
        "name": "main",
        "image": image,
        "command": ["python", "-c", program],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "nodeName": node_name,
        "containers": [container],
    }
    server = urlsplit(admin.server)
    # This machine's own cluster has no service network: the way is the host's.
    if server.hostname == "127.0.0.1":
        place = {
            "KUBERNETES_SERVICE_HOST": server.hostname,
            "KUBERNETES_SERVICE_PORT": str(server.port),
        }
        container["env"] = [{"name": name, "value": value} for name, value in place.items()]
        spec["hostNetwork"] = True
    create(
        admin,
        PODS,
        laid_over(read_overlay(overlay_file), {"metadata": {"name": "inside"}, "spec": spec}),
    )
    with watch(admin, PODS, name="inside", deadline_s=100) as events:
        assert any(pod["status"]["phase"] in ("Succeeded", "Failed") for _, pod in events)
    assert list(logs(admin, "inside")) == [
        f"{namespace} {admin.version} the pod's service account".encode()
    ]
