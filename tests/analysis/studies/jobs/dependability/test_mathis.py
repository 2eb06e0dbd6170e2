"""What TCP gets through at a loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.dependability.network import rate_bit_s, rate_with_timeouts_bit_s, timeouts_share, window

LOSSES, RTTS = st.floats(1e-6, 0.3), st.floats(1e-5, 1.0)


def test_mathis_for_a_percent_at_a_tenth_of_a_second() -> None:
    """1460·8/0.1·√(1.5/0.01) = 1.43050 Mbit/s."""
    assert rate_bit_s(1460, 0.1, 0.01) == pytest.approx(1.43050e6, rel=1e-5)
    assert window(0.01) == pytest.approx(12.2474, rel=1e-5)


@given(loss=LOSSES, rtt_s=RTTS)
def test_timeouts_only_take_time_and_without_them_it_is_mathis(loss: float, rtt_s: float) -> None:
    assert rate_with_timeouts_bit_s(1448, rtt_s, loss, 0) == pytest.approx(rate_bit_s(1448, rtt_s, loss))
    assert rate_with_timeouts_bit_s(1448, rtt_s, loss) == pytest.approx(rate_bit_s(1448, rtt_s, loss) * (1 - timeouts_share(rtt_s, loss)))


def test_padhyes_rate_by_hand() -> None:
    """At p = 1 %, RTT 100 ms, RTO 200 ms: 1/(0.1·√(2/300) + 0.2·3√(3/800)·0.01·1.0032) = 117.18 segments/s."""
    assert rate_with_timeouts_bit_s(1, 0.1, 0.01, 0.2) / 8 == pytest.approx(117.18, rel=1e-4)


def test_on_a_short_round_trip_it_is_timeouts_that_take_the_time() -> None:
    """The loopback of a machine, 50 µs, against a line of 100 ms."""
    assert timeouts_share(50e-6, 0.01) > 0.95
    assert timeouts_share(0.1, 0.01) < 0.05
