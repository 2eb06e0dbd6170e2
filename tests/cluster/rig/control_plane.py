"""etcd, API server, controller manager and scheduler on loopback, with tokens, TLS and RBAC."""

from __future__ import annotations

import base64
import json
import secrets
import ssl
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .started import Started, free_port

if TYPE_CHECKING:
    from .places import Cluster

ADMINISTRATOR = "admin"
CONTROLLERS = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"


@dataclass(frozen=True)
class Api:
    """The API server for one user: enough to wait for things, without the kubernetes package."""

    server: str
    token: str
    authority: Path

    def get(self, path: str) -> Any:
        """An answer; None, if there is no such thing, or nobody answers yet."""
        request = urllib.request.Request(  # noqa: S310 its own server
            f"{self.server}{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        try:
            context = ssl.create_default_context(cafile=str(self.authority))
            answer = urllib.request.urlopen(request, context=context, timeout=5)  # noqa: S310
            with answer:
                text = answer.read().decode()
        except OSError:  # refused, not found, not allowed yet; no certificate yet
            return None
        return json.loads(text) if text.startswith("{") else text


def start(cluster: Cluster, started: Started) -> Api:
    """Start all four and wait until pods could be created."""
    pki = cluster.certificates
    pki.mkdir(mode=0o700, exist_ok=True)
    tokens = _tokens(cluster)
    _keys(pki)
    etcd, peer, port = (free_port() for _ in range(3))
    client, peers = f"https://127.0.0.1:{etcd}", f"https://127.0.0.1:{peer}"
    mutual = {
        "cert-file": pki / "etcd.crt",
        "key-file": pki / "etcd.key",
        "trusted-ca-file": pki / "etcd.crt",
    }
    started.start(
        "etcd",
        "etcd",
        f"--data-dir={cluster.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        *(f"--{side}{name}={path}" for side in ("", "peer-") for name, path in mutual.items()),
        "--client-cert-auth",
        "--peer-client-cert-auth",
        "--unsafe-no-fsync",
    )
    started.start(
        "kube-apiserver",
        "kube-apiserver",
        f"--etcd-servers={client}",
        f"--etcd-cafile={pki / 'etcd.crt'}",
        f"--etcd-certfile={pki / 'etcd.crt'}",
        f"--etcd-keyfile={pki / 'etcd.key'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={pki}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'accounts.key'}",
        f"--service-account-signing-key-file={pki / 'accounts.key'}",
        f"--token-auth-file={pki / 'tokens.csv'}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",  # no pod can reach loopback
        # ours is on loopback under its name; a simulated one has an address only
        "--kubelet-preferred-address-types=Hostname,InternalIP",
        f"--kubelet-client-certificate={pki / 'apiserver-kubelet.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-kubelet.key'}",
        "--allow-privileged=true",
    )
    server = f"https://127.0.0.1:{port}"
    api = Api(server, tokens[ADMINISTRATOR], pki / "apiserver.crt")
    started.wait("the API server", lambda: api.get("/readyz") == "ok")
    for user, token in tokens.items():
        _kubeconfig(kubeconfig_of(cluster, user), Api(server, token, api.authority), user)
    started.start(
        "kube-controller-manager",
        "kube-controller-manager",
        f"--kubeconfig={kubeconfig_of(cluster, CONTROLLERS)}",
        "--secure-port=0",
        f"--service-account-private-key-file={pki / 'accounts.key'}",
        f"--root-ca-file={api.authority}",
        "--use-service-account-credentials=true",
        # Fifty simulated nodes come at once, and lose their taint by its requests.
        *("--kube-api-qps=500", "--kube-api-burst=500", "--node-monitor-period=1s"),
        "--leader-elect=false",
    )
    started.start(
        "kube-scheduler",
        "kube-scheduler",
        f"--kubeconfig={kubeconfig_of(cluster, SCHEDULER)}",
        "--secure-port=0",
        "--leader-elect=false",
    )
    return api


def kubeconfig_of(cluster: Cluster, user: str) -> Path:
    return (
        cluster.kubeconfig
        if user == ADMINISTRATOR
        else cluster.certificates / f"{user.replace(':', '-')}.kubeconfig"
    )


def kubelet_user(cluster: Cluster) -> str:
    return f"system:node:{cluster.node}"


def _tokens(cluster: Cluster) -> dict[str, str]:
    groups = {
        ADMINISTRATOR: "system:masters",
        CONTROLLERS: "",
        SCHEDULER: "",
        kubelet_user(cluster): "system:nodes",
    }
    tokens = {user: secrets.token_hex(16) for user in groups}
    path = cluster.certificates / "tokens.csv"
    path.write_text(
        "".join(f"{tokens[user]},{user},{user},{group}\n" for user, group in groups.items())
    )
    path.chmod(0o600)
    return tokens


def _keys(pki: Path) -> None:
    """Make the key for service accounts' tokens, and two certificates for programs on loopback.

    Each signs itself and is trusted alone: no other user of this machine may run containers through
    the kubelet's port or write into etcd.
    """
    _openssl("genrsa", "-out", str(pki / "accounts.key"), "2048")
    _certificate(
        pki / "apiserver-kubelet",
        "/O=system:masters/CN=apiserver-kubelet",
        "extendedKeyUsage=clientAuth",
    )
    _certificate(
        pki / "etcd",
        "/CN=etcd",
        "extendedKeyUsage=clientAuth,serverAuth",
        "subjectAltName=IP:127.0.0.1",
    )


def _certificate(path: Path, subject: str, *extensions: str) -> None:
    files = ["-keyout", f"{path}.key", "-out", f"{path}.crt"]
    more = [word for extension in extensions for word in ("-addext", extension)]
    _openssl(
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "30",
        "-subj",
        subject,
        *more,
        *files,
    )


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def _kubeconfig(path: Path, api: Api, user: str) -> None:
    authority = base64.b64encode(api.authority.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "rig",
                "cluster": {"server": api.server, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": user, "user": {"token": api.token}}],
        "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": user}}],
        "current-context": "rig",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
