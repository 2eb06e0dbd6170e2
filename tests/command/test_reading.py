"""Output becomes lines with a time, lines become values, and values become steps."""

from __future__ import annotations

import re

import pytest

from fixtures.studies.command.figures import figure, labels
from fixtures.studies.command.formats import FIGURES, FORMATS, ROWS, Format
from fixtures.studies.command.reading import Lines, StepReader, compiled, matches, series_of, value
from fixtures.terms import Refused

TQDM = FORMATS["tqdm"].pattern


def bar(count: int, total: int = 100, text: str = "") -> str:
    return f"{text} 40%|████      | {count}/{total} [00:01<00:02,  3.98it/s]"


def stamped(*chunks: tuple[float, bytes]) -> list[tuple[float, str]]:
    """All that one pipe told."""
    lines = Lines()
    return [one for at_s, chunk in chunks for one in lines.take(chunk, at_s)]


def walls(pattern: str, *lines: tuple[float, str], **how: object) -> list[float]:
    reader = StepReader(compiled(pattern), **how)  # type: ignore[arg-type]  # as tests name them
    return [step.wall_s for at_s, line in lines for step in reader.steps(at_s, line)]


def said(pattern: str, line: str) -> float:
    found = compiled(pattern).search(line)
    assert found
    told = value(found)
    assert told
    return told.number


# -- lines


def test_a_line_has_the_time_of_its_last_character() -> None:
    assert stamped((1.0, b"step 1"), (2.0, b"2 done"), (3.0, b"\nnext\n")) == [
        (2.0, "step 12 done"),
        (3.0, "next"),
    ]


def test_a_bar_after_a_carriage_return_is_stamped_on_arrival() -> None:
    """A redraw later it would be the time of the next step."""
    assert stamped((1.0, b"\r1/10"), (2.0, b"\r2/10"), (3.0, b"\n")) == [
        (1.0, "1/10"),
        (2.0, "2/10"),
    ]


def test_a_bar_before_its_carriage_return_is_told_once() -> None:
    assert stamped((1.0, b"1/10\r"), (2.0, b"2/10\r"), (3.0, b"")) == [(1.0, "1/10"), (2.0, "2/10")]


def test_the_rest_is_told_at_the_end() -> None:
    assert stamped((1.0, b"took 3 s"), (2.0, b"")) == [(1.0, "took 3 s")]


@pytest.mark.parametrize(
    "text",
    [
        b"\x1b[1A\x1b[2K1/10\n",
        b"\x1b[32m1\x1b[0m/10\n",
        b"0/10\b\b\b\b1/10\n",
        b"\x1b]0;title\x071/10\r\n",
    ],
)
def test_what_moves_the_cursor_or_colours_is_no_text(text: bytes) -> None:
    assert stamped((1.0, text))[-1][1].split()[-1] == "1/10"


# -- values


