"""Limits arrive in the kernel's units, whatever unit the file they were written in counts in."""

from __future__ import annotations

import pytest

from fixtures.terms import BadInput, Tweak, TweakSet
from fixtures.tweaks.process import (
    parse_service_limit,
    parse_ulimit,
    rlimits,
    service_limits,
)


@pytest.mark.parametrize(
    ("name", "value", "kernel"),
    [
        ("memlock", "128", 131_072),  # 128 KiB
        ("nofile", "4096", 4096),
        ("cpu", "2", 120),  # minutes
        ("msgqueue", "819200", 819_200),  # bytes
        ("stack", "unlimited", -1),
        ("nproc", "-1", -1),
        ("nice", "-20", 40),  # 20 - nice
        ("nice", "-1", 21),  # of nice alone, -1 is a value
    ],
)
def test_ulimits_are_in_the_units_of_limits_conf(name: str, value: str, kernel: int) -> None:
    assert parse_ulimit(name, value, "x") == kernel


@pytest.mark.parametrize(
    ("directive", "value", "kernel"),
    [
        ("LimitMEMLOCK", "infinity", (-1, -1)),
        ("LimitSTACK", "67108864", (67_108_864, 67_108_864)),  # bytes
        ("LimitSTACK", "8M:64M", (8 << 20, 64 << 20)),
        ("LimitAS", "1.5G", (3 << 29, 3 << 29)),
        ("LimitNOFILE", "1024:infinity", (1024, -1)),
        ("LimitCPU", "90", (90, 90)),
        ("LimitNICE", "-5", (25, 25)),
        ("LimitNICE", "30", (30, 30)),
    ],
)
def test_service_limits_are_in_the_units_of_systemd(
    directive: str, value: str, kernel: tuple[int, int]
) -> None:
    """systemd.exec(5): sizes to base 1024, times in seconds (RTTIME: µs), a signed nice value."""
    assert parse_service_limit(directive, value, "x") == kernel


@pytest.mark.parametrize("value", ["", "-1", "1:", "1:2:3", "9223372036854775808", "٣", "1s"])
def test_what_is_no_limit_is_refused(value: str) -> None:
    """2^63 is one more than the kernel's largest; ٣ is a digit, but no number for systemd."""
    with pytest.raises(BadInput, match="is not a limit"):
        parse_service_limit("LimitNOFILE", value, "x")


def test_a_nice_value_ends_at_20() -> None:
    """One above would be the kernel's word for no limit."""
    assert parse_service_limit("LimitNICE", "+20", "x") == (0, 0)
    with pytest.raises(BadInput, match="is not a limit"):
        parse_service_limit("LimitNICE", "+21", "x")


def test_what_is_no_ulimit_is_refused() -> None:
    """9007199254740993 KiB are more than 2^63 bytes."""
    for value in ("", "1:2", "٣", "8M", "9007199254740993"):
        with pytest.raises(BadInput, match="is not a limit"):
            parse_ulimit("memlock", value, "x")


def test_only_a_container_runtimes_limits_reach_a_workload() -> None:
    """A pod inherits them; other units' limits, and directives that are no limits, do not count."""
    tweakset = TweakSet(
        "x",
        tweaks=(
            Tweak("service", "containerd.LimitNOFILE", "1024:4096"),
            Tweak("service", "containerd.LimitMEMLOCK", "infinity"),
            Tweak("service", "containerd.Nice", "5"),
            Tweak("service", "sshd.LimitCORE", "0"),
            Tweak("ulimit", "memlock", "8"),
        ),
    )
    assert service_limits(tweakset) == {"nofile": (1024, 4096), "memlock": (-1, -1)}
    assert rlimits(tweakset) == {"memlock": (8192, 8192)}
