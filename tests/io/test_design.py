"""A design of DLIO's as one of ours: each row a variant, and every row that is none told with its line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.design_file import parse
from fixtures.studies.io import __main__ as command
from fixtures.studies.io.design import converted, overridden
from fixtures.studies.io.dlio import KEYS
from fixtures.terms import BadInput
from tests.needs import REFERENCE

HEADER = "model,epochs,processes,overrides,run\n"
HAND = (
    "# mine, with a comma\r\n"
    "model,epochs,processes,overrides,run\r\n"
    "\r\n"
    "unet3d_h100_custom,5,1,,N\r\n"
    "  # between\n"
    'unet3d_h100_custom,5,4,"++workload.reader.batch_size=14",F\n'
    '"# of a spreadsheet",,,,\n'
    "unet3d_h100_custom,5,8,,Y"
)
FIXED = {"sample_scale": "4"}


def test_each_row_that_is_not_done_is_a_variant_in_every_block() -> None:
    sheet = parse(converted(HAND, "d.csv", FIXED, blocks=2, seed=1), "ours.csv")
    five = "io_train:epochs=5:sample_scale=4"
    fourteen = "io_train:processes=4:epochs=5:batch_size=14:sample_scale=4"
    wanted = {(name, tweakset, block) for name in (five, fourteen) for tweakset in ("stock", "stock-again") for block in (1, 2)}
    assert {row.key for row in sheet.rows} == wanted
    assert {row.run for row in sheet.rows} == {"N"}
    assert sheet.factors == ()


def test_sizes_of_the_real_job_are_scaled_as_its_model_is() -> None:
    row = "unet3d,1,1,++workload.dataset.record_length_bytes=64000000 ++workload.dataset.num_files_train=168,N\n"
    (name,) = {row.workload for row in parse(converted(HEADER + row, "d.csv", {}, blocks=1, seed=1), "ours.csv").rows}
    plain = {row.workload for row in parse(converted(f"{HEADER}unet3d,1,1,,N\n", "d.csv", {}, blocks=1, seed=1), "ours.csv").rows}
    assert plain == {"io_train"}
    values = dict(part.split("=") for part in name.split(":")[1:])
    assert int(values["record_length_bytes"]) < 64000000
    assert "num_files_train" not in values or int(values["num_files_train"]) < 168 * 64


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("unet3d,1,1,++workload.reader.batchsize=14,N", "no such key"),
        ("unet3d,1,1,++workload.train.epochs=2,N", "epochs has a column of its own, and is among the overrides too"),
        ("unet3d_h100_custom,1,1,,N", "the same configuration as in line 2: take one of them out"),
        ("unet3d,1,1,++workload.reader.batch_size=7,N", "the same configuration as in line 2"),
        ("unet4d,1,1,,N", "No model 'unet4d'. Did you mean 'unet3d'?"),
        ("unet3d,,1,,N", "the column epochs is empty: write how many into it."),
        (",1,1,,N", "the column model is empty: write the name of a model into it."),
        ("unet3d,1,x,,N", "processes=x"),
        ("unet3d,1,1,++workload.dataset.record_length_bytes=long,N", "record_length_bytes=long"),
    ],
)
def test_a_row_that_is_no_variant_is_refused_with_its_line(row: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        converted(f"{HEADER}unet3d,1,1,,N\n{row}\n", "d.csv", {}, blocks=1, seed=1)
    assert str(refused.value).startswith("d.csv, line 3: ")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "fixed", "says"),
    [
        ("", {}, "no design of DLIO's"),
        ("model,epochs\nunet3d,1\n", {}, "no design of DLIO's"),
        (f"{HEADER}unet3d,1,1,,Y\n", {}, "nothing is left to run"),
        (f"{HEADER}unet3d,1,1,,N\n", {"processes": "2"}, "processes is given for all rows too"),
        (f"{HEADER}a,1,1,,N\nb,1,1,,N\n", {}, "line 3: "),
    ],
)
def test_what_is_no_such_design_is_refused(text: str, fixed: dict[str, str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        converted(text, "d.csv", fixed, blocks=1, seed=1)


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.csv"
    path.write_text(HAND)
    monkeypatch.setattr("sys.argv", ["io", "design", str(path), "sample_scale=4", "--blocks=3"])
    assert command.main() == 0
    assert len(parse(capsys.readouterr().out, "ours.csv").rows) == 12


# Its overrides.


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("", {}),
        ("++workload.reader.batch_size=14", {"batch_size": "14"}),
        ("+workload.dataset.format=hdf5  workload.reader.read_threads=2", {"format": "hdf5", "read_threads": "2"}),
        ("++workload.workflow.checkpoint=False", {"checkpoint": "off"}),
        ("++workload.workflow.checkpoint=true", {"checkpoint": "on"}),
        ("++workload.reader.file_shuffle='off'", {"file_shuffle": "off"}),
        ("++workload.model.model_size_bytes=499153191", {"model_size_bytes": "499153191"}),
    ],
)
def test_an_override_names_a_parameter(text: str, means: dict[str, str]) -> None:
    assert overridden(text) == means


@given(st.text("workloadreader.batch_size=+~ \t", max_size=40))
def test_whatever_is_written_is_read_or_refused_in_a_line(text: str) -> None:
    said = ""
    try:
        assert set(overridden(text)) <= set(KEYS)
    except BadInput as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("++workload.reader.batchsize=14", "workload.reader.batchsize: no such key; did you mean workload.reader.batch_size. There are: "),
        ("++workload.dataset.batch_size=14", "did you mean workload.reader.batch_size."),
        ("++workload.batch_size=14", "did you mean workload.reader.batch_size."),
        ("++reader.batch_size=14", "did you mean workload.reader.batch_size."),
        (
            "++workload.dataset.record_length=1",
            "an old spelling, which later trees of DLIO ignore without a word; write workload.dataset",
        ),
        ("++workload.checkpoint.model_size=1", "an old spelling"),
        ("++workload.model.model_size=1", "write workload.model.model_size_bytes."),
        ("++workload.reader.record_length=1", "did you mean workload.dataset.record_length_bytes."),
        ("++workload.train.nothing_like_it=1", "no such key. There are: train.epochs, dataset.format"),
        ("a=b=c", "'a=b=c': is no override: write ++workload.reader.batch_size=14."),
        ("++workload.reader.batch_size", "is no override"),
        ("++workload.reader.batch_size=", "has no value"),
        ("~workload.reader.batch_size", "takes a key away"),
        ("++workload.reader.batch_size=1 workload.reader.batch_size=2", "batch_size is there twice"),
    ],
)
def test_what_dlio_would_ignore_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        overridden(text)
    assert says in str(refused.value)


@pytest.mark.needs("reference")
def test_every_override_of_the_seeds_design_is_known() -> None:
    text = (REFERENCE / "perf_2025" / "experimental_design.csv").read_text()
    sheet = parse(converted(text, "d.csv", FIXED, blocks=2, seed=1), "ours.csv")
    assert len({row.workload for row in sheet.rows}) == 23
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    assert len(rows) == 23
    given = [overridden(row["overrides"]) for row in rows]
    assert given.count({}) == 5
    assert {name for one in given for name in one} == {
        "batch_size", "read_threads", "file_shuffle", "sample_shuffle", "format", "record_length_bytes",
        "checkpoint", "epochs_between_checkpoints", "prefetch_size",
    }  # fmt: skip
