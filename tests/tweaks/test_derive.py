"""A derived set, and its operator's manifest, have the requested parts in the profile's order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.terms import BadInput, Script, Tweak, TweakSet
from fixtures.tweaks import available, process
from fixtures.tweaks.bare import object_name
from fixtures.tweaks.derive import derived, parts
from fixtures.tweaks.lint import lint
from fixtures.tweaks.manifest import STAGES, parse, read
from fixtures.tweaks.skyhook import skyhooks_of

PROFILES = {name: read(path) for name, path in available().items()}


def own(profile: TweakSet) -> dict[str, str | None]:
    return {part.name: part.own for part in parts(profile)}


def less(profile: TweakSet, gone: Iterable[str]) -> dict[str, str | None]:
    return own(profile) | dict.fromkeys(gone)


def asked(tweaks: Iterable[Tweak]) -> list[tuple[str, str, str]]:
    """Return what is set, in order, without packages: their Skyhooks change names when derived."""
    return [(t.kind, t.key, t.value) for t in tweaks]


def ran(scripts: Iterable[Script]) -> list[tuple[str, str]]:
    return [(s.stage, s.text) for s in scripts]


def expected(
    profile: TweakSet, levels: dict[str, str | None]
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str]]]:
    """Settings and scripts of a profile at these levels, by the meaning of a level alone."""
    level_of: dict[int, tuple[str | None, str]] = {
        n: (levels[p.name], p.own) for p in parts(profile) for n in p.settings
    }
    tweaks = []
    for n, tweak in enumerate(profile.tweaks):
        level, whole = level_of[n]
        if level is not None:
            tweaks.append(tweak if level == whole else replace(tweak, value=level))
    kept = {p.package for p in parts(profile) if p.kind == "script" and levels[p.name] is not None}
    return asked(tweaks), ran(s for s in profile.scripts if s.package in kept)


def holds(profile: TweakSet, levels: dict[str, str | None]) -> TweakSet:
    """Return the derived set, checked against `expected` and its operator's manifest as read."""
    found = derived(profile, levels, f"{profile.name}.x")
    assert (asked(found.tweaks), ran(found.scripts)) == expected(profile, levels)
    again = parse(operators(found), found.name)
    # The workload's own are nothing to it.
    of_operator = asked(t for t in found.tweaks if t.kind not in process.KINDS)
    assert (asked(again.tweaks), ran(again.scripts)) == (of_operator, ran(found.scripts))
    assert found.path is None
    return found


def operators(tweakset: TweakSet) -> str:
    """The manifest that goes to the operator."""
    records = [
        {**record, "metadata": {"name": record["metadata"]["name"]}}
        for record in skyhooks_of(tweakset)
    ]
    return yaml.safe_dump_all(records, sort_keys=False, allow_unicode=True)


# -- the catalogue


@pytest.mark.parametrize("name", PROFILES)
def test_with_every_part_at_its_own_level_a_set_is_itself(name: str) -> None:
    """Packages and all: nothing of the catalogue is lost or reordered on the way."""
    found = derived(PROFILES[name], own(PROFILES[name]), name)
    profile = PROFILES[name]
    assert (found.tweaks, found.scripts, found.workloads) == (
        profile.tweaks,
        profile.scripts,
        profile.workloads,
    )
    assert lint(found) == lint(profile)


@pytest.mark.parametrize("name", PROFILES)
def test_with_every_part_dropped_nothing_is_left_of_a_set(name: str) -> None:
    found = holds(PROFILES[name], less(PROFILES[name], own(PROFILES[name])))
    assert (found.tweaks, found.scripts, skyhooks_of(found)) == ((), (), [])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_choice_of_catalogue_parts_reads_back_as_chosen(data: st.DataObject) -> None:
    profile = PROFILES[data.draw(st.sampled_from(sorted(PROFILES)))]
    gone = data.draw(st.sets(st.sampled_from(sorted(own(profile)))))
    holds(profile, less(profile, gone))


# -- made-up manifests

words = st.text("abcxyz019_-", min_size=1, max_size=6).filter(lambda w: w[0].isalpha())
values = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters='"'),
    min_size=1,
    max_size=8,
)
comments = st.sampled_from(["", "# why", "  ", "; so"])