@pytest.mark.parametrize(
    ("pattern", "line", "number"),
    [
        (r"(?P<ms>\d+) ms", "7 ms", 0.007),
        (r"(?P<us>\d+) us", "7 us", 7e-6),
        (r"(?P<s>\d+) s", "7 s", 7.0),
        (r"(?P<rate>[\d.]+)(?P<prefix>[kMG]?)B/s", "bw 1.5MB/s", 1.5e6),
        (r"(?P<rate>[\d.]+) (?P<prefix>[KMG]i)B/s", "bw 2 MiB/s", 2**21),
        (r"bw (?P<rate>[\d.]+)", "bw 104 MB/s", 104e6),
        (r"bw (?P<rate>[\d.]+)", "bw 2 KiB/s", 2048),
        (r"bw (?P<rate>[\d.]+)", "bw 3.5 Gbits/sec", 3.5e9),
        (r"bw (?P<rate>[\d.]+)", "bw 3.5 Mbps", 3.5e6),
        (r"at (?P<rate>[\d.]+)", "at 1.2 Mops/s", 1.2e6),
        (r"at (?P<rate>[\d.]+)", "at 900 MFLOPS", 9e8),
        (r"at (?P<rate>[\d.]+)", "at 10 Mpps", 1e7),
        (r"(?P<rate>[\d.]+) it/s", "43.6 it/s", 43.6),
        (r"(?P<rate>[\d,.]+) tok/s", "12,345 tok/s", 12345),
        (r"(?P<count>\d+)", "it 12", 12),
        (r"took ([\d.]+)", "took 0.25 s", 0.25),
        (r"took ([\d.,]+)", "took 0,25 s", 0.25),
        (FORMATS["json"].pattern, '{"epoch": 1, "step_time_s": 0.125, "loss": 2.5}', 0.125),
        (FORMATS["json"].pattern, '{"step_ms": 125, "loss": 2.5}', 0.125),
        (FORMATS["json"].pattern, '{"step": 7, "inner": {"step_ms": 125}}', 7),
        (FORMATS["json"].pattern, '{"elapsed_ms": 700, "step": 7}', 7),
        (FORMATS["json"].pattern, '{"step": 56, "global_step": 7}', 7),
        (FORMATS["json"].pattern, "{'step': 7, 'loss': 2.5, 'lr': 1e-05}", 7),
        (FORMATS["counter"].pattern, "step 1,234 | loss 2.5", 1234),
        (FORMATS["counter"].pattern, "Epoch 1 | iter 56 step 7 | loss train: 2.5", 7),
        (FORMATS["counter"].pattern, "iteration 7 (step: 123 ms)", 7),
        (FORMATS["counter"].pattern, "time per step: 123 ms, ms/step: 123, iteration 7/100", 7),
        (FORMATS["counter"].pattern, "ms/batch 123 | iteration 7", 7),
        (FORMATS["counter"].pattern, "micro-batch 3/8 | batch 7/100", 7),
        (FORMATS["counter"].pattern, "Inner step 7", 7),
        (FORMATS["counter"].pattern, "opt_step=7 micro_step=56 tok=1024", 7),
        (FORMATS["counter"].pattern, "epoch=0/micro_step=56/global_step=7, x=1", 7),
    ],
)
def test_a_match_says_a_number_in_base_units(pattern: str, line: str, number: float) -> None:
    assert said(pattern, line) == pytest.approx(number)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"took (?P<s>\S+)", "took nan"),
        (r"took (?P<s>\S+)", "took -1"),
        (r"took (?P<ms>\S+)", "took long"),
        (r"(?P<rate>\S+)/s", "1e-320/s"),
        (r"(?P<rate>\d+)(?P<prefix>.)", "12Z"),
        (r"it (\d+)", f"it {'9' * 5000}"),
        *(
            (r"took (\S+)", f"took {text}")
            for text in ("nan", "-3", "1e999", "-inf", "0.0", "12ms")
        ),
    ],
)
def test_a_figure_that_no_step_can_take_is_refused(pattern: str, line: str) -> None:
    found = re.search(pattern, line)
    assert found
    with pytest.raises(Refused):
        value(found)


# -- bars


def test_a_bar_is_known_by_rank_description_and_total() -> None:
    assert series_of("Epoch 3: ", "10") == series_of("Epoch 4: ", "10")
    assert series_of("rank0: ", "10") != series_of("rank1: ", "10")
    assert series_of("train", "10") != series_of("val", "10")
    assert series_of("lr: 1e-06 | step", "") == series_of("lr: 9.9e-07 | step", "")
    assert series_of("", "10") != series_of("", "20")


# -- steps


def test_time_is_divided_by_what_was_counted() -> None:
    assert walls(TQDM, (1.0, bar(4)), (2.0, bar(8)), (3.0, bar(18))) == pytest.approx(
        [0.25] * 4 + [0.1] * 10
    )


def test_a_bar_that_is_redrawn_ends_no_step() -> None:
    assert walls(TQDM, (1.0, bar(4)), (1.5, bar(4)), (2.0, bar(5)), (4.0, bar(6))) == [1.0, 2.0]


def test_a_bar_that_begins_again_is_another() -> None:
    """Time between two epochs is no step."""
    assert (
        walls(TQDM, (1.0, bar(98)), (2.0, bar(100)), (9.0, bar(0)), (9.5, bar(1)), (10.0, bar(2)))
        == [0.5] * 4
    )


def test_a_rank_that_lags_behind_counts_for_nothing() -> None:
    assert walls(
        TQDM, (1.0, bar(10)), (1.5, bar(9)), (2.0, bar(11)), (2.1, bar(10)), (3.0, bar(12))
    ) == [1.0, 1.0]


def test_only_the_bar_that_is_followed_counts() -> None:
    lines = [(1.0, bar(1, 100)), (1.2, bar(5, 20)), (2.0, bar(2, 100)), (2.5, bar(6, 20))]
    assert walls(TQDM, *lines, follow="/100") == [1.0]


def test_observations_become_steps_in_proportion_to_their_counts() -> None:
    """So a cell has as many steps under a fast setting as a slow one, at equal redraw rates."""
    assert walls(TQDM, (0.0, bar(0)), (1.0, bar(5)), (2.0, bar(10)), every=5) == [0.2, 0.2]
    assert walls(TQDM, (0.0, bar(0)), (1.0, bar(20)), every=5) == [0.05] * 4


