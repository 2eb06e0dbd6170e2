"""A program's rate stays `104 MB/s`, never seconds: run, comparison, picture and page."""

from __future__ import annotations

import html
import json
import re
import shlex
import sys
from pathlib import Path

import jsonschema
import pytest

from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.load import load
from analysis.load import parsed as loaded_whole
from analysis.render import text
from analysis.report.page import page_of
from analysis.terms import Metric
from fixtures.studies.command.spec import read
from tests.sessions import HOUSE, Json, Place

pytestmark = [pytest.mark.usefixtures("kernel_unchanged"), pytest.mark.needs("session")]
# It runs equally long at any speed, as programs do that run for a set time. The last digits differ
# from run to run.
TELLS = (
    "i=$(od -An -N1 -tu1 /dev/urandom); sleep 0.02; echo rate $((${RATE_MB:-104} * 1000000 + i * "
    "1000)) B/s"
)


@pytest.fixture(scope="module")
def saved(
    tmp_path_factory: pytest.TempPathFactory,
    kernel_lock: None,  # noqa: ARG001 it runs a session
) -> tuple[str, Path]:
    """Return output and saved file of `deeptweak run` on a setting that doubles the rate."""
    place = Place(tmp_path_factory.mktemp("rates"))
    fast = place.manifest("fast", variables="RATE_MB=208")
    words = [
        f"--tweaks={fast}",
        "--blocks=3",
        "--seed=5",
        "--steps=3",
        "--result-regex=rate (?P<rate>[0-9]+) B/s",
    ]
    words += ["--env=GREETING=it's me", "--exit-codes=0,3", f"--storage={place.storage}"]
    done = place.call(sys.executable, "-m", "deeptweak", "run", *words, "--", "sh", "-c", TELLS)
    assert done.code == 0, done.out
    return done.out, place.files()[-1]


def test_the_trial_and_each_cell_tell_the_rate(saved: tuple[str, Path]) -> None:
    out, _ = saved
    assert re.search(r"^figure = '.*': 104 MB/s$", out, re.MULTILINE)
    cells = [line for line in out.splitlines() if line.startswith("[")]
    assert [": 208 MB/s (median);" in line for line in cells] == [
        " x fast, " in line for line in cells
    ]
    assert sum(": 104 MB/s (median);" in line for line in cells) == 6


def test_the_saved_run_has_the_rates_beside_our_clock(saved: tuple[str, Path]) -> None:
    parsed: Json = loaded_whole(saved[1])  # type: ignore[assignment]
    (workload,) = parsed["deeptweak"]["workloads"].values()
    assert workload["command"]["program"] == ["sh", "-c", TELLS]
    assert workload["command"]["environment"] == {"GREETING": "it's me"}
    assert workload["primary"] == {"name": "rate_median_per_s", "better": "higher", "unit": "B"}
    run = load(saved[1])
    jsonschema.validate(parsed, json.loads((HOUSE / "data/run.schema.json").read_text()))
    for cell in run.cells:
        assert not cell.contradictions  # both sides make the same median
        assert cell.facts["rate_unit"] == "B"
        assert cell.steps is not None
        assert cell.steps.rate_per_s is not None
        assert cell.metrics["rate_median_per_s"] == sorted(cell.steps.rate_per_s[1:])[1]
        assert min(cell.steps.wall_s) > 0.01


def test_a_factor_of_two_in_the_rate_is_one_in_the_verdict(saved: tuple[str, Path]) -> None:
    run = load(saved[1])
    guard, found = sorted(compare(run), key=lambda comparison: not comparison.guard)
    assert found.primary_metric == Metric("rate_median_per_s", "higher", "B")
    assert found.primary is not None
    assert found.primary.gain == pytest.approx(1.0, abs=0.01)
    # Our clock's throughput is that of a program that runs for a set time.
    assert found.second is None
    shown = text.render(answer_of([guard, found], [run]))
    if guard.verdict == "not comparable":  # in one run of a hundred two equal arms differ by chance
        return
    assert "Faster: fast" in shown
    assert "tweak set  rate" in shown
    assert "104 MB/s" in shown


def test_the_page_has_the_line_that_measures_it_again(
    saved: tuple[str, Path], tmp_path: Path
) -> None:
    """Pasted into a shell it is the same command."""
    line = again(saved[1])
    *words, dashes, shell, option, script = shlex.split(line)
    assert (dashes, shell, option, script) == ("--", "sh", "-c", TELLS)
    assert words[:2] == ["deeptweak", "run"]
    assert {
        "--seed=5",
        "--blocks=3",
        "--steps=3",
        "--warmup=1",
        "--exit-codes=0,3",
        "--env=GREETING=it's me",
    } <= set(words)
    (measured,) = (read(path) for path in (saved[1].parents[1] / "commands").glob("*.json"))
    place = Place(tmp_path)
    pasted = line.replace(
        "deeptweak run",
        f"{shlex.quote(sys.executable)} -m deeptweak run --plan --storage={place.storage}",
        1,
    )
    done = place.call("sh", "-c", pasted)
    assert done.code == 0, done.out
    assert [read(path).identity() for path in (place.storage / "commands").glob("*.json")] == [
        measured.identity()
    ]


def again(path: Path) -> str:
    """The line of the page."""
    text = page_of([load(path)], "deeptweak report").html
    (found,) = re.findall(r"^(?:<pre>)?(deeptweak run .*?)</pre>", text, re.MULTILINE | re.DOTALL)
    return html.unescape(found)
