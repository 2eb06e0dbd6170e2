"""Lines with loss and delay: the request, the kernel's result, and training over them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import workloads
from fixtures.studies.jobs import network
from fixtures.studies.jobs.network import Link, Passing, Relay
from fixtures.targets._process import run
from fixtures.terms import BadInput, Order, Refused
from tests.waiting import alive, children, doomed, until

HOUSE = Path(__file__).parents[2]


def test_a_packet_goes_on_after_the_delay_and_in_order() -> None:
    passing = Passing(0.25, 0.0, 1)
    for number in range(3):
        passing.take(0, bytes([number]), number / 10)
    passing.take(1, b"back", 0.0)
    assert passing.next_s() == 0.25
    assert passing.due(0, 0.2) is None
    assert [passing.due(0, 0.36), passing.due(0, 0.36), passing.due(0, 0.36)] == [
        b"\0",
        b"\1",
        None,
    ]
    assert passing.next_s() == 0.25, "the other direction waits for itself"
    assert passing.due(1, 0.26) == b"back"
    assert (passing.packets, passing.dropped) == (4, 0)


@given(loss=st.floats(0.001, 0.3), seed=st.integers(0, 1000))
def test_a_relay_loses_packets_at_its_rate_each_by_itself(loss: float, seed: int) -> None:
    """Within 6 standard errors of 4,000 packets; the same seed loses the same ones."""
    lost = []
    for _ in range(2):
        passing = Passing(0.0, loss, seed)
        for number in range(4000):
            passing.take(0, number.to_bytes(2), 0.0)
        passed = []
        while (packet := passing.due(0, 0.0)) is not None:
            passed.append(packet)
        assert passing.dropped == 4000 - len(passed)
        assert abs(passing.dropped - 4000 * loss) <= 6 * (4000 * loss * (1 - loss)) ** 0.5
        lost.append(passed)
    assert lost[0] == lost[1]


@pytest.mark.parametrize(
    ("given_params", "sentence"),
    [
        ({"loss_percent": "31"}, "loss_percent=31: must be a number from 0 to 30"),
        ({"delay_ms": "nan"}, "delay_ms=nan: must be a number from 0"),
        ({"mtu": "1500.5"}, "mtu=1500.5: must be a whole number"),
    ],
)
def test_what_no_line_can_be_is_said(given_params: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        workloads.case("ddp_network", **given_params)


def test_who_answers_a_first_packet_ends_with_whoever_asked() -> None:
    """Killed before an answer: the other end would take ten minutes to enter its namespace."""
    program = (
        "import os, time; from fixtures.studies.jobs import network\n"
        "network.ping('127.0.0.1', lambda: (print(os.getpid(), flush=True), time.sleep(600)))"
    )
    with doomed(program) as (_, pid):
        pass
    until(lambda: not alive(pid))


def test_a_relay_that_is_no_more_is_told() -> None:
    """Whoever killed it: what was measured over it is void, and that is a sentence."""
    one, other = socket.socketpair()
    with Relay((one.detach(), other.detach()), Passing(0.0, 0.0, 1), lambda: None) as relay:
        assert relay.packets()["packets"] is not None
        os.kill(relay.pid, signal.SIGKILL)
        os.waitid(os.P_PID, relay.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(Refused, match="ended before the link was closed"):
            relay.packets()


@pytest.mark.needs("root")
def test_without_rights_it_is_said_what_is_missing() -> None:
    """As another user than root, in this checkout or not: only the message counts."""
    program = (
        "from fixtures.studies.jobs import network; import os; os.setuid(65534); network.unshare()"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Cannot create a network namespace: Operation not permitted. Run as root" in done.stderr


class TestReal:
    """In namespaces of this kernel."""

    pytestmark = pytest.mark.needs("kernel", "namespaces")

    @pytest.fixture(autouse=True)
    def the_hosts_network_is_as_it_was(self) -> Iterator[None]:
        before = [Path(path).read_text() for path in SYSCTLS]
        yield
        assert [Path(path).read_text() for path in SYSCTLS] == before
        assert f"{network.TUN}:" not in Path("/proc/net/dev").read_text()

    @pytest.mark.parametrize(
        ("line", "means", "mss"),
        [
            (Link(), {"namespace"}, 1448),
            (Link(loss_percent=2, congestion="cubic", mtu=9000), {"netem", "iptables"}, 8948),
            (Link(delay_ms=5), {"netem", "tun relay"}, 1448),
        ],
    )
    def test_a_line_is_what_was_asked_for(self, line: Link, means: set[str], mss: int) -> None:
        """The MSS is the MTU - 40 (headers) - 12 (timestamps); a round trip has two delays."""
        assert network.unavailable_reason(line) is None
        found = tried(line)
        assert found["means"] in means
        assert (found["congestion"], found["mss_bytes"]) == (line.congestion, mss)
        assert found["rtt_s"] >= 2 * line.delay_ms / 1e3
        assert (found["stand_in"] is None) == (found["means"] in {"namespace", "netem"})
        assert found["segments_out"] > 0

    def test_unknown_congestion_control_is_refused_with_a_suggestion(self) -> None:
        assert "This kernel has no congestion control 'rino'. Did you mean 'reno'?" in (
            network.unavailable_reason(Link(congestion="rino")) or ""
        )

    @pytest.mark.needs("torch")
    def test_training_over_a_lossy_line_retransmits_segments(self) -> None:
        """As many as are lost: 3 % of thousands of segments, drawn by the kernel.

        Gradients of 256-wide layers, 4 bytes each.
        """
        lossy = trained("3", "0")
        (line,) = lossy.report["line"]
        assert 1.5 <= line["loss_percent_measured"] <= 4.5
        again, out = (
            sum(row[name] for row in lossy.report["network"])
            for name in ("segments_retransmitted", "segments_out")
        )
        assert 0.01 < again / out < 0.1
        assert [row["step"] for row in lossy.report["network"]] == [0, 1, 2]
        first, *_, last = (row["segments_out"] for row in lossy.report["network"])
        assert last < 1.4 * first, "of this step alone"
        assert lossy.facts["compute_s"] > 0
        assert lossy.facts["gradient_bytes"] == 4 * (
            1024 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10
        )

    @pytest.mark.needs("torch")
    def test_training_with_delay_takes_round_trips_and_learns_alike(self) -> None:
        """A step's all-reduce has two phases, so it takes at least two delays of 5 ms each."""
        slow = trained("0", "5")
        assert all(step.wall_s > 0.010 for step in slow.steps)
        (line,) = slow.report["line"]
        assert line["packets"] is None or (line["packets"] > 1000 and line["dropped"] == 0)
        assert [step.loss for step in slow.steps] == [step.loss for step in trained("3", "0").steps]

    @pytest.mark.needs("torch")
    @pytest.mark.parametrize("delay", ["0", "5"])
    def test_nothing_outlives_a_run_that_is_killed(self, delay: str, tmp_path: Path) -> None:
        """Neither rank, nor the process between them."""
        params = json.dumps(workloads.case("ddp_network", hidden=64, delay_ms=delay).params)
        options = (
            "--steps=1000",
            "--warmup=1",
            "--seed=1",
            f"--scratch={tmp_path}",
            f"--params={params}",
        )
        with subprocess.Popen(
            (sys.executable, "-m", "fixtures.workloads.ddp_network", *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=HOUSE,
        ) as process:
            assert process.stdout is not None
            assert b"ready" in process.stdout.readline()
            ended = children(process.pid)
            os.kill(process.pid, signal.SIGKILL)
        assert len(ended) == (2 if delay != "0" and not has_netem() else 1)
        until(lambda: not any(map(alive, ended)))


SYSCTLS = ("/proc/sys/net/ipv4/tcp_congestion_control", "/proc/sys/net/ipv6/conf/all/disable_ipv6")


def tried(line: Link) -> dict[str, Any]:
    words = (
        f"--loss={line.loss_percent:g}",
        f"--delay={line.delay_ms:g}",
        f"--mtu={line.mtu}",
        f"--congestion={line.congestion}",
    )
    done = subprocess.run(
        [sys.executable, "-m", "fixtures.studies.jobs.network", *words],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@cache
def trained(loss: str, delay: str) -> Any:
    case = workloads.case("ddp_network", hidden=256, loss_percent=loss, delay_ms=delay)
    with tempfile.TemporaryDirectory() as scratch:
        result = run(Order(case, steps=3, warmup_steps=1, seed=5, scratch=Path(scratch)))
    assert result.error is None, result.last_lines
    return result


def has_netem() -> bool:
    return str(tried(Link(delay_ms=1))["means"]) == "netem"
