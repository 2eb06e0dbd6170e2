"""Streams of jobs on a real cluster for the engines' tests: their parts and ordered events."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fixtures.kubernetes import api as apis
from fixtures.kubernetes import recovery
from fixtures.kubernetes.client import Cluster, Where, connect
from fixtures.studies.jobs.engines import EngineRequest, opened
from fixtures.studies.jobs.terms import Event, JobClass, Planned, Size

if TYPE_CHECKING:
    from fixtures.studies.jobs.engines.kubernetes import KubernetesJobs
    from tests.cluster.runs import Here

PATIENCE_S = 120.0
LONG_S = 1000.0
CLASS = JobClass("short", "sleep", Size("constant", 1.0))


def job(number: int, work: float, *, class_: JobClass = CLASS, **fields: Any) -> Planned:
    """A job of a stream; its fields beside."""
    return Planned(number, class_, 0.0, work, seed=number, **fields)


def of_kind(**params: str | float) -> JobClass:
    """The class with parameters of its kind."""
    return replace(CLASS, params=params)


@dataclass
class Play:
    """An engine at work, and all that has happened."""

    engine: KubernetesJobs
    events: list[Event] = field(default_factory=list)

    def until(self, holds: Callable[[], object]) -> None:
        """Hear what happens until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, self.events
            self.events += self.engine.events(time.monotonic() + 1.0)

    def happened(self, what: str, number: int | None = None) -> list[Event]:
        """Events of a kind; of a job, if one is named."""
        return [one for one in self.events if one.what == what and number in {None, one.job}]

    def end_of(self, number: int) -> Event:
        """How a job ended, which is waited for; it is told once."""
        self.until(lambda: self.happened("ended", number))
        [end] = self.happened("ended", number)
        return end

    def start(self, one: Planned) -> None:
        """Let a job begin, and see it running."""
        self.engine.submit(one)
        self.engine.admit(one, 1, 0.0)
        self.until(lambda: self.happened("started", one.job))

    def once(self) -> bool:
        """Return True if nothing was told twice of an attempt."""
        return (
            max(
                Counter(
                    (one.what, one.job)
                    for one in self.events
                    if one.what != "checkpoint" and one.job is not None
                ).values()
            )
            == 1
        )


@dataclass(frozen=True)
class Streams:
    """Opens engines on the tests' cluster."""

    here: Here
    namespace: str
    folder: Path

    def settings(self, **more: object) -> Path:
        """A file for `--job-cluster`."""
        common = {
            "kubeconfig": str(self.here.kubeconfig),
            "namespace": self.namespace,
            "image": self.here.image,
            "overlay": str(self.here.overlay),
        }
        path = self.folder / "cluster.yaml"
        path.write_text(yaml.safe_dump({**common, **more}))
        return path

    def wanted(
        self,
        *,
        slots: int = 2,
        checkpoint_s: float = 0.0,
        classes: tuple[JobClass, ...] = (CLASS,),
        **more: object,
    ) -> EngineRequest:
        """What an engine is asked to be."""
        return EngineRequest(
            slots,
            1,
            classes,
            self.folder,
            checkpoint_s,
            files={"job_cluster": self.settings(**more)},
        )

    @contextlib.contextmanager
    def play(self, engine: str = "jobs", **wanted: Any) -> Iterator[Play]:
        """An engine for the block."""
        with opened(engine, self.wanted(**wanted)) as at_work:
            yield Play(at_work)  # type: ignore[arg-type]  # one of a cluster


def left(cluster: Cluster) -> dict[str, list[str]]:
    """What is there that a stream makes, by name, and the nodes that are away."""
    kinds = {"jobs": apis.JOBS, "pods": apis.PODS, "leases": apis.LEASES}
    found = {
        what: [one["metadata"]["name"] for one in apis.list_(cluster, kind)[0]]
        for what, kind in kinds.items()
    }
    nodes = apis.list_(cluster, apis.NODES)[0]
    return {
        **found,
        "away": [
            one["metadata"]["name"]
            for one in nodes
            if one["spec"].get("unschedulable") or recovery.taken_by(one)
        ],
    }


NOTHING: dict[str, list[str]] = {"jobs": [], "pods": [], "leases": [], "away": []}


@pytest.fixture
def cluster(kubeconfig: Path, namespace: str) -> Cluster:
    """As the engine connects to it."""
    return connect(Where(str(kubeconfig), None, namespace))


@pytest.fixture
def streams(here: Here, namespace: str, cluster: Cluster, tmp_path: Path) -> Iterator[Streams]:
    """A test's own; after it nothing of a stream may be there."""
    yield Streams(here, namespace, tmp_path)
    assert left(cluster) == NOTHING
