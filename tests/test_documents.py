"""A document becomes a typed record, or is refused with the place of what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from fixtures.documents import Name, NotNegative, above, convert
from fixtures.terms import BadInput


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


WHOLE = {"name": "a", "inner": [{"law": "constant", "mean": 2}], "share": 0, "params": {"batch": 8, "net": "mlp"}}


def test_a_document_is_the_record_that_it_describes() -> None:
    assert convert(Outer, WHOLE, "f.yaml") == Outer("a", (Inner("constant", 2.0),), 0.0, {"batch": 8, "net": "mlp"})


def test_a_null_is_as_good_as_left_out_but_not_in_what_a_program_wrote() -> None:
    assert convert(Outer, {"name": "a", "inner": None}, "f.yaml") == Outer("a")
    with pytest.raises(BadInput, match=r"f.json: inner is None; a list is needed"):
        convert(Outer, {**WHOLE, "inner": None}, "f.json", exact=True)
    with pytest.raises(BadInput, match=r"f.json: params is missing"):
        convert(Outer, {"name": "a", "inner": [], "share": None}, "f.json", exact=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nam": 1}, "f: no key 'nam'. Did you mean 'name'? There are: name, inner, share, params."),
        ({"name": "a\nb"}, r"f: name is 'a\nb'; text on one line is needed."),
        ({"inner": [{"law": "constant", "mean": 0}]}, "f: inner[0].mean is 0; a number above 0 is needed."),
        ({"inner": [{"law": "gamma", "mean": 1}]}, "f: inner[0].law is 'gamma'; one of constant, lognormal is needed."),
        ({"share": True}, "f: share is True; a number is needed."),
        ({"share": float("nan")}, "f: share is nan; a number from 0 on is needed."),
        ({"params": {"batch": 0.5}}, "f: params.batch is 0.5; text or a whole number is needed."),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        convert(Outer, WHOLE | change, "f")
    assert str(refused.value) == message
