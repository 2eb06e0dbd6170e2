"""DLIO's overrides as our parameters: every dotted path is known, or refused with what was probably meant."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io.dlio import SPELLINGS
from fixtures.studies.io.overrides import parameters
from fixtures.terms import BadInput
from tests.needs import REFERENCE


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
    assert parameters(text) == means


@given(st.text("workloadreader.batch_size=+~ \t", max_size=40))
def test_whatever_is_written_is_read_or_refused_in_a_line(text: str) -> None:
    said = ""
    try:
        assert set(parameters(text)) <= set(SPELLINGS)
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
        parameters(text)
    assert says in str(refused.value)


@pytest.mark.needs("reference")
def test_every_override_of_the_seeds_design_is_known() -> None:
    text = (REFERENCE / "perf_2025" / "experimental_design.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    assert len(rows) == 23
    given = [parameters(row["overrides"]) for row in rows]
    assert given.count({}) == 5
    assert {name for one in given for name in one} == {
        "batch_size", "read_threads", "file_shuffle", "sample_shuffle", "format", "record_length_bytes",
        "checkpoint", "epochs_between_checkpoints", "prefetch_size",
    }  # fmt: skip
