"""The agent, as the harness has it on a node: a process asked over two pipes.

Whoever dies, the node is put back.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from fixtures import host
from fixtures.kernel.lock import LENT
from fixtures.kernel.machine import ChangeSet, Restored, Write
from fixtures.kernel.tunables import Tunables
from fixtures.kubernetes.wire import from_json, to_json
from fixtures.terms import Script, Telemetry, Tweak, TweakSet
from fixtures.tweaks.local import Plan
from tests.cluster.simulated_agents import AGENT
from tests.fake_root import CONFIG, SETTINGS, FakeRoot, plain, writes
from tests.programs import python
from tests.waiting import PATIENCE_S, cpu_s, state, until

HOUSE = Path(__file__).parents[2]
SWAPPINESS, RATIO = "/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_ratio"
LEFT_BEHIND = "/etc/sysctl.d/999-tuning-tuning.conf"
pytestmark = pytest.mark.needs("session", "root")


class Client:
    """One agent, asked a line at a time. `process` is the agent's own."""

    def __init__(
        self, folder: Path, root: Path, *options: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = folder / f"log-{time.monotonic_ns()}"
        program = ("-m", "fixtures.kubernetes.node_agent") if root == Path("/") else ("-c", AGENT)
        own = {
            "DEEPTWEAK_HOST_ROOT": str(root),
            "DEEPTWEAK_STATE_DIR": str(folder / "state"),
            LENT: str(os.getpid()),
        }
        with self.log.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, *program, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                cwd=HOUSE,
                env={**os.environ, **own, **(env or {})},
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to, self.out = self.process.stdin, self.process.stdout
        self.number = 0

    def answer(self, line: bytes) -> dict[str, Any]:
        self.to.write(line + b"\n")
        self.to.flush()
        answer: dict[str, Any] = json.loads(self.out.readline())
        return answer

    def ask(self, do: str, **asked: Any) -> Any:
        self.number += 1
        answer = self.answer(json.dumps({"id": self.number, "do": do, **asked}).encode())
        assert answer.pop("id") == self.number
        return answer.get("ok", answer)

    def begin(self, values: list[tuple[str, str]], mode: str = "agent") -> Any:
        return self.ask("begin", label="x", writes=to_json(writes(values)), mode=mode)

    def said(self) -> str:
        """How it ended: the last line of its log."""
        self.process.wait(PATIENCE_S)
        return self.log.read_text().splitlines()[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for end in (self.to, self.out):
            try:
                end.close()
            except BrokenPipeError:  # what the killed one had not read
                continue


@pytest.fixture
def agent(fake: FakeRoot) -> Iterator[Client]:
    with Client(fake.path, fake.root) as client:
        yield client


def in_force(agent: Client, fake: FakeRoot) -> str:
    """Held, begun and carried out; the answer is the copy of the journal."""
    agent.ask("hold")
    copy: str = agent.begin([(SWAPPINESS, "10"), (RATIO, "5")])["begin"]
    agent.ask("carry_out")
    assert (fake.get(SWAPPINESS), fake.get(RATIO)) == ("10", "5")
    return copy


# -- a cell, as it should go


def test_a_cell_from_hold_to_bye(agent: Client, fake: FakeRoot) -> None:
    """The harness has the journal's copy before any write; answers are the local records."""
    assert from_json(Restored, agent.ask("hold")["recovered"]) == Restored()
    copy = agent.begin([(SWAPPINESS, "10")])["begin"]
    assert (fake.wrong(), fake.journal.read_text()) == ({}, copy + "\n")
    effects = from_json(ChangeSet, agent.ask("carry_out"))
    assert effects.changed == {SWAPPINESS: ("60", "10")}
    assert plain(effects.before) == {**SETTINGS, **CONFIG}
    assert agent.ask("values", paths=[SWAPPINESS, "/proc/sys/vm/nosuch"]) == {
        SWAPPINESS: "10",
        "/proc/sys/vm/nosuch": None,
    }
    assert agent.ask("compare") == {
        "compared": len(effects.before),
        "changed": {SWAPPINESS: ["60", "10"]},
    }
    result = from_json(Restored, agent.ask("restore"))
    assert (result.back, result.label) == ({SWAPPINESS: ("10", "60")}, "x")
    assert agent.ask("compare")["changed"] == {}
    fake.must_be_as_found()
    assert agent.ask("bye") == {}
    assert (agent.said(), agent.process.returncode) == ("nothing was left to put back.", 0)


def test_an_operator_s_changes_are_observed_and_put_back(agent: Client, fake: FakeRoot) -> None:
    agent.ask("hold")
    agent.begin([(SWAPPINESS, "10")], "operator")
    fake.put(SWAPPINESS, "10")
    fake.put(LEFT_BEHIND, "vm.swappiness=10\n")
    seen = from_json(ChangeSet, agent.ask("observe")).changed
    assert plain(seen) == {SWAPPINESS: ("60", "10"), LEFT_BEHIND: (None, "vm.swappiness=10\n")}
    assert from_json(Restored, agent.ask("restore")).stuck == {}
    fake.must_be_as_found()


def test_it_says_who_it_is_and_what_a_tweak_set_means_here(agent: Client, fake: FakeRoot) -> None:
    hello = agent.ask("hello")
    assert (hello["protocol"], hello["is_root"], hello["facts"]["boot_id"]) == (
        1,
        os.geteuid() == 0,
        "6a1f0d5e-0000-4000-8000-000000000001",
    )
    assert agent.ask("environment")["boot_id"] == hello["facts"]["boot_id"]
    tweakset = TweakSet(
        "x",
        tweaks=(Tweak("sysctl", "vm.swappiness", "10"), Tweak("ulimit", "core", "0")),
        scripts=(),
    )
    plan = from_json(Plan, agent.ask("plan", tweakset=to_json(tweakset)))
    assert (plan.writes, plan.limits, plan.cannot) == (
        (Write(SWAPPINESS, "10", "vm.swappiness"),),
        {"core": (0, 0)},
        (),
    )
    nosuch = TweakSet(
        "x", tweaks=(Tweak("sysctl", "vm.nosuch", "1"),), scripts=(Script("p", "apply", "true"),)
    )
    assert (
        "vm.nosuch: this kernel has no such setting"
        in from_json(Plan, agent.ask("plan", tweakset=to_json(nosuch))).cannot
    )
    assert fake.wrong() == {}


def test_it_samples_the_workload_of_a_pod(tmp_path: Path) -> None:
    uid, container = "0b7b5c1e-2f4d-4a53-9f0e-6a2f8f3d9b11", "ab" * 32
    burn = "import sys, time\nwhile True: sum(range(10000)); time.sleep(0.001)"
    workload = subprocess.Popen([sys.executable, "-c", burn, "fixtures.workloads.idle"])
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    (root / "sys").symlink_to("/sys")
    # A fake kubelet: all of /proc is the real one, but for what it says of the cgroup.
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            (root / "proc" / entry.name).symlink_to(entry)
    own = root / f"proc/{workload.pid}"
    own.mkdir()
    for name in (
        "cmdline",
        "stat",
        "status",
        "io",
        "task",
        "smaps_rollup",
        "statm",
        "schedstat",
        "sched",
        "fd",
    ):
        (own / name).symlink_to(f"/proc/{workload.pid}/{name}")
    cgroup = (
        f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice"
        f"/cri-containerd-{container}.scope\n"
    )
    try:
        with Client(tmp_path, root) as agent:
            assert agent.ask("sample_begin", pod_uid=uid)["refused"]["message"].startswith(
                "This node is not held yet"
            )
            assert agent.ask("sample_end")["refused"]["message"].startswith(
                "This node is not held yet"
            )
            agent.ask("hold")
            (own / "cgroup").write_text(cgroup)
            begun = agent.ask("sample_begin", pod_uid=uid)
            assert begun["pid"] == workload.pid
            assert begun["limits"]["nofile"] == list(host_limits("Max open files", workload.pid))
            used_s = cpu_s(workload.pid)
            until(lambda: cpu_s(workload.pid) > used_s + 0.1)
            telemetry = from_json(Telemetry, agent.ask("sample_end"))
            assert telemetry.missing.get("process") is None, telemetry.missing
            assert telemetry.summary["process_cpu_percent_mean"] > 0
            assert len(telemetry.columns["t_monotonic_s"]) >= 2
    finally:
        workload.kill()
        workload.wait()


SPEAKS = """
import pathlib, sys
for line in sys.stdin:
    print(pathlib.Path({path!r}).read_text().strip(), flush=True)
"""


@contextlib.contextmanager
def pod_on(fake: FakeRoot, uid: str) -> Iterator[subprocess.Popen[str]]:
    """A workload of a pod; for each word on its stdin it says which swappiness it sees."""
    program = SPEAKS.format(path=str(fake.root / SWAPPINESS.lstrip("/")))
    command = [sys.executable, "-c", program, "fixtures.workloads.idle"]
    workload = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    own = fake.root / f"proc/{workload.pid}"
    own.mkdir()
    for name in ("cmdline", "stat", "status", "fd"):
        (own / name).symlink_to(f"/proc/{workload.pid}/{name}")
    (own / "cgroup").write_text(f"0::/kubepods/pod{uid}/{'ab' * 32}\n")
    try:
        yield workload
    finally:
        workload.kill()
        workload.communicate()
        shutil.rmtree(own)


def joined(agent: Client, name: str, uid: str, values: list[tuple[str, str]]) -> None:
    """A workload has begun under these settings, and waits for its first turn."""
    agent.begin(values)
    agent.ask("carry_out")
    assert agent.ask("turns_join", name=name, pod_uid=uid)["pid"]
    agent.ask("restore")


ONE, OTHER = (f"0b7b5c1e-2f4d-4a53-9f0e-6a2f8f3d9b{number}" for number in (11, 12))


def test_workloads_of_pods_take_turns_under_their_own_settings(
    agent: Client, fake: FakeRoot
) -> None:
    """Both are frozen except in their turn, under that turn's settings; then both are freed."""
    agent.ask("hold")
    with pod_on(fake, ONE) as one, pod_on(fake, OTHER) as other:
        joined(agent, "ten", ONE, [(SWAPPINESS, "10")])
        joined(agent, "stock", OTHER, [])
        until(lambda: (state(one.pid), state(other.pid)) == ("T", "T"))
        agent.begin([(SWAPPINESS, "10")])
        for name, its, value in (("ten", one, "10"), ("stock", other, "60"), ("ten", one, "10")):
            assert agent.ask("turns_begin", name=name)["at_s"] <= time.monotonic()
            assert its.stdout is not None
            assert its.stdout.readline() == f"{value}\n"
            until(lambda: sorted((state(one.pid), state(other.pid))) == ["S", "T"])
            assert agent.ask("turns_end", name=name) == {"others_cpu_s": None}, (
                "a fake root has no processor"
            )
            until(lambda: (state(one.pid), state(other.pid)) == ("T", "T"))
            assert fake.get(SWAPPINESS) == "60"
        fake.put(SWAPPINESS, "77")
        assert "'77' beside a slice" in agent.ask("turns_begin", name="stock")["refused"]["message"]
        fake.put(SWAPPINESS, "60")
        agent.ask("restore")
        assert len(agent.ask("turns_over", windows=[[], []])["telemetry"]) == 2
        assert (
            "takes turns on this node" in agent.ask("turns_begin", name="ten")["refused"]["message"]
        )
        agent.ask("bye")
        agent.said()
        assert (one.poll(), other.poll()) == (None, None)
    fake.must_be_as_found()


def test_a_lone_agent_ends_the_workloads_that_wait_for_a_turn(
    agent: Client, fake: FakeRoot
) -> None:
    agent.ask("hold")
    with pod_on(fake, ONE) as one:
        joined(agent, "ten", ONE, [(SWAPPINESS, "10")])
        agent.begin([(SWAPPINESS, "10")])
        agent.ask("turns_begin", name="ten")
        assert fake.get(SWAPPINESS) == "10"
        agent.to.close()
        assert "was put back" in agent.said()
        assert one.wait(PATIENCE_S) == -signal.SIGKILL
    fake.must_be_as_found()


def host_limits(name: str, pid: int) -> tuple[int, int]:
    """A process's limit as the kernel prints it."""
    found = re.search(rf"(?m)^{name}\s+(\d+)\s+(\d+)", Path(f"/proc/{pid}/limits").read_text())
    assert found
    return int(found[1]), int(found[2])


# -- whoever dies


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_when_it_is_told_to_end_the_node_is_put_back(
    agent: Client, fake: FakeRoot, number: signal.Signals
) -> None:
    in_force(agent, fake)
    agent.process.send_signal(number)
    agent.process.send_signal(number)
    assert agent.said() == f"{number.name}; 'x' was put back: 2 settings."
    assert (agent.process.returncode, fake.wrong(), fake.journal.exists()) == (0, {}, False)


def test_silence_puts_the_node_back(fake: FakeRoot) -> None:
    with Client(fake.path, fake.root, "--silence=3") as agent:
        in_force(agent, fake)
        for _ in range(5):
            time.sleep(0.8)
            assert agent.ask("ping") == {}
        assert fake.get(SWAPPINESS) == "10"
        assert agent.said() == "no request came for 3 s; 'x' was put back: 2 settings."
        fake.must_be_as_found()


def test_an_answer_that_nobody_takes_puts_the_node_back(fake: FakeRoot) -> None:
    with Client(fake.path, fake.root, "--silence=3") as agent:
        in_force(agent, fake)
        many = [f"/proc/sys/vm/nosuch{number}" for number in range(10000)]
        agent.to.write(json.dumps({"id": 1, "do": "values", "paths": many}).encode() + b"\n")
        agent.to.flush()
        assert agent.said().startswith("an answer was not read for 3 s; 'x' was put back")
        assert fake.wrong() == {}


def test_killed_in_between_the_next_one_puts_it_back(fake: FakeRoot) -> None:
    """A kill -9 leaves the journal; the next agent's `hold` finishes and reports it."""
    with Client(fake.path, fake.root) as first:
        in_force(first, fake)
        first.process.kill()
        first.process.wait()
    assert fake.wrong() == {SWAPPINESS: "10", RATIO: "5"}
    with Client(fake.path, fake.root) as second:
        recovered = from_json(Restored, second.ask("hold")["recovered"])
        assert (recovered.back, recovered.label) == (
            {SWAPPINESS: ("10", "60"), RATIO: ("5", "20")},
            "x",
        )
        fake.must_be_as_found()


@pytest.mark.parametrize("ending", ["stdin", "SIGTERM"])
def test_an_operator_s_journal_stays_when_the_harness_dies(
    agent: Client, fake: FakeRoot, ending: str
) -> None:
    """Its pods may still be writing: first their resource must go. The next `hold` finishes it."""
    agent.ask("hold")
    agent.begin([(SWAPPINESS, "10")], "operator")
    fake.put(SWAPPINESS, "10")
    if ending == "stdin":
        agent.to.close()
    else:
        agent.process.terminate()
    assert (
        "was kept, because an operator's pods may still be writing: run `python -m fixtures "
        "restore --target=kubernetes`" in agent.said()
    )
    assert (agent.process.returncode, fake.get(SWAPPINESS), fake.journal.exists()) == (
        2,
        "10",
        True,
    )
    fake.put(LEFT_BEHIND, "vm.swappiness=10\n")
    with Client(fake.path, fake.root) as second:
        recovered = from_json(Restored, second.ask("hold")["recovered"])
        assert (set(recovered.back), recovered.stuck) == ({SWAPPINESS, LEFT_BEHIND}, {})
    assert fake.wrong() == {}


def test_while_a_package_s_step_runs_nothing_is_put_back(agent: Client, fake: FakeRoot) -> None:
    """A pod gone from the API may have a live script: this agent and the next refuse to restore."""
    agent.ask("hold")
    agent.begin([(SWAPPINESS, "10")], "operator")
    step = fake.root / "proc/400"
    step.mkdir(parents=True)
    (step / "cgroup").write_text(
        f"0::/kubepods/besteffort/pod{'0' * 8}-{'0000-' * 3}{'0' * 12}/{'f' * 64}\n"
    )
    (step / "environ").write_text("SKYHOOK_ROOT_DIR=/var/lib/skyhook/dt-0123456789ab-10001\0")
    (step / "cmdline").write_text("sleep\0" + "45\0")
    fake.put(SWAPPINESS, "10")
    assert agent.ask("restore")["refused"]["type"] == "StepRuns"
    agent.process.kill()
    agent.process.wait()
    with Client(fake.path, fake.root) as second:
        assert second.ask("hold")["refused"]["type"] == "StepRuns"
        fake.put(SWAPPINESS, "11")
        shutil.rmtree(step)
        assert from_json(Restored, second.ask("hold")["recovered"]).back == {
            SWAPPINESS: ("11", "60")
        }
    fake.must_be_as_found()


def test_forget_removes_only_the_files_of_our_resources(agent: Client, fake: FakeRoot) -> None:
    """Files and flags, logs; those of other resources stay, and no name leads outside.

    The first process may have a capability that the agent has not, and is closed to it then; a
    container's root is not the node's.
    """
    ours, other = "dt-0123456789ab-10001", "gpu-tuning"
    assert list(agent.ask("forget", names=[ours])["left"]) == [
        f"/var/{folder}/skyhook/{ours}" for folder in ("lib", "log")
    ]
    (fake.root / "proc/7/root/etc").mkdir(parents=True)
    (fake.root / "proc/11/root").mkdir(parents=True)
    (fake.root / "proc/11/root/etc").symlink_to(fake.root / "etc")
    host = fake.root / "proc/11/root/var"
    for folder in ("lib", "log"):
        for name in (ours, other):
            (host / folder / "skyhook" / name / "flags").mkdir(parents=True)
    assert agent.ask("forget", names=[ours, "dt-0123456789ab-10002"]) == {"left": {}}
    assert {path.name for path in host.glob("*/skyhook/*")} == {other}
    for name in (other, "..", f"{ours}/../{other}", ""):
        assert agent.ask("forget", names=[name])["refused"]["type"] == "BadInput"
    assert len(list(host.glob("*/skyhook/*/flags"))) == 2


def test_after_an_operator_s_reboot_the_journal_stays_in_force(fake: FakeRoot) -> None:
    """The reboot ends the agent; the next resumes the given journal id and the found state."""
    with Client(fake.path, fake.root) as first:
        first.ask("hold")
        begin = json.loads(first.begin([], "operator")["begin"])
    fake.reboot()
    fake.put(LEFT_BEHIND, "vm.swappiness=10\n")
    fake.put(SWAPPINESS, "10")
    with Client(fake.path, fake.root) as second:
        assert from_json(Restored, second.ask("hold", keep=begin["id"])["recovered"]) == Restored()
        assert fake.get(LEFT_BEHIND) == "vm.swappiness=10\n"
        assert set(from_json(ChangeSet, second.ask("observe")).changed) == {LEFT_BEHIND, SWAPPINESS}
        assert set(second.ask("compare")["changed"]) == {LEFT_BEHIND, SWAPPINESS}
        second.ask("restore")
    assert (fake.get(LEFT_BEHIND), fake.journal.exists()) == (None, False)


@pytest.mark.parametrize("left_alone", [True, False])
def test_it_remembers_which_journals_it_has_finished(
    agent: Client, fake: FakeRoot, *, left_alone: bool
) -> None:
    """Left alone it puts the node back by itself; a journal that is gone without that was lost."""
    identity = json.loads(in_force(agent, fake))["id"]
    if left_alone:
        agent.to.close()
        agent.process.wait(PATIENCE_S)
    else:
        agent.process.kill()
        agent.process.wait()  # until then it holds the machine
        fake.lose_journal()
    with Client(fake.path, fake.root) as second:
        second.ask("hold")
        assert second.ask("finished", journal=identity) == {"finished": left_alone}
    assert (fake.wrong() == {}) is left_alone


# -- a state folder that is full, or whose files nobody can read


@pytest.mark.parametrize("ending", ["restore", "stdin"])
@pytest.mark.parametrize("trouble", ["bytes", "folder"])
def test_an_unreadable_state_file_does_not_prevent_a_restore(
    agent: Client, fake: FakeRoot, ending: str, trouble: str
) -> None:
    in_force(agent, fake)
    memory = fake.state / "finished"
    if trouble == "bytes":
        memory.write_bytes(b"\xff\xfe\n")
    else:
        memory.unlink()
        memory.mkdir()
    if ending == "restore":
        result = from_json(Restored, agent.ask("restore"))
        assert result.back == {SWAPPINESS: ("10", "60"), RATIO: ("5", "20")}
        assert [note.partition(":")[0] for note in result.notes] == (
            [] if trouble == "bytes" else [str(memory)]
        )
    else:
        agent.to.close()
        assert (
            agent.said()
            == "the harness closed the connection (end of stdin); 'x' was put back: 2 settings."
        )
    fake.must_be_as_found()


# -- what it does not understand, and whom it does not let in


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"id": 7, "do": "pi', "This is not a JSON object"),
        (b"[" * 100000, "This is not a JSON object"),
        (b"7", "This is not a JSON object"),
        (
            b'{"id": 7, "do": "reboot"}',
            (
                r"Unknown verb 'reboot'\. Available: begin, bye, .*, values\. Check that the "
                r"agent's image is from this commit"
            ),
        ),
        (
            b'{"id": 7, "do": "begin", "label": "x", "writes": [], "mode": "skyhook"}',
            "This node is not held yet",
        ),
    ],
)
def test_what_it_does_not_understand_it_says_and_goes_on(
    agent: Client, line: bytes, says: str
) -> None:
    refused = agent.answer(line)["refused"]
    assert re.match(says, refused["message"]), refused
    assert agent.ask("ping") == {}