def test_a_rounded_counter_is_read_once_rounding_is_negligible() -> None:
    rounded = "| 1.{}k/9.99k [00:01<00:02, 999it/s]"
    lines = [(n / 10, f" 12%|██ {rounded.format(20 + n)}") for n in range(56)]
    assert walls(TQDM, *lines, every=500) == pytest.approx([0.01])


def test_lines_without_a_number_end_steps() -> None:
    """When the first step began is not known."""
    line = "{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}"
    assert walls(
        FORMATS["huggingface"].pattern, (1.0, line), (1.5, "evaluating"), (3.0, line), (3.25, line)
    ) == [2.0, 0.25]


def test_told_seconds_are_steps_whenever_they_come() -> None:
    assert walls(r"step took ([\d.]+)", (1.0, "step took 0.25 s"), (9.0, "step took 0.5 s")) == [
        0.25,
        0.5,
    ]


def test_the_step_interrupted_by_a_pause_does_not_count() -> None:
    for pattern, lines in (
        (r"took ([\d.]+)", ("took 0.1", "took 9.5", "took 0.2")),
        (TQDM, (bar(1), bar(2), bar(3))),
    ):
        reader = StepReader(compiled(pattern))
        list(reader.steps(1.0, lines[0]))
        reader.interrupt()
        assert not list(reader.steps(20.0, lines[1]))
        assert len(list(reader.steps(20.5, lines[2]))) == 1


def test_a_rate_keeps_our_clock_beside_it() -> None:
    reader = StepReader(compiled(r"(?P<rate>[\d.]+) tok/s"))
    steps = [step for at_s in (1.0, 3.0) for step in reader.steps(at_s, "12000 tok/s")]
    assert [(step.wall_s, step.rate_per_s) for step in steps] == [(2.0, 12000)]


@pytest.mark.parametrize(
    "pattern", [r"\Astep (?P<s>[\d.]+)\Z", r"^step\s+(?P<s>[\d.]+)$", r"(?s)^step (?P<s>[\d.]+)"]
)
def test_a_pattern_sees_one_line_at_a_time(pattern: str) -> None:
    assert walls(pattern, (1.0, "nothing\nstep 0.5\nstep\n0.7\nstep 0.25\n")) == [0.5, 0.25]


def test_a_character_that_comes_in_two_pieces_is_one() -> None:
    bar = "\r50%|\u2588| 1/2 [".encode()
    assert stamped((1.0, bar[:6]), (2.0, bar[6:] + b"\r"), (3.0, b""))[-1] == (
        2.0,
        bar.decode().strip(),
    )


# -- figures


def test_the_last_figure_counts() -> None:
    told = figure(Format("x", "", FIGURES, r"rate (?P<rate>\d+)"), "rate 3\nrate 4\nend")
    assert told
    assert (told.value.number, told.printed) == (4, "rate 4")


def test_figures_combine_by_geometric_mean_or_by_chosen_label() -> None:
    row = Format("x", "", FIGURES, r"^(?P<label>\w+) (?P<s>[\d.]+)", combine="geomean")
    text = "a 1.0\nb 4.0\n"
    whole, one = figure(row, text), figure(row, text, "b")
    assert whole
    assert one
    assert whole.value.number == pytest.approx(2)
    assert (one.value.number, labels(row, text)) == (4, ["a", "b"])
    assert figure(row, text, "c") is None


def test_a_figure_of_a_json_document_stands_among_other_lines() -> None:
    row = Format("x", "", FIGURES, document=("jobs", "*", "bw", "rate"), combine="sum", unit="B")
    told = figure(row, 'note: starting\n{"jobs": [{"bw": 100}, {"bw": 50}, {"bw": 0}]}\n')
    assert told
    assert told.value.number == 150


@pytest.mark.parametrize("row", [row for row in ROWS if row.pattern], ids=lambda row: row.name)
@pytest.mark.parametrize(
    "text",
    ["7" * 20_000, "12, " * 10_000, "\n" * 20_000, "." * 20_000 + "\n", "a 1 " * 8_000],
    ids=range(5),
)
def test_no_pattern_takes_quadratic_time_over_long_text(row: Format, text: str) -> None:
    """A pattern whose time grows with the square of the text takes minutes."""
    pattern = compiled(row.pattern)
    assert not list(
        pattern.finditer(text) if row.kind == FIGURES else matches(pattern, text, row.needles)
    )


def test_a_figure_beside_failures_is_refused() -> None:
    row = Format("x", "", FIGURES, r"rate (?P<rate>\d+)", failures=r"failed: (\d+)")
    assert figure(row, "rate 3\nfailed: 0")
    with pytest.raises(Refused, match="failed: 2"):
        figure(row, "rate 3\nfailed: 2")
