"""A line to the API server that a test can cut: a network's faults, with everything else real."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml


class Line:
    """Pass bytes between a loopback port and the API server; count accepted connections."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.accepted = 0
        self._open = True
        self._swallowing = self._asked = False
        self._flowing = threading.Event()
        self._flowing.set()
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """Break off all connections; new ones are taken."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """The server is away: all connections break off, new ones at once."""
        self._open = False
        self.cut()

    def open(self) -> None:
        self._open = True
        self._flowing.set()

    def hang(self) -> None:
        """The server takes connections and requests and says nothing, until `open`."""
        self._flowing.clear()

    def swallow(self) -> None:
        """Let the next request reach the server, but break the connection before the answer."""
        self._swallowing = True

    def end(self) -> None:
        self.open()  # lets go who hangs
        self.close()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        self._listener.close()
        for thread in (self._accepting, *self._threads):
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._open:
                self.accepted += 1
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()
            else:
                client.close()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            pair = (client, server)
            self._pairs.append(pair)
            other = {client: server, server: client}
            with contextlib.suppress(OSError):
                while True:
                    for source in select.select(pair, (), ())[0]:
                        block = source.recv(65536)
                        if not block:
                            return
                        if source is server and self._swallowing and self._asked:
                            self._swallowing = self._asked = False
                            return
                        self._flowing.wait()
                        self._asked = self._swallowing and source is client
                        other[source].sendall(block)


@contextlib.contextmanager
def to_cluster(kubeconfig: Path, folder: Path) -> Iterator[tuple[Line, Path]]:
    """A line to the cluster of a kubeconfig, and the kubeconfig that goes over it."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = next(
        one["context"] for one in config["contexts"] if one["name"] == config["current-context"]
    )
    cluster = next(
        one["cluster"] for one in config["clusters"] if one["name"] == context["cluster"]
    )
    address = urlsplit(cluster["server"])
    assert address.hostname is not None
    line = Line(address.hostname, address.port or 443)
    # The certificate is the server's, whatever the way to it.
    named = cluster.get("tls-server-name", address.hostname)
    over = folder / "over-the-line.kubeconfig"
    altered(
        kubeconfig,
        over,
        about={"server": f"https://127.0.0.1:{line.port}", "tls-server-name": named},
    )
    try:
        yield line, over
    finally:
        line.end()


def altered(
    kubeconfig: Path,
    target: Path,
    *,
    user: dict[str, Any] | None = None,
    namespace: str = "",
    about: Mapping[str, object] | None = None,
) -> Path:
    """Copy a kubeconfig with another user, namespace or cluster field (`about`; None removes)."""
    config = yaml.safe_load(kubeconfig.read_text())
    for one in config["clusters"]:
        one["cluster"] = {
            key: value
            for key, value in (one["cluster"] | dict(about or {})).items()
            if value is not None
        }
    for one in config["users"]:
        one["user"] = user or one["user"]
    for one in config["contexts"]:
        one["context"] |= {"namespace": namespace} if namespace else {}
    target.write_text(yaml.safe_dump(config))
    return target
