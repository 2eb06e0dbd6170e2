"""Each set of the catalogue is a valid manifest with reasons; its scripts do and undo as stated.

Scripts are never run against this machine: their text is rewritten to a tree of files first.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fixtures import workloads
from fixtures.parameters import split
from fixtures.terms import Script
from fixtures.tweaks import available, resolve
from fixtures.tweaks.lint import lint
from fixtures.tweaks.manifest import notes, text_of

ROOT = Path(__file__).resolve().parents[2]
CRD = ROOT.parent / "shared" / "reference" / "crds" / "skyhook.nvidia.com_skyhooks.yaml"
SETS = {tweakset.name: tweakset for tweakset in resolve("all")}
SCRIPTS = {
    f"{name}/{script.stage}": script
    for name, tweakset in SETS.items()
    for script in tweakset.scripts
}
# The study's own files, kept as they were: what lint says of them is part of the finding.
LINTED = {"deeptweak-exp2": "isolcpus", "deeptweak-exp3": "isolcpus"} | dict.fromkeys(
    ("deeptweak-exp1", "deeptweak-exp1-sysctl", "memory-overcommit"),
    "vm.min_free_kbytes changes state that no file shows",
)


def manifest(name: str) -> Any:
    return yaml.safe_load(text_of(available()[name]))


@pytest.mark.parametrize("name", SETS)
def test_each_setting_has_a_reason_and_a_source(name: str) -> None:
    """Nothing has a reason that is not set; the set gives its purpose, kernels and risk."""
    about = notes(text_of(available()[name]), name)
    assert about.description
    assert about.kernel
    assert re.match(r"(none|low|medium|high)\b", about.risk)
    assert about.reasons.keys() == about.sources.keys()
    assert all(
        source.startswith(("https://", "Cardwell et al.")) for source in about.sources.values()
    )
    if SETS[name].scripts:
        written = "".join(script.text for script in SETS[name].scripts if script.stage == "apply")
        typed = {tweak.key for tweak in SETS[name].tweaks}
        assert [
            key for key in about.reasons.keys() - typed if key.rpartition(".")[2] not in written
        ] == []
    else:
        tokens = {t.key for t in SETS[name].tweaks} - {"0-1"}  # the stray half of exp2's isolcpus
        assert about.reasons.keys() == tokens


@pytest.mark.skipif(not CRD.is_file(), reason="the operator's CustomResourceDefinition is not here")
@pytest.mark.parametrize("name", SETS)
def test_each_manifest_fits_the_operators_schema(name: str) -> None:
    schema = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    jsonschema.Draft202012Validator(_closed(schema)).validate(manifest(name))


def _closed(schema: Any) -> Any:
    """The schema with unknown fields refused, as the API server's strict mode does."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(part) for key, part in schema.items()}
    if (
        isinstance(closed.get("properties"), dict)
        and "additionalProperties" not in closed
        and closed.get("type") == "object"
    ):
        closed["additionalProperties"] = False
    return closed


@pytest.mark.parametrize("name", SETS)
def test_lint_has_nothing_to_say_but_about_the_study_itself(name: str) -> None:
    """On the study's machine of 12 CPUs."""
    found = lint(SETS[name], cpus_online=12)
    assert [LINTED.get(name, "nothing") in warning for warning in found] == [True] * (
        name in LINTED
    )


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_scripts_are_clean_bash_that_stops_at_the_first_failure(script: Script) -> None:
    """The real package sources them, so `set -eu` must be theirs."""
    lines = script.text.split("\n")
    assert lines[0] == "#!/bin/bash"
    assert next(line for line in lines[1:] if not line.startswith("#")) == "set -eu"
    parsed = subprocess.run(
        ["bash", "-n"], input=script.text, capture_output=True, text=True, check=False
    )
    assert (parsed.returncode, parsed.stderr) == (0, "")


class Node:
    """A tree of files with the shape of /sys and /run, and scripts rewritten to it."""

    def __init__(self, root: Path, files: dict[str, str]) -> None:
        self.root = root
        for path, text in files.items():
            root.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
            root.joinpath(path).write_text(text)
        root.joinpath("run").mkdir()

    def run(self, name: str, stage: str, before: str = "") -> subprocess.CompletedProcess[str]:
        text = SCRIPTS[f"{name}/{stage}"].text.removeprefix("#!/bin/bash\n")
        here = re.sub(r"/(?=(?:sys|run)/)", f"{self.root}/", text)
        rest = here.replace(f"{self.root}/sys/", "").replace(f"{self.root}/run/", "")
        code = "\n".join(line for line in rest.split("\n") if not line.lstrip().startswith("#"))
        assert not re.search(r"/(?:sys|run|proc|etc|dev)\b", code), (
            "a path of the real machine is left"
        )
        command = ["bash", "-c", before + here]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )

    def read(self, path: str) -> str:
        return self.root.joinpath(path).read_text().strip()


THP = "sys/kernel/mm/transparent_hugepage"
CPU = "sys/devices/system/cpu/cpufreq"
FOUND = {
    f"{THP}/enabled": "always [madvise] never\n",
    f"{THP}/defrag": "always defer defer+madvise [madvise] never\n",
    "sys/block/sda/queue/scheduler": "none [mq-deadline] kyber\n",
    "sys/block/sda/queue/read_ahead_kb": "128\n",
    "sys/block/sda/device/model": "x",
    "sys/block/nvme0n1/queue/scheduler": "[none] mq-deadline\n",
    "sys/block/nvme0n1/queue/read_ahead_kb": "512\n",
    "sys/block/nvme0n1/device/model": "x",
    "sys/block/loop0/queue/scheduler": "[none]\n",
    "sys/block/loop0/queue/read_ahead_kb": "1\n",
    "sys/block/zram0/queue/read_ahead_kb": "2\n",
    "sys/block/dm-0/queue/read_ahead_kb": "3\n",
    "sys/block/dm-0/device/model": "x",
    "sys/kernel/debug/sched/base_slice_ns": "2800000\n",
    f"{CPU}/policy0/scaling_governor": "schedutil\n",
    f"{CPU}/policy4/scaling_governor": "powersave\n",
}
RA, SCHEDULER, THP_FILES = (
    "queue/read_ahead_kb",
    "queue/scheduler",
    (f"{THP}/enabled", f"{THP}/defrag"),
)


