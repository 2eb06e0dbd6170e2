"""The trial of a command: what a step is, what is no step, and what contradicts our clock."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

import pytest

from fixtures.studies.command import bars, choosing, trial
from fixtures.studies.command import spec as command
from fixtures.studies.command.bars import Trial
from fixtures.studies.command.figures import figure
from fixtures.studies.command.formats import FIGURES, STEPS, Format
from fixtures.studies.command.reading import compiled
from fixtures.terms import Refused

ASKED = argparse.Namespace(steps=None, warmup=None, runs=False, budget=None)
HERE = command.Command("c", ("true",), "/", {}, command.RUNS, None, 3, 1, timeout_s=60.0)


def printed(
    *lines: tuple[float, str], program: tuple[str, ...] = ("x",), ended_s: float | None = None
) -> Trial:
    result = Trial(program, 0.0, ended_s if ended_s is not None else lines[-1][0])
    for at_s, line in lines:
        result.add(at_s, line)
    return result


def every(seconds: float, line: str, count: int = 40) -> list[tuple[float, str]]:
    """A line, or one with its number, again and again."""
    return [(index * seconds, line.replace("{}", str(index))) for index in range(count)]


def bar(name: str, total: int, seconds: float, begin_s: float = 0.0) -> list[tuple[float, str]]:
    line = f"{name}:  40%|████      | {{}}/{total} [00:01<00:02,  3.98it/s]"
    return [(begin_s + at_s, text) for at_s, text in every(seconds, line, total + 1)]


def tried(script: str, **how: object) -> tuple[command.Command, str]:
    """Return the outcome of a trial of a Python script."""
    of_spec: dict[str, Any] = {name: how.pop(name) for name in ("kind", "pattern") if name in how}
    spec = replace(HERE, program=(sys.executable, "-c", script), **of_spec)
    return trial.tried(spec, argparse.Namespace(**{**vars(ASKED), **how}))[0], ""


@pytest.mark.parametrize(("runs", "what"), [(True, "it to end"), (False, "steps or its end")])
def test_a_line_of_a_long_trial_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str, *, runs: bool
) -> None:
    monkeypatch.setattr("fixtures.ticker.EVERY_S", 0.05)
    tried("import time; time.sleep(0.4)", runs=runs)
    assert f", waiting for {what}" in capsys.readouterr().out


# -- which steps


def test_the_training_bar_is_chosen_among_several_named_bars() -> None:
    one = choosing.choose_steps(
        printed(
            *bar("train", 40, 0.1),
            *bar("val", 60, 0.02, 4.1),
            *bar("Sanity Checking", 9, 0.1, 6),
            *bar("model.safetensors", 60, 0.08, 8),
            *bar("Packing train dataset", 60, 0.08, 14),
        )
    )
    assert one
    assert one.bar == "train /40"
    assert one.step_s == pytest.approx(0.1)


@pytest.mark.parametrize("step_s", [0.0403, 0.0397])
def test_a_polled_counter_is_off_by_less_than_one_count(
    step_s: float,
) -> None:
    """Every 0.5 s the last whole count is printed: 12 or 13 of 12.4, or of 12.6."""
    counts = [int((0.013 + 0.5 * index) / step_s) for index in range(40)]
    one = choosing.choose_steps(
        printed(*[(0.5 * index, f"step {count}") for index, count in enumerate(counts)])
    )
    assert one
    assert one.step_s == pytest.approx(step_s, rel=0.01)


def test_of_counters_that_flood_a_step_is_long() -> None:
    """Two thousand lines after each pause of 45 ms: the time between lines is that of reading."""
    lines = [
        (0.045 * burst + 1e-6 * line, f"step {2000 * burst + line}")
        for burst in range(90)
        for line in range(0, 2000, 40)
    ]
    one = choosing.choose_steps(printed(*lines))
    assert one
    assert one.step_s == pytest.approx(0.045 / 2000, rel=0.05)


def test_a_counter_whose_lines_all_come_at_once_shows_no_steps() -> None:
    assert choosing.choose_steps(printed((1.0, "\n".join(f"step {n}" for n in range(99))))) is None


def test_a_long_line_without_a_number_is_read() -> None:
    one = choosing.choose_steps(
        printed(*[(0.1 * step, f"{'x' * 1_000_000} step {step}") for step in range(12)])
    )
    assert one
    assert one.step_s == pytest.approx(0.1)


def test_of_several_told_times_none_is_chosen() -> None:
    one = choosing.choose_steps(printed(*every(0.02, "data 5.05 ms/step compute 15.00 ms/step")))
    assert one
    with pytest.raises(Refused, match=r"has 2 times .*--step-regex"):
        choosing.refuse_several(one)


def test_of_nested_bars_the_finer_one_is_followed() -> None:
    inner = [line for epoch in range(3) for line in bar(f"Epoch {epoch}", 20, 0.1, 2.1 * epoch)]
    outer = [
        (2.1 * epoch, f"epochs:  40%|████      | {epoch}/3 [00:01<00:02,  3.98s/it]")
        for epoch in range(4)
    ]
    one = choosing.choose_steps(printed(*sorted(inner + outer)))
    assert one
    assert one.bar == "Epoch # /20"
    assert one.step_s == pytest.approx(0.1)


def test_a_bar_shown_during_startup_is_not_taken_for_steps() -> None:
    prepares = bar("", 200, 0.01)
    works = [(2.1 + at_s, text) for at_s, text in every(0.2, "iter {} loss 2", 60)]
    one = choosing.choose_steps(printed(*prepares, *works))
    assert one
    assert one.row.name == "counter"
    assert one.step_s == pytest.approx(0.2)


def test_steps_exclude_an_unnamed_bar_nested_in_training() -> None:
    """As the evaluation of Hugging Face's Trainer: after every tenth step 60 counts of 10 ms."""
    lines, now_s = [], 0.0
    for step in range(81):
        lines.append((now_s, f" 40%|████      | {step}/80 [00:01<00:02,  3.98it/s]"))
        now_s += 0.05
        if step % 10 == 9:
            lines += [(now_s + at_s, text) for at_s, text in bar("", 60, 0.01)]
            now_s += 0.62
    one = choosing.choose_steps(printed(*lines))
    assert one
    assert one.bar == "/80"
    assert one.step_s == pytest.approx(0.05)


