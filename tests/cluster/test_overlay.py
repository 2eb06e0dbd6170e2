"""`--pod-overlay`: allowed fields, refusals with a reason, and the merge into a pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fixtures.kubernetes import settings
from fixtures.kubernetes.settings import Overlay
from fixtures.terms import BadInput

Json = dict[str, Any]


def pod(**container: object) -> Json:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", **container}]}}


def read(folder: Path, text: str) -> Overlay:
    file = folder / "overlay.yaml"
    file.write_text(text)
    return settings.read_overlay(file)


def container(over: Overlay, **ours: object) -> Json:
    [one] = settings.laid_over(over, pod(**ours))["spec"]["containers"]
    del one["name"]
    return dict(one)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("container: {image: x}", "container.image is set by the harness"),
        ("spec: {hostNetwork: false}", "spec.hostNetwork is set by the harness"),
        ("metadata: {name: x}", "metadata.name is set by the harness"),
        ("metadata: {colour: red}", "Available: labels, annotations"),
        ("metadata: {labels: {a: 1}}", "put numbers and yes/no in quotes"),
        ("pod: {}", "unknown section 'pod'. Available: `metadata`, `spec`, `container`"),
        ("", "must contain one YAML mapping"),
        ("spec: 3", "spec must be a mapping of fields, not 3"),
        ("container: {env: {A: b}}", "a list of items with a 'name'"),
        ("container: {volumeMounts: [{name: a}]}", "a list of items with a 'mountPath'"),
        ("spec: {tolerations: {operator: Exists}}", "spec.tolerations must be a list"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as refused:
        read(tmp_path, text)
    assert said in str(refused.value)
    assert str(tmp_path / "overlay.yaml") in str(refused.value)


def test_named_things_take_the_place_of_their_namesakes() -> None:
    """An environment variable is replaced whole: `value` beside `valueFrom` would be invalid."""
    ours = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    theirs = [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "C", "value": "3"},
    ]
    assert container(Overlay(container={"env": theirs}), env=ours)["env"] == [
        theirs[0],
        ours[1],
        theirs[1],
    ]


def test_tolerations_are_added_to_ours_and_never_twice() -> None:
    ours, more = {"operator": "Exists"}, {"key": "gpu", "operator": "Exists"}
    body = pod()
    body["spec"]["tolerations"] = [ours]
    assert settings.laid_over(Overlay(spec={"tolerations": [ours, more]}), body)["spec"][
        "tolerations"
    ] == [ours, more]


def test_null_takes_a_field_away_and_mappings_are_merged() -> None:
    over = Overlay(container={"securityContext": {"seccompProfile": None, "runAsUser": 5}})
    ours = {"privileged": False, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container(over, securityContext=ours)["securityContext"] == {
        "privileged": False,
        "runAsUser": 5,
    }


NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
)
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=10)


@given(
    ours=st.dictionaries(NAMES, TREES, max_size=3), theirs=st.dictionaries(NAMES, TREES, max_size=3)
)
def test_laying_the_same_over_twice_changes_nothing_more(ours: Json, theirs: Json) -> None:
    """And what was given in is never changed itself."""
    body = pod()
    body["spec"] |= ours
    over = Overlay(spec=theirs)
    before = yaml.safe_dump([body, theirs])
    once = settings.laid_over(over, body)
    assert settings.laid_over(over, once) == once
    assert yaml.safe_dump([body, theirs]) == before
    for key, value in theirs.items():
        assert key not in once["spec"] if value is None else key in once["spec"]


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_an_overlay_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        found = settings.read_overlay(file)
    except BadInput as refused:
        assert "--pod-overlay=" in str(refused)  # noqa: PT017 -- either way is right
    else:
        assert isinstance(found, Overlay)
