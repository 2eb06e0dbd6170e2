"""Fixtures for stand-ins that tests start, stop and kill."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until

HOUSE = Path(__file__).parents[3]
PATIENCE_S = 600  # another session's stand-in may have the cluster for so long
# What package pods leave on a node that is this machine.
HOST_FOLDERS = (Path("/var/lib/skyhook"), Path("/var/log/skyhook"))


class StandIn:
    """A stand-in's process. Nothing runs before `start`."""

    def __init__(self, operator: str, kubeconfig: Path | str, image: str) -> None:
        self.operator, self._kubeconfig, self._image = operator, str(kubeconfig), image
        self._process: subprocess.Popen[bytes] | None = None
        self._options: dict[str, Any] = {}
        self._log = Path(tempfile.mkstemp(prefix=f"stand-in-{operator}-", suffix=".log")[1])

    def start(
        self, *, fault: str | None = None, speed: float = 4.0, machines: Path | None = None
    ) -> None:
        """Start it and wait until it works.

        `machines`: the folder of simulated nodes' fake roots, one by the name of each.
        """
        assert not self.running, f"the stand-in for {self.operator} runs already: stop it first"
        self._options = {"fault": fault, "speed": speed, "machines": machines}
        asked = {
            **self._options,
            "kubeconfig": self._kubeconfig,
            "image": self._image,
        }
        options = [f"--{name}={value}" for name, value in asked.items() if value is not None]
        command = [sys.executable, "-m", "tests.cluster.operators", self.operator, *options]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=HOUSE, stdout=log, stderr=log)
        until(
            lambda: b" runs" in self._log.read_bytes() or not self.running,
            f"another stand-in for {self.operator} has this cluster",
            within_s=PATIENCE_S,
        )
        assert self.running, f"the stand-in for {self.operator} did not start: {self.log}"

    def kill(self) -> None:
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait(30)

    def restart(self) -> None:
        """Start it again with its options, without a fault that ended it."""
        self.kill()
        self.start(**{**self._options, "fault": None})

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        self.kill()
        self._log.unlink(missing_ok=True)


@contextlib.contextmanager
def standing_in(operator: str, kubeconfig: Path | str, image: str) -> Iterator[StandIn]:
    """Stand in for a scope; then remove its resources, node marks and folders on this machine."""
    from .api import Api, alone
    from .leftovers import Leftovers

    api = Api(str(kubeconfig))
    with alone(f"tests {operator} {api.host}"):
        before = Leftovers(api, operator)
        there = [folder for folder in HOST_FOLDERS if folder.is_dir()]
        kept = _inside(there)
        stand_in = StandIn(operator, kubeconfig, image)
        try:
            yield stand_in
        finally:
            stand_in.close()
            before.clear_new()
            for path in (_inside(there) - kept).union(set(HOST_FOLDERS) - set(there)):
                shutil.rmtree(path, ignore_errors=True)


def _inside(folders: Iterable[Path]) -> set[Path]:
    """What lies in the folders that there are; the other operator's tests may remove one."""
    return {path for folder in folders if folder.is_dir() for path in folder.iterdir()}


def _fixture(operator: str) -> Any:
    def stand_in(kubeconfig: Path, image: str) -> Iterator[StandIn]:
        with standing_in(operator, kubeconfig, image) as made:
            yield made

    return pytest.fixture(stand_in, name=f"{operator}_operator")


# NVIDIA's operator up to v0.17, from v0.18 on, and KAITO's controller; not yet started.
skyhook_operator, nodewright_operator, kaito_operator = map(
    _fixture, ("skyhook", "nodewright", "kaito")
)
