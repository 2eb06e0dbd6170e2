"""Segments of a process, and the tweak sets that can be switched at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.designs import switch
from fixtures.kernel.machine import Write
from fixtures.targets import unavailable_reason
from fixtures.terms import BadInput, Script, Tweak, TweakSet
from fixtures.tweaks.local import Plan


@given(st.integers(0, 10**6), st.integers(1, 50))
def test_each_pair_has_both_arms_and_half_start_with_each(seed: int, block: int) -> None:
    way = switch.switching(seed, block)
    pairs = list(zip(way.arms[::2], way.arms[1::2], strict=True))
    assert all(set(pair) == {"found", "set"} for pair in pairs)
    assert sum(first == "set" for first, _ in pairs) * 2 == len(pairs) == switch.PAIRS


@given(st.integers(0, 10**6))
def test_the_order_differs_between_processes_and_is_reproducible(seed: int) -> None:
    orders = [switch.switching(seed, block).arms for block in range(1, 9)]
    assert orders == [switch.switching(seed, block).arms for block in range(1, 9)]
    assert len(set(orders)) > 1


def test_steps_are_those_of_a_segment() -> None:
    """32 segments of 2 settle steps and 5 counted ones are 224; without --steps, 8 count."""
    assert (switch.switching(1, 1, 5).total, switch.switching(1, 1).total) == (224, 320)
    with pytest.raises(BadInput, match="--steps=1"):
        switch.switching(1, 1, 1)


def test_monitors_take_many_short_turns() -> None:
    """128 segments of 1 settle step and 4 counted are 640; either arm begins half of 64 pairs."""
    way = switch.switching(1, 1, monitored=True)
    assert (way.total, way.settle, way.steps) == (640, 1, 4)
    assert way.arms[::2].count("set") == 32
    assert switch.switching(1, 1, 2, monitored=True).total == 128 * 3
    with pytest.raises(BadInput, match="the default is 4"):
        switch.switching(1, 1, 1, monitored=True)


def test_a_set_with_a_start_time_setting_is_skipped_whole() -> None:
    plan = Plan(writes=(Write("/proc/sys/vm/swappiness", "10", "vm.swappiness"),))
    sysctl = Tweak("sysctl", "vm.swappiness", "10")
    assert switch.run_time_only(TweakSet("x", tweaks=(sysctl,)), plan) == plan
    for other in (
        Tweak("ulimit", "memlock", "unlimited"),
        Tweak("boot", "isolcpus", "2-3"),
        Tweak("service", "containerd.LimitNOFILE", "1"),
    ):
        (why,) = switch.run_time_only(TweakSet("x", tweaks=(sysctl, other)), plan).cannot
        assert other.key in why
        assert "whole runs" in why


@pytest.mark.parametrize("kind", [None, "noop", "service", "reboot"])
def test_scripts_are_measured_unless_their_package_interrupts(kind: str | None) -> None:
    """Only a run shows whether their changes can take turns; the manifest has a needed restart."""
    interrupt = f"\n      interrupt: {{type: {kind}, services: [containerd]}}" if kind else ""
    text = f"""
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {{name: x}}
spec:
  packages:
    thp:
      version: 1.1.2
      image: ghcr.io/nvidia/skyhook-packages/shellscript
      configMap: {{apply.sh: "true"}}{interrupt}
"""
    scripts = (Script("thp", "apply", "true"),)
    found = switch.run_time_only(
        TweakSet("x", scripts=scripts, text=text), Plan(scripts=scripts)
    ).cannot
    assert [("thp" in why, "its interrupt" in why) for why in found] == (
        [(True, True)] if kind in ("service", "reboot") else []
    )


def test_a_cluster_says_that_it_cannot() -> None:
    assert unavailable_reason("NO_SWITCHING", "local") is None
    assert "whole runs" in str(unavailable_reason("NO_SWITCHING", "kubernetes"))