def test_the_validation_of_json_lines_is_none_of_their_steps() -> None:
    """Its own counter begins anew each time."""
    lines = [
        (1.5 * epoch + (0.1 * n if loop == "train" else 1 + 0.02 * n), text)
        for epoch in range(6)
        for loop, first, count in (("train", 10 * epoch, 10), ("val", 0, 20))
        for n in range(count)
        for text in [f'{{"split": "{loop}", "step": {first + n}}}']
    ]
    one = choosing.choose_steps(printed(*lines))
    assert one
    assert one.bar == "train step"
    assert one.step_s == pytest.approx(0.1)


def test_of_batches_and_their_micro_batches_the_batches_count() -> None:
    """The optimizer's step is between the micro-batches of one batch and those of the next."""
    inner = [line for step in range(20) for line in bar("Micro-batches", 8, 0.02, 0.3 * step)]
    one = choosing.choose_steps(printed(*sorted(inner + bar("Steps", 20, 0.3))))
    assert one
    assert one.bar == "Steps /20"
    assert one.step_s == pytest.approx(0.3)


def test_a_name_that_is_new_in_each_run_is_no_part_of_a_bar() -> None:
    bars = {
        (one := choosing.choose_steps(printed(*bar(f"run brave-{name}", 60, 0.1)))) and one.bar
        for name in ("fox-8f44", "owl-91a2")
    }
    assert bars == {"run # /60"}


