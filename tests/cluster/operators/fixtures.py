"""Fixtures for stand-ins that tests start, stop and kill.

`skyhook_operator`, `nodewright_operator`, `kaito_operator`; the fixtures that they use
(`kubeconfig`, `image`) are the rig's.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

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
        self,
        *,
        fault: str | None = None,
        speed: float = 4.0,
        brief: bool = True,
        machines: Path | None = None,
    ) -> None:
        """Start it and wait until it works.

        `brief`: one init container a package pod instead of three, pods killed at once: a sysctl
            package then takes 3 s instead of 13.
        `machines`: the folder of simulated nodes' fake roots, one by the name of each.
        """
        assert not self.running, f"the stand-in for {self.operator} runs already: stop it first"
        self._options = {"fault": fault, "speed": speed, "brief": brief, "machines": machines}
        options = [
            f"--speed={speed}",
            *(["--brief"] if brief else []),
            *([f"--fault={fault}"] if fault else []),
        ]
        options += [f"--machines={machines}"] if machines else []
        command = [
            sys.executable,
            "-m",
            "tests.cluster.operators",
            self.operator,
            f"--kubeconfig={self._kubeconfig}",
            f"--image={self._image}",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *options], cwd=HOUSE, stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE_S
        while b" runs" not in self._log.read_bytes():
            assert self.running, f"the stand-in for {self.operator} did not start: {self.log}"
            assert time.monotonic() < deadline, (
                f"another stand-in for {self.operator} has had this cluster for {PATIENCE_S} s"
            )
            time.sleep(0.05)

    def stop(self) -> None:
        """SIGTERM, as a Deployment's pod gets it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it if it runs, and start it with its options, without a fault that ended it."""
        self.stop()
        if self._options.get("fault") == "dies-midway":
            self._options["fault"] = None
        self.start(**self._options)

    def wait(self, within_s: float = 60.0) -> int:
        """Wait for it to end by itself (`dies-midway`); its exit status."""
        assert self._process is not None, "it was not started"
        return self._process.wait(within_s)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def _end(self, signum: int) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(signum)
            self._process.wait(30)

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


@pytest.fixture
def skyhook_operator(kubeconfig: Path, image: str) -> Iterator[StandIn]:
    """A stand-in for NVIDIA Skyhook's operator, not yet started."""
    with standing_in("skyhook", kubeconfig, image) as stand_in:
        yield stand_in


@pytest.fixture
def nodewright_operator(kubeconfig: Path, image: str) -> Iterator[StandIn]:
    """A stand-in for the same operator from v0.18 to v0.20, not yet started."""
    with standing_in("nodewright", kubeconfig, image) as stand_in:
        yield stand_in


@pytest.fixture
def kaito_operator(kubeconfig: Path, image: str) -> Iterator[StandIn]:
    """A stand-in for KAITO's workspace controller, not yet started."""
    with standing_in("kaito", kubeconfig, image) as stand_in:
        yield stand_in
