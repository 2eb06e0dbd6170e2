"""What TCP gets through at a loss of packets: the square-root law, and what timeouts make of it.

`loss` is the share of packets lost, `rtt_s` the round trip, `mss_bytes` the largest segment. Both laws are of one long transfer under
Reno's rules, a loss at a time, and of windows that nothing else limits.
"""

from __future__ import annotations

import math

RTO_S = 0.2  # Linux waits at least so long before it sends again what nothing was heard of (TCP_RTO_MIN)
SMALL_WINDOW = 4  # segments: with fewer in flight, three duplicate acknowledgements cannot come, and only a timeout ends a loss


def rate_bit_s(mss_bytes: float, rtt_s: float, loss: float) -> float:
    """Rate by the law MSS/RTT·√(3/2)/√p. Source: Mathis, Semke, Mahdavi & Ott, CCR 27(3), 1997; every segment acknowledged."""
    return 8 * mss_bytes / rtt_s * window(loss)


def window(loss: float) -> float:
    """Segments in flight on average by the same law, √(3/(2p))."""
    return math.sqrt(1.5 / loss)


def rate_with_timeouts_bit_s(mss_bytes: float, rtt_s: float, loss: float, rto_s: float = RTO_S) -> float:
    """Rate with the time that timeouts take. Source: Padhye, Firoiu, Towsley & Kurose, SIGCOMM 1998, eq. 30, every segment acknowledged.

    With `rto_s` 0 it is the law above.
    """
    return 8 * mss_bytes / (rtt_s / window(loss) + _timeouts_s(loss, rto_s))


def timeouts_share(rtt_s: float, loss: float, rto_s: float = RTO_S) -> float:
    """Which part of a transfer's time passes in timeouts, by that law."""
    waited = _timeouts_s(loss, rto_s)
    return waited / (rtt_s / window(loss) + waited)


def _timeouts_s(loss: float, rto_s: float) -> float:
    """Seconds of timeouts for each segment."""
    return max(rto_s, 0.0) * min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
