"""What is applied is the manifest as it was read, under the hash of that very text, whatever becomes of the file meanwhile."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import TYPE_CHECKING

from fixtures.cluster import api
from fixtures.tweaks import available, skyhook
from fixtures.tweaks.derive import derived
from fixtures.tweaks.manifest import read
from fixtures.tweaks.varied import parts

if TYPE_CHECKING:
    from pathlib import Path

    from fixtures.terms import TweakSet

TEXT = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: mine}
spec:
  packages:
    tuning:
      image: r/tuning
      configMap: {sysctl.conf: vm.swappiness=10}
"""


def applied(tweakset: TweakSet) -> list[str]:
    """The sysctl texts that would go to the operator."""
    numbers = count(1)
    bodies = skyhook.resources(tweakset, api.SKYHOOKS, lambda: f"n{next(numbers)}", "abcdefabcdef", skyhook.Place("node", "node"))
    return [package["configMap"]["sysctl.conf"] for body in bodies for package in body["spec"]["packages"].values()]


def test_a_file_edited_during_a_run_changes_nothing_of_what_is_applied(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    tweakset = read(file)
    file.write_text(TEXT.replace("=10", "=99").replace("image: r/tuning", "image: r/tuning\n      interrupt: {type: reboot}"))
    assert applied(tweakset) == ["vm.swappiness=10"]
    assert tweakset.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    assert not skyhook.reboots(tweakset)
    assert skyhook.obstacles(tweakset) == []
    file.unlink()
    assert applied(tweakset) == ["vm.swappiness=10"]


def test_the_text_is_that_of_the_hash_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(TEXT.replace("\n", "\r\n").encode())
    tweakset = read(file)
    assert hashlib.sha256(tweakset.text.encode()).hexdigest() == tweakset.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_set_made_of_another_goes_to_the_operator_as_its_own_manifest() -> None:
    """It has no file. Without its boot tokens it needs no reboot; with nothing left of it there is nothing to create."""
    profile = read(available()["deeptweak-exp1"])
    levels = {part.name: part.own if part.name == "vm.max_map_count" else None for part in parts(profile)}
    one = derived(profile, levels, "deeptweak-exp1.only-vm.max_map_count")
    assert one.path is None
    assert applied(one) == ["vm.max_map_count=262144"]
    assert (skyhook.obstacles(one), skyhook.reboots(one), skyhook.reboots(profile)) == ([], False, True)
    assert skyhook.packages(derived(profile, dict.fromkeys(levels), "none")) == []