@pytest.mark.parametrize(
    "line",
    [
        "0s/step",
        "0.00 it/s",
        '{"seconds": 0}',
        '{"step": -1}',
        '{"step_time": NaN}',
        "step 1" + "0" * 60,
    ],
)
def test_an_odd_number_of_a_known_format_is_passed_over(line: str) -> None:
    one = choosing.choose_steps(
        printed((0.0, line), *[(0.1 + at_s, text) for at_s, text in every(0.1, "step {}")])
    )
    assert one
    assert one.step_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    "text",
    [
        "Params: 25k\nvocab 32k",
        "Tot: 1 2 3",
        "forward 12.3 ms  4.1 ms  100",
        "Worker 1: 43.5 requests per second\nTotal: 88.0 requests per second",
        "total time: 0.0000s\n    total number of events: 0",
        "JSON Export: /proc/self/mem",
    ],
)
def test_ordinary_lines_are_no_figures(text: str) -> None:
    assert choosing.choose_figure(printed((0.0, text))) is None


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (("fio", "job.fio"), "fio"),
        (("/usr/bin/sysbench", "cpu", "run"), "sysbench"),
        (("sh", "-c", "cd /tmp && fio job.fio"), "fio"),
        (("vllm", "bench", "serve", "--model", "x"), "vllm"),
        (("python", "train.py", "--data=/mnt/fio/set"), None),
        (("python", "/opt/sysbench/train.py"), None),
        (("x", "--name=fio"), None),
    ],
)
def test_programs_that_print_a_figure_are_known_by_their_name(
    program: tuple[str, ...], name: str | None
) -> None:
    row = choosing.ends_with_figure(program)
    assert (row and row.name) == name


def test_an_unknown_label_is_refused_with_the_known_ones() -> None:
    text = "| pp512 | 100.00 ± 1.00 |\n| tg128 | 400.00 ± 1.00 |"
    chosen = choosing.choose_figure(printed((0.0, text)), label="tg128")
    assert chosen
    assert chosen[1].value.number == 400
    with pytest.raises(Refused, match="'pp512', 'tg128'"):
        choosing.choose_figure(printed((0.0, text)), label="nope")


def test_a_bar_wins_over_the_lines_beside_it_whatever_their_pace() -> None:
    log = every(1.0, "{'loss': 0.7, 'epoch': 0.{}}", 5)
    for seconds in (0.1, 0.01):
        one = choosing.choose_steps(printed(*sorted(bar("", 400, seconds) + log)))
        assert one
        assert one.row.name == "tqdm"
        assert one.step_s == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("iter {}: loss 3.4, time 100.00ms, mfu 1.2%", "counter"),
        ("step {} | loss 3.4 | 0.10 s/it", "counter"),
        ("[12]: loss 3.4 | 0.10 s/it", "told"),
        ("[{}]\ttrain-rmse:0.1", "boosting"),
        (
            (
                "Train: 0 [  {}/1251 (  4%)]  Loss: 6.94 (6.95)  Time: 0.100s,  500.00/s  "
                "(0.530s,  483.02/s)"
            ),
            "train-epoch",
        ),  # as timm
        ('{"step_ms": 100, "loss": 2.5, "i": {}}', "json"),
        ('{"step": {}, "elapsed_ms": {}00, "loss": 2.5}', "json"),
        ("{'step': {}, 'loss': 2.5, 'learning_rate': 5e-05}", "json"),
        ("Training ━━━━╸━━━━━━━  10% {}/100 0:00:03 • 0:00:09 9.9it/s", "ultralytics"),  # as rich
    ],
)
def test_lines_as_people_print_them_are_steps(line: str, name: str) -> None:
    one = choosing.choose_steps(printed(*every(0.1, line)))
    assert one
    assert one.row.name == name
    assert one.step_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("line", "now_s", "ends"),
    [
        ("{}it [00:04, 30.1it/s]", 4.0, False),
        ("{}it [00:04, 30.1it/s]", 8.0, True),
        ("iter {}: loss 3.4, time 100.00ms, mfu 1.2%", 8.0, True),
        ('{"step": {}, "loss": 3.4}', 8.0, True),
        ("step {}/900", 5.2, True),
        ("Map:  4%|██ | {}/900 [00:01<00:02, 9.98it/s]", 8.0, False),  # training may follow
        ("Map:  4%|██ | {}/900 [00:01<00:02, 9.98it/s]", 32.0, True),
        (" 4%|██ | {}M/900M [00:01<00:02, 9.98MB/s]", 8.0, False),
    ],
)
def test_a_trial_ends_when_its_steps_are_clear(line: str, now_s: float, *, ends: bool) -> None:
    """A cell needs 23 steps, of 0.1 s here."""
    observed = printed(*every(0.1, line, int(now_s * 10) + 1))
    assert trial.enough(HERE, observed, ASKED, now_s) is ends


