"""`python -m analysis effects`: what it prints and answers, of runs and of other studies' tables, good and bad."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.__main__ import main
from analysis.effects.csv_table import Columns, read_table
from analysis.terms import Refused
from tests.made_designs import Keys, ablation, designed, designed_file, factorial, fraction
from tests.synthetic import Arm, Made, saved_file

ROOT = Path(__file__).parents[3]
FOUR = Keys({"vm.swappiness": 0.0, "vm.dirty_ratio": -0.10, "kernel.numa_balancing": 0.0, "script:thp": 0.0})
MADE = Made(blocks=4, steps=6, run_cv=0.004, seed=2)
STORAGE = """\
# what a storage benchmark reached, by file format and workers
day,format,workers,au
1,npz,1,61.0
1,npz,8,80.5
1,hdf5,1,70.2
1,hdf5,8,91.1
2,npz,1,63.2
2,npz,8,79.9
2,hdf5,1,68.8
2,hdf5,8,93.0
3,npz,1,60.1
3,npz,8,82.2
3,hdf5,1,71.0
3,hdf5,8,90.4
"""


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    path.write_text(STORAGE)
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["effects", *map(str, words)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """One line, exit code 2."""
    assert main(["effects", *map(str, words)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def of(path: Path, *more: str) -> tuple[object, ...]:
    return path, "--response", "au", "--factors", "format,workers", *more


def test_the_page_of_an_ablation_ends_with_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, designed_file(tmp_path, "ablation", FOUR, ablation(4), MADE))
    assert max(map(len, page.splitlines())) <= 100
    assert "\x1b" not in page
    last = " ".join(page.split("\n\n")[-1].split())
    assert last.startswith("cnn_train, profile: vm.dirty_ratio = 1: ")
    assert last.endswith("of 9).")
    for line in (r"vm\.dirty_ratio in the profile +-\d", r"error +27 ", r"A/A: +stock-again, which changes nothing", r"profile − stock +-"):
        assert re.search(rf"^{line}", page, flags=re.MULTILINE), line


def test_json_has_every_term_and_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(printed(capsys, designed_file(tmp_path, "ablation", FOUR, ablation(4), MADE), "--json"))
    assert said["run"]["design"] == "ablation"
    (one,) = said["effects"]
    assert {term["means"] for term in one["terms"]} == {"alone", "in profile", "profile", "disagreement"}
    assert one["sentence"].startswith("vm.dirty_ratio = 1: ")


@pytest.mark.parametrize("effect", ["B", "vm.dirty_ratio"])
def test_one_effect_alone_is_adjusted_as_among_all(effect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asking for one of nine does not make it the only one that was looked at."""
    path = designed_file(tmp_path, "ablation", FOUR, ablation(4), MADE)
    whole, asked = (json.loads(printed(capsys, path, "--json", *more))["effects"][0]["terms"] for more in ([], ["--effect", effect]))
    assert asked == [term for term in whole if term["factors"] == ["vm.dirty_ratio"]]


def test_effects_are_named_by_letters_or_names_that_hold_colons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = designed_file(tmp_path, "fractional", FOUR, fraction(3, (0, 1, 2)), MADE)
    for effect in ("A:D", "vm.swappiness:script:thp", "script:thp:vm.swappiness", "A:script:thp"):
        assert "vm.swappiness:script:thp cannot be told from vm.dirty_ratio:kernel.numa_balancing" in refused(
            capsys, path, "--effect", effect
        )


def test_a_matrix_is_set_against_stock(capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, ROOT / "data/runs/2026-11-21_gate_amd-epyc-2cpu.json")
    assert re.search(r"^tcp-buffers-tiny − stock +-68\.4 \[-69\.\d, -67\.\d\]", page, flags=re.MULTILINE)
    assert page.rstrip().splitlines()[-1].startswith("ddp_train: tcp-buffers-tiny: 68.4 % slower (95 % ")


