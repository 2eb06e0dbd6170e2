"""Output of `python -m analysis effects` for runs and other studies' tables, good and bad."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.analysis.answers import printed, refusals, refused
from tests.made_designs import Keys, ablation, designed, designed_file, factorial, fraction
from tests.synthetic import Arm, Made, saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

ROOT = Path(__file__).parents[3]
FOUR = Keys(
    {"vm.swappiness": 0.0, "vm.dirty_ratio": -0.10, "kernel.numa_balancing": 0.0, "script:thp": 0.0}
)
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


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results.csv").write_text(STORAGE)


def of(path: str, *more: str) -> tuple[str, ...]:
    return "effects", path, "--response", "au", "--factors", "format,workers", *more


def ablated(tmp_path: Path) -> tuple[str, str]:
    designed_file(tmp_path, "ablation", FOUR, ablation(4), MADE)
    return "effects", "ablation.json"


def test_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    doubtful = designed("factorial", Keys({"vm.a": -0.10, "vm.b": 0.0}), factorial(2), MADE)
    doubtful["deeptweak"] |= {
        "interrupted": True,
        "machine_check": {"changed": {"/proc/sys/vm/a": ["60", "33"]}, "restored": False},
    }
    doubtful["benchmarks"][3]["extra_info"]["tweak"] |= {
        "before": {"vm.a": "0"},
        "restored": {"vm.a": "1"},
    }
    Path("doubtful.json").write_text(json.dumps(doubtful))
    arms = (Arm("stock"), Arm("stock-again", 0.10), Arm("set", 0.10))
    saved_file(tmp_path, Made(arms=arms, blocks=6, steps=6, run_cv=0.004), "unlucky.json")
    saved_file(tmp_path, Made(arms=arms[:2], blocks=6, steps=6), "equal.json")
    pages = {
        "ablation": printed(capsys, *ablated(tmp_path)),
        "doubtful": printed(capsys, "effects", "doubtful.json"),
        "unlucky": printed(capsys, "effects", "unlucky.json"),
        "table": printed(capsys, *of("results.csv", "--block", "day")),
        "nothing varied": printed(capsys, "effects", "equal.json").split("\n\n")[1],
    }
    assert max(len(line) for page in pages.values() for line in page.splitlines()) <= 100
    assert "\x1b" not in "".join(pages.values())
    assert pages == snapshot


ODD_TABLES = {
    "not run": "a,run,y\n"
    + "".join(f"{1 + at % 2},Y,{at % 2 + at / 10}\n" for at in range(8))
    + "1,N,5000\n2,n,\n1,F,99\n",
    "copied": "block,a,y\n1,1,1.3\n1,2,2.4\n2,1,1.5\n2,2,2.7\n3,1,1.8\n3,2,3.1\n1,2,2.4\n1,2,2.4\n",
    "all alike": "a,y\n" + "u,1\nv,1\n" * 3,
    "repeats alike": "a,y\n" + "u,1\nv,2\n" * 3,
    "nothing twice": "a,y\n1,1\n2,2\n3,5\n",
}


def test_odd_tables_are_analysed_and_say_what_is_odd(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    pages = {}
    for name, text in ODD_TABLES.items():
        Path("odd.csv").write_text(text)
        pages[name] = printed(
            capsys, "effects", "odd.csv", "--response", "y", "--factors", "a"
        ).split("\n\n", 1)[1]
    assert pages == snapshot


def test_a_matrix_is_set_against_stock(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = json.loads(
        printed(capsys, "effects", ROOT / "data/runs/2026-11-21_gate_amd-epyc-2cpu.json", "--json")
    )["effects"]
    (term,) = found["terms"]
    assert (term["level"], term["verdict"], term["gain"]) == (
        "tcp-buffers-tiny",
        "regressed",
        pytest.approx(-0.684, abs=0.001),
    )


def test_a_table_of_another_study(capsys: pytest.CaptureFixture[str]) -> None:
    """Means: npz 71.15, hdf5 80.75; 1 worker 65.72, 8 workers 86.18: effects 9.6 and 20.47."""

    def terms(*more: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(
            printed(capsys, *of("results.csv", "--block", "day", "--json", *more))
        )["effects"][0]["terms"]
        return found

    effects = {term["label"]: term["effect"] for term in terms()}
    assert effects["format"] == pytest.approx(
        (70.2 + 91.1 + 68.8 + 93.0 + 71.0 + 90.4) / 6 - (61 + 80.5 + 63.2 + 79.9 + 60.1 + 82.2) / 6
    )
    assert effects["workers"] == pytest.approx(
        (80.5 + 91.1 + 79.9 + 93 + 82.2 + 90.4) / 6 - (61 + 70.2 + 63.2 + 68.8 + 60.1 + 71) / 6
    )
    assert {term["verdict"] for term in terms("--better", "lower")[:2]} == {"regressed"}
    assert {term["verdict"] for term in terms("--log", "--better", "higher")[:2]} == {"improved"}


def test_three_levels_and_words_and_other_separators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.csv"
    rows = [
        f"{size};{kind};{3 * size + (kind == 'b') + at / 10}"
        for at in range(3)
        for size in (16, 2, 4)
        for kind in "ba"
    ]
    path.write_text("\n".join(["size;kind;y", *rows, "16;a;", ""]))
    (one,) = json.loads(
        printed(capsys, "effects", path, "--response", "y", "--factors", "size,kind", "--json")
    )["effects"]
    assert [factor["levels"] for factor in one["observed"]["factors"]] == [
        ["2", "4", "16"],
        ["b", "a"],
    ]
    assert [(level["level"], level["n"]) for level in one["levels"]][:3] == [
        ("2", 6),
        ("4", 6),
        ("16", 6),
    ]
    assert one["notes"][0].startswith("lost: size 16")
    assert [row["name"] for row in one["anova"]] == ["size", "kind", "size:kind", "error", "total"]
    words = ("effects", path, "--response", "y", "--factors", "size,kind", "--effect")
    interaction, main = (printed(capsys, *words, effect) for effect in ("B:A", "A"))
    assert "Of all effects: size: " in interaction
    assert "size 2 → 16  " not in interaction
    assert "size 2 → 16  " in main
    assert "kind b → a  " not in main


EVIL = "\u202e\x1b[31mX\x07"


def test_what_a_file_says_is_printed_and_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = Keys({f"vm.{EVIL}": -0.10, "vm.b": 0.0})
    saved = designed("factorial", keys, factorial(2), MADE)
    text = json.dumps(saved).replace('"made_up"', json.dumps(f"made{EVIL}\nRun 5: all fine"))
    text = text.replace("Does a made-up", json.dumps(f"{EVIL}\nRun 6: all fine")[1:-1])
    run, table = tmp_path / "run.json", tmp_path / "table.csv"
    run.write_text(text)
    table.write_text(
        f"a{EVIL},y\n" + "".join(f"{at % 2}{EVIL},{at + at % 2 * 3}\n" for at in range(8))
    )
    said = [
        printed(capsys, "effects", run),
        printed(capsys, "effects", table, "--response", "y", "--factors", f"a{EVIL}"),
    ]
    said += [
        refused(capsys, "effects", run, "--effect", "none"),
        refused(capsys, "effects", table, "--response", "z", "--factors", "y"),
    ]
    for one in said:
        assert "\\u202e\\x1b[31mX\\x07" in one
        assert not {"\u202e", "\x1b", "\x07"} & set(one)
        assert not re.search(r"^Run [56]", one, flags=re.MULTILINE)


FORMAT = ["--response", "au", "--factors", "format"]
SIZE = ["--response", "au", "--factors", "size"]
BAD_TABLES: dict[str, tuple[str | bytes, list[str]]] = {
    "no response named": (STORAGE, ["--factors", "format"]),
    "no such response": (STORAGE, ["--response", "mbps", "--factors", "format"]),
    "no such factor": (STORAGE, ["--response", "au", "--factors", "format,size"]),
    "no such block": (STORAGE, [*FORMAT, "--block", "node"]),
    "a column twice": (STORAGE, ["--response", "au", "--factors", "format,format"]),
    "a factor that is the response": (STORAGE, ["--response", "au", "--factors", "au"]),
    "an option of runs": (STORAGE, [*FORMAT, "--metric", "x"]),
    "an unknown effect": (STORAGE, [*FORMAT, "--effect", "size"]),
    "an effect with itself": (STORAGE, [*FORMAT, "--effect", "format:A"]),
    "empty": ("", FORMAT),
    "a header alone": ("format,au\n", FORMAT),
    "a name twice": ("format,format,au\na,b,1\n", FORMAT),
    "no name": ("format,,au\na,b,1\n", FORMAT),
    "a short row": ("format,au\na,1\nb\n", FORMAT),
    "no number": ("format,au\na,1\nb,fast\n", FORMAT),
    "endless": ("format,au\na,1\nb,inf\n", FORMAT),
    "no level": ("format,au\na,1\n,2\n", FORMAT),
    "no block": ("day,format,au\n1,a,1\n,b,2\n", [*FORMAT, "--block", "day"]),
    "one level": ("format,au\na,1\na,2\n", FORMAT),
    "one number two ways": ("size,au\n1,1\n1.0,2\n", SIZE),
    "a measurement as a factor": ("size,au\n" + "".join(f"{at},{at}\n" for at in range(60)), SIZE),
    "steps for rows": ("format,au\n" + "a,1\nb,2\n" * 5001, FORMAT),
    "nothing measured": ("format,au\na,\nb,\n", FORMAT),
    "too large": ("format,au\na,1\nb,1e308\n", FORMAT),
    "no ratio": ("format,au\na,1\nb,0\n", [*FORMAT, "--log"]),
    "quoted over lines": ('format,au\n"a\nb",1\nb,2\n', FORMAT),
    "no text": (b"\xff\xfe\x00", FORMAT),
}


def test_a_bad_table_is_one_line(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    complaints = {}
    for name, (content, words) in BAD_TABLES.items():
        Path("bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        complaints[name] = refused(capsys, "effects", "bad.csv", *words)
    assert complaints == snapshot


def test_a_bad_request_of_a_run_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    run = ablated(tmp_path)
    saved_file(tmp_path, Made(blocks=3), "matrix.json")
    designed_file(tmp_path, "fractional", FOUR, fraction(3, (0, 1, 2)), MADE)
    exchanged = designed("factorial", Keys({"vm.a": -0.10, "vm.b": 0.0}), factorial(2), MADE)
    one, other, *_ = exchanged["deeptweak"]["design"]["points"].values()
    one["levels"], other["levels"] = other["levels"], one["levels"]
    Path("exchanged.json").write_text(json.dumps(exchanged))
    aliased = ("A:D", "vm.swappiness:script:thp", "script:thp:vm.swappiness", "A:script:thp")
    cases: dict[str, tuple[str, ...]] = {
        "unknown key": (*run, "--effect", "vm.nr_hugepages"),
        "unknown workload": (*run, "--workloads", "vit"),
        "unknown metric": (*run, "--metric", "speed"),
        "an option of tables": (*run, "--response", "au"),
        "a key of a matrix": ("effects", "matrix.json", "--effect", "vm.swappiness"),
        "an interaction in an ablation": (*run, "--effect", "A:B"),
        "no such file": ("effects", "none.json"),
        "no such table": ("effects", "none.csv", *FORMAT),
        "exchanged points": ("effects", "exchanged.json"),
    }
    cases |= {
        f"aliased {effect}": ("effects", "fractional.json", "--effect", effect)
        for effect in aliased
    }
    assert refusals(capsys, cases) == snapshot
