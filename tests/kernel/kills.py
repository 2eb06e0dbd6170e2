"""Kill apply-restore cycles at random: `python -m tests.kernel.kills fake_root FOLDER [COUNT]`.

A fork takes as long as its parent is big, and a process that runs tests has grown by whatever other
tests have brought into it.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from fixtures.kernel.journal import PARTIAL, Damaged, Journal
from fixtures.kernel.machine import Machine, Write
from fixtures.kernel.signals import stop_like_ctrl_c
from fixtures.kernel.tunables import Tunables, diff, same, sysctl_path
from fixtures.kernel.turns import Switch
from fixtures.terms import Script
from tests import fake_root, waiting

# How far a cycle had come when it was killed, by the last line of its journal; "none": between two
# cycles.
PHASES = {"none", "begin", "wrote", "scripts", "applied", "undoing", "restoring"}
# Those of a process that knows what its writes can touch: its journal names only that. "begin" is
# too short then to be hit for sure.
PHASES |= {f"{name}, knowing" for name in ("wrote", "applied", "restoring")}
EVERY_PHASE = 200  # from so many kills on, each phase must have been hit; a few are only put back
MOST_KILLS = 800  # a phase of a millisecond may need more than 200 to be hit
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
SEED = 20240229

# Twenty settings that an idle machine does not notice.
HARMLESS = """
vm.swappiness=10 vm.dirty_ratio=30 vm.dirty_background_ratio=5 vm.dirty_expire_centisecs=2000
vm.dirty_writeback_centisecs=300 vm.overcommit_memory=1 vm.max_map_count=262144
vm.watermark_scale_factor=20 vm.vfs_cache_pressure=50 vm.page-cluster=0
net.core.rmem_max=134217728 net.core.wmem_max=134217728 net.core.netdev_max_backlog=250000
net.core.somaxconn=8192 net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_fin_timeout=15
fs.inotify.max_user_watches=1048576 fs.file-max=2097152
kernel.numa_balancing=0 kernel.sched_autogroup_enabled=0
"""
THP = "/sys/kernel/mm/transparent_hugepage"


def kill_once(
    rng: random.Random,
    longest_s: float,
    cycle: Callable[[], None],
    begun: Callable[[], bool] = lambda: True,
) -> None:
    """Cycle in a child until it is killed, at a random moment after something has `begun`."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            # Whatever becomes of the test, no cycle goes on.
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            while True:
                cycle()
        os._exit(1)
    try:
        waiting.until(begun, every_s=0.001)
        time.sleep(rng.uniform(0, longest_s))
    finally:
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status), "the cycle itself failed"


def phase(folder: Path) -> str:
    records = Journal(folder).read()
    if not records:
        return "none"
    return f"{records[-1]['record']}{', knowing' * (records[0]['version'] == PARTIAL)}"


def phase_now(folder: Path) -> str:
    """Return the phase, or none of them: a journal that is being written may look damaged."""
    with contextlib.suppress(Damaged):
        return phase(folder)
    return ""


def is_passed(folder: Path, wanted: Collection[str]) -> bool:
    """Return whether a first cycle is in one of the wanted phases, or past all of them."""
    now = phase_now(folder)
    return now in wanted or now.endswith("knowing")


def is_switching(folder: Path) -> bool:
    """Return whether values take turns now."""
    return phase_now(folder) == "switching"


def cycles(
    machine: Machine,
    run: Callable[[], object],
    sets: Sequence[tuple[Sequence[Write], Sequence[Script]]],
) -> Callable[[], None]:
    """One cycle: apply, a short run, restore; the sets take turns."""
    turn = iter(range(1_000_000_000))

    def cycle() -> None:
        asked, scripts = sets[next(turn) % len(sets)]
        machine.apply("killed", asked, scripts)
        run()
        machine.restore()

    return cycle


def to_and_fro(
    machine: Machine, writes: Sequence[Write], scripts: Sequence[Script], times: int
) -> None:
    """One cycle in which what is in force goes out and comes in again."""
    machine.apply("killed", writes, scripts)
    switch = Switch(machine)
    for _ in range(times):
        switch.to("found")
        switch.to("set")
    machine.restore()