# -- our clock judges


def judged(pattern: str, *lines: tuple[float, str]) -> None:
    row = Format("", "", STEPS, pattern)
    match = compiled(pattern).search(lines[0][1])
    (one,) = bars.seen(row, printed(*lines))
    choosing.judge_steps(one, "--step-regex", match)


@pytest.mark.parametrize(
    ("pattern", "line", "seconds", "cure"),
    [
        (": ([0-9.]+) it/s", "pace: 49.6 it/s", 0.02, r"(?P<rate>[0-9.]+) it/s"),
        ("([0-9.]+) ms", "took 21.3 ms", 0.0213, r"(?P<ms>[0-9.]+) ms"),
        ("took ([0-9.]+)", "took 21.3us", 1.0, r"(?P<us>[0-9.]+)"),
        ("pace ([0-9.]+)", "pace 21.3", 0.0213, "(?P<ms>"),
        ("total ([0-9.]+)", "total {}.5", 1.0, "cumulative"),
        ("took (?P<us>[0-9.]+)", "took 21.3", 0.0213, "(?P<ms>"),
    ],
)
def test_numbers_other_than_seconds_are_refused_with_a_pattern(
    pattern: str, line: str, seconds: float, cure: str
) -> None:
    with pytest.raises(Refused) as refused:
        judged(pattern, *every(seconds, line))
    assert cure in str(refused.value)


def test_told_seconds_that_add_up_are_believed() -> None:
    judged("took ([0-9.]+)", *every(0.3, "took 0.25 s"))
    judged(
        "took ([0-9]+|[0-9.]+) s",
        *[(2.0 * at, f"took {'2' if at % 2 else '1.9'} s") for at in range(10)],
    )


@pytest.mark.parametrize(
    ("pattern", "line", "cure"),
    [
        (r"tps = ([0-9.]+)", "tps = 1.9 (without initial connection time)", "(?P<rate>[0-9.]+)"),
        (r"([0-9.]+) ms", "latency 1.3 ms", "(?P<ms>[0-9.]+)"),
        (r"done in ([0-9.]+)", "done in 49.6", "(?P<ms>"),
        (r"bw ([0-9.]+)", "bw 1.5 MB/s", "(?P<rate>[0-9.]+)"),
    ],
)
def test_a_figure_that_is_no_duration_is_refused(pattern: str, line: str, cure: str) -> None:
    told = figure(Format("", "", FIGURES, pattern), line)
    assert told
    with pytest.raises(Refused) as refused:
        choosing.judge_figure(told, 2.0, "--result-regex", pattern, compiled(pattern).search(line))
    assert cure in str(refused.value)


# -- programs that run for a set time


@pytest.mark.parametrize(
    ("program", "took_s", "word"),
    [
        (("sysbench", "cpu", "--time=2", "run"), 2.032, "--time=2"),
        (("wrk", "-t1", "-d2s", "http://x"), 2.04, "-d2s"),
        (("pgbench", "-T", "3"), 3.06, "-T 3"),
        (("openssl", "speed", "-seconds", "2"), 2.4, "-seconds 2"),
        (("x", "--runtime=500ms"), 0.51, None),
        (("gzip", "-9", "file"), 9.3, None),
        (("x", "--minutes=2m"), 120.4, "--minutes=2m"),
        (("make", "-j2"), 45.0, None),
        (("python", "train.py", "--epochs=2"), 2.9, None),
        (("sleep", "2"), 2.002, None),
    ],
)
def test_a_wall_time_that_the_command_line_sets_is_recognised(
    program: tuple[str, ...], took_s: float, word: str | None
) -> None:
    assert choosing.set_time(program, took_s) == word


