"""An API server that has just started: 403 to all until it has loaded the access rules.

Recorded on kube-apiserver 1.34, killed and started again after 12 s: connections are refused for
3.7 s more, then every request is answered 403; 0.1 s later they succeed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures.kubernetes import client
from fixtures.kubernetes.api import CONFIGMAPS, ApiError, create, get
from fixtures.kubernetes.client import Cluster, Where, connect
from fixtures.kubernetes.watch import LineStream, Watch, logs

FORBIDDEN = {
    "kind": "Status",
    "reason": "Forbidden",
    "code": 403,
    "message": 'configmaps "one" is forbidden: User "u" cannot get',
}
ONE = {"kind": "ConfigMap", "metadata": {"name": "one", "resourceVersion": "7"}}


class Server(ThreadingHTTPServer):
    """Refuse `refusals` requests, then serve."""

    refusals, asked = 0, 0
    lock = threading.Lock()

    def answer(self, path: str) -> tuple[int, object]:
        if path == "/version":
            return 200, {"gitVersion": "v1"}
        with self.lock:
            self.asked += 1
            if self.asked <= self.refusals:
                return 403, FORBIDDEN
        some = {"metadata": {"resourceVersion": "7"}, "items": [ONE]}
        return 200, some if path.endswith("configmaps") else ONE


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = self.server.answer(self.path.partition("?")[0])
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def cluster(server: Server, tmp_path: Path) -> Cluster:
    named = {
        "clusters": [
            {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        ],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named})
    )
    return connect(Where(kubeconfig=str(path)))


def test_a_server_that_is_not_ready_is_asked_again(cluster: Cluster, server: Server) -> None:
    """By a request, by one that must not be sent twice, and by a watch."""
    requests: list[Callable[[], dict[str, Any] | None]] = [
        lambda: get(cluster, CONFIGMAPS, "one"),
        lambda: create(cluster, CONFIGMAPS, {"metadata": {"name": "one"}}, subresource="token"),
        lambda: next(iter(Watch(cluster, CONFIGMAPS)))[1],
    ]
    for number, request in enumerate(requests):
        client.unreachable(
            cluster, client.ApiRequest("GET", "/", "get", "x"), OSError("it restarts")
        )
        server.refusals = server.asked + 3
        found = request()
        assert found is not None
        assert found["metadata"] == ONE["metadata"], number


def test_a_refusal_is_believed_unless_the_server_was_just_away(
    cluster: Cluster, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once from a server that was never away; after an outage as soon as it must be ready."""
    monkeypatch.setattr(client, "STARTING_S", 0.5)
    server.refusals = 1000
    for away in (False, True):
        if away:
            about = client.ApiRequest("GET", "/", "get", "x")
            client.unreachable(cluster, about, OSError("it restarts"))
        before = server.asked
        with pytest.raises(ApiError) as refused:
            get(cluster, CONFIGMAPS, "one")
        assert (refused.value.status, refused.value.passing) == (403, False)
        assert (server.asked - before > 1) is away


# What one read of a TLS socket brought that had been shut meanwhile: Python had let go of TLS, so
# the kernel's bytes came as they were.
CIPHERTEXT = bytes.fromhex("170303001afc8e2d0a90")


class Response:
    """A stand-in for an endless answer: the moment cannot be met on a real server."""

    connection = None

    def __init__(self) -> None:
        self.stream_of: LineStream | None = None

    def stream(self, _: int) -> Iterator[bytes]:
        yield b'{"type": "ADDED"}\n'
        assert self.stream_of is not None
        self.stream_of.stop()  # while the next read waits
        yield CIPHERTEXT

    def shutdown(self) -> None:
        """Nothing: the read ends by itself."""


def test_what_comes_after_it_was_shut_is_no_line(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = Response()
    monkeypatch.setattr("fixtures.kubernetes.watch.open_", lambda *_, **__: response)
    response.stream_of = logs(cluster, "p")
    assert list(response.stream_of) == [b'{"type": "ADDED"}']


def test_a_kubelet_s_word_that_a_log_is_gone_is_no_line_of_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded past a Job's deadline, while its container was being removed; the status is 200."""

    class Gone(Response):
        def stream(self, _: int) -> Iterator[bytes]:
            yield b"unable to retrieve container logs for containerd://bfdbbf5716477cd6"

    monkeypatch.setattr("fixtures.kubernetes.watch.open_", lambda *_, **__: Gone())
    with pytest.raises(ApiError) as gone:
        next(iter(logs(cluster, "p")))
    assert gone.value.status == 404


def test_a_log_keeps_lines_that_only_look_like_the_kubelets(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet says them instead of a log, without an end of line."""
    line = b"unable to retrieve container logs for containerd://bfdbbf5716477cd6"

    class Told(Response):
        def stream(self, _: int) -> Iterator[bytes]:
            yield line + b"\n"
            yield b"step 1\n" + line

    monkeypatch.setattr("fixtures.kubernetes.watch.open_", lambda *_, **__: Told())
    assert list(logs(cluster, "p")) == [line, b"step 1", line]
