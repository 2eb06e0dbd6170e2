"""The official client, to look at a cluster with eyes other than the harness's.

It takes a second to import, so that is done by those who use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.waiting import until

NOT_FOUND = 404
# By its own types every field of every answer may be None, and no manifest is a dictionary.
Client = Any


def client(kubeconfig: Path) -> Client:
    from kubernetes import client, config

    configuration = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    return client.ApiClient(configuration)


def of(api: Client, group: str = "CoreV1Api") -> Client:
    from kubernetes import client

    return getattr(client, group)(api)


@contextlib.contextmanager
def if_there() -> Iterator[None]:
    """What is gone already need not be deleted."""
    from kubernetes.client.exceptions import ApiException

    try:
        yield
    except ApiException as error:
        if error.status != NOT_FOUND:
            raise


def end_pods(api: Client, find: Callable[[], list[Any]]) -> None:
    """Delete pods, without grace, until none is found: a test is over."""

    def gone() -> bool:
        found = find()
        for pod in found:
            with if_there():
                of(api).delete_namespaced_pod(
                    pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0
                )
        return not found

    until(gone, "pods do not go", every_s=0.1)
