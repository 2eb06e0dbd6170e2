"""What is written as a manifest is read back as the same tweak set."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.terms import BadInput, Script, Tweak, TweakSet
from fixtures.tweaks.manifest import STAGES, parse
from fixtures.tweaks.render import render

word = st.text("abcxyz019_-", min_size=1, max_size=8).filter(lambda w: w[0].isalpha())
plain = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters='"'), min_size=1, max_size=12)
values = st.lists(plain, min_size=1, max_size=3).map(" ".join)
script_lines = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=20), max_size=4).map("\n".join)


@st.composite
def tweak_sets(draw: st.DrawFn) -> TweakSet:
    """Sets as reading leaves them: packages one after another, in each one kind after another, no setting twice."""
    names = draw(st.lists(word, unique=True, max_size=3))
    tuning, shell = names[:2], names[2:]
    sysctls = iter(draw(st.lists(st.tuples(word, word), unique=True, max_size=8)))
    tweaks: list[Tweak] = []
    for package in tuning:
        found = []
        found += [Tweak("sysctl", ".".join(pair), draw(values), package) for pair, _ in zip(sysctls, range(4), strict=False)]
        found += [Tweak("boot", draw(word), draw(st.one_of(st.just(""), values)), package) for _ in range(draw(st.integers(0, 3)))]
        if package == tuning[0]:
            found += [Tweak("ulimit", name, "77", package) for name in draw(st.lists(st.sampled_from(["memlock", "stack"]), unique=True))]
            found += [
                Tweak("service", f"containerd.{name}", "7M:1G", package) for name in draw(st.sampled_from([[], ["LimitAS", "LimitCORE"]]))
            ]
        tweaks += found
    stages = draw(st.lists(st.sampled_from(STAGES), unique=True, min_size=1))
    scripts = [Script(package, stage, draw(script_lines)) for package in shell for stage in stages]
    return TweakSet(
        draw(word),
        description=" ".join(draw(st.lists(plain, max_size=4))),
        tweaks=tuple(tweaks),
        scripts=tuple(scripts),
        workloads=tuple(draw(st.lists(word, max_size=2))),
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tweak_sets())
def test_reading_what_was_rendered_gives_the_same_set(tweakset: TweakSet) -> None:
    """Settings, their order, repeated boot tokens, scripts byte by byte, description and workloads; path and sha256 are the file's own."""
    back = parse(render(tweakset), tweakset.name)
    assert dataclasses.replace(back, sha256=None) == tweakset


def test_a_package_of_settings_and_scripts_cannot_be_written() -> None:
    tweakset = TweakSet("x", tweaks=(Tweak("sysctl", "vm.swappiness", "1", "p"),), scripts=(Script("p", "apply", "true"),))
    with pytest.raises(BadInput, match="package 'p' holds settings of two kinds"):
        render(tweakset)
