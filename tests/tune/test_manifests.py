"""The manifest of a choice, for every shipped set and any parts: nothing is lost or added."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from fixtures import tweaks
from fixtures.studies.command.tune_candidates import Candidates, joined_set
from fixtures.terms import TweakSet
from fixtures.tweaks import manifest
from fixtures.tweaks.derive import parts
from fixtures.tweaks.manifest import packages_in_order

LINKED = """\
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: first}
spec:
  priority: 10
  packages:
    last:
      version: 1.0.3
      image: ghcr.io/nvidia/skyhook-packages/tuning
      dependsOn: {middle: 1.0.2}
      interrupt: {type: service, services: [containerd]}
      configInterrupts: {sysctl.conf: {type: noop}}
      configMap:
        sysctl.conf: |-
          vm.swappiness=7
          vm.page-cluster=5
    base:
      version: 1.0.1
      image: ghcr.io/nvidia/skyhook-packages/shellscript
      configMap: {apply.sh: "echo 1", uninstall.sh: "echo 0"}
    middle:
      version: 1.0.2
      image: ghcr.io/nvidia/skyhook-packages/shellscript
      dependsOn: {base: 1.0.1}
      configMap: {apply.sh: "echo 2"}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: second
  annotations: {levels.deeptweak/vm.dirty_ratio: '5, 40'}
spec:
  packages:
    last: {version: 2.0.0, image: deeptweak/process, configMap: {environment.conf: "A=1\\nB=2"}}
    tuning:
      version: 3.0.0
      image: ghcr.io/nvidia/skyhook-packages/tuning
      configMap: {sysctl.conf: "vm.dirty_ratio=30"}
"""
CATALOGUE = {tweakset.name: tweakset for tweakset in tweaks.resolve("all")}
CATALOGUE["linked"] = manifest.parse(LINKED, "linked", "linked")


def candidates(*names: str) -> Candidates:
    """All parts of some sets as candidates, whatever this machine can do."""
    profile = joined_set([CATALOGUE[name] for name in names])
    return Candidates(profile, {part.name: (part.name,) for part in parts(profile)}, {})


def asked(tweakset: TweakSet) -> tuple[object, ...]:
    """Return the settings and scripts of a set in their order, packages without their Skyhook."""
    settings_ = [(tweak.kind, tweak.key, tweak.value) for tweak in tweakset.tweaks]
    scripts = [
        (script.package.rpartition("/")[2], script.stage, script.text)
        for script in tweakset.scripts
    ]
    return settings_, scripts


def packages(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the packages of a manifest by Skyhook and label, in an operator's order."""
    records = manifest.skyhooks(text, "test")
    return {
        (record["metadata"]["name"], label): package
        for record in records
        for label, package in packages_in_order(record, "test")
    }


def check(found: Candidates, chosen: list[str]) -> None:
    text = found.manifest(chosen, "chosen")
    back = manifest.parse(text, "chosen", "chosen")
    assert asked(back) == asked(found.tweakset(chosen, "chosen"))
    kept = {part for name in chosen for part in found.settings[name]}
    whole = parts(found.profile)
    assert len(parts(back)) == len([part for part in whole if part.name in kept])
    before, after = packages(found.profile.text), packages(text)
    assert list(after) == [place for place in before if place in after]
    for (skyhook, label), package in after.items():
        was = before[skyhook, label]
        assert (package["image"], package["version"]) == (was["image"], was["version"])
        assert package.get("configMap", {}).keys() <= was.get("configMap", {}).keys()
        needs = package.get("dependsOn", {})
        assert all((skyhook, need) in after for need in needs)
        assert {
            (need, version)
            for need, version in was.get("dependsOn", {}).items()
            if (skyhook, need) in after
        } <= {*needs.items()}
        if package.get("configMap") == was.get("configMap"):
            assert package.get("interrupt") == was.get("interrupt")
            assert package.get("configInterrupts") == was.get("configInterrupts")
    fields = {
        record["metadata"]["name"]: record["spec"].keys()
        for record in manifest.skyhooks(found.profile.text, "test")
    }
    assert all(
        record["spec"].keys() == fields[record["metadata"]["name"]]
        for record in yaml.safe_load_all(text)
    )


@given(data=some.data())
@settings(max_examples=60, deadline=None)
def test_parts_of_several_shipped_sets_are_kept_unchanged(
    data: some.DataObject,
) -> None:
    names = data.draw(
        some.lists(some.sampled_from(sorted(CATALOGUE)), min_size=2, max_size=5, unique=True)
    )
    found = candidates(*names)
    check(
        found,
        data.draw(some.lists(some.sampled_from(list(found.settings)), min_size=1, unique=True)),
    )