def _disks(file: str, value: str, sda: str, nvme: str) -> dict[str, tuple[str, str]]:
    return {f"sys/block/sda/{file}": (value, sda), f"sys/block/nvme0n1/{file}": (value, nvme)}


# Each file's text after apply, and after uninstall (a plain file keeps the word written,
# the kernel would show it in brackets).
EFFECTS: dict[str, dict[str, tuple[str, str]]] = {
    **{
        name: dict.fromkeys(THP_FILES, (name.removeprefix("thp-"), "madvise"))
        for name in ("thp-always", "thp-never")
    },
    "training-host": dict.fromkeys(THP_FILES, ("always", "madvise")),
    "block-readahead": _disks(RA, "4096", "128", "512"),
    "block-readahead-128": _disks(RA, "128", "128", "512"),
    "block-readahead-8192": _disks(RA, "8192", "128", "512"),
    "block-scheduler-mq-deadline": _disks(SCHEDULER, "mq-deadline", "mq-deadline", "none"),
    "block-scheduler-none": _disks(SCHEDULER, "none", "mq-deadline", "none"),
    "scheduler-slice": {"sys/kernel/debug/sched/base_slice_ns": ("12000000", "2800000")},
    "cpufreq-performance": {
        f"{CPU}/policy0/scaling_governor": ("performance", "schedutil"),
        f"{CPU}/policy4/scaling_governor": ("performance", "powersave"),
    },
}


@pytest.mark.parametrize("name", SETS)
def test_the_workloads_that_a_set_is_for_are_there(name: str) -> None:
    """By name, or by name and parameters."""
    for pattern in SETS[name].workloads:
        base, _ = split(pattern)
        assert workloads.matches(pattern, workloads.load(pattern).id), pattern
        assert base in workloads.names()


def test_every_script_set_is_tried() -> None:
    assert EFFECTS.keys() == {name for name, tweakset in SETS.items() if tweakset.scripts}


@pytest.mark.parametrize("name", EFFECTS)
def test_scripts_are_idempotent_and_restore_what_they_change(tmp_path: Path, name: str) -> None:
    """Apply twice (the operator retries), uninstall twice; loop, zram and mapper disks stay."""
    node = Node(tmp_path, FOUND)
    for _ in range(2):
        ended = node.run(name, "apply")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert {path: node.read(path) for path in FOUND} == {
            p: t.strip() for p, t in FOUND.items()
        } | {p: e[0] for p, e in EFFECTS[name].items()}
    for _ in range(2):
        ended = node.run(name, "uninstall")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert {path: node.read(path) for path in EFFECTS[name]} == {
            p: e[1] for p, e in EFFECTS[name].items()
        }
    assert not list(tmp_path.glob("run/deeptweak/*"))


@pytest.mark.parametrize("name", EFFECTS)
def test_uninstall_gives_back_what_apply_found_the_last_time(tmp_path: Path, name: str) -> None:
    """Left-overs of an apply without uninstall do not count: another value was set since."""
    node = Node(tmp_path, FOUND)
    path = next(iter(EFFECTS[name]))
    assert node.run(name, "apply").returncode == 0
    node.root.joinpath(path).write_text("77\n")
    assert node.run(name, "apply").returncode == 0
    assert node.run(name, "uninstall").returncode == 0
    assert node.read(path) == "77"


@pytest.mark.parametrize("name", EFFECTS)
def test_checks_tell_before_from_after(tmp_path: Path, name: str) -> None:
    """The kernel shows the chosen word in brackets, which the tree of files gets by hand."""
    node = Node(tmp_path, FOUND)
    assert node.run(name, "apply_check").returncode != 0
    for path, (after, _) in EFFECTS[name].items():
        node.root.joinpath(path).write_text(
            f"x [{after}] y\n" if "[" in FOUND[path] else f"{after}\n"
        )
    assert node.run(name, "apply_check").returncode == 0


@pytest.mark.parametrize("name", EFFECTS)
def test_scripts_fail_where_there_is_nothing_to_set(tmp_path: Path, name: str) -> None:
    """Else a cell would be called measured under a tweak that was never in force."""
    node = Node(
        tmp_path,
        {"sys/block/loop0/queue/scheduler": "[none]\n", "sys/block/loop0/queue/read_ahead_kb": "1"},
    )
    ended = node.run(name, "apply")
    assert ended.returncode != 0
    assert ended.stderr


@pytest.mark.parametrize("name", EFFECTS)
def test_scripts_fail_when_the_kernel_refuses_the_value(tmp_path: Path, name: str) -> None:
    """In bash `echo` returns 1 where write(2) answers EINVAL; here, it does for the set's word."""
    node = Node(tmp_path, FOUND)
    word = next(iter(EFFECTS[name].values()))[0]
    refusing = f'echo() {{ [ "$1" != {word} ] || return 1; builtin echo "$@"; }}\n'
    assert node.run(name, "apply", before=refusing).returncode != 0
