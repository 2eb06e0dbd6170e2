"""`deeptweak tuned` on a tune: the verdict of the fresh blocks alone, and each setting's fate."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.compare import compare
from analysis.load import load
from analysis.render import csv as as_csv
from analysis.studies.tune.answer import answer, verdict_of
from analysis.studies.tune.tune import read
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file

WHOLE = "all-settings"
Json = dict[str, Any]


def arm(name: str, gain: float = 0.0, **other: Any) -> Arm:
    """An arm of a setting that was in force."""
    return Arm(name, gain, requested={"vm.swappiness": "7"}, **other)


def made(again: Arm, *arms: Arm, blocks: int = 12) -> Made:
    """A run of some arms beside the two untouched ones, which are the baseline together."""
    return Made(
        (STOCK, again, *arms), blocks=blocks, run_cv=0.003, baseline=("stock", "stock-again")
    )


def judged(gain: float, word: str, error: float = 0.002) -> Json:
    return {"gain": gain, "error": error, "df": 40, "word": word}


def heat(number: int, label: str, run: str, arms: Mapping[str, list[str]]) -> Json:
    about = {
        "number": number,
        "label": label,
        "run": run,
        "interrupted": False,
        "took_s": 10.0,
    }
    return {**about, "arms": dict(arms)}


def record(chosen: Mapping[str, float] | None, heats: list[Json], **other: Any) -> Json:
    return {
        "schema_version": 1,
        "settings": {name: [name] for name in ("a", "b", "c")},
        "left_out": {},
        "rules": {"looks": 1, "min_gain": 0.01},
        "budget_s": 100.0,
        "seed": 1,
        "heats": heats,
        "looks": [
            {
                "look": 1,
                "settings": {"a": judged(0.1, "helps"), "b": judged(0.0, "no gain in sight")},
                "failed": ["c"],
            }
        ],
        "chosen": chosen,
        "interactions": {},
        "words": [],
        **other,
    }


def tuned(
    folder: Path, *arms: Arm, chosen: tuple[str, ...] = ("a",), blocks: int = 12, **other: Any
) -> Path:
    """A tune that chose `a` and confirmed it beside these arms."""
    saved_file(folder, made(AGAIN, *arms, blocks=blocks), "confirm.json")
    settings = {"chosen": list(chosen), WHOLE: ["a", "b", "c"]}
    heats = [
        heat(
            1,
            "confirm",
            "../confirm.json",
            {arm.name: settings[arm.name] for arm in arms if arm.name in settings},
        )
    ]
    return written(folder, record(dict.fromkeys(chosen, 0.1), heats, **other))


def written(folder: Path, content: Json) -> Path:
    path = folder / "tune" / "made.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (0.08, "Keep 1 of 3 settings: +"),
        (-0.08, "Keep stock: the choice, 1 of 3 settings, is slower"),
        (0.0, "changes nothing beyond ±3 %"),
    ],
)
def test_the_fresh_blocks_alone_give_the_verdict(tmp_path: Path, gain: float, verdict: str) -> None:
    tuning = read(tuned(tmp_path, arm("chosen", gain), arm(WHOLE, gain)))
    assert verdict in verdict_of(tuning)


def test_the_gain_is_that_of_compare(tmp_path: Path) -> None:
    tuning = read(tuned(tmp_path, arm("chosen", 0.08), arm(WHOLE, 0.1)))
    contrasts = {
        one.tweakset: one for one in compare(load(tmp_path / "tune" / ".." / "confirm.json"))
    }
    assert tuning.confirmed is not None
    assert tuning.confirmed.chosen == contrasts["chosen"]
    assert tuning.confirmed.whole == contrasts[WHOLE]


def test_warnings_of_the_fresh_blocks_are_told(tmp_path: Path) -> None:
    """A verdict is not read without what `compare` says of its run."""
    lost = arm("chosen", 0.08, broken={12: ("failed", "it died")})
    tuning = read(tuned(tmp_path, lost, arm(WHOLE, 0.1)))
    assert verdict_of(tuning).startswith("Keep 1")
    assert [text for text in answer(tuning).warnings if "it died" in text]


def test_a_machine_that_differs_from_itself_gives_no_verdict(tmp_path: Path) -> None:
    """The second untouched arm is the guard: the machine changed, not a tweak."""
    arms = arm("chosen", 0.08), arm(WHOLE, 0.1)
    path = tuned(tmp_path, *arms)
    saved_file(tmp_path, made(Arm("stock-again", 0.05), *arms), "confirm.json")
    assert "Keep" not in verdict_of(read(path))


def test_the_confirmation_with_more_blocks_is_judged(tmp_path: Path) -> None:
    arms = (arm("chosen", 0.08), arm(WHOLE, 0.1))
    path = tuned(tmp_path, *arms)
    saved_file(tmp_path, made(AGAIN, *arms, blocks=2), "short.json")
    content = json.loads(path.read_text())
    content["heats"].append(heat(2, "confirm", "../short.json", content["heats"][0]["arms"]))
    tuning = read(written(tmp_path, content))
    assert tuning.confirmed is not None
    assert tuning.confirmed.chosen.primary is not None
    assert tuning.confirmed.chosen.primary.n_candidate == 12


def test_every_setting_has_a_row_with_raw_figures(tmp_path: Path) -> None:
    text = as_csv.render(answer(read(tuned(tmp_path, arm("chosen", 0.08), arm(WHOLE, 0.1)))))
    rows = {row["setting"]: row for row in csv.DictReader(io.StringIO(text))}
    assert {name: row["word"] for name, row in rows.items()} == {
        "a": "helps",
        "b": "does nothing",
        "c": "fails",
    }
    assert float(rows["a"]["gain"]) == pytest.approx(math.expm1(0.1))
    assert rows["c"]["gain"] == ""


def test_a_folder_that_was_moved_is_read_with_its_manifest(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    tuned(before, arm("chosen", 0.08), arm(WHOLE, 0.1))
    shutil.move(before, after)
    found = answer(read(after / "tune" / "made.json"))
    assert found.title.startswith("Keep 1 of 3 settings: +")
    assert f"--tweaks={after / 'tune' / 'made' / 'chosen.yaml'}" in found.next


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_without_the_confirming_run_the_race_is_shown(tmp_path: Path, damage: str) -> None:
    path = tuned(tmp_path, arm("chosen", 0.08), arm(WHOLE, 0.1))
    run = tmp_path / "confirm.json"
    run.write_text(run.read_text()[:100]) if damage == "truncated" else run.unlink()
    found = answer(read(path))
    assert found.title == "1 of 3 settings chosen, not confirmed: the fresh blocks cannot be read."
    assert [line for line in found.refused if "confirm.json" in line]
    assert "helps" in as_csv.render(found)


@pytest.mark.parametrize(
    ("looks", "title"), [([], "before the first look of the race"), (None, "was interrupted.")]
)
def test_an_interrupted_race_says_that_it_is_not_finished(
    tmp_path: Path, looks: list[Json] | None, title: str
) -> None:
    other = {} if looks is None else {"looks": looks}
    found = answer(read(written(tmp_path, record(None, [], interrupted=True, **other))))
    assert title in found.title
    assert (
        not [
            part
            for section in found.sections
            for part in section.parts
            if "too few cells" in str(part)
        ]
        or looks is None
    )
    assert found.exit_code == 130


@pytest.mark.parametrize(
    ("settings", "failed", "title"),
    [
        ({"a": judged(0.0, "no gain in sight")}, ["c"], "Keep stock: none of 3 settings is shown"),
        ({}, ["a", "b", "c"], "Keep stock: no cell could be measured"),
        ({}, ["c"], "No verdict: too few cells"),
        ({}, [], "No verdict: too few cells"),
    ],
)
def test_nothing_is_claimed_of_settings_that_were_not_measured(
    tmp_path: Path, settings: Json, failed: list[str], title: str
) -> None:
    looks = [{"look": 1, "settings": settings, "failed": failed}]
    assert verdict_of(read(written(tmp_path, record({}, [], looks=looks)))).startswith(title)