def test_requests_may_come_in_any_pieces(agent: Client) -> None:
    lines = b"".join(b'{"id": %d, "do": "ping"}\n' % number for number in (1, 2, 3))
    agent.to.write(lines[:-8])
    agent.to.flush()
    for byte in lines[-8:]:
        agent.to.write(bytes([byte]))
        agent.to.flush()
        time.sleep(0.01)
    assert [json.loads(agent.out.readline()) for _ in range(3)] == [
        {"id": number, "ok": {}} for number in (1, 2, 3)
    ]


def test_a_refused_value_is_put_back_and_said(agent: Client, fake: FakeRoot) -> None:
    agent.ask("hold")
    assert agent.begin([("/proc/sys/vm/nosuch", "1")])["refused"]["type"] == "TweakRefused"
    agent.begin([(SWAPPINESS, "10")])
    fake.real(SWAPPINESS).unlink()
    assert agent.ask("carry_out")["refused"]["type"] in {"TweakRefused", "Refused"}


def test_a_mistake_of_its_own_comes_as_a_traceback(agent: Client) -> None:
    assert "Traceback" in agent.ask("values", paths=[5])["broken"]
    assert agent.ask("ping") == {}


def test_two_agents_do_not_share_a_node(agent: Client, fake: FakeRoot) -> None:
    agent.ask("hold")
    assert agent.ask("hold") == {"recovered": to_json(Restored())}, "its own hold is no obstacle"
    with Client(fake.path, fake.root) as second:
        refused = second.ask("hold")["refused"]
        assert refused["type"] == "MachineHeld"
        assert f"process {agent.process.pid} (" in refused["message"]
        assert second.begin([])["refused"]["message"].startswith("This node is not held yet")
        agent.ask("bye")
        agent.process.wait(PATIENCE_S)
        assert "recovered" in second.ask("hold")


