"""How the steps of a command are found in what it prints: every known format, patterns of one's own, and what is no step."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.studies.command import spec
from fixtures.terms import BadInput, Refused

SLEEP = spec.Spec("sleep-0.1", ("sleep", "0.1"), "/", {}, spec.RUNS, None, 3, 1)
# What the programs print; bars of tqdm 4.67, the Trainer of transformers 4.57, vllm 0.11, nccl-tests 2.17, fio 3.33, AIPerf 0.3.
PRINTED = {
    "json": '{"epoch": 1, "step_time_s": 0.125, "loss": 2.5}',
    "json-ms": '{"step_ms": 125, "loss": 2.5}',
    "huggingface": "{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}",
    "tqdm": " 40%|████      | 4/10 [00:01<00:02,  3.98it/s]",
    "vllm": "Request throughput (req/s):              8.00      ",
    "nccl-tests": "# Avg bus bandwidth    : 8.00 ",
    "fio": "   READ: bw=7813KiB/s (8000kB/s), 7813KiB/s-7813KiB/s (8000kB/s-8000kB/s), io=64.0MiB (67.1MB), run=8389-8389msec",
    "aiperf": '{"request_throughput": {"unit": "requests/sec", "avg": 8.0}, "request_latency": {"avg": 99.0}}',
}
SAYS = {"json": 0.125, "json-ms": 0.125, "vllm": 8.0, "nccl-tests": 8.0, "fio": 8e6, "aiperf": 8.0}  # seconds, or a rate


def walls(pattern: str, *lines: tuple[float, str]) -> list[float]:
    reader = spec.Reader(pattern)
    return [wall_s for at_s, line in lines for wall_s in reader.steps(line, at_s)]


def test_every_format_has_an_example() -> None:
    assert PRINTED.keys() == {name for name, one in spec.FORMATS.items() if one.kind != spec.CALLS}


@pytest.mark.parametrize("name", PRINTED)
def test_a_known_format_is_recognised_among_other_lines(name: str) -> None:
    lines = ["loading the model", *[PRINTED[name]] * spec.FEWEST, "done in 3 s"]
    assert spec.recognise(lines) == name


def test_a_few_lines_that_look_like_steps_are_none() -> None:
    assert spec.recognise([PRINTED["tqdm"]] * (spec.FEWEST - 1)) is None


@pytest.mark.parametrize(("name", "figure"), SAYS.items())
def test_the_figure_that_a_format_says(name: str, figure: float) -> None:
    found = re.search(spec.FORMATS[name].pattern, PRINTED[name])
    assert found
    assert spec.figure(found) == pytest.approx(figure)


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        (r"(?P<rate>[0-9.]+) requests/s", "requests"),
        (r"(?P<rate>\d+)\s*(?P<prefix>[kM]?)B/s", "B"),
        (r"tps = (?P<rate>[0-9.]+)", ""),
        (r"took (?P<ms>\d+)", None),
    ],
)
def test_a_typed_pattern_may_name_what_its_rates_are_of(pattern: str, unit: str | None) -> None:
    assert spec.rate_unit(pattern) == unit


def test_a_line_without_a_figure_ends_a_step_that_began_with_the_last_one() -> None:
    """When the first began nobody knows."""
    line = PRINTED["huggingface"]
    assert walls(spec.FORMATS["huggingface"].pattern, (1.0, line), (1.5, "evaluating"), (3.0, line), (3.25, line)) == [2.0, 0.25]


def test_a_bar_that_is_redrawn_ends_no_step() -> None:
    bars = [(1.0, "| 4/10 ["), (1.5, "| 4/10 ["), (2.0, "| 5/10 ["), (4.0, "| 6/10 [")]
    assert walls(spec.FORMATS["tqdm"].pattern, *bars) == [1.0, 2.0]


def test_a_first_group_with_a_point_is_seconds_and_a_whole_number_counts() -> None:
    assert walls(r"step took ([\d.]+)", (1.0, "step took 0.25 s"), (9.0, "step took 0.5 s")) == [0.25, 0.5]
    assert walls(r"step (\d+)", (1.0, "step 10"), (1.5, "step 20")) == [0.5]


@pytest.mark.parametrize(
    ("pattern", "line", "seconds"), [(r"(?P<ms>\d+) ms", "7 ms", 0.007), (r"(?P<us>\d+) us", "7 us", 7e-6), (r"(?P<s>\d+) s", "7 s", 7.0)]
)
def test_a_named_group_says_its_unit(pattern: str, line: str, seconds: float) -> None:
    assert walls(pattern, (1.0, line)) == pytest.approx([seconds])


def test_the_step_under_way_while_a_command_stood_still_does_not_count() -> None:
    reader = spec.Reader(r"took ([\d.]+)")
    assert list(reader.steps("took 0.1", 1.0)) == [0.1]
    reader.interrupt()
    assert [wall_s for line in ("took 9.5", "took 0.2") for wall_s in reader.steps(line, 2.0)] == [0.2]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (spec.FORMATS["vllm"].pattern, "Request throughput (req/s): 0.00"),
        (r"took (?P<s>\S+)", "took nan"),
        (r"took (?P<s>\S+)", "took -1"),
        (r"took (?P<ms>\S+)", "took long"),
        (r"(?P<rate>\S+)/s", "1e-320/s"),
        (r"(?P<rate>\d+)(?P<prefix>.)", "12Z"),
        *((r"took (\S+)", f"took {text}") for text in ("nan", "-3", "1e999", "-inf", "0.0", "12ms")),
    ],
)
def test_a_figure_that_no_step_can_take_is_refused(pattern: str, line: str) -> None:
    found = re.search(pattern, line)
    assert found
    with pytest.raises(Refused):
        spec.figure(found)


def test_a_counter_longer_than_any_ends_no_step() -> None:
    assert walls(r"it (\d+)", (1.0, "it 1"), (2.0, f"it {'9' * 5000}")) == [1.0]


def test_a_command_is_kept_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    wanted = replace(SLEEP, environment={"A": "b"}, exit_codes=(0, 3), pattern="x")
    path.write_text(wanted.text())
    assert spec.read(path) == wanted


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"program": 1}', SLEEP.text().replace('"runs"', '"walks"'), SLEEP.text().replace('"steps": 3', '"steps": 0')]
)
def test_a_file_that_is_no_command_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"c\.json"):
        spec.read(path)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (("sleep", "0.1"), "sleep-0.1"),
        (("/usr/bin/python3", "-u", "train.py"), "python3-train.py"),
        (("--", "-"), "command"),
        (("sh", "-c", "a b;" * 30), "sh-a-b-a-b-a-b-a-b-a-b-a"),
    ],
)
def test_a_command_has_a_short_name(program: tuple[str, ...], name: str) -> None:
    assert spec.slug(program) == name