def slack(number: int, enough: int) -> int:
    """How much longer a cycle may live on a busy machine, else no kill reaches its end."""
    return (1, 4, 16)[min(number // enough, 2)]


def fake_root_kills(folder: Path, kills: int = 1000) -> None:
    """Kill cycles of typed settings, and of scripts with an undo that change settings and /etc.

    Typed cycles take some 5 ms and scripted ones some 15 ms here: 0 … 25 ms reaches all of both.
    """
    fake = fake_root.make(folder)
    asked = fake_root.writes(
        [(path, str(number)) for number, path in enumerate(fake_root.SETTINGS)]
    )
    script = """
    echo 1 > $ROOT/proc/sys/vm/swappiness
    echo always > $ROOT/sys/kernel/mm/transparent_hugepage/enabled
    echo 'vm.swappiness = 1' > $ROOT/etc/sysctl.d/99-new.conf
    echo '# other' > $ROOT/etc/sysctl.conf
    rm $ROOT/etc/security/limits.d/90.conf
    echo 4096 > $ROOT/sys/block/vda/queue/read_ahead_kb
    """
    undo = """
    rm -f $ROOT/etc/sysctl.d/99-new.conf; echo 60 > $ROOT/proc/sys/vm/swappiness
    echo 7 > $ROOT/proc/sys/vm/dirty_ratio
    echo madvise > $ROOT/sys/kernel/mm/transparent_hugepage/enabled
    """
    scripts = [fake.script("apply", script), fake.script("uninstall", undo)]
    rng, phases = random.Random(SEED), collections.Counter[str]()
    while phases.total() < kills or (
        kills >= EVERY_PHASE and not phases.keys() >= PHASES and phases.total() < 3 * kills
    ):
        number = phases.total()
        sets = [(asked, ()), ((), scripts)][:: rng.choice([1, -1])]
        machine = fake.machine()
        if number % 2:
            cycles(machine, lambda: None, [(asked, ())])()
        kill_once(
            rng, 0.025 * slack(number, kills), cycles(machine, lambda: time.sleep(0.002), sets)
        )
        phases[phase(fake.state)] += 1
        result = fake.machine().restore()
        found = (
            fake.wrong(),
            result.stuck,
            result.left_alone,
            result.damaged,
            [*{*fake.state.glob("*")} - {fake.state / "journal.closed"}],
        )
        assert found == ({}, {}, {}, "", []), f"kill {number}: {found}"
    time.sleep(0.2)
    assert fake.wrong() == {}, "a script of a killed run went on"
    print(f"{phases.total()} kills on a fake root: {dict(phases)}")
    assert kills < EVERY_PHASE or phases.keys() >= PHASES, (
        f"never killed in {PHASES - phases.keys()}"
    )


def real_kernel_kills(folder: Path, kills: int = 200) -> None:
    """Kill cycles of twenty sysctls and of scripts (THP, read-ahead); compare the whole machine."""
    tunables = Tunables()
    pristine = tunables.snapshot()
    asked = [
        Write(sysctl_path(key), value, key)
        for key, _, value in (pair.partition("=") for pair in HARMLESS.split())
    ]
    asked = [
        write for write in asked if not same(pristine.get(write.path, write.value), write.value)
    ]
    assert len(asked) > 10, (
        "most of these stand there already: this machine was not as one finds it"
    )
    ahead = next((path for path in pristine if path.endswith("/queue/read_ahead_kb")), "/dev/null")
    kept = {path: pristine[path] for path in (ahead,) if path in pristine}
    scripts = [
        Script(
            "thp",
            "apply",
            f"echo always > {THP}/enabled; echo always > {THP}/defrag; echo 4096 > {ahead}",
        ),
        Script(
            "thp", "uninstall", f"echo never > {THP}/enabled; echo {kept.get(ahead, 0)} > {ahead}"
        ),
    ]
    rng, phases = random.Random(SEED), collections.Counter[str]()
    try:
        while phases.total() < kills or (
            not phases.keys() >= PHASES and phases.total() < MOST_KILLS
        ):
            number = phases.total()
            machine = Machine(folder=folder)
            # its list of files is the parent's, so that a child is soon in the midst of it
            machine.tunables = tunables
            # A typed cycle takes 35 ms here, 12 ms once it is known what it touches, one of scripts
            # 100 ms; every other kill goes to typed ones, whose steps are the shortest.
            sets, longest_s = (
                ([(asked, ())], 0.08) if number % 2 else ([((), scripts), (asked, ())], 0.16)
            )
            # What chance has not hit by then is aimed at, in first cycles of typed settings.
            rare = {"begin", "wrote"} - phases.keys() if number >= kills else set()
            if rare:
                sets, longest_s = [(asked, ())], 0.0
            elif number % 4 > 1:
                cycles(machine, lambda: None, [(asked, ())])()
            kill_once(
                rng,
                longest_s * slack(number, kills),
                cycles(
                    machine,
                    lambda: subprocess.run(
                        ["sha256sum", __file__], capture_output=True, check=True
                    ),
                    sets,
                ),
                partial(is_passed, folder, rare) if rare else lambda: True,
            )
            phases[phase(folder)] += 1
            result = Machine(folder=folder).restore()
            found = (
                result.stuck,
                result.left_alone,
                result.damaged,
                [*{*folder.glob("*journal*")} - {folder / "journal.closed"}],
                diff(pristine, tunables.snapshot()),
            )
            assert found == ({}, {}, "", [], {}), f"kill {number}: {found}"
        time.sleep(0.2)
        assert diff(pristine, tunables.snapshot()) == {}, "a script of a killed run went on"
    finally:
        Machine(folder=folder).restore()
    print(f"{phases.total()} kills on the real kernel: {dict(phases)}")
    assert kills < EVERY_PHASE or phases.keys() >= PHASES, (
        f"never killed in {PHASES - phases.keys()}"
    )


if __name__ == "__main__":
    stop_like_ctrl_c()
    # The tests hold the kernel: it ends with them, and puts back what is in force.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    kill_many, where = (
        {"fake_root": fake_root_kills, "real_kernel": real_kernel_kills}[sys.argv[1]],
        Path(sys.argv[2]),
    )
    (where / "scripts").mkdir()
    tempfile.tempdir = str(where / "scripts")  # those of the killed leave nothing in /tmp
    kill_many(where, *map(int, sys.argv[3:]))