def test_a_node_on_which_another_run_measures_is_not_held(agent: Client, fake: FakeRoot) -> None:
    """Its agent is lost, its lock free: lock and journal are untouched until its workload ends."""
    with Client(fake.path, fake.root) as lost:
        in_force(lost, fake)
    container = f"pod0b7b5c1e-2f4d-4a53-9f0e-6a2f8f3d9b11/{'ab' * 32}"
    fake.put("/proc/7/cgroup", f"0::/kubepods/{container}")
    fake.put("/proc/7/cmdline", "python\0-m\0fixtures.workloads.idle\0")
    refused = agent.ask("hold")["refused"]
    assert (refused["type"], "process 7 in pod 0b7b5c1e-2f4d-4a53" in refused["message"]) == (
        "MachineHeld",
        True,
    )
    assert (fake.get(SWAPPINESS), fake.journal.exists()) == ("10", True)
    shutil.rmtree(fake.real("/proc/7"))
    assert from_json(Restored, agent.ask("hold")["recovered"]).label == "x", (
        "the lock was let go of"
    )
    assert fake.wrong() == {}


def test_only_answers_come_on_its_stdout(fake: FakeRoot) -> None:
    """Output of libraries and children goes to the log: it would be taken for an answer."""
    code = """
import os, sys
from fixtures.kubernetes import node_agent as agent
agent.Verbs.do_ping = lambda self: {
    "printed": print("noise"), "status": os.system("echo more noise")
}
agent.main()
"""
    noisy = python(
        code,
        told='{"id": 1, "do": "ping"}\n',
        DEEPTWEAK_HOST_ROOT=str(fake.root),
        DEEPTWEAK_STATE_DIR=str(fake.state),
    )
    assert noisy.stdout == '{"id":1,"ok":{"printed":null,"status":0}}\n'
    assert "noise" in noisy.stderr
    assert "more noise" in noisy.stderr


