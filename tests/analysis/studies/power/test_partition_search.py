"""Our partitioner: within the cap, no worse than profiled, mixed where better, deterministic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.terms import Refused
from control.power.search import best
from control.power.terms import Infeasible
from tests.analysis.studies.power.toy import GPU, Toy, by_memory, partition

if TYPE_CHECKING:
    from control.power.terms import Floats, Partition

SMALL = tuple(
    partition(*[(share, batch)] * count)
    for share in (20.0, 40.0)
    for batch in (8, 64)
    for count in (1, 2)
)


BOTH = by_memory(Toy(9501.0, SMALL), Toy(5001.0, SMALL))
CLOCKS = np.array([mhz for mhz in GPU.sm_mhz if mhz <= GPU.anchor_mhz])


def tried(
    models: Iterable[Toy], partitions: Iterable[Partition], cap_w: float, slo_ms: float = np.inf
) -> float:
    """The highest throughput within cap and latency over each partition and clock, or -inf."""
    highest = -np.inf
    for model in models:
        for one in partitions:
            anchor = model.anchor([one])
            throughput = model.throughput_images_per_s(anchor, CLOCKS)
            slowest = max(
                1000 * b * sum(one.shares) / p for p, b in zip(one.shares, one.batches, strict=True)
            )
            within = (model.power_w(anchor, CLOCKS) <= cap_w) & (slowest / throughput <= slo_ms)
            highest = max(highest, float(throughput[within].max(initial=-np.inf)))
    return highest


@given(
    cap_w=st.floats(80, 300),
    margin_w=st.sampled_from([0.0, 3.0]),
    guard=st.sampled_from([None, 1.1]),
    falling=st.booleans(),
    slo_ms=st.none() | st.floats(5, 400),
)
def test_the_answer_is_the_best_of_all_that_stay_below_the_cap(
    cap_w: float,
    margin_w: float,
    guard: float | None,
    falling: bool,  # noqa: FBT001
    slo_ms: float | None,
) -> None:
    models = {mhz: replace(one, falling=falling) for mhz, one in BOTH.items()}
    highest = tried(models.values(), SMALL, (cap_w - margin_w) / (guard or 1.0), slo_ms or np.inf)
    asked: dict[str, Any] = {
        "network": "none",
        "margin_w": margin_w,
        "guard": guard,
        "slo_ms": slo_ms,
    }
    if highest == -np.inf:
        with pytest.raises(Infeasible):
            best(models, GPU, cap_w, **asked)
        return
    found = best(models, GPU, cap_w, **asked)
    assert (guard or 1.0) * found.power_w + margin_w <= cap_w
    assert found.feasible
    assert found.setting.sm_mhz in CLOCKS
    assert found.setting.partition in SMALL
    assert found.throughput_images_per_s == pytest.approx(highest)


def test_no_batch_is_searched_that_does_not_fit_into_memory() -> None:
    """vgg19 takes at most 160 images per process; the model, unaware of it, prefers 256."""
    for network, most in (("resnet50", 256), ("vgg19", 160)):
        model = Toy(network=network)
        found = best(by_memory(model), GPU, 1000.0, network=network)
        assert max(found.setting.partition.batches) <= most


def test_clocks_end_where_the_model_was_fitted() -> None:
    found = best(
        by_memory(replace(Toy(), sm_range_mhz=(300.0, 1290.0))), GPU, 1000.0, network="none"
    )
    assert found.setting.sm_mhz == 1290
    with pytest.raises(Refused, match="fitted from 1 to 2"):
        best(by_memory(replace(Toy(), sm_range_mhz=(1.0, 2.0))), GPU, 1000.0, network="none")


@pytest.mark.parametrize("margin_w", [0.0, 5.0])
def test_an_impossible_cap_is_answered_with_the_smallest_cap(margin_w: float) -> None:
    models = by_memory(Toy(9501.0, SMALL), Toy(5001.0, SMALL))
    with pytest.raises(Infeasible, match="smallest feasible cap") as refused:
        best(models, GPU, 30.0, network="none", margin_w=margin_w)
    smallest_w = refused.value.smallest_cap
    assert smallest_w is not None
    assert best(models, GPU, smallest_w, network="none", margin_w=margin_w).setting.mem_mhz == 5001
    printed_w = float(str(refused.value).split(" is ")[-1].removesuffix(" W."))
    assert 0 <= printed_w - smallest_w <= 0.011
    with pytest.raises(Infeasible) as again:
        best(models, GPU, float(np.nextafter(smallest_w, 0)), network="none", margin_w=margin_w)
    assert again.value.smallest_cap == smallest_w


@pytest.mark.parametrize("silent", ["power_w", "throughput_images_per_s"])
def test_what_the_model_cannot_say_is_never_chosen(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 1000 MHz the model gives nothing."""
    said: Callable[..., Floats] = getattr(Toy, silent)
    monkeypatch.setattr(
        Toy,
        silent,
        lambda model, anchor, sm_mhz: np.where(sm_mhz > 1000, np.nan, said(model, anchor, sm_mhz)),
    )
    found = best(by_memory(Toy(5001.0, SMALL)), GPU, 1000.0, network="none")
    assert found.setting.sm_mhz == 990
