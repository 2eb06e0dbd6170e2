"""Every shape of Skyhook manifest is read, or refused in one line: what, where, what to do."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.terms import BadInput, Script, Tweak, TweakSet
from fixtures.tweaks.manifest import notes, parse, read


def skyhook(packages: str, *, name: str = "demo", extra: str = "") -> str:
    """A bare Skyhook around the given packages (two blanks deep)."""
    body = "\n".join(f"    {line}" for line in packages.strip("\n").split("\n"))
    return (
        f"apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata:\n  name: {name}\n"
        f"spec:\n{extra}  packages:\n{body}\n"
    )


def tuning(section: str, text: str) -> str:
    """A Skyhook with one tuning package and one configMap key."""
    block = "\n".join(f"      {line}" for line in text.split("\n"))
    return skyhook(
        "tuning:\n  version: 1.1.4\n  image: ghcr.io/nvidia/skyhook-packages/tuning\n  "
        f"configMap:\n    {section}: |-\n{block}"
    )


def asked(tweakset: TweakSet) -> list[tuple[str, str, str]]:
    return [(t.kind, t.key, t.value) for t in tweakset.tweaks]


@pytest.mark.parametrize(
    "text", ["", "# No OS Tweaks applied", "# note\n---\n# other\n", "---\n...\n", "null"]
)
def test_a_file_without_a_document_is_an_empty_tweak_set(text: str) -> None:
    """The study's baseline is a comment-only file; an older tool showed it as "Error parsing"."""
    assert (parse(text, "base").tweaks, parse(text, "base").scripts) == ((), ())


def test_an_exported_list_is_read_from_its_spec_alone() -> None:
    """`last-applied-configuration`, `status` and `uid` are of the past: no request is in them."""
    exported = """
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: skyhook.nvidia.com/v1alpha1
  kind: Skyhook
  metadata:
    name: demo
    uid: 4ec7a626
    generation: 8
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"spec":{"packages":{"tuning":{"configMap":{"ulimit.conf":"memlock: 128",\
"sysctl.conf":"vm.swappiness=99"}}}}}
  spec:
    interruptionBudget: {}
    packages:
      tuning:
        image: ghcr.io/nvidia/skyhook-packages/tuning
        version: 1.1.2
        configInterrupts: {sysctl.conf: {type: restartAllServices}}
        configMap:
          sysctl.conf: |-
            vm.swappiness = 10
  status:
    status: complete
    configUpdates: {tuning: [ulimit.conf]}"""
    assert asked(parse(exported, "exp")) == [("sysctl", "vm.swappiness", "10")]


def test_the_renamed_kind_is_read_too() -> None:
    """Skyhook became NodeWright in 2026; field names stayed."""
    text = (
        tuning("sysctl.conf", "vm.swappiness=1")
        .replace("skyhook.nvidia.com", "nodewright.nvidia.com")
        .replace("kind: Skyhook", "kind: NodeWright")
    )
    assert asked(parse(text, "x")) == [("sysctl", "vm.swappiness", "1")]


def test_several_skyhooks_are_applied_by_priority_then_name() -> None:
    """Default priority is 200, lower first; packages are told apart by their Skyhook's name."""
    one = "tuning:\n  image: r/tuning\n  configMap: {sysctl.conf: vm.swappiness=%d}"
    text = "---\n".join(
        [
            skyhook(one % 3, name="b"),
            skyhook(one % 2, name="a"),
            skyhook(one % 4, name="last", extra="  priority: 201\n"),
            skyhook(one % 1, name="z", extra="  priority: 5\n"),
        ]
    )
    found = parse(text, "x")
    assert [(t.package, t.value) for t in found.tweaks] == [("last/tuning", "4")]
    assert [w.split("(the last) is in force, ")[1] for w in found.warnings] == [
        "'1', '2', '3' are not"
    ]


def test_packages_come_after_those_they_depend_on() -> None:
    """Without dependsOn the order written holds."""
    text = skyhook(
        "second:\n  image: r/tuning\n  dependsOn: {first: 1.0.0}\n  configMap: {sysctl.conf: "
        "kernel.panic=2}\n"
        "first:\n  image: r/tuning\n  configMap: {sysctl.conf: kernel.panic=1}\n"
        "third:\n  image: r/shellscript:1.1\n  configMap: {apply.sh: 'true', uninstall_check.sh: "
        "'false'}"
    )
    found = parse(text, "x")
    assert [(t.package, t.value) for t in found.tweaks] == [("second", "2")]
    assert found.scripts == (
        Script("third", "apply", "true"),
        Script("third", "uninstall_check", "false"),
    )


