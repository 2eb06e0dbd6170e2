"""Gate answers made by hand, for the tests of what writes them down."""

from __future__ import annotations

from hypothesis import strategies as st

from analysis.studies.gate.gate import Gate, Ruled, Ruling
from analysis.terms import Comparison, Metric, Verdict

P10 = Metric("step_time_p10_s", "lower")
# Text that a damaged or hostile file may hold, where a name or a reason belongs.
hostile = st.text(max_size=40) | st.text(
    alphabet="|`<>&*_[]()#@!~$\\:/.\n\r\t\x00\x1b\u202e\ud800aw1-%,", max_size=40
)


def ruled(
    ruling: Ruling = "pass",
    workload: str = "ddp_train",
    tweakset: str = "my-tuning",
    reason: str = "the loss stays below the limit.",
    notes: tuple[str, ...] = (),
) -> Ruled:
    """Make a ruling with a loss of 8.1 % (regression; limit 3 %), -0.5 % (pass), or none."""
    loss, high = {"regression": (0.081, 0.102), "pass": (-0.005, 0.012), "undecided": (None, None)}[
        ruling
    ]
    verdicts: dict[Ruling, Verdict] = {
        "regression": "regressed",
        "undecided": "not comparable",
        "pass": "equivalent",
    }
    comparison = Comparison(
        study="kernel_tweaks",
        workload=workload,
        baseline="stock",
        tweakset=tweakset,
        verdict=verdicts[ruling],
        reason=reason,
        blocks=8,
        margin=0.03,
        primary_metric=P10,
        pairs=7,
        notes=notes,
    )
    return Ruled(
        comparison, P10, 0.03, ruling, reason, loss, high, 20 if ruling == "undecided" else None
    )


def gate(
    *rulings: Ruled,
    warnings: tuple[str, ...] = (),
    baseline: str = "base.json",
    candidate: str = "new.json:my-tuning",
) -> Gate:
    """A gate whose word follows from its rulings."""
    words = {one.ruling for one in rulings}
    word: Ruling = (
        "regression"
        if "regression" in words
        else "undecided"
        if "undecided" in words or not words
        else "pass"
    )
    return Gate(baseline, candidate, rulings, word, warnings)


@st.composite
def gates(draw: st.DrawFn) -> Gate:
    """Any gate: up to 6 rulings in any order, texts of any kind."""
    words: st.SearchStrategy[Ruling] = st.sampled_from(["regression", "undecided", "pass"])
    rulings = draw(
        st.lists(st.builds(ruled, words, hostile, hostile, hostile, st.tuples(hostile)), max_size=6)
    )
    return gate(
        *rulings,
        warnings=tuple(draw(st.lists(hostile, max_size=3))),
        baseline=draw(hostile),
        candidate=draw(hostile),
    )