def test_it_needs_nothing_of_the_cluster() -> None:
    """It starts before anything else can: without the cluster's library or any framework."""
    heavy = (
        "{'kubernetes', 'yaml', 'torch', 'numpy', 'pytest', 'pynvml', 'websocket', 'asyncio', "
        "'logging'}"
    )
    check = (
        f"import sys, fixtures.kubernetes.node_agent; sys.exit(', '.join({heavy} & "
        "sys.modules.keys()) or 0)"
    )
    done = python(check)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pod_s_view_of_a_node_names_its_system(tmp_path: Path) -> None:
    """/etc/os-release links to /usr, which a pod lacks: read the first process's tree."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").symlink_to("../usr/lib/os-release")
    (tmp_path / "proc/1/root/etc").mkdir(parents=True)
    (tmp_path / "proc/1/root/etc/os-release").write_text(
        'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
    )
    assert host.facts(tmp_path)["os"] == "Debian GNU/Linux 12 (bookworm)"


@pytest.mark.usefixtures("kernel_unchanged")
def test_on_the_real_kernel(tmp_path: Path) -> None:
    found = Tunables().read(SWAPPINESS)
    other = "11" if found != "11" else "12"
    try:
        with Client(tmp_path, Path("/")) as first:
            first.ask("hold")
            first.begin([(SWAPPINESS, other)])
            assert from_json(ChangeSet, first.ask("carry_out")).changed == {
                SWAPPINESS: (found, other)
            }
            assert Tunables().read(SWAPPINESS) == other
    finally:
        with Client(tmp_path, Path("/")) as second:
            recovered = from_json(Restored, second.ask("hold")["recovered"])
            second.ask("bye")
    assert (recovered.back, Tunables().read(SWAPPINESS)) == ({SWAPPINESS: (other, found)}, found)
