"""Documents become typed records or are refused with a place; JSON text keeps what is sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.documents import Name, NotNegative, above, convert
from fixtures.kernel.machine import ChangeSet, Restored, Write
from fixtures.kubernetes.wire import WireError, from_json, to_json
from fixtures.terms import BadInput, Script, Telemetry, Tweak, TweakSet
from fixtures.tweaks.local import Plan


@dataclass(frozen=True)
class Inner:
    law: Literal["constant", "lognormal"]
    mean: Annotated[float, above(0)]


@dataclass(frozen=True)
class Outer:
    name: Name
    inner: tuple[Inner, ...] = ()
    share: NotNegative | None = None
    params: dict[str, str | int] = field(default_factory=dict)


WHOLE = {
    "name": "a",
    "inner": [{"law": "constant", "mean": 2}],
    "share": 0,
    "params": {"batch": 8, "net": "mlp"},
}


def test_a_document_is_the_record_that_it_describes() -> None:
    assert convert(Outer, WHOLE, "f.yaml") == Outer(
        "a", (Inner("constant", 2.0),), 0.0, {"batch": 8, "net": "mlp"}
    )


def test_null_means_left_out_except_in_a_programs_file() -> None:
    assert convert(Outer, {"name": "a", "inner": None}, "f.yaml") == Outer("a")
    with pytest.raises(BadInput, match=r"f.json: inner is None; must be a list"):
        convert(Outer, {**WHOLE, "inner": None}, "f.json", exact=True)
    with pytest.raises(BadInput, match=r"f.json: params is missing"):
        convert(Outer, {"name": "a", "inner": [], "share": None}, "f.json", exact=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"nam": 1},
            "f: unknown key 'nam'. Did you mean 'name'? Available: name, inner, share, params.",
        ),
        ({"name": "a\nb"}, r"f: name is 'a\nb'; must be text on one line."),
        (
            {"inner": [{"law": "constant", "mean": 0}]},
            "f: inner[0].mean is 0; must be a number above 0.",
        ),
        (
            {"inner": [{"law": "gamma", "mean": 1}]},
            "f: inner[0].law is 'gamma'; must be one of constant, lognormal.",
        ),
        ({"share": True}, "f: share is True; must be a number."),
        ({"share": float("nan")}, "f: share is nan; must be a number of at least 0."),
        ({"share": 10**400}, f"f: share is 1{'0' * 79}; must be a number."),
        ({"params": {"batch": 0.5}}, "f: params.batch is 0.5; must be text or a whole number."),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        convert(Outer, WHOLE | change, "f")
    assert str(refused.value) == message


# Values of kernel files may hold any byte: they come as surrogates, which JSON carries escaped.
TEXT = st.text(alphabet=st.characters(codec=None, exclude_categories=[]), max_size=12)
NUMBER = st.floats(allow_nan=False)
CHANGES = st.dictionaries(TEXT, st.tuples(st.none() | TEXT, st.none() | TEXT), max_size=4)
TEXTS = st.dictionaries(TEXT, TEXT, max_size=4)
WRITES = st.builds(Write, TEXT, TEXT, TEXT)
SCRIPTS = st.builds(Script, TEXT, TEXT, TEXT)
LIMITS = st.dictionaries(TEXT, st.tuples(st.integers(), st.integers()), max_size=3)


def several(one: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, max_size=3).map(tuple)


RECORDS = st.one_of(
    st.builds(ChangeSet, TEXTS, CHANGES, NUMBER),
    st.builds(Restored, CHANGES, CHANGES, TEXTS, CHANGES, several(TEXT), TEXT, NUMBER),
    st.builds(Plan, several(WRITES), several(SCRIPTS), LIMITS, several(TEXT)),
    st.builds(
        TweakSet,
        name=TEXT,
        path=st.none() | TEXT,
        sha256=st.none() | TEXT,
        description=TEXT,
        tweaks=several(
            st.builds(
                Tweak, st.sampled_from(["sysctl", "ulimit", "service", "boot"]), TEXT, TEXT, TEXT
            )
        ),
        scripts=several(SCRIPTS),
        warnings=several(TEXT),
        workloads=several(TEXT),
    ),
    st.builds(
        Telemetry,
        columns=st.dictionaries(TEXT, st.lists(st.none() | NUMBER, max_size=4), max_size=3),
        summary=st.dictionaries(TEXT, NUMBER, max_size=3),
        missing=TEXTS,
        hz=NUMBER,
        sampler_cpu_s=NUMBER,
        devices=TEXTS,
    ),
)


@given(RECORDS)
def test_what_is_sent_is_what_arrives(record: object) -> None:
    line = json.dumps(to_json(record))
    assert "\n" not in line
    back = from_json(type(record), json.loads(line))
    assert (type(back), back) == (type(record), record)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda j: j.pop("scripts"), "TweakSet: scripts is missing.*image has a different version"),
        (lambda j: j.update(name=1), "name is 1; must be text"),
        (
            lambda j: j["tweaks"][0].update(kind="firmware"),
            r"tweaks\[0\].kind is 'firmware'; must be one of sysctl, ulimit, service, boot",
        ),
    ],
)
def test_what_does_not_fit_is_refused(spoil: Any, says: str) -> None:
    value = to_json(TweakSet("x", tweaks=(Tweak("sysctl", "vm.swappiness", "1"),)))
    spoil(value)
    with pytest.raises(WireError, match=says):
        from_json(TweakSet, value)
