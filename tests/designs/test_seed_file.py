"""The DLIO study's design file: each row a variant, marks, a reason where one failed, and everything else kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import design_file
from fixtures.design_file import DesignFile
from fixtures.designs import _seed_file
from fixtures.designs._file import Table
from fixtures.designs._seed_file import SeedSheet, is_one, to_run
from fixtures.options import Options
from fixtures.terms import BadInput
from tests.needs import REFERENCE

if TYPE_CHECKING:
    from fixtures.designs._file import Key
    from fixtures.options import Varied

HEADER = "model,epochs,processes,overrides,run\n"
HAND = (
    "# mine, with a comma\r\n"
    "model,epochs,processes,overrides,run\r\n"
    "\r\n"
    "unet3d_h100_custom,5,1,,N\r\n"
    "  # between\n"
    'unet3d_h100_custom,5,4,"++workload.reader.batch_size=14",N\n'
    "unet3d_h100_custom,5,4,++workload.reader.batchsize=14,N\r\n"
    '"# of a spreadsheet",,,,\n'
    "unet3d_h100_custom,5,8,,Y"
)
FIXED = (("sample_scale", ("4",)),)


def read(text: str, vary: Varied = ()) -> SeedSheet:
    return _seed_file.read(Table.parse(text, "d.csv"), vary)


def marked(text: str, of_run: list[Key], over: dict[Key, tuple[str, str]], vary: Varied = ()) -> str:
    sheet = read(text, vary)
    return sheet.table.marked(sheet.marks(over, of_run))


def letters(text: str, vary: Varied = ()) -> str:
    return "".join(row.run for row in read(text, vary).rows)


def reasons(text: str, vary: Varied = ()) -> list[str]:
    return [row["reason"] for row in read(text, vary).table.rows.values()]


def cells(workload: str | None, blocks: int = 2) -> list[Key]:
    assert workload is not None
    return [(workload, tweakset, block) for block in range(1, blocks + 1) for tweakset in ("stock", "stock-again")]


def test_each_row_is_a_variant_of_the_workload() -> None:
    sheet = read(HAND)
    assert [row.workload for row in sheet.rows] == [
        "io_train:epochs=5",
        "io_train:processes=4:epochs=5:batch_size=14",
        None,
        "io_train:processes=8:epochs=5",
    ]
    assert [row.line for row in sheet.rows] == [4, 6, 7, 9]
    assert sheet.lines() == [f"d.csv, line 7 is not run: {sheet.rows[2].why}"]
    assert "did you mean workload.reader.batch_size" in sheet.rows[2].why


def test_the_rows_lengths_and_numbers_are_of_the_real_job_and_scaled_as_that_is() -> None:
    """unet3d here: 1/64 of its record length, so 10485760 / 64 = 163840; 2 x 168 files, so 2 x 10 = 20."""
    text = HEADER + (
        "unet3d,1,1,++workload.dataset.record_length_bytes=10485760,N\n"
        "unet3d,1,1,++workload.dataset.num_files_train=10,N\n"
        "unet3d,1,1,++workload.train.computation_time=0.64,N\n"
    )
    assert [row.workload for row in read(text).rows] == [
        "io_train:record_length_bytes=163840",
        "io_train:num_files_train=20",
        "io_train:computation_time=0.01",
    ]
    full = read(text, (("record_scale", ("1",)), ("sample_scale", ("1",)))).rows
    assert full[0].workload == "io_train:record_length_bytes=10485760:sample_scale=1:record_scale=1"
    assert full[1].workload == "io_train:num_files_train=10:sample_scale=1:record_scale=1"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("unet3d,1,1,++workload.reader.batchsize=14,N", "no such key; did you mean workload.reader.batch_size"),
        ("unet3d,1,1,a=b=c,N", "'a=b=c': is no override, it has 2 signs ="),
        ("unet3d,1,1,++workload.dataset.record_length=1,N", "an old spelling"),
        ("unet3d,1,1,++workload.train.epochs=2,N", "epochs has a column of its own, and is among the overrides too"),
        ("unet3d_h100_custom,1,1,,N", "the same configuration as in line 2: take one of them out"),
        ("unet3d,1,1,++workload.reader.batch_size=7,N", "the same configuration as in line 2"),
        ("unet4d,1,1,,N", "No model 'unet4d'. Did you mean 'unet3d'?"),
        ("unet3d,0,1,,N", "epochs=0"),
        ("unet3d,,1,,N", "the column epochs is empty: write how many into it."),
        ("unet3d,1, ,,N", "the column processes is empty: write how many into it."),
        (",1,1,,N", "the column model is empty: write the name of a model into it."),
        ("unet3d,1,x,,N", "processes=x"),
        ("unet3d,1,1,++workload.dataset.format=npx,N", "format=npx: not one of"),
        ("unet3d,1,1,++workload.dataset.record_length_bytes=long,N", "record_length_bytes=long"),
    ],
)
def test_a_row_that_cannot_be_run_is_marked_with_why_and_the_others_run(row: str, says: str) -> None:
    sheet = read(f"{HEADER}unet3d,1,1,,N\n{row}\n")
    assert [one.workload for one in sheet.rows] == ["io_train", None]
    assert says in sheet.rows[1].why
    after = marked(f"{HEADER}unet3d,1,1,,N\n{row}\n", cells("io_train"), {})
    header, first, second = after.splitlines()
    assert (header, first) == ("model,epochs,processes,overrides,run,reason", "unet3d,1,1,,N,")
    assert letters(after) == "NF"
    assert says in reasons(after)[1]
    assert second.startswith(row.removesuffix("N").replace(", ,", ",,"))


def test_a_row_is_done_when_all_its_cells_are_and_failed_when_one_is() -> None:
    sheet = read(HAND, FIXED)
    every = [key for row in sheet.rows if row.workload and row.run != "Y" for key in cells(row.workload)]

    def after(over: dict[Key, tuple[str, str]], text: str = HAND) -> str:
        return letters(marked(text, every, over, FIXED), FIXED)

    assert after({}) == "NNFY"
    done = dict.fromkeys(every[:3], ("Y", ""))
    assert after(done) == "NNFY"
    assert after(done | {every[3]: ("Y", "")}) == "YNFY"
    failed = marked(HAND, every, done | {every[3]: ("F", "killed, by nobody")}, FIXED)
    assert reasons(failed, FIXED)[0] == "block 2, stock-again: killed, by nobody"
    assert not read(failed, FIXED).complete()
    whole = marked(failed, every, dict.fromkeys(every, ("Y", "")), FIXED)
    assert after({}, whole) == "YYFY"
    assert reasons(whole, FIXED)[0] == ""
    assert read(whole, FIXED).complete()


def test_comments_rows_of_no_cell_and_columns_of_others_stay(tmp_path: Path) -> None:
    """And what a spreadsheet wrote around them goes: a mark at the beginning, other ends of lines, needless quotes."""
    path = tmp_path / "d.csv"
    path.write_bytes(
        HAND.replace(",run\r", ",run,note\r")
        .replace(",N\r\n  #", ",N,mine\r\n  #")
        .replace(",N\n", ",N,\n")
        .replace("14,N\r", "14,N,\r")
        .replace(",,,,\n", ",,,,,\n")
        .replace("8,,Y", "8,,Y,")
        .encode("utf-8-sig")
    )
    sheet = design_file.read(path, FIXED)
    assert isinstance(sheet, SeedSheet)
    first = cells(sheet.rows[0].workload)
    DesignFile(path, FIXED, first).go_on(first)
    why = sheet.rows[2].why.replace('"', '""')
    assert path.read_bytes().decode() == (
        "# mine, with a comma\n"
        "model,epochs,processes,overrides,note,run,reason\n"
        "\n"
        "unet3d_h100_custom,5,1,,mine,Y,\n"
        "  # between\n"
        "unet3d_h100_custom,5,4,++workload.reader.batch_size=14,,N,\n"
        f'unet3d_h100_custom,5,4,++workload.reader.batchsize=14,,F,"{why}"\n'
        '"# of a spreadsheet",,,,,\n'
        "unet3d_h100_custom,5,8,,,Y,\n"
    )


def test_without_a_failure_there_is_no_new_column() -> None:
    text = f"# one\n{HEADER}unet3d,1,1,,N\nunet3d,1,2,,N\n"
    after = marked(text, cells("io_train"), dict.fromkeys(cells("io_train"), ("Y", "")))
    assert after == f"# one\n{HEADER}unet3d,1,1,,Y\nunet3d,1,2,,N\n"


def test_what_an_interrupted_run_had_measured_counts_but_a_row_set_back_is_measured_again() -> None:
    sheet = read(f"{HEADER}unet3d,1,1,,N\nunet3d,1,2,,Y\nunet3d,1,4,,N\n")
    part, done, back = (cells(row.workload) for row in sheet.rows)
    assert sheet.claimed([*part, *done, *back], [*part[:1], *back]) == {*part[:1], *done}


LINES = st.text("# ,\"'abcYN=+.\t", max_size=20)


@given(st.lists(st.sampled_from(["unet3d,1,1,,N", "unet3d,1,2,,Y", "unet3d,1,4,a=b=c,N"]), unique=True, min_size=1), st.lists(LINES))
def test_marking_never_touches_a_comment_and_what_it_writes_is_read(rows: list[str], comments: list[str]) -> None:
    said = [f"# {one}\n" for one in comments]
    text = "".join([*said, HEADER, *(f"{row}\n" for row in rows)])
    sheet = read(text)
    every = [key for row in sheet.rows if row.workload for key in cells(row.workload)]
    after = marked(text, every, dict.fromkeys(every, ("Y", "")))
    assert after.startswith("".join(said))
    assert [row.run for row in read(after).rows] == ["F" if row.workload is None else "Y" for row in sheet.rows]
    assert marked(after, every, dict.fromkeys(every, ("Y", ""))) == after


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER, "d.csv: has no rows"),
        (
            "model,epochs,processes,overrides\n",
            "line 1: the header lacks run: columns, with commas between, are model, epochs, processes, overrides, run",
        ),
        ("model,epochs,processes,overrides,run,run\n", "line 1: column run is there twice"),
        (f"{HEADER}unet3d,1,1,N\n", "line 2: has 4 fields where the header has 5"),
        (f"{HEADER}unet3d,1,1,,X\n", "line 2: run is 'X': it is N (not yet), Y (done), F (failed)"),
        (f'{HEADER}unet3d,1,1,"open,N\n', "line 2: is no row of CSV"),
    ],
)
def test_what_is_no_such_table_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(text)
    assert says in str(refused.value)


ASKED = Options(tweaks=None, workloads=None, blocks=None, steps=None, seed=1, resume=False, folder=Path())


def test_rows_that_are_done_are_not_run_again_until_someone_puts_n_there() -> None:
    sheet = read(f"{HEADER}unet3d,1,1,,Y\nunet3d,1,2,,N\nunet3d,1,4,,F\n")
    assert to_run(sheet, ASKED) == ["io_train:processes=2", "io_train:processes=4"]
    assert to_run(sheet, replace(ASKED, resume=True)) == ["io_train", "io_train:processes=2", "io_train:processes=4"]
    with pytest.raises(BadInput, match=r"nothing is left to run, 1 of its 2 rows are marked Y.*and 1 cannot be run: d\.csv, line 3"):
        to_run(read(f"{HEADER}unet3d,1,1,,Y\nunet3d,1,2,a=b=c,N\n"), ASKED)


@pytest.mark.parametrize(
    ("vary", "says"),
    [
        ((("cache", ("cold", "warm")),), "--vary cache=cold,warm: the rows of d.csv are the design; give one value"),
        ((("processes", ("2",)),), "--vary processes: the rows of d.csv say it"),
    ],
)
def test_what_is_varied_beside_the_file_is_the_same_for_all_rows(vary: Varied, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(f"{HEADER}unet3d,1,1,,N\n", vary)
    assert says in str(refused.value)


def test_a_design_of_its_own_beside_the_file_is_refused() -> None:
    sheet = read(f"{HEADER}unet3d,1,1,,N\n")
    with pytest.raises(BadInput, match=r"--design=ablation: the rows of d\.csv are the design"):
        to_run(sheet, replace(ASKED, design="ablation"))
    with pytest.raises(BadInput, match=r"--workloads=idle: the rows of d\.csv are the design"):
        to_run(sheet, replace(ASKED, workloads="idle"))


def test_the_two_kinds_of_file_are_told_apart_by_their_headers() -> None:
    assert is_one(Table.parse(HAND, "d.csv"))
    assert not is_one(Table.parse("order,block,workload,tweakset,run,reason\n", "d.csv"))
    assert not is_one(Table.parse("", "d.csv"))


def test_on_disk_marks_come_in_as_in_our_own_file(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(HAND.encode())
    path.chmod(0o640)
    sheet = design_file.read(path, FIXED)
    assert isinstance(sheet, SeedSheet)
    first = cells(sheet.rows[0].workload)
    made = DesignFile(path, FIXED, first)
    assert made.go_on(first[:2]) is None
    assert made.mark(first[2], "Y") is None
    assert made.mark(first[3], "F", "it said:\n no") is None
    assert letters(path.read_text(), FIXED) == "FNFY"
    assert reasons(path.read_text(), FIXED)[0] == "block 2, stock-again: it said: no"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["d.csv"]


@pytest.mark.needs("reference")
def test_the_seeds_own_design_has_23_rows_all_pending_5_of_them_baselines(tmp_path: Path) -> None:
    original = (REFERENCE / "perf_2025" / "experimental_design.csv").read_bytes()
    sheet = read(original.decode(), FIXED)
    assert len(sheet.rows) == 23
    assert {row.run for row in sheet.rows} == {"N"}
    assert sum(not row["overrides"] for row in sheet.table.rows.values()) == 5
    assert not sheet.lines()
    assert len({row.workload for row in sheet.rows}) == 23
    path = tmp_path / "design.csv"
    path.write_bytes(original)
    every = [key for row in sheet.rows for key in cells(row.workload)]
    DesignFile(path, FIXED, every).go_on(every)
    assert path.read_bytes() == original.replace(b",N\n", b",Y\n")