def test_where_the_check_fails_nothing_is_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stock had bad luck: its own copy is as much faster as the tweak set is."""
    arms = (Arm("stock"), Arm("stock-again", 0.10), Arm("set", 0.10))
    page = printed(capsys, saved_file(tmp_path, Made(arms=arms, blocks=6, steps=6, run_cv=0.004)))
    assert re.search(r"^set − stock .* <0\.001 H .* inconclusive$", page, flags=re.MULTILINE)
    assert "No tweak set can be named" in page
    assert "A copy of stock differs from stock as well (A/A)" in " ".join(page.split())


def test_a_table_of_another_study(storage: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Means of format and workers: npz 71.15, hdf5 80.75; 1 worker 65.72, 8 workers 86.18: differences 9.6 and 20.47."""
    said = json.loads(printed(capsys, *of(storage, "--block", "day", "--json")))
    effects = {term["label"]: term["effect"] for term in said["effects"][0]["terms"]}
    assert effects["format"] == pytest.approx((70.2 + 91.1 + 68.8 + 93.0 + 71.0 + 90.4) / 6 - (61 + 80.5 + 63.2 + 79.9 + 60.1 + 82.2) / 6)
    assert effects["workers"] == pytest.approx((80.5 + 91.1 + 79.9 + 93 + 82.2 + 90.4) / 6 - (61 + 70.2 + 63.2 + 68.8 + 60.1 + 71) / 6)
    page = printed(capsys, *of(storage, "--block", "day"))
    assert "workers: 1 → 8" in page
    assert " ".join(page.split("\n\n")[-1].split()).startswith("2 factors: workers: 20.4")
    worse = json.loads(printed(capsys, *of(storage, "--block", "day", "--better", "lower", "--json")))["effects"][0]
    assert {term["verdict"] for term in worse["terms"][:2]} == {"regressed"}
    gains = json.loads(printed(capsys, *of(storage, "--block", "day", "--log", "--better", "higher", "--json")))["effects"][0]
    assert {term["verdict"] for term in gains["terms"][:2]} == {"improved"}


def test_three_levels_and_words_and_other_separators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers come by size, words as they first come; a semicolon does as well as a comma; an empty response is a cell that was lost."""
    path = tmp_path / "other.csv"
    rows = [f"{size};{kind};{3 * size + (kind == 'b') + at / 10}" for at in range(3) for size in (16, 2, 4) for kind in "ba"]
    path.write_text("\n".join(["size;kind;y", *rows, "16;a;", ""]))
    (one,) = json.loads(printed(capsys, path, "--response", "y", "--factors", "size,kind", "--json"))["effects"]
    assert [factor["levels"] for factor in one["observed"]["factors"]] == [["2", "4", "16"], ["b", "a"]]
    assert [(level["level"], level["n"]) for level in one["levels"]][:3] == [("2", 6), ("4", 6), ("16", 6)]
    assert one["notes"][0] == "lost: size 16, kind a: no response."
    assert [row["name"] for row in one["anova"]] == ["size", "kind", "size:kind", "error", "total"]


def test_a_table_of_many_factors_is_no_endless_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """30 factors of two levels have 2^30 effects, 20 of six levels 4,750 interaction columns: what 24 rows can tell is told."""
    rng = np.random.default_rng(1)
    for factors, levels in ((30, 2), (20, 6)):
        names = [f"f{at}" for at in range(factors)]
        rows = [[*(str(rng.integers(levels)) for _ in names), f"{rng.normal(10, 1):.3f}"] for _ in range(150 if levels > 2 else 24)]
        path = tmp_path / f"{factors}.csv"
        path.write_text("\n".join(",".join(row) for row in [[*names, "y"], *rows, [*rows[0][:-1], "9.9"]]))
        page = printed(capsys, path, "--response", "y", "--factors", ",".join(names))
        assert "can be named" in page or "factor" in page


def test_a_failed_row_of_a_design_file_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "design.csv"
    path.write_text("a,b,run,y\n1,1,Y,3\n1,2,Y,4\n2,1,F,99\n2,2,Y,6\n")
    seen = read_table(path, Columns("y", ("a", "b")))
    assert [row.value for row in seen.rows] == [3, 4, 6]
    assert seen.lost[0].point == "a 2, b 1"


def test_a_row_that_was_not_run_counts_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """N in the column `run`, with a response all the same: left out, and said."""
    path = tmp_path / "design.csv"
    path.write_text("a,run,y\n" + "".join(f"{1 + at % 2},Y,{at % 2 + at / 10}\n" for at in range(8)) + "1,N,5000\n2,n,\n")
    page = " ".join(printed(capsys, path, "--response", "y", "--factors", "a").split())
    assert "8 cells at 2 points" in page
    assert "lost: a 1: run = N: not yet run, whatever its response." in page


def test_rows_that_were_copied_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "design.csv"
    rows = [f"{block},{level},{level + block / 7 + level * block / 9}" for block in (1, 2, 3) for level in (1, 2)]
    words = path, "--response", "y", "--factors", "a", "--block", "block"
    for more, said in (([], False), ([rows[1], rows[1]], True)):
        path.write_text("\n".join(["block,a,y", *rows, *more]))
        page = " ".join(printed(capsys, *words).split())
        assert ("equal in every column: line 8 as line 3, line 9 as line 3." in page) == said


EVIL = "\u202e\x1b[31mX\x07"


def test_what_a_file_says_is_printed_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes, directions and line breaks in names, questions and tables: of a run, a table, and of what is refused."""
    keys = Keys({f"vm.{EVIL}": -0.10, "vm.b": 0.0})
    saved = designed("factorial", keys, factorial(2), MADE)
    text = json.dumps(saved).replace('"made_up"', json.dumps(f"made{EVIL}\nRun 5: all fine"))
    text = text.replace("Does a made-up", json.dumps(f"{EVIL}\nRun 6: all fine")[1:-1])
    run, table = tmp_path / "run.json", tmp_path / "table.csv"
    run.write_text(text)
    table.write_text(f"a{EVIL},y\n" + "".join(f"{at % 2}{EVIL},{at + at % 2 * 3}\n" for at in range(8)))
    said = [printed(capsys, run), printed(capsys, table, "--response", "y", "--factors", f"a{EVIL}")]
    said += [refused(capsys, run, "--effect", "none"), refused(capsys, table, "--response", "z", "--factors", "y")]
    for one in said:
        assert "\\u202e\\x1b[31mX\\x07" in one
        assert not {"\u202e", "\x1b", "\x07"} & set(one)
        assert not re.search(r"^Run [56]", one, flags=re.MULTILINE)