@st.composite
def sections(draw: st.DrawFn) -> dict[str, str]:
    """Draw a tuning package's configMap: keys twice, comments, several tokens, continued lines."""
    found: dict[str, str] = {}
    sysctls = draw(
        st.lists(
            st.tuples(
                st.sampled_from("abcd"),
                values,
                st.sampled_from(["=", " = ", " =", "=  "]),
                comments,
            ),
            max_size=6,
        )
    )
    if sysctls:
        lines = [f"{comment}\nvm.{key}{equals}{value}" for key, value, equals, comment in sysctls]
        found["sysctl.conf"] = "\n".join(lines).replace("\n\n", "\n")
    tokens = draw(
        st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from([" ", "\n", "  "])), max_size=7)
    )
    if tokens:
        found["grub.conf"] = "".join(token + blank for token, blank in tokens)
    limits = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["nofile=9", "nofile = 8", "stack: 7", "stack=77"]), comments
            ),
            max_size=3,
        )
    )
    if limits:
        found["ulimit.conf"] = "\n".join(f"{limit}\n{comment}" for limit, comment in limits)
    directives = draw(
        st.lists(
            st.sampled_from(["LimitCORE=1", "LimitCORE=2", "LimitAS=7M:1G", *UNIT]), max_size=4
        )
    )
    if directives:
        found[f"service_{draw(st.sampled_from(['a', 'a.service', 'b']))}.conf"] = "\n".join(
            ["# of", "[Service]", *directives]
        )
    return found