def test_a_run_that_a_pause_does_not_lengthen_is_refused() -> None:
    with pytest.raises(Refused, match="no longer with a pause"):
        trial.tried(replace(HERE, program=("sh", "-c", "sleep 1.2; true")), ASKED)


def test_a_run_that_works_takes_longer_for_standing_still() -> None:
    assert not choosing.was_absorbed(took_s=2.0, again_s=2.28, paused_s=0.3)
    assert choosing.was_absorbed(took_s=2.0, again_s=2.01, paused_s=0.3)
    assert choosing.was_absorbed(took_s=2.0, again_s=1.9, paused_s=0.3)


def test_wall_time_is_refused_for_a_program_with_a_set_duration() -> None:
    spec = replace(
        HERE, program=("sh", "-c", "sleep 1.5; echo 'ops: 1234 (617.1 ops/s)'", "sh", "--time=1.5")
    )
    with pytest.raises(Refused, match=r"sets its duration.*--result-regex"):
        trial.tried(spec, ASKED)
    assert (
        trial.tried(spec, argparse.Namespace(**{**vars(ASKED), "runs": True}))[0].kind
        == command.RUNS
    )


# -- whole trials


def test_a_bar_is_read_by_what_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty redraws of five steps each, as tqdm draws them."""
    script = (
        "import sys, time\n"
        "for n in range(0, 201, 5):\n"
        "    print(f'\\r 40%|##  | {n}/200 [00:01<00:02, 99it/s]', end='', file=sys.stderr, "
        "flush=True); time.sleep(0.05)"
    )
    spec, _ = tried(script)
    assert (spec.kind, spec.format, spec.follow) == (command.LINES, "tqdm", None)
    assert spec.every % 5 == 0, "whole redraws; more of them where the machine scatters"
    assert "5 counts each" in capsys.readouterr().out


def test_a_figure_wins_over_a_bar() -> None:
    script = (
        "import time\n"
        "for n in range(30): print(f' 40%|##  | {n}/30 [00:01<00:02, 99it/s]', flush=True); "
        "time.sleep(0.01)\n"
        "print('Request throughput (req/s):   8.00')"
    )
    spec, _ = tried(script)
    assert (spec.kind, spec.format, spec.rate_unit) == (command.RUNS, "vllm", "requests")


def test_a_run_has_as_many_steps_as_its_trial_could_carry() -> None:
    script = "import time\nfor n in range(16): print(f'step {n}', flush=True); time.sleep(0.02)"
    spec, _ = tried(script)
    assert (spec.kind, spec.steps, spec.warmup) == (command.LINES, 9, 3)
    with pytest.raises(Refused, match="of 43 steps"):
        tried(script, kind=command.LINES, pattern=r"step (\d+)", steps=40)
    with pytest.raises(Refused, match=r"15 of 43 steps .* fewer \(--steps\)"):
        tried(script, steps=40)


def test_calls_win_over_all_that_is_printed() -> None:
    script = (
        "import time\nfrom deeptweak.steps import step\n"
        "for n in range(40): print(f' 40%|##  | {n}/40 [00:01<00:02, 99it/s]', flush=True); "
        "time.sleep(0.01); step()"
    )
    assert tried(script)[0].kind == command.CALLS


def test_long_output_is_kept_at_both_ends() -> None:
    one = Trial(("x",), 0.0)
    for index in range(40):
        one.add(float(index), f"{index} " + "x" * (1 << 19))
    numbers = [text.split()[0] for _, text in one.blocks]
    assert (numbers[0], numbers[-1]) == ("0", "39")
    assert sum(len(text) for _, text in one.blocks) < 1 << 24
