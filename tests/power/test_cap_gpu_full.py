"""Change and put back a GPU's clocks, power limit and MPS, on an NVML stand-in that keeps them.

Also after SIGKILL, by the next process. Everything else is real: nvidia-ml-py, the journal, the
processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.kernel import gpus
from fixtures.process.proc import started
from fixtures.terms import Refused
from tests.telemetry.test_nvml import library
from tests.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.needs("cc", "root")]
HERE = Path(__file__).parent
UUID = "GPU-00000000-0000-0000-0000-000000000000"
AS_FOUND = "250000 0 0"
TENANTS = [{"share_percent": 25, "batch": 2}, {"share_percent": 50, "batch": 2}]
# What the daemon is to its callers: it stays behind, has its process id in its folder, and ends
# when it is told to.
DAEMON = """\
#!/bin/sh
case "$1" in
-d) setsid "$0" serve </dev/null >/dev/null 2>&1 &
    echo $! > "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid" ;;
serve) while [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/quit" ]; do sleep 0.02; done
    rm "$CUDA_MPS_PIPE_DIRECTORY/quit" ;;
*) read -r word; [ "${word%% *}" = quit ] && : > "$CUDA_MPS_PIPE_DIRECTORY/quit" ;;
esac
"""
Json = dict[str, Any]


class Machine:
    """A folder with a GPU's settings, a state folder, and what is on the path."""

    def __init__(self, folder: Path, driver: Path) -> None:
        self.state, self.settings, self.bin = folder / "state", folder / "gpu", folder / "bin"
        self.bin.mkdir()
        self.settings.write_text(AS_FOUND + "\n")
        self.environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(driver),
            "FAKE_NVML_STATE": str(self.settings),
            "DEEPTWEAK_STATE_DIR": str(self.state),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "PYTHONPATH": str(HERE.parents[1]),
        }

    @property
    def gpu(self) -> str:
        """Power limit (mW), locked clocks (MHz, 0 is free)."""
        return self.settings.read_text().strip()

    @property
    def journal(self) -> Path:
        return self.state / gpus.NAME

    def with_mps(self) -> None:
        (self.bin / gpus.CONTROL).write_text(DAEMON)
        (self.bin / gpus.CONTROL).chmod(0o755)

    def daemon(self) -> bool:
        """Return whether one runs."""
        pid = self.state / "mps" / f"{gpus.CONTROL}.pid"
        return pid.exists() and Path(f"/proc/{pid.read_text().strip()}").exists()

    def run(self, *settings: Json, kill: bool = False, **fake: str) -> list[Json]:
        """Apply settings in the back-end, then close it, or `kill` it; return its words."""
        environment = {
            **self.environment,
            **{f"FAKE_NVML_{name}": value for name, value in fake.items()},
        }
        command = [
            sys.executable,
            str(HERE / "gpu_full_by_stand_in.py"),
            *map(json.dumps, settings),
        ]
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        said: list[Json] = []
        while kill and (not said or "observed" not in said[-1]):
            said.append(json.loads(process.stdout.readline()))
        if kill:
            process.kill()
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == (-signal.SIGKILL if kill else 0)
        return said + [json.loads(line) for line in out.splitlines()]

    def tidy(self, **fake: str) -> Json:
        """Tidy up as the next run does first."""
        code = (
            "import json\nfrom fixtures.studies.power import leftovers\nfrom fixtures.terms "
            "import Refused\n"
            "try: print(json.dumps({'lines': leftovers.put_back()}))\nexcept Refused as error: "
            "print(json.dumps({'refused': str(error)}))"
        )
        environment = {
            **self.environment,
            **{f"FAKE_NVML_{name}": value for name, value in fake.items()},
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found: Json = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def machine(tmp_path: Path, driver: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, driver)
    yield made
    made.tidy()
    until(lambda: not made.daemon())


def setting(
    sm_mhz: float | None = 1200.0, mem_mhz: float | None = None, power_limit_w: float | None = None
) -> Json:
    return {
        "tenants": TENANTS,
        "sm_mhz": sm_mhz,
        "mem_mhz": mem_mhz,
        "power_limit_w": power_limit_w,
    }


def said(lines: Sequence[Json], what: str) -> Any:
    return next(line[what] for line in lines if what in line)


def test_what_is_set_is_in_force_and_put_back_at_the_end(machine: Machine) -> None:
    lines = machine.run(setting(1200.0, 5001.0, 150.0), kill=True)
    assert machine.gpu == "150000 1200 5001"
    applied = said(lines, "applied")
    assert applied["refused"] == [
        (
            "shares: nvidia-cuda-mps-control is not installed: without it, processes take turns "
            "on the GPU and cannot have shares"
        )
    ]
    assert (
        applied["actual"]["sm_mhz"],
        applied["actual"]["mem_mhz"],
        applied["actual"]["power_limit_w"],
    ) == (1200.0, 5001.0, 150.0)
    assert said(lines, "observed")["sm_mhz"] == 1200.0
    machine.tidy()
    machine.run(setting(1200.0, 5001.0, 150.0))
    assert machine.gpu == AS_FOUND
    assert not machine.journal.exists()


def test_what_is_not_asked_for_any_more_is_as_it_was_found(machine: Machine) -> None:
    machine.run(setting(1200.0, 5001.0, 150.0), setting(1350.0), kill=True)
    assert machine.gpu == "250000 1350 0"


@pytest.mark.parametrize(
    ("refuses", "knob", "left"),
    [
        ("sm=1350", "sm_mhz", "150000 1200 5001"),
        ("limit=150000", "power_limit_w", "250000 1350 5001"),
    ],
)
def test_what_the_driver_refuses_is_said_and_not_taken_for_set(
    machine: Machine, refuses: str, knob: str, left: str
) -> None:
    lines = machine.run(
        setting(1200.0, 5001.0), setting(1350.0, 5001.0, 150.0), kill=True, REFUSES=refuses
    )
    last = [line["applied"] for line in lines if "applied" in line][-1]
    assert [one for one in last["refused"] if one.startswith(f"{knob}: the driver refused ")]
    assert last["actual"][knob] == {"sm_mhz": 1200.0, "power_limit_w": None}[knob]
    assert machine.gpu == left


def test_the_gpu_of_a_killed_run_is_restored_from_its_journal(
    machine: Machine,
) -> None:
    machine.run(setting(1200.0, 5001.0, 150.0), kill=True)
    assert machine.gpu == "150000 1200 5001"
    assert machine.journal.exists()
    lines = machine.tidy()["lines"]
    assert machine.gpu == AS_FOUND
    assert not machine.journal.exists()
    assert f"{UUID} power_limit_mw: 150000 -> 250000" in lines
    assert f"{UUID} sm_mhz: locked -> free" in lines
    assert machine.tidy() == {"lines": []}


def test_a_limit_set_by_another_program_is_left_alone(machine: Machine) -> None:
    machine.run(setting(1200.0, None, 150.0), kill=True)
    machine.settings.write_text("200000 1200 0\n")
    lines = machine.tidy()["lines"]
    assert machine.gpu == "200000 0 0"
    assert (
        f"{UUID} power_limit_mw: is 200000, not 150000 as the killed run left it; not changed"
        in lines
    )


class Bindings:
    """NVML's calls on one GPU, with a limit in multiples of 5 W, up to 240 W."""

    NVMLError = RuntimeError

    def __init__(self) -> None:
        self.limit_mw, self.sm_mhz = 250_000, 0
        vars(self).update(
            nvmlDeviceGetHandleByUUID=bytes,
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0,
            nvmlDeviceGetPowerManagementLimit=lambda _: self.limit_mw,
            nvmlDeviceSetPowerManagementLimit=self._limit,
            nvmlDeviceSetGpuLockedClocks=self._lock,
            nvmlDeviceResetGpuLockedClocks=lambda _: self._lock(b"", 0, 0),
        )

    def _limit(self, _: bytes, value: int) -> None:
        self.limit_mw = value if value == 250_000 else min(value - value % 5000, 240_000)

    def _lock(self, _: bytes, least: int, most: int) -> None:
        self.sm_mhz = max(least, most) % 2**32


@pytest.fixture
def changed(tmp_path: Path) -> tuple[gpus.Gpus, Bindings]:
    """A GPU whose state is in a journal, and what the driver has of it."""
    made, bindings = gpus.Gpus(tmp_path), Bindings()
    vars(made)["_nvml"] = bindings
    made.begin([UUID], None)
    return made, bindings


@pytest.mark.parametrize("asked_mw", [123_456, 999_000])
def test_a_limit_that_the_driver_rounds_or_clamps_is_restored(
    changed: tuple[gpus.Gpus, Bindings], asked_mw: int
) -> None:
    made, driver = changed
    in_force_mw = min(asked_mw // 5000 * 5000, 240_000)
    assert (
        made.set(UUID, "power_limit_mw", asked_mw)
        == f"set to {asked_mw}, but the driver reports {in_force_mw}"
    )
    assert made.limit_mw(UUID) == in_force_mw
    assert made.restore().back == {f"{UUID} power_limit_mw": (f"{in_force_mw}", "250000")}
    assert (driver.limit_mw, made.journal.path.exists()) == (250_000, False)


@pytest.mark.parametrize("value", [-5, 0, 2**32 + 1200, float("nan"), None])
def test_an_impossible_value_is_neither_journaled_nor_set(
    changed: tuple[gpus.Gpus, Bindings], value: int | None
) -> None:
    """-5 would lock clocks at 4294967291 MHz."""
    made, driver = changed
    for knob in ("power_limit_mw", "sm_mhz"):
        if value is not None or knob != "sm_mhz":
            assert "is not a valid value" in str(made.set(UUID, knob, value))
    assert (len(made.journal.read()), driver.limit_mw, driver.sm_mhz) == (1, 250_000, 0)
    made.restore()


def test_a_journal_with_such_a_number_is_put_back_all_the_same(
    changed: tuple[gpus.Gpus, Bindings],
) -> None:
    made, driver = changed
    made.set(UUID, "power_limit_mw", 150_000)
    made.journal.add({"record": "write", "gpu": UUID, "knob": "sm_mhz", "value": -5})
    driver.sm_mhz = 2**32 - 5
    assert not made.restore().stuck
    assert (driver.limit_mw, driver.sm_mhz, made.journal.path.exists()) == (250_000, 0, False)


def test_a_zombie_run_is_no_longer_alive(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        began = started(process.pid)
        begin = {
            "record": "begin",
            "version": 1,
            "pid": process.pid,
            "started": began,
            "begun_utc": "",
            "power_limit_mw": {},
            "mps": None,
        }
        made = gpus.Gpus(tmp_path)
        made.journal.begin(begin)
        assert made.alive()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{process.pid}/stat").exists()
        assert (started(process.pid), made.alive()) == (None, False)
        gpus.tidy(tmp_path)
        assert not made.journal.path.exists()


def test_what_cannot_be_put_back_keeps_the_journal_and_is_said(machine: Machine) -> None:
    machine.run(setting(1200.0, None, 150.0), kill=True)
    assert "cannot be restored" in machine.tidy(REFUSES="limit")["refused"]
    assert machine.journal.exists()
    machine.tidy()
    assert (machine.gpu, machine.journal.exists()) == (AS_FOUND, False)


def test_a_run_that_is_at_work_is_not_put_back_by_another(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LD_LIBRARY_PATH", "DEEPTWEAK_STATE_DIR"):
        monkeypatch.setenv(name, machine.environment[name])
    begin = {
        "record": "begin",
        "version": 1,
        "pid": os.getpid(),
        "started": started(os.getpid()),
        "begun_utc": "",
    }
    kept = gpus.Gpus(machine.state)
    kept.journal.begin({**begin, "power_limit_mw": {UUID: 250000}, "mps": None})
    assert kept.alive()
    assert machine.tidy() == {"lines": []}
    assert machine.journal.exists()
    kept.journal.close()


def test_clocks_that_somebody_has_set_are_not_changed(machine: Machine) -> None:
    assert "another program has set its clocks" in said(
        machine.run(setting(), REASONS="2"), "refused"
    )
    assert (machine.gpu, machine.journal.exists()) == (AS_FOUND, False)


def test_mps_gives_each_tenant_its_share_and_ends_with_the_run(
    machine: Machine,
) -> None:
    machine.with_mps()
    lines = machine.run(setting())
    shares = [one["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] for one in said(lines, "environment")]
    assert shares == ["25", "50"]
    assert said(lines, "applied")["refused"] == []
    assert said(lines, "environment")[0]["CUDA_MPS_PIPE_DIRECTORY"] == str(machine.state / "mps")
    until(lambda: not machine.daemon())


def test_the_daemon_of_a_killed_run_is_ended(machine: Machine) -> None:
    machine.with_mps()
    machine.run(setting(), kill=True)
    assert machine.daemon()
    machine.tidy()
    assert not machine.daemon()
    assert machine.gpu == AS_FOUND


@pytest.mark.parametrize(
    "line",
    [
        '{"record": "beg',
        '{"record": "write", "gpu": "GPU-0000000000", "knob": "sm_mhz", "value": 1}',
        '{"record": "begin", "version": 2}',
        (
            '{"record": "begin", "version": 1, "pid": 1, "started": 1, "power_limit_mw": {"../x": '
            '1}, "mps": null}'
        ),
        (
            '{"record": "begin", "version": 1, "pid": 1, "started": 1, "power_limit_mw": '
            '{"GPU-00000000": "much"}, "mps": null}'
        ),
        (
            '{"record": "begin", "version": 1, "pid": "me", "started": 1, "power_limit_mw": {}, '
            '"mps": null}'
        ),
        "[]",
    ],
)
def test_an_edited_or_torn_journal_is_refused(tmp_path: Path, line: str) -> None:
    """Nothing of it is carried out.

    A journal appears whole or not at all: something else has torn it.
    """
    journal, is_torn = tmp_path / gpus.NAME, line.endswith("beg")
    journal.write_text(line + "\n" * (not is_torn))
    journal.chmod(0o600)
    with pytest.raises(
        Refused, match=r"line 1: not a journal record" + r" \(it is incomplete\)" * is_torn
    ):
        gpus.tidy(tmp_path)
    assert journal.exists()


def test_a_gpu_whose_limit_cannot_be_asked_is_not_changed(machine: Machine) -> None:
    assert "its state cannot be read" in said(
        machine.run(setting(), UNSUPPORTED="limit"), "refused"
    )
    assert machine.gpu == AS_FOUND


def test_a_failed_mps_start_is_reported_and_changes_nothing(machine: Machine) -> None:
    (machine.bin / gpus.CONTROL).write_text(
        "#!/bin/sh\necho 'An instance of this daemon is already running' >&2\nexit 1\n"
    )
    (machine.bin / gpus.CONTROL).chmod(0o755)
    assert "MPS cannot be started: An instance of this daemon" in said(
        machine.run(setting()), "refused"
    )
    assert (machine.gpu, machine.journal.exists()) == (AS_FOUND, False)
