"""Saved runs of designs over keys with known effects, and their answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.stats

from analysis import load, studies
from analysis.compare import CompareOptions, compare
from analysis.studies import keys
from analysis.studies.keys.effects import effects_of, of_table
from analysis.studies.keys.sentence import only as only_asked
from analysis.studies.keys.terms import DesignData, DesignFactor, EffectRow, Effects, Term
from analysis.terms import Comparison, Refused, Run
from tests.made_designs import Keys, On, ablation, designed, factorial, fraction, plackett_burman_12
from tests.synthetic import JSON, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


QUIET = Made(blocks=4, steps=6, run_cv=0.004, step_cv=0.002, seed=3)
FOUR = {
    "vm.swappiness": 0.0,
    "vm.dirty_ratio": -0.10,
    "kernel.numa_balancing": 0.0,
    "vm.vfs_cache_pressure": 0.05,
}
# E = ABC, F = BCD: resolution IV in 16 runs.
SIX = Keys({f"vm.key{at}": 0.0 for at in range(6)} | {"vm.key2": -0.10})
SIXTEEN = fraction(4, (0, 1, 2), (1, 2, 3))


def run_of(kind: str, keys: Keys, points: Mapping[str, On], made: Made = QUIET) -> Run:
    return load.from_json(designed(kind, keys, points, made), "made-up.json")


def only(run: Run, *asked: tuple[str, ...]) -> Effects:
    (found,) = only_asked(effects_of(run), asked) if asked else effects_of(run)
    return found


def term(found: Effects, label: str, means: str | None = None) -> Term:
    return next(one for one in found.terms if one.label == label and means in {None, one.means})


def cut(saved: JSON, ran: Callable[[JSON], bool]) -> None:
    ours = saved["deeptweak"]
    ours["cells"] = [cell for cell in ours["cells"] if ran(cell)]
    names = {cell["id"] for cell in ours["cells"]}
    saved["benchmarks"] = [one for one in saved["benchmarks"] if one["extra_info"]["id"] in names]
    ours["design"]["order"] = [name for name in ours["design"]["order"] if name in names]


def ablated(change: Callable[[JSON], None]) -> Run:
    saved = designed("ablation", Keys(FOUR), ablation(4), QUIET)
    for one in saved["benchmarks"]:
        change(one["extra_info"])
    return load.from_json(saved, "made-up.json")


def had_before(record: JSON) -> None:
    record["tweak"]["already_in_force"] = [
        key for key in record["tweak"]["requested"] if key == "vm.swappiness"
    ]


def not_in_force(record: JSON) -> None:
    if (record["tweakset"], record["block"]) == ("profile.only-1", 2):
        record["tweak"]["observed"] = {"vm.dirty_ratio": "20"}


def lost_a_job(record: JSON) -> None:
    if (record["tweakset"], record["block"]) == ("profile.only-1", 2):
        outcomes = ["failed", *["done"] * (len(record["steps"]["wall_s"]) - 1)]
        record["report"] = {
            "job": [{"job": at, "outcome": outcome} for at, outcome in enumerate(outcomes)]
        }


def short() -> Run:
    saved = designed("ablation", Keys(FOUR), ablation(4), QUIET)
    cut(saved, lambda cell: cell["block"] <= 3)
    return load.from_json(saved, "made-up.json")


ONE_BLOCK = Made(blocks=1, steps=6)
EIGHT = Keys({f"k.{at}": -0.1 if at == 5 else 0.0 for at in range(8)})
LOST_POINT = Keys(
    {"a.one": -0.1, "a.two": 0.0},
    broken={("profile", block): ("failed", "gone") for block in range(1, 5)},
)
NEED_EACH_OTHER = Keys(
    {"a.one": 0.0, "a.two": 0.0, "a.three": 0.0}, together={("a.one", "a.two"): -0.20}
)
TOGETHER = Keys({"k.0": 0.0, "k.1": 0.0, "k.2": 0.0}, together={("k.0", "k.1"): -0.20})
# Situation: the keys that are called, each in any of its effects.
SITUATIONS: dict[str, tuple[set[str], Callable[[], Run]]] = {
    "ablation": (
        {"vm.dirty_ratio", "vm.vfs_cache_pressure"},
        lambda: run_of("ablation", Keys(FOUR), ablation(4)),
    ),
    # Alone neither does anything; together they cost a fifth, so in the profile each seems to cost
    # all of it.
    "keys that need each other": (
        {"a.one", "a.two"},
        lambda: run_of("ablation", NEED_EACH_OTHER, ablation(3)),
    ),
    "one block of an ablation": (
        set(),
        lambda: run_of("ablation", Keys(FOUR), ablation(4), ONE_BLOCK),
    ),
    "cut short": ({"vm.dirty_ratio", "vm.vfs_cache_pressure"}, short),
    "value there before": (
        {"vm.dirty_ratio", "vm.vfs_cache_pressure"},
        lambda: ablated(had_before),
    ),
    "not in force": ({"vm.dirty_ratio", "vm.vfs_cache_pressure"}, lambda: ablated(not_in_force)),
    "lost a job": ({"vm.dirty_ratio", "vm.vfs_cache_pressure"}, lambda: ablated(lost_a_job)),
    "a point is lost": ({"a.one"}, lambda: run_of("factorial", LOST_POINT, factorial(2))),
    "fraction": ({"vm.key2"}, lambda: run_of("fractional", SIX, SIXTEEN)),
    "one block of a fraction": (
        set(),
        lambda: run_of("fractional", SIX, SIXTEEN, Made(blocks=1, steps=6, run_cv=0.01)),
    ),
    "screening": ({"k.5"}, lambda: run_of("file", EIGHT, plackett_burman_12(8))),
    "nothing to screen": (
        set(),
        lambda: run_of("file", Keys(dict.fromkeys(EIGHT.gains, 0.0)), plackett_burman_12(8)),
    ),
    "nothing matters": (
        set(),
        lambda: run_of(
            "ablation",
            Keys(dict.fromkeys(FOUR, 0.0)),
            ablation(4),
            Made(blocks=6, steps=6, run_cv=0.02, drift=0.05, seed=4),
        ),
    ),
    # C = AB: what A and B do together is C's main effect.
    "resolution III": (
        {"k.0", "k.1", "k.2"},
        lambda: run_of("fractional", TOGETHER, fraction(2, (0, 1))),
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_answer_and_what_to_know(situation: str, snapshot: SnapshotAssertion) -> None:
    named, run = SITUATIONS[situation]
    found = only(run())
    words = {"regressed", "improved", "interacts"}
    assert {
        name
        for one in found.terms
        if one.verdict in words and one.means != "profile"
        for name in one.factors
    } == named
    assert {
        "resolution": found.resolution,
        "sentence": found.sentence,
        "notes": found.notes,
        "cannot be judged": found.unestimable,
    } == snapshot


def test_an_ablation_names_the_bad_key_and_the_gain_without_it() -> None:
    """Each key alone and in the profile, and the whole profile: 0.90 · 1.05 = 0.945 of stock."""
    found = only(run_of("ablation", Keys(FOUR), ablation(4)))
    for label in ("vm.dirty_ratio alone", "vm.dirty_ratio in the profile"):
        assert term(found, label).verdict == "regressed"
        assert term(found, label).gain == pytest.approx(-0.10, abs=0.015)
    assert term(found, "vm.vfs_cache_pressure alone").verdict == "improved"
    assert term(found, "profile").gain == pytest.approx(0.90 * 1.05 - 1, abs=0.015)
    assert term(found, "vm.swappiness alone").verdict == "equivalent"
    # 4 keys twice, and the profile.
    assert {one.family for one in found.terms if one.adjustment == "holm"} == {9}
    assert found.error_df == (4 - 1) * (10 - 1)


def test_a_factorial_says_what_two_keys_do_together() -> None:
    """Main effects average over the other key: alone -5 %, together twenty per cent below that."""
    keys = Keys(
        {"a.one": -0.05, "a.two": 0.0, "a.three": 0.0}, together={("a.one", "a.two"): -0.20}
    )
    found = only(run_of("factorial", keys, factorial(3)))
    both = term(found, "a.one:a.two")
    assert both.verdict == "interacts"
    assert both.effect == pytest.approx(math.log(0.80), abs=0.02)
    assert term(found, "a.one").effect == pytest.approx(
        math.log(0.95) + math.log(0.80) / 2, abs=0.01
    )
    assert both.coefficient == pytest.approx(both.effect / 4)
    assert found.orthogonal
    assert sum(row.ss for row in found.anova[:-1]) == pytest.approx(found.anova[-1].ss)


def test_an_interaction_beyond_the_design_is_refused_by_name(snapshot: SnapshotAssertion) -> None:
    run = run_of("fractional", SIX, SIXTEEN)
    keys = Keys({f"k.{at}": 0.0 for at in range(8)})
    complaints = []
    for asked, *names in (
        (run, "vm.key0", "vm.key1"),
        (run_of("file", keys, plackett_burman_12(8)), "k.0", "k.1"),
        (run_of("ablation", Keys(FOUR), ablation(4)), "vm.swappiness", "vm.dirty_ratio"),
    ):
        with pytest.raises(Refused) as refusal:
            only(asked, tuple(names))
        complaints.append(str(refusal.value))
    assert complaints == snapshot
    assert term(
        only(run, ("vm.key0",)), "vm.key0"
    ).aliases  # a main effect is: what it is mixed with is of three keys


@pytest.mark.parametrize("kind", ["factorial", "ablation"])
def test_the_answer_never_covers_keys_that_cannot_be_judged(kind: str) -> None:
    points = factorial(3) if kind == "factorial" else ablation(3)
    broken = {
        (name, block): ("failed", "gone")
        for name, on in points.items()
        if 0 in on
        for block in range(1, 7)
    }
    keys = Keys({"a.one": -0.3, "a.two": 0.0, "a.three": 0.0}, broken=broken)
    found = only(run_of(kind, keys, points, Made(blocks=6, steps=6, run_cv=0.02, seed=4)))
    assert "a.one" in found.sentence.partition("Cannot be judged: ")[2]
    assert not any(one.factors == ("a.one",) for one in found.terms)


def test_a_key_that_changed_with_the_blocks_is_not_judged() -> None:
    """Cells of one level ran in blocks of their own: a key, or the day."""
    rng = np.random.default_rng(5)
    factors = (DesignFactor("one", "A", ("1", "2")), DesignFactor("two", "B", ("1", "2")))
    rows = tuple(
        EffectRow(
            f"{1 + block % 2}{two}",
            (str(1 + block % 2), two),
            str(block),
            float(rng.normal(10 + block, 0.1)),
        )
        for block in range(4)
        for two in "1212"
    )
    points = {row.name: row.levels for row in rows}
    (found,) = of_table(DesignData("s", "w", "y", factors, points, rows))
    assert "blocks" in dict(found.unestimable)["one"]
    assert found.sentence.endswith("Cannot be judged: one.")


@pytest.mark.parametrize("kind", ["ablation", "factorial"])
def test_lost_cells_are_named_and_the_rest_is_analysed(
    kind: str, snapshot: SnapshotAssertion
) -> None:
    points = ablation(4) if kind == "ablation" else factorial(4)
    lost = "profile.only-0" if kind == "ablation" else "profile.p04"
    broken = {(lost, block): ("skipped", "the kernel refuses it") for block in range(1, 5)} | {
        ("profile", 2): ("failed", "out of memory")
    }
    found = only(run_of(kind, Keys(FOUR, broken=broken), points))
    whole = only(run_of(kind, Keys(FOUR), points))
    label = "vm.dirty_ratio in the profile" if kind == "ablation" else "vm.dirty_ratio"
    assert term(found, label).gain == pytest.approx(-0.10, abs=0.015)
    assert [*found.notes, *found.unestimable] == snapshot
    if kind == "factorial":
        assert (term(found, label).se or 0) > (term(whole, label).se or 0)
    if kind == "ablation":
        assert term(found, label).df == 2  # its own blocks: those in which the profile was measured
        assert term(found, "vm.dirty_ratio alone").df == 3
        assert [name for name, _ in found.unestimable] == ["vm.swappiness alone", "vm.swappiness"]


@pytest.mark.parametrize("kind", ["ablation", "factorial"])
def test_cells_about_which_as_found_was_another_are_lost(
    kind: str, snapshot: SnapshotAssertion
) -> None:
    """From block 4 on, another program had set the key, so "as found" means something else."""
    saved = designed(
        kind,
        Keys(FOUR),
        ablation(4) if kind == "ablation" else factorial(4),
        Made(blocks=6, steps=6, run_cv=0.004, seed=3),
    )
    for one in saved["benchmarks"]:
        before = one["extra_info"]["tweak"]["before"]
        if one["extra_info"]["block"] > 3 and "vm.swappiness" in before:
            before["vm.swappiness"] = "60"
    (found,) = effects_of(load.from_json(saved, "made-up.json"))
    assert {"5", "6"}.isdisjoint(row.block for row in found.observed.rows)
    assert {"1", "2"} <= {row.block for row in found.observed.rows}
    assert found.notes == snapshot


def test_levels_between_are_set_against_the_machine_as_found() -> None:
    rng = np.random.default_rng(5)
    factors = (
        DesignFactor("vm.swappiness", "A", ("as found", "1", "60")),
        DesignFactor("vm.dirty_ratio", "B", ("as found", "5")),
    )
    rows = [
        EffectRow(
            f"{a}/{b}",
            (a, b),
            str(block),
            100 * (1.08 if a == "60" else 1.0) * float(np.exp(rng.normal(0, 0.005))),
        )
        for block in range(1, 5)
        for a in factors[0].levels
        for b in factors[1].levels
    ]
    points = {row.name: row.levels for row in rows}
    data = DesignData(
        "s",
        "w",
        "y",
        factors,
        points,
        tuple(rows),
        (),
        "profile",
        "factorial",
        "higher",
        "log",
        0.03,
    )
    (found,) = of_table(data)
    assert {one.label: one.verdict for one in found.terms} == {
        "vm.swappiness as found → 1": "equivalent",
        "vm.swappiness as found → 60": "improved",
        "vm.dirty_ratio as found → 5": "equivalent",
    }
    assert found.error_df == (4 - 1) * (6 - 1)
    assert found.sentence.startswith("vm.swappiness = 60: ")
    assert [(level.factor, level.level, level.n) for level in found.levels][2] == (
        "vm.swappiness",
        "60",
        8,
    )


def as_compare(one: Comparison) -> tuple[float, ...]:
    assert one.primary is not None
    return tuple(
        getattr(one.primary, name) for name in ("gain", "low", "high", "log_se", "df", "p")
    )


@pytest.mark.parametrize(
    ("kind", "means"),
    [("matrix", "set"), ("ablation", "alone"), ("ablation", "in profile"), ("ablation", "profile")],
)
def test_two_tweak_sets_differ_as_compare_says(kind: str, means: str) -> None:
    """Equal interval and p, lost cells included, despite a noisier third set; A/A likewise."""
    broken = {
        ("profile.only-1", 2): ("failed", "gone"),
        ("stock-again", 1): ("failed", "gone"),
        ("profile", 5): ("failed", "gone"),
    }
    saved = designed(
        kind, Keys(FOUR, broken=broken), ablation(4), Made(blocks=6, steps=6, run_cv=0.02, seed=4)
    )
    if kind == "matrix":
        saved["deeptweak"]["design"] |= {"factors": [], "points": {}}
    run = load.from_json(saved, "made-up.json")
    found = only(run)
    mine = [one for one in found.terms if one.means == means]
    assert mine
    for one in mine:
        key = list(FOUR).index(one.factors[0]) if one.factors[0] in FOUR else ""
        base, other = {
            "set": ("stock", str(one.level)),
            "alone": ("stock", f"profile.only-{key}"),
            "in profile": (f"profile.no-{key}", "profile"),
            "profile": ("stock", "profile"),
        }[means]
        (there,) = compare(run, baseline=base, options=CompareOptions(tweaksets=(other,)))
        assert (one.gain, one.gain_low, one.gain_high, one.se, one.df, one.p) == pytest.approx(
            as_compare(there)
        )
    (copy,) = compare(run, options=CompareOptions(tweaksets=("stock-again",)))
    gain, low, high, *_, p = as_compare(copy)
    assert (
        f"against stock: {100 * gain:+.1f} % (95 % {100 * low:+.1f} to {100 * high:+.1f} %, p "
        f"{p:.2f})" in found.again
    )


def test_the_factorial_check_rests_on_the_error_of_its_effects() -> None:
    """4 blocks: mean of stock-again less stock over √(2 · MS / 4), with the table's MS and df."""
    run = run_of("factorial", Keys(FOUR), factorial(4))
    found = only(run)
    logs = {
        (cell.tweakset, cell.block): math.log(cell.metrics["throughput_samples_per_s"])
        for cell in run.cells
    }
    difference = sum(logs["stock-again", block] - logs["stock", block] for block in range(1, 5)) / 4
    p = 2 * scipy.stats.t.sf(
        abs(difference) / math.sqrt(2 * (found.error_ms or 0) / 4), found.error_df
    )
    assert f"against stock: {100 * math.expm1(difference):+.1f} % (95 % " in found.again
    assert f"p {p:.2f})" in found.again
    assert found.again_fails == (p < 0.05)


def test_a_design_over_keys_is_its_run_and_a_matrix_is_not() -> None:
    run = load.from_json(
        designed("ablation", Keys({"a": -0.1, "b": 0.0}), ablation(2), Made(blocks=4, steps=6)),
        "made-up.json",
    )
    assert keys in list(studies.of(run))
    assert keys not in list(studies.of(load.from_json(saved_run(Made()), "matrix.json")))
    for _ in range(2):
        brief, whole = keys.answer(run, brief=True), keys.answer(run)
        assert any("a = 1" in line.text for line in brief.findings)
        assert (brief.sections, len(whole.sections)) == ((), 2)
        assert brief.data == whole.data
