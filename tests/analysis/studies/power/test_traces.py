"""Traces: others' CSV unchanged, typed failures, nothing evaluated, and a round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.power import traces
from analysis.studies.power.traces import PartitionRow
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


HEAD = ",".join(traces.COLUMNS) + "\n"
MEASURED = (
    'resnet50,"[25, 25, 25, 25]","[16, 16, 16, 16]",,5001,1950.0,96.1,87.3,1862.68,285.10,291.86\n'
)
ZEROS = 'vgg19,"[5, 5, 5, 5]","[24, 24, 24, 24]",,9501,0,0,0,0,0,0\n'


def rows(text: str) -> list[PartitionRow]:
    return traces.parse(text, "there.csv")


def test_a_measured_row_has_its_numbers_and_gaps_stay_missing() -> None:
    (row,) = rows(HEAD + MEASURED)
    assert row == PartitionRow(
        "resnet50",
        (25.0,) * 4,
        (16,) * 4,
        mem_mhz=5001.0,
        sm_mhz=1950.0,
        sm_util_percent=96.1,
        mem_util_percent=87.3,
        throughput_images_per_s=1862.68,
        power_mean_w=285.10,
        power_max_w=291.86,
    )
    assert row.target_mhz is None
    assert row.line == 2


def test_a_row_of_zeros_failed_and_has_no_numbers() -> None:
    """Zero images at no watts and no megahertz: out of memory, stored as zeros.

    It is no measurement of 0.
    """
    (row,) = rows(HEAD + ZEROS)
    assert (row.outcome, row.reason) == ("failed", traces.ZEROS)
    assert (
        row.throughput_images_per_s is row.power_max_w is row.sm_mhz is row.sm_util_percent is None
    )
    assert row.mem_mhz == 9501.0


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,15}", fullmatch=True)
VALUES = st.none() | st.floats(0, 1e6, allow_nan=False)
NOTES = st.from_regex(r"[a-z][a-z ,\"'é]{0,20}[a-z]", fullmatch=True).filter(
    lambda text: text not in traces.MISSING
)


@st.composite
def made(draw: st.DrawFn) -> PartitionRow:
    count = draw(st.integers(1, 12))
    shares = draw(st.lists(st.floats(0.5, 100), min_size=count, max_size=count))
    batches = draw(st.lists(st.integers(1, 4096), min_size=count, max_size=count))
    extra = draw(
        st.dictionaries(st.sampled_from([*traces.OURS[2:4], "note"]), st.floats(0, 4) | NOTES)
    )
    extra |= draw(
        st.fixed_dictionaries(
            {}, optional={"throttle": st.floats(0.001, 1.0), "cpu_s_per_s": st.floats(0, 64)}
        )
    )
    outcome = draw(st.sampled_from(traces.OUTCOMES))
    numbers = {name: draw(VALUES) for name in traces.NUMBERS.values()}
    if outcome != "measured":
        numbers = {
            name: value if name in {"target_mhz", "mem_mhz"} else None
            for name, value in numbers.items()
        }
    reason = "" if outcome == "measured" else draw(NOTES)
    said = {"outcome": outcome, "reason": reason, "extra": extra}
    return PartitionRow(
        draw(NAMES),
        tuple(shares),
        tuple(batches),
        **numbers,  # type: ignore[arg-type]
        **said,  # type: ignore[arg-type]
    )


def not_zeros(row: PartitionRow) -> bool:
    values = [
        getattr(row, name)
        for name in traces.NUMBERS.values()
        if name not in {"target_mhz", "mem_mhz"}
    ]
    return (
        row.outcome != "measured" or any(values) or sum(value is not None for value in values) < 2
    )


@given(st.lists(made().filter(not_zeros), max_size=5))
def test_what_is_written_is_read(some: list[PartitionRow]) -> None:
    assert traces.parse(traces.as_csv(some), "x") == some


@given(
    st.text(max_size=200)
    | st.text("model_namep_listb_list,\n[]0123456789.\"'-", max_size=120).map(
        lambda text: HEAD + text
    )
)
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        found = rows(text)
    except Unreadable as refused:
        assert str(refused).startswith("there.csv: ")  # noqa: PT017  # either answer is right
    else:
        assert all(len(row.shares) == len(row.batches) for row in found)


UNREADABLE = [
    "",
    "a,b\n1,2\n",
    "model_name,p_list,b_list,b_list\n",
    "model_name,p_list,b_list\nm,[25, 25],[8, 8]\n",
    'model_name,p_list,b_list\nm,"[25, 25]",[8]\n',
    "model_name,p_list,b_list\nm,\"__import__('os')\",[8]\n",
    "model_name,p_list,b_list\nm,[25],[8.5]\n",
    "model_name,p_list,b_list\nm,[25],[0]\n",
    "model_name,p_list,b_list\nm,[],[]\n",
    "model_name,p_list,b_list\n,[25],[8]\n",
    "model_name,p_list,b_list,power_max\nm,[25],[8],lots\n",
    "model_name,p_list,b_list,power_max\nm,[25],[8],1e999\n",
    "model_name,p_list,b_list,outcome\nm,[25],[8],maybe\n",
    "model_name,p_list,b_list,throttle\nm,[25],[8],fast\n",
    "model_name,p_list,b_list,throttle\nm,[25],[8],-1\n",
    "model_name,p_list,b_list,throttle\nm,[25],[8],0\n",
    "model_name,p_list,b_list,cpu_s_per_s\nm,[25],[8],much\n",
    'model_name,p_list,b_list\nm,"[25],[8]\n',
]


def test_what_cannot_be_read_is_said_with_its_line(snapshot: SnapshotAssertion) -> None:
    messages = []
    for text in UNREADABLE:
        with pytest.raises(Unreadable) as refused:
            rows(text)
        messages.append(str(refused.value))
    assert messages == snapshot
