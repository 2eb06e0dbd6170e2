"""The manifest is applied as it was read, under that text's hash, whatever becomes of the file."""

from __future__ import annotations

import hashlib
from itertools import count
from pathlib import Path

import pytest

from fixtures.kubernetes import api
from fixtures.kubernetes import skyhook as operator
from fixtures.terms import TweakSet
from fixtures.tweaks import available, skyhook
from fixtures.tweaks.derive import derived, parts
from fixtures.tweaks.manifest import read
from tests.cluster.test_manifests import SPOT

TEXT = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: mine}
spec:
  packages:
    tuning:
      version: 1.1.4
      image: r/tuning
      configMap: {sysctl.conf: vm.swappiness=10}
"""
MORE = """\
    more:
      version: 1.0.0
      image: r/tuning
      configMap: {sysctl.conf: vm.dirty_ratio=10}
"""


def beside(line: str) -> tuple[str, str]:
    """A change: one more field of the first package."""
    return "image: r/tuning", f"image: r/tuning\n      {line}"


def applied(tweakset: TweakSet) -> list[str]:
    """The sysctl texts that would go to the operator."""
    numbers = count(1)
    bodies = operator.resources(tweakset, api.SKYHOOKS, lambda: f"n{next(numbers)}", SPOT)
    return [
        package["configMap"]["sysctl.conf"]
        for body in bodies
        for package in body["spec"]["packages"].values()
    ]


def test_editing_a_file_during_a_run_changes_nothing_applied(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    tweakset = read(file)
    file.write_text(
        TEXT.replace("=10", "=99").replace(
            "image: r/tuning", "image: r/tuning\n      interrupt: {type: reboot}"
        )
    )
    assert applied(tweakset) == ["vm.swappiness=10"]
    assert tweakset.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    assert not skyhook.reboots(tweakset)
    assert skyhook.obstacles(tweakset) == []
    file.unlink()
    assert applied(tweakset) == ["vm.swappiness=10"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("1.1.4", "latest"), "version 'latest' is not valid for the operator"),
        (("1.1.4", "1.1.4-01"), "version '1.1.4-01' is not valid"),
        (("1.1.4", "1.1"), "version 1.1 is not valid"),
        (("1.1.4", f"1.1.4-{'a' * 51}"), "at most 63 characters"),
        (("1.1.4", "1.1.4+build"), "version '1.1.4+build' is not valid"),
        (
            beside("dependsOn: {more: 2.0.0}"),
            "depends on 'more' in version '2.0.0', but that package has '1.0.0'",
        ),
        (beside("name: other"), "its name is 'other'"),
        (beside("configInterrupts: {grub.conf: {type: noop}}"), "names 'grub.conf'"),
        (beside("configInterrupts: {sysctl?conf: {type: noop}}"), "names 'sysctl?conf'"),
        (
            beside("interrupt: {type: explode}"),
            "interrupt 'explode' must be one of noop, reboot, restartAllServices, service",
        ),
        (beside("configInterrupts: {'*.conf': {type: explode}}"), "interrupt 'explode' must be"),
        (("image: r/tuning", "image: r/tuning:1.1.4"), "'tuning:1.1.4' has a tag or a digest"),
    ],
)
def test_what_the_operators_webhook_refuses_is_known_beforehand(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    """Each was tried on the operator of May 2026 (after 0.15), with webhooks on and off.

    It refused, stalled all others, pulled another image, or waited for ever.
    """
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT.replace(*change) + MORE)
    (found,) = skyhook.obstacles(read(file))
    assert says in found


def test_versions_that_the_operator_compares_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    for version in ("v1.1.4", "1.1.4-RC.1", '"1"', f"1.1.4-{'a' * 50}"):
        file.write_text(TEXT.replace("1.1.4", version))
        assert skyhook.obstacles(read(file)) == [], version


def test_how_a_change_goes_over_many_nodes_is_not_for_one(tmp_path: Path) -> None:
    """The operator refuses a budget beside a policy, and a policy that is not in the cluster."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        TEXT.replace(
            "spec:\n",
            "spec:\n  deploymentPolicy: canary\n  autoTaintNewNodes: true\n  "
            "deploymentPolicyOptions: {reset: true}\n",
        )
    )
    (body,) = operator.resources(read(file), api.SKYHOOKS, lambda: "n", SPOT)
    assert body["spec"].keys() == {"packages", "nodeSelectors", "interruptionBudget"}


# The operator's agent's log of a failed script, in the recording skyhook_script_fails:
# shortened in the middle.
LOG = """\
history_file: /var/lib/skyhook/fails/history/half.json
WARNING:root: shellscript_run_check.sh doesn't exist. \
Checks ensure that all tasks in the step will complete.
apply shellscript_run.sh ['apply'] [0] Idempotence.Disabled True
[out]2026-11-21T08:42:56.715427 vm.dirty_ratio = 31
[err]2026-11-21T08:42:56.716045 no such thing
[err]2026-11-21T08:42:56.716045 Traceback (most recent call last):
[err]2026-11-21T08:42:56.717104   File "/opt/py312/lib/python3.12/subprocess.py", line 571, in run
[err]2026-11-21T08:42:56.717371 subprocess.CalledProcessError: \
Command '['shellscript_run.sh', 'apply']' returned non-zero exit status 1.
[out]2026-11-21T08:42:56.715427 FAILED: shellscript_run.sh apply 1
[err]2026-11-21T08:42:56.717894"""


def test_a_failing_scripts_own_words_are_found_in_the_agents_log() -> None:
    assert operator.words_of(LOG.splitlines()) == ["vm.dirty_ratio = 31", "no such thing"]
    own = LOG.replace(
        "no such thing",
        operator.TRACEBACK + "\n[err]2026-11-21T08:42:56.716045 KeyError: 'a script in Python'",
    )
    assert operator.words_of(own.splitlines())[1:] == [
        operator.TRACEBACK,
        "KeyError: 'a script in Python'",
    ]
    assert operator.words_of(["mode: apply", "", "no such thing"]) == [
        "mode: apply",
        "no such thing",
    ]


def test_a_derived_set_goes_to_the_operator_as_its_own_manifest() -> None:
    """It has no file.

    Without its boot tokens it needs no reboot; with nothing left of it there is nothing to create.
    """
    profile = read(available()["deeptweak-exp1"])
    levels = {
        part.name: part.own if part.name == "vm.max_map_count" else None for part in parts(profile)
    }
    one = derived(profile, levels, "deeptweak-exp1.only-vm.max_map_count")
    assert one.path is None
    assert applied(one) == ["vm.max_map_count=262144"]
    assert (skyhook.obstacles(one), skyhook.reboots(one), skyhook.reboots(profile)) == (
        [],
        False,
        True,
    )
    assert skyhook.packages(derived(profile, dict.fromkeys(levels), "none")) == []
