"""The stand-ins' own small client: it must not share an error with the client under test.

It uses nothing of `fixtures.kubernetes`. Objects are plain dicts, paths are written out; only the
transport and the kubeconfig's credentials come from the kubernetes package.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlencode

import urllib3.exceptions
from kubernetes import config

Object = dict[str, Any]
CORE = "/api/v1"
NODES = f"{CORE}/nodes"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def alone(what: str) -> TextIO:
    """Wait for sole use of `what` on this machine, until the file closes or the process ends.

    Two stand-ins on a cluster would overwrite each other, and one test would clean up what another
    needs.
    """
    path = (
        Path(tempfile.gettempdir())
        / f"stand-in-{hashlib.sha256(what.encode()).hexdigest()[:12]}.lock"
    )
    lock = path.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


class ApiFailed(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Gone(ApiFailed):
    """404: what was to be read or written is not there (any more)."""


class Api:
    """One connection to an API server, from a kubeconfig file; safe to use from several threads."""

    def __init__(self, kubeconfig: str | None) -> None:
        client = config.new_client_from_config(config_file=kubeconfig)
        self.host = client.configuration.host
        self._pool = client.rest_client.pool_manager
        token = client.configuration.get_api_key_with_prefix("authorization", alias="BearerToken")
        self._headers = {"Authorization": token} if token else {}

    def send(
        self,
        method: str,
        path: str,
        body: Object | list[Object] | None = None,
        *,
        content: str = "application/json",
        **query: str,
    ) -> Object:
        """One request; the answered object.

        Raises: Gone for 404, ApiFailed for any other refusal.
        """
        url = f"{self.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {**self._headers, "Accept": "application/json", "Content-Type": content}
        data = None if body is None else json.dumps(body).encode()
        answer = self._pool.request(
            method, url, body=data, headers=headers, timeout=urllib3.Timeout(30)
        )
        text = answer.data.decode(errors="replace")
        if answer.status >= 400:
            with contextlib.suppress(ValueError):
                text = json.loads(text).get("message", text)
            raise (Gone if answer.status == 404 else ApiFailed)(
                answer.status, f"{method} {path}: {text}"
            )
        return dict(json.loads(text)) if text else {}

    def get(self, path: str) -> Object | None:
        try:
            return self.send("GET", path)
        except Gone:
            return None

    def list(self, path: str, **query: str) -> list[Object]:
        """List a collection (narrow with `labelSelector=…`); empty if the kind is not served."""
        try:
            return list(self.send("GET", path, None, **query).get("items") or [])
        except Gone:
            return []

    def create(self, path: str, body: Object) -> Object | None:
        """Make an object; None where one of that name is there already."""
        try:
            return self.send("POST", path, body)
        except ApiFailed as failed:
            if failed.status == 409:
                return None
            raise

    def patch(self, path: str, body: Object, *, content: str = MERGE) -> Object:
        """Merge a change into an object (null removes); the object as it is now."""
        return self.send("PATCH", path, body, content=content)

    def delete(self, path: str, *, grace_s: int | None = None) -> None:
        options: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
        }
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        with contextlib.suppress(Gone):
            self.send("DELETE", path, options)

    def evict(self, namespace: str, pod: str) -> bool:
        """Evict as a drain does; False while a disruption budget forbids it."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        try:
            self.send("POST", f"{CORE}/namespaces/{namespace}/pods/{pod}/eviction", body)
        except Gone:
            return True
        except ApiFailed as failed:
            if failed.status == 429:
                return False
            raise
        return True

    def follow(self, path: str, take: Callable[[str, Object], None], **query: str) -> None:
        """Pass each object, then each change, of a collection to `take` in a thread.

        Lists again (as ADDED) after a lost connection or an outdated version.
        """

        def always() -> None:
            while True:
                try:
                    listed = self.send("GET", path, None, **query)
                    for item in listed.get("items") or []:
                        take("ADDED", item)
                    version = listed["metadata"]["resourceVersion"]
                    self._stream(path, take, {**query, "watch": "1", "resourceVersion": version})
                except (ApiFailed, urllib3.exceptions.HTTPError, ValueError, KeyError):
                    time.sleep(0.2)  # the server is away, or our version of the world is too old

        threading.Thread(target=always, daemon=True, name=f"watch {path}").start()

    def _stream(
        self, path: str, take: Callable[[str, Object], None], query: dict[str, str]
    ) -> None:
        answer = self._pool.request(
            "GET",
            f"{self.host}{path}?{urlencode(query)}",
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=10, read=None),
        )
        with contextlib.closing(answer):
            rest = b""
            for piece in answer.stream(amt=None, decode_content=False):
                *lines, rest = (rest + piece).split(b"\n")
                for event in map(json.loads, filter(None, lines)):
                    take(event["type"], event["object"])
