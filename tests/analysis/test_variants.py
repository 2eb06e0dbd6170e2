"""Short names of a workload's variants where the whole name has no room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analysis.labels import short_names
from analysis.terms import SavedWorkload

DEFAULTS = {"format": "npz", "readers": 4, "cache": "cold", "checkpoint": "off"}


def of(*names: str) -> dict[str, str]:
    given = {
        name: dict(part.split("=") for part in name.split(":")[1:])
        for name in names
        if "::" not in name
    }
    return short_names(
        {name: SavedWorkload(name, params={**DEFAULTS, **given.get(name, {})}) for name in names}
    )


def test_common_parts_are_omitted_and_implied_ones_are_shown() -> None:
    """`io:readers=2` omits format and cache: they are its defaults, unlike in the others."""
    assert of(
        "io:format=raw:readers=2:cache=warm",
        "io:readers=2:cache=warm",
        "io:format=raw:readers=2",
        "io:readers=2",
    ) == {
        "io:format=raw:readers=2:cache=warm": "raw · warm",
        "io:readers=2:cache=warm": "npz · warm",
        "io:format=raw:readers=2": "raw · cold",
        "io:readers=2": "npz · cold",
    }


def test_numbers_and_switches_are_said_with_their_name() -> None:
    assert of("io:readers=0", "io:readers=2", "io:readers=2:checkpoint=on") == {
        "io:readers=0": "readers=0",
        "io:readers=2": "readers=2",
        "io:readers=2:checkpoint=on": "readers=2 · checkpoint=on",
    }


def test_what_has_no_variants_keeps_its_name() -> None:
    """Colons in other tools' names are not ours."""
    for names in (
        ("cnn_train", "idle"),
        ("io:format=raw",),
        ("test_x.py::test_a[b=1]", "test_x.py::test_c"),
        ("a: b=1", "a: b=2"),
    ):
        assert of(*names) == {name: name for name in names}


def test_a_command_is_called_by_its_own_words() -> None:
    """Not by the digest of its file, unless two of its versions differ by that alone."""
    sleep, other, train = (
        f"command:run={name}"
        for name in ("sleep-0.1-0123456789ab", "sleep-0.1-ba9876543210", "train-0123456789ab")
    )
    assert of(sleep) == {sleep: "sleep-0.1"}
    assert of(sleep, train, "idle") == {sleep: "sleep-0.1", train: "train", "idle": "idle"}
    assert len(set(of(sleep, other).values())) == 2


@given(
    st.sets(
        st.tuples(
            *(
                st.sampled_from(levels)
                for levels in (["raw", "png"], ["0", "2"], ["cold", "warm"], ["on", "off"])
            )
        )
    )
)
def test_no_two_are_called_alike(levels: set[tuple[str, ...]]) -> None:
    names = [
        ":".join(["io", *(f"{key}={level}" for key, level in zip(DEFAULTS, one, strict=True))])
        for one in levels
    ]
    assert len(set(of(*names).values())) == len(names)