@pytest.mark.parametrize("effect", ["A:B", "vm.b"])
def test_the_sentence_answers_first_what_was_asked(effect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = Keys({"vm.a": -0.10, "vm.b": 0.0, "vm.c": 0.0}, together={("vm.a", "vm.b"): -0.10})
    path = designed_file(tmp_path, "factorial", keys, factorial(3), MADE)
    whole, asked = (json.loads(printed(capsys, path, "--json", *more))["effects"][0]["sentence"] for more in ([], ["--effect", effect]))
    first, rest = asked.split(" Of all that was looked at: ")
    assert rest == whole
    assert re.match(
        {"A:B": r"vm\.a and vm\.b do something else together: 1?\d\.\d % slower \(95 % ", "vm.b": r"vm\.b = 1: \d"}[effect], first
    )


def test_points_that_contradict_their_tweak_sets_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The levels of two points were exchanged: keys would be called by each other's names."""
    saved = designed("factorial", Keys({"vm.a": -0.10, "vm.b": 0.0}), factorial(2), MADE)
    points = saved["deeptweak"]["design"]["points"]
    one, other, *_ = points.values()
    one["levels"], other["levels"] = other["levels"], one["levels"]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved))
    reason = "design.points.profile.p02 leaves it as found, vm.a, but its tweak set sets it to 1: one of the two was edited."
    assert reason in refused(capsys, path)


