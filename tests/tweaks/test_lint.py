"""Lint finds settings without effect or with harm; on the study's files, exactly as recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.terms import Script, Tweak, TweakSet
from fixtures.tweaks.lint import lint
from fixtures.tweaks.manifest import parse, read
from fixtures.tweaks.process import cpu_list, isolated
from fixtures.tweaks.settings import boot_tokens

REFERENCE = (
    Path(__file__).resolve().parents[3] / "shared" / "reference" / "deeptweak" / "one_node_one_gpu"
)
needs_reference = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the DeepTweak data are not here: they may not be redistributed"
)


def boot(line: str) -> TweakSet:
    tokens = (token.partition("=") for token in boot_tokens(line, "x"))
    return TweakSet("x", tweaks=tuple(Tweak("boot", key, value) for key, _, value in tokens))


def sysctl(**values: object) -> TweakSet:
    return TweakSet(
        "x",
        tweaks=tuple(
            Tweak("sysctl", key.replace("__", "."), str(value)) for key, value in values.items()
        ),
    )


@needs_reference
def test_the_deeptweak_files_get_exactly_their_two_warnings() -> None:
    """A21, on the study's machine of 12 CPUs and 234.3 GB."""
    found = [
        lint(
            read(REFERENCE / f"exp{n}" / "skyhook.yaml"),
            cpus_online=12,
        )
        for n in (1, 2, 3)
    ]
    assert [len(warnings) for warnings in found] == [1, 1, 1]
    assert "vm.min_free_kbytes changes state that no file shows" in found[0][0]
    assert "isolcpus=nohz,domain,managed_irq is malformed" in found[1][0]
    assert "'0-1' is separate" in found[1][0]
    assert "isolates 10 of 12 CPUs" in found[2][0]


@needs_reference
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_catalogues_copies_ask_for_what_the_study_asked_for(number: int) -> None:
    """Copied from the published table, so compared; the runtime part is all but boot tokens."""
    catalogue = Path(__file__).resolve().parents[2] / "data" / "tweaks"
    asked = [
        (t.kind, t.key, t.value) for t in read(REFERENCE / f"exp{number}" / "skyhook.yaml").tweaks
    ]
    whole = [
        (t.kind, t.key, t.value) for t in read(catalogue / f"deeptweak-exp{number}.yaml").tweaks
    ]
    runtime = [
        (t.kind, t.key, t.value)
        for t in read(catalogue / f"deeptweak-exp{number}-sysctl.yaml").tweaks
    ]
    assert whole == asked
    assert runtime == [setting for setting in asked if setting[0] == "sysctl"]


WARNED = {
    "house-keeping cores": (boot("isolcpus=0,1,48,49"), "isolates CPU 0.*nodewright-packages#95"),
    "nearly all cpus": (boot("isolcpus=domain,24-N"), "isolates 72 of 96 CPUs"),
    "flags alone": (boot("isolcpus=nohz"), "has the flags nohz but no CPUs"),
    "no list": (boot("isolcpus=first"), "names no CPUs, so nothing"),
    "background above limit": (
        sysctl(vm__dirty_background_ratio=20, vm__dirty_ratio=20),
        "is not below vm.dirty_ratio=20",
    ),
    "an octal number": (
        sysctl(vm__swappiness="010"),
        "vm.swappiness=010 is 8: a sysctl reads .* octal; write 10 if that is meant",
    ),
    "a key that moved": (
        sysctl(kernel__sched_latency_ns=1),
        "kernel.sched_latency_ns: it left /proc/sys in Linux 5.13",
    ),
    "a one-way key": (
        sysctl(kernel__modules_disabled=1),
        "kernel.modules_disabled cannot be put back: once 1",
    ),
    "a write that marks": (
        sysctl(vm__min_free_kbytes=65536),
        "min_free_kbytes changes state that no file shows.* huge pages no longer",
    ),
    "a key that goes back in part": (
        sysctl(net__ipv4__ip_forward=1),
        "net.ipv4.ip_forward may not be put back wholly",
    ),
    "a comment in a value": (sysctl(vm__swappiness="10 # low"), "contains a comment"),
}


@pytest.mark.parametrize(("tweakset", "says"), WARNED.values(), ids=WARNED)
def test_each_trap_has_one_warning(tweakset: TweakSet, says: str) -> None:
    """On a machine of 96 CPUs."""
    found = lint(tweakset, cpus_online=96)
    if "changes state" not in says:  # of vm.min_free_kbytes, whatever its number
        found = tuple(line for line in found if "changes state" not in line)
    assert len(found) == 1, found
    assert re.search(says, found[0]), found


@pytest.mark.parametrize(
    "tweakset",
    [
        boot(
            "isolcpus=managed_irq,domain,25-95 nohz_full=25-95 default_hugepagesz=1G hugepages=64"
        ),
        sysctl(vm__swappiness=200, vm__dirty_ratio=20, vm__dirty_background_ratio=10),
        sysctl(
            kernel__unprivileged_bpf_disabled=2,
            kernel__yama__ptrace_scope=1,
            vm__overcommit_memory=1,
        ),
        TweakSet(
            "x",
            tweaks=(
                Tweak("service", "nvidia-persistenced.LimitAS", "1"),
                Tweak("ulimit", "nofile", "9"),
            ),
        ),
    ],
)
def test_what_stays_within_bounds_gets_none(tweakset: TweakSet) -> None:
    """The same machine; 71 of 96 CPUs are the last number that passes."""
    assert lint(tweakset, cpus_online=96) == ()


SCRIPTED = {
    "sysctl -w vm.min_free_kbytes=1023": ["changes state that no file shows"],
    "echo 1 > /proc/sys/net/ipv4/ip_forward": ["net.ipv4.ip_forward may not be put back wholly"],
    "v=1; echo $v > /proc/sys/net/ipv4/ip_forward": [],
}


@pytest.mark.parametrize("text", SCRIPTED)
def test_plain_writes_of_scripts_are_judged(text: str) -> None:
    found = lint(TweakSet("x", scripts=(Script("p", "apply", text),)))
    assert len(found) == len(SCRIPTED[text]), found
    assert all(words in warning for words, warning in zip(SCRIPTED[text], found, strict=True))


def test_warnings_of_reading_come_first_and_once() -> None:
    packages = "{t: {image: tuning, configMap: {ulimit.conf: 'core: 0'}}}"
    text = (
        f"apiVersion: skyhook.nvidia.com/v1\nkind: Skyhook\nmetadata: {{name: x}}\nspec: "
        f"{{packages: {packages}}}"
    )
    first = lint(parse(text, "x"))
    assert ["splits at a bare" in w for w in first] == [True]
    assert lint(TweakSet("x", tweaks=parse(text, "x").tweaks, warnings=first)) == first


def test_cpu_lists_are_those_of_the_kernel() -> None:
    """kernel-parameters.rst: `1,2,10-20,100-2000:2/25` has CPUs 100, 101, 125, 126, 150, 151, …."""
    found = cpu_list("1,2,10-12,100-151:2/25", None)
    assert sorted(found or ()) == [1, 2, 10, 11, 12, 100, 101, 125, 126, 150, 151]
    assert [cpu_list(text, 8) for text in ("N", "6-N", "all")] == [
        frozenset({7}),
        frozenset({6, 7}),
        frozenset(range(8)),
    ]
    assert [
        cpu_list(text, None) for text in ("", "a", "3-1", "1,,2", "0-7:3/2", "N", "99999999")
    ] == [None] * 7
    assert isolated("nohz,domain,2-3", 8) == (("nohz", "domain"), frozenset({2, 3}))
