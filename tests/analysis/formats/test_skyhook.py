"""A manifest's settings are those of its `spec` alone, as the run side would apply them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.checks import reserved_bytes
from analysis.formats import skyhook
from analysis.terms import Setting, Unreadable
from fixtures.tweaks import manifest
from tests.conftest import REFERENCE
from tests.deeptweak_like import NO_TWEAKS, SCRIPTS, SYSCTLS

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

HOUSE = Path(__file__).parents[3]
STUDY = REFERENCE / "deeptweak" / "one_node_one_gpu"


def written(folder: Path, text: str) -> Path:
    path = folder / "skyhook.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def settings_of(path: Path) -> list[tuple[str, str, str]]:
    return [(one.kind, one.key, one.value) for one in skyhook.read(path).settings]


def test_a_list_is_read_by_its_spec_and_not_by_its_annotation(tmp_path: Path) -> None:
    assert settings_of(written(tmp_path, SYSCTLS)) == [
        ("boot", "hugepagesz", "1G"),
        ("boot", "hugepages", "2"),
        ("boot", "hugepagesz", "2M"),
        ("boot", "hugepages", "64"),
        ("sysctl", "vm.swappiness", "10"),
        ("sysctl", "net.ipv4.tcp_rmem", "4096 87380 134217728"),
    ]


@pytest.mark.parametrize("text", [NO_TWEAKS, "", "---\n", "apiVersion: v1\nkind: List\nitems: []"])
def test_a_manifest_that_asks_for_nothing_is_no_tweak(tmp_path: Path, text: str) -> None:
    found = skyhook.read(written(tmp_path, text))
    assert (found.settings, found.scripts, found.warnings) == ((), 0, ())


def test_what_is_not_known_is_said_and_not_counted(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    text = SCRIPTS.replace("shellscript:1.1.0", "kdump").replace(
        "ulimit.conf", "postApplyScript.sh"
    )
    found = skyhook.read(written(tmp_path, text))
    assert (len(found.settings), found.scripts) == (1, 0)
    assert found.warnings == snapshot


def test_the_catalogue_is_read_as_the_run_side_reads_it() -> None:
    paths = sorted((HOUSE / "data/tweaks").glob("*.yaml"))
    assert paths
    for path in paths:
        applied, found = manifest.read(path), skyhook.read(path)
        asked = [(one.kind, one.key, one.value) for one in found.settings]
        assert [(t.kind, t.key, t.value) for t in applied.tweaks] == asked, path
        assert len(applied.scripts) == found.scripts, path
        assert (applied.sha256, found.warnings) == (found.sha256, ()), path


NO_MANIFEST = {
    "broken": "a: [1,\n",
    "a day that never was": "when: 2025-02-31",
    "brackets": "[" * 5000,
    "another kind": "kind: Pod\napiVersion: v1\n",
    "no mapping": "just words",
    "no items": "kind: List\nitems: {}",
    "no packages": "kind: Skyhook\nspec: {packages: [tuning]}",
    "too large": "#" * (1 << 20) + "#",
}


def test_refusals(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, text in NO_MANIFEST.items():
        with pytest.raises(Unreadable) as refused:
            skyhook.read(written(tmp_path, text))
        # What the parser says is its own.
        messages[name] = re.sub(
            r"YAML \(.*\)", "YAML (…)", str(refused.value).replace(f"{tmp_path}/", "")
        )
        assert "\n" not in messages[name]
    assert messages == snapshot


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(SCRIPTS)), cut=st.integers(0, 200), put=st.binary(max_size=8))
def test_whatever_happens_to_a_manifest_it_is_read_or_refused(
    tmp_path: Path, at: int, cut: int, put: bytes
) -> None:
    path = tmp_path / "skyhook.yaml"
    raw = SCRIPTS.encode()
    path.write_bytes(raw[:at] + put + raw[at + cut :])
    try:
        found = skyhook.read(path).scripts
    except Unreadable as error:
        found = -str(error).count("\n")
    assert 0 <= found <= 2


@pytest.mark.needs("reference")
def test_the_studys_manifests() -> None:
    """A19: 5, 12, 5 sysctls; 2·2³⁰ + 5128·2²¹ B, 4 GiB, none reserved. A20: no limits, services."""
    found = [settings_of(STUDY / name / "skyhook.yaml") for name in ("exp1", "exp2", "exp3")]
    assert [sum(kind == "sysctl" for kind, _, _ in one) for one in found] == [5, 12, 5]
    assert {kind for one in found for kind, _, _ in one} == {"sysctl", "boot"}
    reserved = [reserved_bytes(itertools.starmap(Setting, one)) for one in found]
    assert reserved == [12_901_679_104, 4_294_967_296, 0]
    assert settings_of(STUDY / "base" / "skyhook.yaml") == []
