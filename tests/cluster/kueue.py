"""Stand-in for Kueue: its definitions as far as an engine reads them, and a controller that admits a queue's Jobs in the order they came.

What the real one does to a batch Job, seen from outside: a Workload that belongs to the Job gets the conditions QuotaReserved and Admitted,
then the Job is resumed; its quota is free again when it has finished or is gone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cluster.operators.api import Api, ApiFailed, Gone
from tests.cluster.operators.view import now
from tests.waiting import until

Json = dict[str, Any]
GROUP, VERSION = "kueue.x-k8s.io", "v1beta1"
QUEUE = f"{GROUP}/queue-name"
KINDS = {"localqueues": "LocalQueue", "workloads": "Workload"}
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WITHIN_S = 180.0


@contextlib.contextmanager
def installed(kubeconfig: Path) -> Iterator[Api]:
    """The definitions, in a cluster that has none; they are gone afterwards, and with them all of their kinds."""
    api = Api(str(kubeconfig))
    try:
        for plural, kind in KINDS.items():
            api.create(_CRDS, _definition(plural, kind))
        until(lambda: all(_served(api, plural) for plural in KINDS), every_s=0.05)
        yield api
    finally:
        for plural in KINDS:
            api.delete(f"{_CRDS}/{plural}.{GROUP}")
        until(lambda: not any(_served(api, plural) for plural in KINDS), every_s=0.05)
        api.close()


def local_queue(api: Api, namespace: str, name: str) -> None:
    """A queue of a namespace."""
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": "all"}}
    api.create(path(namespace, "localqueues"), body)


def path(namespace: str, plural: str) -> str:
    """Where the API has them."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{plural}"


class Controller:
    """Admits `quota` Jobs at a time, until `stop`."""

    def __init__(self, api: Api, namespace: str, quota: int) -> None:
        self._api, self._namespace, self._quota = api, namespace, quota
        self._jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._changed, self._over = threading.Event(), threading.Event()
        self._admitted: set[str] = set()  # by uid
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Admit nobody any more."""
        self._over.set()
        self._thread.join(_WITHIN_S)

    def _run(self) -> None:
        self._api.follow(self._jobs, lambda *_: self._changed.set())
        while not self._over.is_set():
            if self._changed.wait(0.2):
                self._changed.clear()
                with contextlib.suppress(Gone, ApiFailed):  # somebody deletes what is looked at: looked at again
                    self._turn()

    def _turn(self) -> None:
        jobs = [one for one in self._api.list(self._jobs) if QUEUE in one["metadata"].get("labels", {})]
        jobs = [one for one in jobs if "deletionTimestamp" not in one["metadata"] and not _finished(one)]
        self._admitted &= {one["metadata"]["uid"] for one in jobs}
        # Names of one stream count up; times of creation are whole seconds.
        for job in sorted(jobs, key=lambda one: (one["metadata"]["creationTimestamp"], _number(one))):
            if len(self._admitted) < self._quota and job["metadata"]["uid"] not in self._admitted and job["spec"].get("suspend"):
                self._admit(job)
                self._admitted.add(job["metadata"]["uid"])

    def _admit(self, job: Json) -> None:
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
        workloads = path(self._namespace, "workloads")
        made = f"job-{name}"
        metadata = {"name": made, "ownerReferences": [owner]}
        self._api.create(workloads, {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Workload", "metadata": metadata})
        conditions = [_condition("QuotaReserved"), _condition("Admitted")]
        self._api.patch(f"{workloads}/{made}", {"status": {"conditions": conditions}})
        self._api.patch(f"{self._jobs}/{name}", {"spec": {"suspend": False}})


def _definition(plural: str, kind: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": VERSION, "served": True, "storage": True, "schema": schema}],
        },
    }


def _served(api: Api, plural: str) -> bool:
    try:
        api.send("GET", f"/apis/{GROUP}/{VERSION}/{plural}")
    except ApiFailed:
        return False
    return True


def _condition(type_: str) -> Json:
    return {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": now()}


def _finished(job: Json) -> bool:
    return any(one["type"] in {"Complete", "Failed"} and one["status"] == "True" for one in job.get("status", {}).get("conditions") or ())


def _number(job: Json) -> int:
    return int(job["metadata"]["labels"]["deeptweak/job"])
