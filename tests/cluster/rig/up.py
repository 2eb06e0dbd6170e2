"""A cluster from outside: start the process that holds it, wait until pods can run, end it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fixtures.kernel import probes
from tests import kernel_lock

from . import image, places, programs, traces

END_S = traces.PATIENCE_S + 120  # a run that changes this kernel may have to be waited for


@contextlib.contextmanager
def borrowed() -> Iterator[dict[str, str]]:
    """A cluster for as long as this process wants it; it goes also when this process is killed.

    Raises: RuntimeError, if it does not come up, or if the machine's settings are not as before
        when it has gone.
    """
    _prepare()
    with tempfile.TemporaryFile("w+") as said:
        with traces.births():
            folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=places.CLUSTERS))
            holder = _hold(folder, said.fileno(), stdin=subprocess.PIPE)
        assert holder.stdin
        try:
            yield _ready(folder, holder, said.fileno())
        finally:
            holder.stdin.close()
            code = holder.wait(END_S)
        if code:
            raise RuntimeError(f"the cluster left this machine changed:\n{_text(said.fileno())}")


def keep() -> dict[str, str]:
    """Start a cluster that stays when this process ends, or find the one that is up."""
    cluster = places.Cluster(places.KEPT)
    if not traces.is_alive(cluster):
        _prepare()
        with Path(f"{cluster.folder}.log").open("w+") as said:
            with traces.births():
                cluster.folder.mkdir(mode=0o700)
                holder = _hold(cluster.folder, said.fileno(), "--until-told")
            return _ready(cluster.folder, holder, said.fileno())
    about: dict[str, str] = json.loads(cluster.ready.read_text())
    return about


def end_kept() -> int:
    """Stop the kept cluster and clear killed ones; 1 if the machine's settings differ."""
    cluster = places.Cluster(places.KEPT)
    if traces.is_alive(cluster):
        _say_what_is_waited_for()
        os.kill(int((cluster.folder / "pid").read_text()), signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while cluster.folder.exists():
            if time.monotonic() > deadline:
                print(
                    f"The cluster in {cluster.folder} does not end; see {cluster.folder}.log",
                    file=sys.stderr,
                )
                return 1
            time.sleep(0.05)
    traces.clear_dead()
    log = Path(f"{cluster.folder}.log")
    said = log.read_text() if log.exists() else ""
    print(said, end="", file=sys.stderr)
    return 1 if said else 0


def forbidden() -> str:
    """Name a right that this process lacks for a local cluster; empty if it has all."""
    reason = (
        probes.mount()
        or probes.namespace("net")
        or probes.namespace("pid")
        or probes.cgroup()
        or probes.capability("NET_ADMIN")
    )
    return f"A cluster of this machine needs root's rights: {reason}." if reason else ""


def why_not() -> str:
    """Why no cluster can be started here, and what to do; empty if one can."""
    if reason := forbidden():
        return reason
    missing = programs.missing()
    return (
        f"A cluster of this machine needs {', '.join(missing)}; in brackets Debian's packages."
        if missing
        else ""
    )


def _prepare() -> None:
    if why := why_not():
        raise RuntimeError(why)
    for module in (programs.KUBERNETES, programs.ETCD):
        programs.build(module)
    image.archive()
    places.CLUSTERS.mkdir(mode=0o700, exist_ok=True)
    _say_what_is_waited_for()
    traces.clear_dead()


def _say_what_is_waited_for() -> None:
    if found := kernel_lock.holder():
        print(
            f"The cluster waits, for up to {traces.PATIENCE_S} s, for this machine's settings: "
            f"{found}",
            file=sys.stderr,
            flush=True,
        )


def _hold(
    folder: Path, output: int, *options: str, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    with traces.alive(places.Cluster(folder)) as handle:
        holder = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.rig", "hold", str(folder), *options],
            cwd=places.HOUSE,
            stdin=stdin,
            stdout=output,
            stderr=output,
            pass_fds=[handle],  # the lock is the holder's from its first moment to its last
            # a Ctrl-C in the terminal is for the tests; the cluster goes after them
            start_new_session=True,
        )
    (folder / "pid").write_text(str(holder.pid))
    return holder


def _ready(folder: Path, holder: subprocess.Popen[bytes], output: int) -> dict[str, str]:
    cluster = places.Cluster(folder)
    while not cluster.ready.exists():
        if holder.poll() is not None:
            raise RuntimeError(f"the cluster did not come up:\n{_text(output)}")
        time.sleep(0.05)
    about: dict[str, str] = json.loads(cluster.ready.read_text())
    return about


def _text(handle: int) -> str:
    return os.pread(handle, 1 << 20, 0).decode(errors="replace")
