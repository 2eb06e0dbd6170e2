"""Names from other tools: with commas, many of them, two in one file, on one side only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.wording import joined_names, parse_names
from tests.stock_files import benchmark, document, stock_file, times

HYPERFINE = Path(__file__).parent / "formats" / "other_tools" / "hyperfine.json"
KNOWN = ["f[a,b]", "f[a]", "b.time_sort(10, 'up')", "sort -k1,2 x", "a", "a,b"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("f[a,b]", ["f[a,b]"]),
        ("f[a],f[a,b]", ["f[a]", "f[a,b]"]),
        ("b.time_sort(10, 'up'),f[a]", ["b.time_sort(10, 'up')", "f[a]"]),
        ("b.time_sort(10,'up')", ["b.time_sort(10, 'up')"]),
        ("sort -k1,2 x", ["sort -k1,2 x"]),
        ("a,b", ["a,b"]),
        ("a, f[a]", ["a", "f[a]"]),
        ("unknown,a", ["unknown", "a"]),
        ("", []),
    ],
)
def test_names_with_commas_are_found_among_those_known(text: str, names: list[str]) -> None:
    assert list(joined_names(parse_names(text), KNOWN)) == names


def nights(
    folder: Path, names: list[str], count: int = 5, slower: float = 1.0, hour: int = 3
) -> Path:
    folder.mkdir()
    for night in range(count):
        data = [
            benchmark(name, [slower * one for one in times(100 * hour + 10 * night + at)])
            for at, name in enumerate(names)
        ]
        saved = document(data, f"2026-01-{1 + night:02}T{hour:02}:00:00.000001+00:00")
        stock_file(folder / f"{night}.json", saved)
    return folder


@pytest.mark.parametrize("command", ["compare", "gate"])
def test_a_workload_with_a_comma_is_chosen_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    old = nights(tmp_path / "old", ["test_it[a,b]", "test_it[a,c]"])
    new = nights(tmp_path / "new", ["test_it[a,b]", "test_it[a,c]"], slower=2, hour=4)
    limits = ["--max-regression=3%"] if command == "gate" else []
    code = main(
        [
            command,
            str(old),
            str(new),
            "--workloads=tests/test_speed.py::test_it[a,b]",
            "--json",
            *limits,
        ]
    )
    answer = json.loads(capsys.readouterr().out)
    assert code == (1 if command == "gate" else 0)
    found = (
        [one["comparison"] for one in answer["rulings"]]
        if command == "gate"
        else answer["comparisons"]
    )
    assert [one["workload"] for one in found] == ["tests/test_speed.py::test_it[a,b]"]


def test_what_stands_on_one_side_only_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = nights(tmp_path / "old", ["test_it", "test_gone"])
    new = nights(tmp_path / "new", ["test_it", "test_new"], hour=4)
    assert main(["compare", str(old), str(new)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert f"only in {old}, so not compared: tests/test_speed.py::test_gone." in page
    assert f"only in {new}, so not compared: tests/test_speed.py::test_new." in page
    assert main(["compare", str(old), str(new), "--json"]) == 0
    assert (
        sum(", so not compared" in line for line in json.loads(capsys.readouterr().out)["warnings"])
        == 2
    )


def test_a_list_of_names_in_an_error_has_an_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = nights(tmp_path / "many", [f"test_it[{at}]" for at in range(40)], count=1)
    (path,) = many.iterdir()
    limits = tmp_path / "limits.yml"
    limits.write_text("max_regression: 3%\nworkloads: {test_that: 3%}\n")
    for words in (
        ["compare", f"{path}:as-run", f"{path}:as-run", "--workloads=test_that"],
        ["gate", str(path), str(path), f"--limits={limits}"],
    ):
        assert main(words) == 2
        line = capsys.readouterr().err
        assert "test_it[0]" in line
        assert "and 28 more" in line
        assert "test_it[39]" not in line


@pytest.mark.parametrize("nights", [1, 6])
def test_two_commands_of_one_file_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nights: int
) -> None:
    """Each file counts once: `sleep 0.02` takes 1.9 times as long; one file gives no verdict."""
    saved = json.loads(HYPERFINE.read_text())
    for night in range(nights):
        for one in saved["results"]:
            one["times"] = [
                time_s + (night * 7 % 5 + len(one["command"]) % 3) * 1e-5 for time_s in one["times"]
            ]
        (tmp_path / f"{night}.json").write_text(json.dumps(saved))
    words = ["compare", f"{tmp_path}/*.json", "--arm=workload", "--baseline=sleep 0.01"]
    assert main([*words, "--json"]) == 0
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (comparison["baseline"], comparison["tweakset"]) == ("sleep 0.01", "sleep 0.02")
    assert comparison["verdict"] == ("inconclusive" if nights == 1 else "regressed")
    gain = comparison["observed"] if nights == 1 else comparison["primary"]["gain"]
    assert gain == pytest.approx(-0.46, abs=0.03)
