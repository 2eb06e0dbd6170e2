"""python_loop does to a text what it states, by the interpreter alone."""

from __future__ import annotations

import zlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fixtures import workloads
from fixtures.studies.monitors.workloads import python_loop
from fixtures.targets._process import run
from fixtures.terms import Order
from tests.programs import python

PIECES = {"ba": 2, "bada": 3, "d": 4, "a": 5, ".": 6, "dabel": 7}
UNKNOWN = 1


def test_a_text_becomes_the_longest_pieces_that_there_are() -> None:
    assert python_loop.words_of("Badadabel. Baz  da") == ["badadabel", ".", "baz", "da"]
    assert python_loop.encode("Badadabel. Baz  da", PIECES) == [3, 7, 6, 2, UNKNOWN, 4, 5]
    assert python_loop.encode("", PIECES) == []


@given(st.text("abdelz", min_size=1))
def test_no_letter_is_lost(word: str) -> None:
    """Pieces laid end to end are the word again, one unknown id a letter that begins none."""
    letters = {number: piece for piece, number in PIECES.items()}
    at = 0
    for number in python_loop.pieces_of(word, PIECES):
        piece = letters.get(number, word[at : at + 1])
        assert word.startswith(piece, at)
        at += len(piece)
    assert at == len(word)


@given(st.lists(st.lists(st.integers(1, 255), max_size=20), min_size=1, max_size=5))
def test_batch_rows_have_equal_length_and_a_mask_of_tokens(
    rows: list[list[int]],
) -> None:
    padded, mask = python_loop.collate(rows)
    assert len({*map(len, padded), *map(len, mask), max(map(len, rows))}) == 1
    assert [
        [number for number, there in zip(*both, strict=True) if there]
        for both in zip(padded, mask, strict=True)
    ] == rows


@given(st.lists(st.binary(max_size=3000), max_size=4))
def test_the_checksum_is_adler_32(rows: list[bytes]) -> None:
    assert python_loop.checksum([list(row) for row in rows]) == zlib.adler32(b"".join(rows))


def test_a_step_has_the_samples_and_words_that_it_was_given(tmp_path: Path) -> None:
    """8 texts of at least 16 words each; the same seed gives the same work in another process."""
    small = workloads.case("python_loop", batch_size=8, words=16)
    first, again = (
        run(Order(small, steps=3, warmup_steps=1, seed=2, scratch=tmp_path)) for _ in range(2)
    )
    assert first.error is None, first.last_lines
    assert {step.samples for step in first.steps} == {8}
    assert all(step.tokens >= 8 * 16 for step in first.steps)
    assert len({step.loss for step in first.steps}) == 4
    assert [(step.tokens, step.loss) for step in again.steps] == [
        (step.tokens, step.loss) for step in first.steps
    ]
    assert again.facts["data_crc32"] == first.facts["data_crc32"]


def test_it_needs_no_framework(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from fixtures.studies.monitors.workloads import python_loop
from fixtures.workloads._protocol import Request
asked = Request(1, 0, 1, Path({str(tmp_path)!r}))
with python_loop.PythonLoop({{"batch_size": 1, "words": 4}}).prepare(asked) as job:
    job.step(0)
sys.exit(str(sorted({{"torch", "transformers", "numpy", "psutil"}} & sys.modules.keys())))
"""
    process = python(code)
    assert process.stderr.strip() == "[]"