TOKENS = [
    "hugepagesz=1G",
    "hugepages=2",
    "hugepagesz=2M",
    "hugepages=7",
    "default_hugepagesz=2M",
    "quiet",
    "console=tty0",
    "console=ttyS0",
]
TOKENS += ['dyndbg="file a.c +p"', "isolcpus=2-3"]
UNIT = ["Environment=A=1", "Environment=", "Environment=B=2 \\\n  C=3"]


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """Draw Skyhooks with priorities and names in any order, dependent packages, and scripts."""
    found = []
    for n in draw(st.permutations(range(draw(st.integers(1, 3))))):
        labels = draw(st.lists(words, unique=True, min_size=1, max_size=4))
        packages: dict[str, Any] = {}
        for m, label in enumerate(labels):
            if draw(st.integers(0, 3)):
                package: dict[str, Any] = {
                    "image": "r/tuning",
                    "version": "1.1.4",
                    "configMap": draw(sections()),
                }
            else:
                stages = draw(st.lists(st.sampled_from(STAGES), unique=True))
                texts = {
                    f"{stage}.sh": draw(
                        st.sampled_from(["#!/bin/bash\ntrue", "a: b ", "\ttab\n\n", "é\n# x"])
                    )
                    for stage in stages
                }
                package = {"image": "r/shellscript", "version": "1.1.2", "configMap": texts}
            if m and draw(st.booleans()):
                package["dependsOn"] = {draw(st.sampled_from(labels[:m])): "1.1.4"}
            packages[label] = package
        written = draw(st.permutations(list(packages)))
        spec: dict[str, Any] = {"packages": {label: packages[label] for label in written}}
        if draw(st.booleans()):
            spec["priority"] = draw(st.sampled_from([5, 200, 201]))
        name = f"{draw(st.sampled_from(['a', 'a-b', 'a.b', 'ab']))}{n}"
        found.append(
            {
                "apiVersion": "skyhook.nvidia.com/v1alpha1",
                "kind": "Skyhook",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
    return yaml.safe_dump_all(found, sort_keys=False, allow_unicode=True)


@settings(max_examples=120, deadline=None)
@given(manifests(), st.data())
def test_any_choice_of_manifest_parts_reads_back_as_chosen(text: str, data: st.DataObject) -> None:
    """With other values for some of those that can have one."""
    profile = parse(text, "made")
    levels = own(profile)
    for part in parts(profile):
        choice = data.draw(st.sampled_from(["own", "gone", "other"]), label=part.name)
        if choice == "gone":
            levels[part.name] = None
        elif (
            choice == "other"
            and part.kind != "script"
            and len(part.settings) == 1
            and profile.tweaks[part.settings[0]].value
        ):
            levels[part.name] = "4096" if part.kind in ("ulimit", "service") else data.draw(values)
    holds(profile, levels)


# -- one by one

BIG = """
apiVersion: nodewright.nvidia.com/v1alpha1
kind: NodeWright
metadata:
  name: big
  uid: 4ec7a626
  generation: 8
  labels: {team: a}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"spec": {}}'
    deeptweak/description: 'all of it'
    deeptweak/workloads: 'idle'
    levels.deeptweak/vm.swappiness: '1, 60'
    reason.deeptweak/vm.swappiness: 'less'
    reason.deeptweak/isolcpus: 'quiet'
    example.com/owner: 'me'
status: {status: complete}
spec:
  priority: 7
  packages:
    last:
      image: r/tuning
      version: '1'
      dependsOn: {boot: '2'}
      configMap: {sysctl.conf: "# late\\nkernel.panic=3"}
    boot:
      image: r/tuning
      version: '2'
      dependsOn: {first: '3'}
      interrupt: {type: reboot}
      configInterrupts:
        grub.conf: {type: noop}
        sysctl.conf: {type: restartAllServices}
      configMap:
        grub.conf: 'isolcpus=2-3 hugepagesz=1G hugepages=2 quiet'
        sysctl.conf: |-
          # swap late
          vm.swappiness = 99
          -vm/swappiness = 10
          kernel.panic = 1
    first:
      image: r/tuning
      version: '3'
      interrupt: {type: service, services: [containerd]}
      configMap:
        service_containerd.conf: |-
          [Service]
          LimitCORE=1
          Environment=A=1 \\
            B=2
          Environment=C=3
        ulimit.conf: 'nofile = 4096'
    tool:
      image: r/shellscript
      version: '4'
      configMap: {apply.sh: "true\\n"}
"""


def big(gone: Iterable[str] = (), **levels: str) -> tuple[TweakSet, dict[str, Any]]:
    profile = parse(BIG, "big")
    found = holds(profile, {**less(profile, gone), **levels})
    documents = skyhooks_of(found)
    return found, documents[0] if documents else {}


def test_parts_are_settings_scripts_and_coupled_groups() -> None:
    """A key set twice is one part; so are a pool of huge pages and a directive that adds up."""
    assert own(parse(BIG, "big")) == {
        "containerd.LimitCORE": "1",
        "containerd.Environment": "Environment=A=1 B=2 Environment=C=3",
        "nofile": "4096",
        "isolcpus": "2-3",
        "hugepages-1G": "hugepagesz=1G hugepages=2",
        "quiet": "quiet",
        "vm.swappiness": "10",
        "kernel.panic": "3",
        "script:tool": "run",
    }


def test_huge_pages_belong_to_their_size_or_to_the_default_pool() -> None:
    def pools(line: str) -> dict[str, str | None]:
        return own(
            parse(BIG.replace("isolcpus=2-3 hugepagesz=1G hugepages=2 quiet", line), "big")
        ) | dict.fromkeys(own(parse(BIG, "b")), "")

    def boot(line: str) -> dict[str, str | None]:
        return {name: level for name, level in pools(line).items() if level}

    both = {
        "hugepages-1G": "hugepagesz=1G hugepages=2",
        "hugepages-2M": "hugepagesz=2M hugepages=7",
    }
    assert boot("hugepagesz=2M hugepages=7 x=1")["hugepages-2M"] == both["hugepages-2M"]
    assert boot("default_hugepagesz=1G hugepages=4") == {
        "hugepages": "default_hugepagesz=1G hugepages=4"
    }
    assert boot("default_hugepagesz=1G hugepagesz=2M hugepages=4") == {
        "default_hugepagesz": "1G",
        "hugepages-2M": "hugepagesz=2M hugepages=4",
    }
    assert boot("hugepages=9 hugepagesz=2M hugepages=4") == {
        "hugepages": "9",
        "hugepages-2M": "hugepagesz=2M hugepages=4",
    }
    assert boot("console=tty0 console=ttyS0") == {"console": "console=tty0 console=ttyS0"}


def test_dependents_of_a_removed_package_take_its_dependencies() -> None:
    """`last` waited for `boot`, which waited for `first`; versions are those asked for."""
    _, document = big(["isolcpus", "hugepages-1G", "quiet", "vm.swappiness"])
    packages = document["spec"]["packages"]
    assert list(packages) == ["first", "last", "tool"]
    assert packages["last"]["dependsOn"] == {"first": "3"}
    assert (
        "dependsOn"
        not in big(["isolcpus", "hugepages-1G", "quiet", "vm.swappiness", *FIRST])[1]["spec"][
            "packages"
        ]["last"]
    )


FIRST = ("containerd.LimitCORE", "containerd.Environment", "nofile")


def test_interrupts_of_what_is_gone_go_too() -> None:
    """A reboot is for boot tokens, a unit's restart for drop-ins: without these they cost time."""
    _, whole = big()
    assert whole["spec"]["packages"]["boot"]["interrupt"] == {"type": "reboot"}
    assert whole["spec"]["packages"]["boot"]["configInterrupts"].keys() == {
        "grub.conf",
        "sysctl.conf",
    }
    assert whole["spec"]["packages"]["first"]["interrupt"]["type"] == "service"
    _, some = big(["isolcpus", "hugepages-1G", "quiet", *FIRST[:2]])
    assert "interrupt" not in some["spec"]["packages"]["boot"]
    assert some["spec"]["packages"]["boot"]["configInterrupts"].keys() == {"sysctl.conf"}
    assert "interrupt" not in some["spec"]["packages"]["first"]
    _, tokens = big(["vm.swappiness", "isolcpus"])
    assert tokens["spec"]["packages"]["boot"]["interrupt"] == {"type": "reboot"}


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        (
            {"vm.swapiness": None},
            r"big: no part 'vm\.swapiness'; available: containerd\.LimitCORE, ",
        ),
        ({"script:tool": "walk"}, r"script:tool must be 'run' or left as found, not 'walk'"),
        ({"quiet": "loud"}, r"quiet must be 'quiet' or left as found"),
        ({"hugepages-1G": "hugepages=9"}, r"hugepages-1G must be 'hugepagesz=1G hugepages=2' or"),
        ({"nofile": "many"}, r"nofile=many is not a limit"),
        ({"vm.swappiness": "1\nkernel.panic=9"}, r"vm\.swappiness cannot be set to"),
        ({"vm.swappiness": ""}, r"sets nothing"),
        ({"isolcpus": '"'}, r"a double quote is not closed"),
    ],
)
def test_levels_that_a_part_cannot_have_are_refused(
    levels: dict[str, str | None], says: str
) -> None:
    profile = parse(BIG, "big")
    with pytest.raises(BadInput, match=says) as refusal:
        derived(profile, own(profile) | levels, "x")
    assert "\n" not in str(refusal.value)