def test_what_casts_doubt_on_a_run_stands_in_its_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `compare` has it: stopped early, not put back, not as before at the end."""
    saved = designed("factorial", Keys({"vm.a": -0.10, "vm.b": 0.0}), factorial(2), MADE)
    saved["deeptweak"] |= {"interrupted": True, "machine_check": {"changed": {"/proc/sys/vm/a": ["60", "33"]}, "restored": False}}
    saved["benchmarks"][3]["extra_info"]["tweak"] |= {"before": {"vm.a": "0"}, "restored": {"vm.a": "1"}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved))
    head = " ".join(printed(capsys, path).split("\n\n")[0].split())
    assert "warning: the machine was not as before when the run ended: /proc/sys/vm/a." in head
    assert "warning: the run was interrupted: " in head
    assert " did not put back vm.a: " in head


FORMAT = ["--response", "au", "--factors", "format"]
BAD = {
    "no such file": (None, FORMAT, "results.csv: no such file"),
    "no response named": (STORAGE, ["--factors", "format"], "say which columns are what: --response COLUMN --factors"),
    "no such response": (STORAGE, ["--response", "mbps", "--factors", "format"], "no column 'mbps'; it has day, format, workers, au"),
    "no such factor": (STORAGE, ["--response", "au", "--factors", "format,size"], "no column 'size'"),
    "no such block": (STORAGE, [*FORMAT, "--block", "node"], "no column 'node'"),
    "a column twice": (STORAGE, ["--response", "au", "--factors", "format,format"], "column 'format' is named twice"),
    "a factor that is the response": (STORAGE, ["--response", "au", "--factors", "au"], "column 'au' is named twice"),
    "an option of runs": (STORAGE, [*FORMAT, "--metric", "x"], "--metric is for saved runs"),
    "an unknown effect": (
        STORAGE,
        [*FORMAT, "--effect", "size"],
        "no factor 'size' in --effect size; there are",
    ),
    "an effect with itself": (STORAGE, [*FORMAT, "--effect", "format:A"], "names a factor twice"),
    "empty": ("", FORMAT, "results.csv: empty"),
    "a header alone": ("format,au\n", FORMAT, "no rows below its header"),
    "a name twice": ("format,format,au\na,b,1\n", FORMAT, "line 1: a column 'format' is there twice"),
    "no name": ("format,,au\na,b,1\n", FORMAT, "line 1: a column has no name"),
    "a short row": ("format,au\na,1\nb\n", FORMAT, "line 3: 1 fields, where the header has 2"),
    "no number": ("format,au\na,1\nb,fast\n", FORMAT, "line 3: 'fast' in column 'au' is no number"),
    "endless": ("format,au\na,1\nb,inf\n", FORMAT, "line 3: 'inf' in column 'au' is no number"),
    "no level": ("format,au\na,1\n,2\n", FORMAT, "line 3: no level in column 'format'"),
    "no block": (
        "day,format,au\n1,a,1\n,b,2\n",
        [*FORMAT, "--block", "day"],
        "line 3: no block in column 'day'",
    ),
    "one level": ("format,au\na,1\na,2\n", FORMAT, "column 'format' is 'a' in every row"),
    "one number two ways": ("size,au\n1,1\n1.0,2\n", ["--response", "au", "--factors", "size"], "writes one number in two ways: 1, 1.0"),
    "a measurement as a factor": (
        "size,au\n" + "".join(f"{at},{at}\n" for at in range(60)),
        ["--response", "au", "--factors", "size"],
        "has 60 levels, more than 50",
    ),
    "steps for rows": ("format,au\n" + "a,1\nb,2\n" * 5001, FORMAT, "10002 rows, more than 10000: a row is a cell"),
    "nothing measured": ("format,au\na,\nb,\n", FORMAT, "0 rows with a number in column 'au'"),
    "too large": ("format,au\na,1\nb,1e308\n", FORMAT, "line 3: 1e308 in column 'au' is too large; take another unit"),
    "no ratio": ("format,au\na,1\nb,0\n", [*FORMAT, "--log"], "line 3: au = 0: --log takes ratios"),
    "quoted over lines": ('format,au\n"a\nb",1\nb,2\n', FORMAT, "a quoted field goes on over lines"),
    "no text": (b"\xff\xfe\x00", FORMAT, "not a text file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, words, reason = BAD[name]
    path = tmp_path / "results.csv"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert reason in refused(capsys, path, *words)


NOTHING = {
    "all alike": ("format,au\n" + "a,1\nb,1\n" * 3, "all 6 values of au are the same"),
    "repeats alike": ("format,au\n" + "a,1\nb,2\n" * 3, "repeats of a point have the very same au"),
    "nothing twice": ("size,au\n1,1\n2,2\n3,5\n", "no point was run twice"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_table_that_says_nothing_is_told_so(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not bad input: analysed, with the reason for an answer."""
    content, reason = NOTHING[name]
    path = tmp_path / "results.csv"
    path.write_text(content)
    assert f"Nothing can be said: {reason}" in " ".join(
        printed(capsys, path, "--response", "au", "--factors", content.split(",")[0]).split()
    )


def test_bad_requests_of_runs_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = designed_file(tmp_path, "ablation", FOUR, ablation(4), MADE)
    matrix = saved_file(tmp_path, Made(blocks=3))
    assert "no factor 'vm.nr_hugepages' in --effect vm.nr_hugepages; there are vm.swappiness, " in refused(
        capsys, run, "--effect", "vm.nr_hugepages"
    )
    assert "no workload 'vit'; it has cnn_train" in refused(capsys, run, "--workload", "vit")
    assert "no metric 'speed'; it has cpu_s_per_step, " in refused(capsys, run, "--metric", "speed")
    assert "--response is for .csv tables" in refused(capsys, run, "--response", "au")
    assert "no key of them was varied by itself" in refused(capsys, matrix, "--effect", "vm.swappiness")
    assert "ablation tells no interaction" in refused(capsys, run, "--effect", "A:B")
    assert "no such file" in refused(capsys, tmp_path / "none.json")


def test_a_run_in_which_nothing_was_varied_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, ROOT / "data/runs/2026-11-21_aa_amd-epyc-2cpu.json", "--workload", "ddp_train")
    assert page.splitlines()[-1] == "ddp_train: Nothing can be said: nothing was varied: there is only stock."


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["effects", "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "python -m analysis effects results.csv --response au --factors format,workers --block day" in said
    assert max(map(len, said.splitlines())) <= 100


TEXT = st.text(st.sampled_from('ab1.,;\t\n"# -\ufeffé\x00'), max_size=80)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXT)
def test_whatever_a_table_holds_it_is_read_or_refused(tmp_path: Path, text: str) -> None:
    """Never another error: a table comes from a stranger's hand."""
    path = tmp_path / "any.csv"
    path.write_text("a,b\n" + text, encoding="utf-8")
    try:
        rows, refusal = len(read_table(path, Columns("b", ("a",))).rows), ""
    except Refused as error:
        rows, refusal = 2, str(error)
    assert rows >= 2
    assert "\n" not in refusal
