"""Arrivals of each kind follow the stated law, repeat per seed, and refuse the impossible."""

from __future__ import annotations

from math import exp, factorial, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from fixtures.studies.jobs import arrivals
from fixtures.studies.jobs.arrivals import TICK_S, TraceRow, fltk_mean_gap_s, mmpp_rates, read_trace
from fixtures.terms import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MANY = 10_000
OPEN = [name for name in arrivals.names() if not arrivals.load(name).closed]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text("submit_s\n" + "".join(f"{number * 0.5}\n" for number in range(40)))
    return path


def times(kind: str, jobs: int = MANY, seed: int = 1, **given: object) -> Floats:
    params = arrivals.complete(kind, {name: str(value) for name, value in given.items()})
    return arrivals.load(kind).times(params, jobs, np.random.default_rng(seed))


def gaps(submit_s: Floats) -> Floats:
    return np.diff(submit_s, prepend=0.0)


def cv2(values: Floats) -> float:
    return float(values.var(ddof=1) / values.mean() ** 2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_poisson_arrivals_are_a_poisson_process(seed: int) -> None:
    """Independent exponential gaps, and counts per second that vary as much as their mean."""
    submit_s = times("poisson", seed=seed, rate_per_s=1)
    found = gaps(submit_s)
    counts = np.bincount(submit_s.astype(int))[:-1]
    assert stats.kstest(found, "expon").pvalue > 0.01
    assert abs(cv2(found) - 1) < 0.09
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.03
    assert abs(counts.var(ddof=1) / counts.mean() - 1) < 0.06
    assert found.mean() == pytest.approx(1, abs=0.03)


def test_fltk_s_gaps_are_poisson_minutes_by_ticks_of_ten_seconds() -> None:
    """Probability of one tick 0.2231, mean 92.231 s, CV² 0.58962: each within 3 standard errors."""
    many = 100_000
    found = gaps(times("fltk", many, lambda_min=1.5) + TICK_S)
    # One tick where the number of minutes is 0, with probability e^-1.5; else that many minutes.
    law = {60.0 * k: exp(-1.5) * 1.5**k / factorial(k) for k in range(1, 40)} | {10.0: exp(-1.5)}
    mean = sum(gap * p for gap, p in law.items())
    central = [sum((gap - mean) ** power * p for gap, p in law.items()) for power in (2, 3, 4)]
    assert mean == pytest.approx(92.231, abs=5e-4)
    assert fltk_mean_gap_s(1.5) == pytest.approx(mean, rel=1e-12)
    assert central[0] / mean**2 == pytest.approx(0.58962, abs=5e-6)
    assert law[10.0] == pytest.approx(0.22313, abs=5e-6)
    # Of CV² = m2/mean², by its derivatives: 1/mean² of m2, -2 m2/mean³ of the mean; Cov(m2, mean) =
    # m3/n.
    ratio = central[0] / mean**2
    spread = (
        (central[2] - central[0] ** 2) / mean**4
        + 4 * ratio**2 * central[0] / mean**2
        - 4 * ratio * central[1] / mean**3
    )
    assert abs(found.mean() - mean) < 3 * sqrt(central[0] / many)
    assert abs(cv2(found) - ratio) < 3 * sqrt(spread / many)
    assert abs((found == 10).mean() - law[10.0]) < 3 * sqrt(law[10.0] * (1 - law[10.0]) / many)


def test_fltk_s_minute_is_as_long_as_makes_its_nominal_rate() -> None:
    """At 4 jobs a second and lambda 1.5 a minute is 1/6 s: the same arrivals, 360 times as fast."""
    assert times("fltk", rate_per_s=4) * 360 == pytest.approx(times("fltk"), rel=1e-12)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mmpp_has_its_rate_and_the_dispersion_of_its_two_states(seed: int) -> None:
    """Var N(t) / E N(t) = 1 + 2v/rate · (b/2 − (1 − e^(−2t/b)) b²/(4t)).

    v is the variance of the rate, b the mean stay. Source: Fischer, Meier-Hellstern, 1993, for two
    states with equal stays.
    """
    rate, burst, stay, window = 5.0, 9.0, 2.0, 4.0
    submit_s = times("mmpp", 200_000, seed, rate_per_s=rate, burst=burst, burst_s=stay)
    low, high = mmpp_rates({"rate_per_s": rate, "burst": burst})
    assert (low, high) == (1.0, 9.0)
    counts = np.bincount((submit_s / window).astype(int))[:-1]
    variance = ((high - low) / 2) ** 2
    dispersion = 1 + 2 * variance / rate * (
        stay / 2 - (1 - exp(-2 * window / stay)) * stay**2 / (4 * window)
    )
    assert dispersion == pytest.approx(5.82931, abs=1e-5)
    assert counts.var(ddof=1) / counts.mean() == pytest.approx(dispersion, rel=0.08)
    assert len(submit_s) / submit_s[-1] == pytest.approx(rate, rel=0.04)


@pytest.mark.parametrize("kind", OPEN)
def test_arrivals_of_one_seed_are_sorted_and_extend_shorter_ones(kind: str, written: Path) -> None:
    given: dict[str, Any] = {"trace": written} if kind == "trace" else {}
    short, long = times(kind, 20, **given), times(kind, 40, **given)
    assert long[:20].tolist() == short.tolist()
    assert (np.diff(long) >= 0).all()
    assert long[0] >= 0


@pytest.mark.parametrize("kind", ["poisson", "deterministic", "fltk", "trace"])
def test_twice_the_rate_is_the_same_arrivals_in_half_the_time(kind: str, written: Path) -> None:
    given: dict[str, Any] = {"trace": written} if kind == "trace" else {}
    assert times(kind, 40, rate_per_s=8, **given) * 2 == pytest.approx(
        times(kind, 40, rate_per_s=4, **given), rel=1e-12
    )


def test_a_trace_says_what_it_knows_of_each_job(tmp_path: Path) -> None:
    """Columns of other programs are passed over, a byte-order mark and blank lines too."""
    path = tmp_path / "trace.csv"
    path.write_text(
        "\ufeffuser,submit_s,class,priority,replicas,work\nann,0,train,-2,4,1.5\n\nbob, 1.25 ,,,,\n"
    )
    assert read_trace(path) == (TraceRow(0.0, "train", -2, 4, 1.5), TraceRow(1.25))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("submit_s\n0\n3\n2.5\n", "line 4: submit_s 2.5 is 0.5 s earlier than in line 3"),
        ("submit_s\n0\nnan\n", "line 3: .*submit_s"),
        ("submit_s\n-1\n", "line 2: .*submit_s"),
        ("submit_s\n1e9\n", "line 2: .*submit_s"),
        ("job,submit_s\n0,1,2\n", "line 2: 3 cells for 2 columns"),
        ("job,start_s\n0,1\n", "no column submit_s; columns: job, start_s"),
        ("submit_s,submit_s\n0,1\n", "duplicate column name"),
        ("submit_s,work\n0,0\n", "line 2: .*work"),
        ("submit_s,replicas\n0,0\n", "line 2: .*replicas"),
        ("submit_s,priority\n0,1.5\n", "line 2: .*priority"),
        ('submit_s,class\n0,"a\n', "line 2: unexpected end of data; a trace must be a CSV file"),
        ("submit_s\n", "contains no job"),
    ],
)
def test_an_invalid_trace_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=f"^{path}: {said}"):
        read_trace(path)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (
            "poison",
            {},
            (
                "Unknown arrivals 'poison'. Did you mean 'poisson'\\? Available: closed, "
                "deterministic, fltk, mmpp, poisson, trace"
            ),
        ),
        ("poisson", {"burst": "3"}, "burst=3: arrivals=poisson takes rate_per_s. Remove it"),
        ("closed", {"rate_per_s": "3"}, "rate_per_s=3: arrivals=closed takes no parameters"),
        ("poisson", {"rate_per_s": "0"}, "rate_per_s=0: must be a number from 1e-09"),
        ("trace", {}, "arrivals=trace needs the parameter trace"),
    ],
)
def test_what_a_kind_does_not_take_is_refused_with_what_it_does(
    kind: str, given: dict[str, str], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        arrivals.complete(kind, given)