def test_boot_tokens_keep_their_order_and_repetitions() -> None:
    """`hugepages=` belongs to the `hugepagesz=` before: none is merged, on one line or several."""
    found = parse(
        tuning(
            "grub.conf",
            'hugepagesz=1G hugepages=2\nhugepagesz=2M   hugepages=5128\n\nquiet dyndbg="file a.c '
            '+p" tag=a#b',
        ),
        "x",
    )
    assert asked(found) == [
        ("boot", "hugepagesz", "1G"),
        ("boot", "hugepages", "2"),
        ("boot", "hugepagesz", "2M"),
        ("boot", "hugepages", "5128"),
        ("boot", "quiet", ""),
        ("boot", "dyndbg", "file a.c +p"),
        ("boot", "tag", "a#b"),
    ]
    assert found.warnings == ()


def test_sysctl_lines_in_all_their_spellings() -> None:
    """`k=v`, `k = v`, comments, inner blanks, sysctl(8)'s two spellings of dots in interfaces."""
    found = parse(
        tuning(
            "sysctl.conf",
            "# a\n; b\nvm.swappiness=10\nnet.ipv4.tcp_rmem = 4096 87380\t134217728 \n"
            "net/ipv4/conf/eth0.100/rp_filter = 2\nnet.ipv4.conf.eth1/5.rp_filter=1\n"
            "-kernel.panic = 3",
        ),
        "x",
    )
    assert asked(found) == [
        ("sysctl", "vm.swappiness", "10"),
        ("sysctl", "net.ipv4.tcp_rmem", "4096 87380\t134217728"),
        ("sysctl", "net.ipv4.conf.eth0/100.rp_filter", "2"),
        ("sysctl", "net.ipv4.conf.eth1/5.rp_filter", "1"),
        ("sysctl", "kernel.panic", "3"),
    ]
    assert [w for w in found.warnings if "sysctl.conf line 7" in w and "kernel.panic" in w] == list(
        found.warnings
    )


def test_a_setting_given_twice_counts_the_last_time_and_is_said() -> None:
    """In both spellings of the key."""
    found = parse(tuning("sysctl.conf", "vm.swappiness=10\nkernel.panic=1\nvm/swappiness=20"), "x")
    assert asked(found) == [("sysctl", "kernel.panic", "1"), ("sysctl", "vm.swappiness", "20")]
    assert found.warnings == (
        "x: vm.swappiness is set twice; '20' (the last) is in force, '10' is not",
    )


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("sysctl.conf", "vm.swappiness={}"),
        ("sysctl.conf", "vm.{}=1"),
        ("ulimit.conf", "nofile={}"),
        ("service_x.conf", "[Service]\nLimitNOFILE={}"),
    ],
)
def test_a_line_without_end_is_refused_in_a_short_one(section: str, line: str) -> None:
    """Whatever reads numbers behind this would stop at 4,300 digits."""
    with pytest.raises(
        BadInput, match=r"line \d: .* characters; at most 4,096 are read"
    ) as refused:
        parse(tuning(section, line.format("1" * 200_000)), "x")
    assert len(str(refused.value)) < 300


def test_drop_ins_become_directives_of_their_unit() -> None:
    """Lines are continued as in systemd; directives that add up stay, and the last limit counts."""
    text = (
        "# why\n[Service]\nLimitMEMLOCK = infinity\nEnvironment=A=1 \\\n  B=2\nEnvironment=C=3\n"
        "LimitCORE=1\nLimitCORE=2"
    )
    found = parse(tuning("service_containerd.conf", text), "x")
    assert asked(found) == [
        ("service", "containerd.LimitMEMLOCK", "infinity"),
        ("service", "containerd.Environment", "A=1 B=2"),
        ("service", "containerd.Environment", "C=3"),
        ("service", "containerd.LimitCORE", "2"),
    ]
    assert len(found.warnings) == 1


def test_ulimits_that_skyhook_ignores_are_read_with_a_warning() -> None:
    """The real package splits at a bare '=': the study's `memlock: 128` had no effect there."""
    found = parse(tuning("ulimit.conf", "nofile=4096\nmemlock: 128\nstack = 64"), "x")
    assert asked(found) == [
        ("ulimit", "nofile", "4096"),
        ("ulimit", "memlock", "128"),
        ("ulimit", "stack", "64"),
    ]
    assert [w.split("; ")[1] for w in found.warnings] == ["write memlock=128", "write stack=64"]


