"""The numbers of each command on each committed run and on others' data, as tables.

`pytest tests/analysis/test_golden.py --snapshot-update` renews them. `show` is there row by row: it
is the answer of the run's own study. Of the other commands there is the mean of each column.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import pytest

from analysis.__main__ import main
from tests.needs import REFERENCE

HOUSE = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
RUNS = sorted(
    path for path in (HOUSE / "data/runs").iterdir() if path.name.endswith((".json", ".json.xz"))
)
# Others' data; those of the power caps have golden values of their own, which the original programs
# made.
REFERENCES = {
    "deeptweak": ("show", "deeptweak/one_node_one_gpu"),
    "perf_2025": ("io", "perf_2025/results/unet3d_h100_custom"),
}
MEANS = ("compare", "effects")
SENTENCES = {"reason", "run", "run_id", "grid"}  # or names of files
Row = list[str]


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def rounded(text: str) -> str:
    value = number(text)
    return text if value is None else f"{value:.6g}"


def tables(text: str) -> Iterator[tuple[Row, list[Row]]]:
    """Heads and rows, without sentences."""
    for part in filter(None, text.strip("\n").split("\n\n")):
        head, *rows = csv.reader(part.splitlines())
        kept = [at for at, name in enumerate(head) if name not in SENTENCES]
        if rows:
            yield [head[at] for at in kept], [[rounded(row[at]) for at in kept] for row in rows]


def means(head: Row, rows: list[Row]) -> tuple[Row, list[Row]]:
    values = {
        name: [value for row in rows if (value := number(row[at])) is not None]
        for at, name in enumerate(head)
    }
    return ["rows", *(name for name in head if values[name])], [
        [f"{len(rows)}", *(f"{fmean(own):.6g}" for own in values.values() if own)]
    ]


def lines_of(
    commands: Sequence[str], path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Row]:
    for command in commands:
        code = main([command, str(path), "--csv"])
        for table in tables(capsys.readouterr().out):
            head, rows = means(*table) if command in MEANS else table
            # Common parts of all rows stand once, in the line above.
            alike = [
                at for at in range(len(head)) if len({row[at] for row in rows}) == 1 < len(rows)
            ]
            yield [command, *(f"{head[at]}={rows[0][at]}" for at in alike if rows[0][at])]
            yield from (
                [row[at] for at in range(len(head)) if at not in alike] for row in (head, *rows)
            )
        if code:
            yield [command, f"exit code {code}"]


def close(new: str, old: str) -> bool:
    """Equal, or equal numbers to five digits."""
    (name, _, left), (other, _, right) = new.rpartition("="), old.rpartition("=")
    values = [value for text in (left, right) if (value := number(text)) is not None]
    return new == old or (
        name == other and len(values) == 2 and math.isclose(*values, rel_tol=1e-5)
    )


def compare(new: list[Row], name: str, request: pytest.FixtureRequest) -> None:
    path = GOLDEN / f"{name}.csv"
    if request.config.option.update_snapshots:
        with path.open("w", encoding="utf-8") as out:
            csv.writer(out, lineterminator="\n").writerows(new)
    old = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    assert [
        (a, b)
        for a, b in zip(new, old, strict=True)
        if len(a) != len(b) or not all(map(close, a, b))
    ] == []


@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.name.partition(".json")[0])
def test_the_numbers_of_a_run_are_those_of_before(
    run: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    compare(list(lines_of(("show", *MEANS), run, capsys)), run.name.partition(".json")[0], request)


@pytest.mark.needs("reference")
@pytest.mark.parametrize("name", REFERENCES)
def test_the_numbers_of_others_data_are_those_of_before(
    name: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    command, place = REFERENCES[name]
    compare(list(lines_of([command], REFERENCE / place, capsys)), f"reference_{name}", request)
