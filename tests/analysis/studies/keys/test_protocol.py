"""The study as the core sees it: which runs are its, and what it says of them, briefly and in full, as often as it is asked."""

from __future__ import annotations

from analysis import load, studies
from analysis.studies import keys
from tests.made_designs import Keys, ablation, designed
from tests.synthetic import Made, saved_run


def test_a_design_over_keys_is_its_run_and_a_matrix_is_not() -> None:
    run = load.from_json(designed("ablation", Keys({"a": -0.1, "b": 0.0}), ablation(2), Made(blocks=4, steps=6)), "made-up.json")
    assert keys in list(studies.of(run))
    assert keys not in list(studies.of(load.from_json(saved_run(Made()), "matrix.json")))
    for _ in range(2):
        brief, whole = keys.answer(run, brief=True), keys.answer(run)
        assert any("a = 1" in line.text for line in brief.findings)
        assert (brief.sections, len(whole.sections)) == ([], 2)
        assert brief.data == whole.data