def test_annotations_say_what_and_why() -> None:
    text = tuning("sysctl.conf", "vm.swappiness=1").replace(
        "  name: demo\n",
        "  name: demo\n  annotations:\n    deeptweak/workloads: cnn_train, ddp_train\n    "
        "deeptweak/risk: low\n"
        "    reason.deeptweak/vm.swappiness: less\n      swapping\n    "
        "source.deeptweak/vm.swappiness: man\n",
    )
    assert parse(text, "x").workloads == ("cnn_train", "ddp_train")
    about = notes(text, "x")
    assert (about.risk, about.reasons, about.sources) == (
        "low",
        {"vm.swappiness": "less swapping"},
        {"vm.swappiness": "man"},
    )


SWAP = "tuning:\n  image: r/tuning\n  configMap: {sysctl.conf: vm.swappiness=1}"
BAD = {
    "not yaml": ("a: [1, 2\nb: 3", r"^f\.yaml:2:2: broken YAML: .+; correct it"),
    "a key twice": (
        "a: 1\na: 2",
        r"^f\.yaml:2:1: broken YAML: key 'a' is given twice in one mapping; drop one",
    ),
    "a merge key": ("a: {<<: {x: 1}}", r"^f\.yaml:1:5: .*a key must be text"),
    "a tag": ("!!python/object/apply:os.system [echo]", r"^f\.yaml:1:1: .*constructor"),
    "a control character": ("a: \x00", r"^f\.yaml: broken YAML: .*character"),
    "10,000 levels": ("[" * 10_000, r"^f\.yaml:1:41: .*more than 40 levels deep"),
    "an alias": ("a: &a [x]\nb: *a", r"^f\.yaml:2:4: .*aliases \(\*\) are not read"),
    "a list": ("- 1", r"^f\.yaml: contains a list instead of a Skyhook"),
    "another kind": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}",
        r"contains a ConfigMap of v1; .*Skyhook .*NodeWright .*remove anything else",
    ),
    "no image": (skyhook("x:\n  version: 1"), r"package x: image None is not a valid image name"),
    # As they stand in charts: control lines, a value of its own, a value in quotes, a variable.
    "a Helm template's condition": (
        f"{{{{- if .Values.on }}}}\n{skyhook(SWAP)}{{{{- end }}}}\n",
        r"^f\.yaml:1: is a Helm template; .*`helm template",
    ),
    "a Helm template's value": (
        skyhook(SWAP, name="{{ .Release.Name }}"),
        r"^f\.yaml:4: is a Helm template",
    ),
    "an unknown key of tuning": (
        tuning("sysctl.cnf", "a=1"),
        (
            r"package tuning, sysctl\.cnf: .*sysctl\.conf, grub\.conf, ulimit\.conf and "
            r"service_<unit>\.conf"
        ),
    ),
    "an unknown key of shellscript": (
        skyhook("x:\n  image: r/shellscript\n  configMap: {apply: ls}"),
        r"package x, apply: .*apply\.sh, apply_check\.sh",
    ),
    "env": (
        skyhook(
            "x:\n  image: r/shellscript\n  env: [{name: A, value: b}]\n  configMap: {apply.sh: ls}"
        ),
        r"package x: sets env",
    ),
    "an unknown dependency": (
        skyhook("x:\n  image: r/tuning\n  dependsOn: {y: 1}"),
        r"package x depends on 'y'; available: x",
    ),
    "a circle": (
        skyhook(
            "x:\n  image: r/tuning\n  dependsOn: {y: 1}\ny:\n  image: r/tuning\n  dependsOn: {x: 1}"
        ),
        r"x, y depend on each other",
    ),
    "a sysctl without a value": (
        tuning("sysctl.conf", "\nvm.swappiness"),
        r"package tuning, sysctl\.conf line 2: 'vm\.swappiness' sets nothing",
    ),
    "a sysctl out of /proc/sys": (
        tuning("sysctl.conf", "net/../../etc/x=1"),
        r"line 1: 'net/\.\./\.\./etc/x' is not a sysctl name",
    ),
    "a comment in grub.conf": (
        tuning("grub.conf", "quiet\n# fast"),
        r"grub\.conf line 2: grub\.conf has no comments",
    ),
    "an open quote": (
        tuning("grub.conf", 'a="b c'),
        r"grub\.conf line 1: a double quote is not closed",
    ),
    "an unknown limit": (
        tuning("ulimit.conf", "memlok=1"),
        r"ulimit\.conf line 1: 'memlok' is not a process limit; available: as, core",
    ),
    "an unknown Limit": (
        tuning("service_x.conf", "[Service]\nLimitMEM=1"),
        r"service_x\.conf line 2: systemd has no LimitMEM",
    ),
    "soft above hard": (
        tuning("service_x.conf", "[Service]\nLimitNOFILE=9:8"),
        r"soft limit above the hard one",
    ),
    "a directive in no section": (
        tuning("service_x.conf", "LimitCORE=1"),
        r"line 1: .* is in no section; only \[Service\]",
    ),
    "an unknown annotation": (
        (
            "apiVersion: skyhook.nvidia.com/v1\nkind: Skyhook\nmetadata: {name: x, annotations: "
            "{deeptweak/riks: low}}"
        ),
        r"deeptweak/riks",
    ),
}


