"""An annotation lists other values to try of a setting; the manifest's own is always the last."""

from __future__ import annotations

import pytest

from fixtures.terms import BadInput
from fixtures.tweaks.manifest import complete_levels, notes, parse

TEXT = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: demo
  annotations: {%s}
spec:
  packages:
    tuning:
      image: r/tuning
      configMap:
        sysctl.conf: |-
          vm.swappiness=10
          net/ipv4/tcp_rmem = 4096 131072 134217728
        grub.conf: quiet isolcpus=2-3,6 console=tty0 console=ttyS0
        ulimit.conf: nofile=4096
        service_containerd.conf: |-
          [Service]
          LimitMEMLOCK=infinity
"""


def levels(annotation: str) -> dict[str, tuple[str, ...]]:
    text = TEXT % f"levels.deeptweak/{annotation}"
    return complete_levels(
        notes(text, "f.yaml").levels, parse(text, "f", "f.yaml").tweaks, "f.yaml"
    )


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        ("vm.swappiness: '1, 60,100'", {"vm.swappiness": ("1", "60", "100", "10")}),
        (
            "vm.swappiness: '10, 1'",
            {"vm.swappiness": ("1", "10")},
        ),  # listed first, yet last: it is the manifest's own
        ("vm.swappiness: '0x0a, 1'", {"vm.swappiness": ("1", "10")}),  # 10 in other words
        ("vm.swappiness: 60", {"vm.swappiness": ("60", "10")}),  # a number needs no quotes
        (
            "net.ipv4.tcp_rmem: '4096  87380 6291456'",
            {"net.ipv4.tcp_rmem": ("4096 87380 6291456", "4096 131072 134217728")},
        ),
        (
            "isolcpus: '1,2; 4-7'",
            {"isolcpus": ("1,2", "4-7", "2-3,6")},
        ),  # a value with commas: semicolons between
        ("nofile: '1024, unlimited'", {"nofile": ("1024", "unlimited", "4096")}),
    ],
)
def test_the_manifests_own_value_is_the_last_level(
    annotation: str, found: dict[str, tuple[str, ...]]
) -> None:
    assert levels(annotation) == found


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (
            "vm.swapiness: '1'",
            (
                r"the set has no setting 'vm\.swapiness'; it has vm\.swappiness, .*Correct the "
                r"key or drop it"
            ),
        ),
        ("vm.swappiness: ''", r"'' lists nothing; write '1, 10, 60'"),
        ("vm.swappiness: '1,,2'", r"'1,,2' has an empty level"),
        ("vm.swappiness: '1, 60, 1'", r"level '1' is listed twice; drop one"),
        ("vm.swappiness: [1, 2]", r"is not text; write it in quotes"),
        ("vm.swappiness: 0.5", r"is not text"),
        (
            "console: tty1",
            r"console is set 2 times, so it cannot have levels; drop the annotation",
        ),
        ("quiet: loud", r"quiet has no value, so it cannot have levels"),
        ("nofile: '1024, many'", r"nofile=many is not a limit"),
        ("isolcpus: '1\"2'", r"a double quote is not closed"),
        ("isolcpus: '\"1\"'", r"isolcpus cannot be set to '\"1\"'; write one plain value"),
        (r'vm.swappiness: "1, 6\a0"', r"contains a control character, U\+0007, which is invisible"),
        (r'vm.swappiness: "1\L60"', r"contains a line separator, U\+2028"),
        (r'vm.swappiness: "1, 60\N"', r"contains a control character, U\+0085"),
    ],
)
def test_impossible_levels_are_refused_on_reading(annotation: str, says: str) -> None:
    """In one line: which file, which annotation, what to do."""
    with pytest.raises(BadInput, match=says) as refusal:
        parse(TEXT % f"levels.deeptweak/{annotation}", "f", "f.yaml")
    assert str(refusal.value).startswith(
        f"f.yaml: annotation levels.deeptweak/{annotation.partition(':')[0]}: "
    )
    assert "\n" not in str(refusal.value)


def test_levels_of_one_key_in_two_skyhooks_of_a_file_are_refused() -> None:
    one = TEXT % "levels.deeptweak/vm.swappiness: '1'"
    with pytest.raises(
        BadInput,
        match=r"annotation levels\.deeptweak/vm\.swappiness: two Skyhooks in the file have it; "
        r"drop one",
    ):
        parse(f"{one}---{one.replace('name: demo', 'name: other')}", "f", "f.yaml")


def test_an_unknown_annotation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        BadInput, match=r"reason\.deeptweak/…, source\.deeptweak/… and levels\.deeptweak/…"
    ):
        parse(TEXT % "level.deeptweak/vm.swappiness: '1'", "f", "f.yaml")