def test_every_part_needs_a_level() -> None:
    with pytest.raises(
        BadInput,
        match=r"big: the level of containerd\.LimitCORE, .*script:tool is missing; "
        r"specify a value, or None",
    ):
        derived(parse(BIG, "big"), {"nofile": None}, "x")


@given(st.text(max_size=300))
def test_any_name_makes_one_that_kubernetes_takes(name: str) -> None:
    """A DNS subdomain of at most 253 characters (RFC 1123), a number at its end included."""
    made = object_name(name)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", made)
    assert len(f"{made}.1000") <= 253


def test_an_unread_package_is_one_part_and_stays_unchanged() -> None:
    """In force or not, whatever its configMap holds, also without one."""
    packages: dict[str, dict[str, Any]] = {
        "setup": {"version": "0.5.0", "image": "r/nvidia-setup"},
        "tuned": {
            "version": "0.3.2",
            "image": "r/nvidia-tuned",
            "configMap": {"intent": "inference"},
            "dependsOn": {"setup": "0.5.0"},
        },
        "tuning": {
            "version": "1.1.4",
            "image": "r/tuning",
            "configMap": {"sysctl.conf": "vm.swappiness=1"},
        },
    }
    skyhook = {
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "Skyhook",
        "metadata": {"name": "x"},
        "spec": {"packages": packages},
    }
    profile = parse(yaml.safe_dump(skyhook), "x")
    assert [(part.name, part.kind) for part in parts(profile)] == [
        ("vm.swappiness", "sysctl"),
        ("script:setup", "script"),
        ("script:tuned", "script"),
    ]
    holds(profile, own(profile))
    without = skyhooks_of(holds(profile, less(profile, ["script:setup"])))[0]["spec"]["packages"]
    assert without["tuned"] == {
        key: value for key, value in packages["tuned"].items() if key != "dependsOn"
    }