@pytest.mark.parametrize("image", ["r/kdump", "r:5000/nvidia/nvidia-tuned", "a-tool-of-ours"])
def test_a_package_of_another_kind_is_one_operator_script(image: str) -> None:
    """A note states that nothing of it is read; its script stands for all of its manifest."""
    text = skyhook(
        f"ours:\n  version: 0.3.2\n  image: {image}\n  env: [{{name: A, value: b}}]\n  configMap: "
        f"{{intent: inference}}\n{SWAP}"
    )
    found = parse(text, "f", "f.yaml")
    assert asked(found) == [("sysctl", "vm.swappiness", "1")]
    (script,) = found.scripts
    assert (script.package, script.stage) == ("ours", "package")
    assert parse(text.replace("inference", "training"), "f").scripts != found.scripts
    assert [w for w in found.warnings if "only the operator runs" in w] == [
        (
            f"f.yaml: package ours: only the operator runs image {image!r}; "
            "its settings are read from the node after its run, and its other changes there are "
            "not put back"
        )
    ]


def test_braces_of_a_script_or_a_comment_make_no_template() -> None:
    text = skyhook(
        "x:\n  image: r/shellscript\n  configMap:\n    apply.sh: |-\n      docker ps --format "
        "'{{.ID}} {{ .Names }}'\n      echo ${{a}}"
    )
    assert parse(f"# from {{{{ .Values.x }}}}\n{text}", "f").scripts[0].text.startswith("docker ps")


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_read_is_one_line_with_its_place(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse(text, "f", "f.yaml")
    message = str(refusal.value)
    assert re.search(says, message), message
    assert message.startswith("f.yaml"), message
    assert "\n" not in message


@settings(max_examples=300, deadline=None)
@given(st.text(), st.integers(0, 600), st.integers(0, 40))
def test_no_text_whatever_breaks_the_reader(noise: str, start: int, gone: int) -> None:
    """A manifest with a piece torn out and noise in its place is read or refused, never a crash."""
    whole = (
        tuning("service_x.conf", "[Service]\nLimitCORE=1:2")
        + "---\n"
        + tuning("grub.conf", "a=1 b")
        + "---\n"
        + tuning("ulimit.conf", "stack=1")
    )
    with contextlib.suppress(BadInput):
        parse(whole[:start] + noise + whole[start + gone :], "x")


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    """Missing, a directory, a pipe, not UTF-8 (with line), too large; a byte order mark is fine."""
    os.mkfifo(pipe := tmp_path / "p.yaml")
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"# ok\n# \xff")
    large = tmp_path / "l.yaml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    marked = tmp_path / "m.yaml"
    marked.write_bytes(b"\xef\xbb\xbf" + tuning("sysctl.conf", "vm.swappiness=1").encode())
    cases = [
        (tmp_path / "no.yaml", "No such file"),
        (tmp_path, "directory"),
        (pipe, "not a regular file"),
        (binary, r"b\.yaml:2: not UTF-8"),
        (large, "larger than 1 MiB"),
    ]
    for path, says in cases:
        with pytest.raises(BadInput, match=says):
            read(path)
    found = read(marked)
    assert (found.name, found.path, found.tweaks) == (
        "m",
        str(marked),
        (Tweak("sysctl", "vm.swappiness", "1", "tuning"),),
    )
