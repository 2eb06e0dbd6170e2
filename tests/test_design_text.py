"""A design as CSV: written and read alike, a mark changes its row only, refusals name the line."""

from __future__ import annotations

import contextlib
import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.design_file import Row, Sheet, parse
from fixtures.terms import BadInput

HEADER = "order,block,workload,tweakset,vm.swappiness,run,reason\n"
HAND = (
    "# mine, with a comma\n"
    "\n"
    "reason,run,order,block,workload,tweakset,vm.swappiness\n"
    ",N,2,1,idle,typed,+\n"
    '"# from a spreadsheet, in quotes",,,,,,\n'
    "  # between\n"
    '"no, thanks",F,1,1,idle,stock,\n'
    ",,,,,,\n"
    "#last, without an end"
)

NAMES = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=6)
# Whatever a level may say: nothing unseen in it, and no blanks around it.
SEEN = st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zl", "Zp"))
VALUES = st.text(SEEN, min_size=1).map(str.strip).filter(bool)
REASONS = st.text(SEEN).map(lambda text: " ".join(text.split()))


@st.composite
def designs(draw: st.DrawFn) -> tuple[list[Row], list[str]]:
    factors = draw(st.lists(NAMES.map("vm.{}".format), unique=True, max_size=4))
    keys = draw(
        st.lists(st.tuples(NAMES, NAMES, st.integers(1, 99)), unique=True, min_size=1, max_size=8)
    )
    rows = []
    for order, (workload, tweakset, block) in enumerate(keys, 1):
        levels = draw(st.dictionaries(st.sampled_from(factors), VALUES)) if factors else {}
        rows.append(
            Row(
                order,
                block,
                workload,
                tweakset,
                levels,
                draw(st.sampled_from("NYF")),
                draw(REASONS),
            )
        )
    return rows, factors


def without_lines(rows: tuple[Row, ...]) -> list[Row]:
    return [replace(row, line=0) for row in rows]


@given(designs(), st.lists(REASONS))
def test_what_is_written_is_read(made: tuple[list[Row], list[str]], comments: list[str]) -> None:
    rows, factors = made
    sheet = parse(
        Sheet("", tuple(factors), tuple(rows), tuple(f"# {one}" for one in comments)).text(),
        "d.csv",
    )
    assert without_lines(sheet.rows) == rows
    assert list(sheet.factors) == factors
    assert sheet.comments == tuple(f"# {one}" for one in comments)


@given(designs(), st.data())
def test_a_mark_changes_its_own_row(made: tuple[list[Row], list[str]], data: st.DataObject) -> None:
    rows, factors = made
    key, run, reason = (
        data.draw(st.sampled_from(rows)).key,
        data.draw(st.sampled_from("NYF")),
        data.draw(REASONS),
    )
    after = parse(Sheet("", tuple(factors), tuple(rows)).marked(key, run, reason).text(), "d.csv")
    assert without_lines(after.rows) == [
        replace(row, run=run, reason=reason) if row.key == key else row for row in rows
    ]


def test_a_spreadsheets_file_keeps_comments_and_marks_come_last() -> None:
    sheet = parse(HAND, "d.csv")
    assert [(r.order, r.tweakset, r.levels, r.run, r.reason) for r in sheet.rows] == [
        (1, "stock", {}, "F", "no, thanks"),
        (2, "typed", {"vm.swappiness": "+"}, "N", ""),
    ]
    assert (sheet.done(), parse(HAND.replace(",N,2", ",Y,2"), "d.csv").done()) == (
        set(),
        {("idle", "typed", 1)},
    )
    assert sheet.marked(("idle", "typed", 1), "F", "# no comment").text() == (
        "# mine, with a comma\n"
        '"# from a spreadsheet, in quotes",,,,,,\n'
        "  # between\n"
        "#last, without an end\n"
        "order,block,workload,tweakset,vm.swappiness,run,reason\n"
        '1,1,idle,stock,,F,"no, thanks"\n'
        "2,1,idle,typed,+,F,# no comment\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: the header lacks order, block, workload, tweakset, run, reason"),
        (
            "model,epochs,ranks,run\n",
            "are order, block, workload, tweakset, a column for each factor, run, reason.",
        ),
        ("order;block;workload;tweakset;run;reason\n", "separated by commas"),
        ("# c\n" + HEADER.replace("vm.swappiness", "order"), "line 2: column order occurs twice"),
        (HEADER.replace("vm.swappiness", " "), "line 1: a column has no name"),
        (HEADER, "d.csv has no rows"),
        (HEADER + "1,1,idle,stock,,N\n", "line 2: has 6 fields, but the header has 7"),
        (
            HEADER + "# c\n0,1,idle,stock,,N,\n",
            "line 3: order is '0', but must be a whole number of at least 1",
        ),
        (HEADER + "1,9999999999,idle,stock,,N,\n", "line 2: block is '9999999999'"),
        (HEADER + "1,1,,stock,,N,\n", "line 2: workload is empty"),
        (
            HEADER + "1,1,idle,stock,,n,\n",
            "line 2: run is 'n', but must be N (not yet), Y (done), F (failed)",
        ),
        (HEADER + '1,1,idle,stock,,F,"no\nway"\n', "line 2: is not a CSV row"),
        (
            HEADER + "1,1,idle,stock,,N,\n2,1,idle,stock,,N,\n",
            "line 3: idle x stock in block 1 is already in line 2",
        ),
        (
            HEADER + "1,1,idle,stock,,N,\n1,2,idle,stock,,N,\n",
            "line 3: order 1 is already in line 2",
        ),
    ],
)
def test_what_is_no_design_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text, "d.csv")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.text())
def test_no_text_at_all_ends_in_a_traceback(text: str) -> None:
    with contextlib.suppress(BadInput):
        parse(HEADER + text, "d.csv")
