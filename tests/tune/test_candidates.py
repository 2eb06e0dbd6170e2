"""Candidates of `tune`: settings of sets, files and options, coupled or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fixtures.kernel.tunables import Tunables
from fixtures.studies.command.tune_candidates import read
from fixtures.terms import BadInput
from fixtures.tweaks import manifest

SWAPPINESS, DIRTY, BACKGROUND = "vm.swappiness", "vm.dirty_ratio", "vm.dirty_background_ratio"


def _other(key: str) -> str:
    """A value that this machine does not have."""
    now = Tunables().read(f"/proc/sys/{key.replace('.', '/')}")
    return "7" if now != "7" else "8"


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """Write a vendor's sysctl.conf: two coupled settings, one not in this kernel, one bad line."""
    path = tmp_path / "99-vendor.conf"
    path.write_text(
        f"{SWAPPINESS} = {_other(SWAPPINESS)}\n{DIRTY} = {_other(DIRTY)}\n{BACKGROUND} = "
        f"{_other(BACKGROUND)}\n"
        "kernel.no_such_setting = 4\nthis is no setting\n"
    )
    return path


def test_each_setting_is_a_candidate_and_coupled_ones_are_joined(
    vendor: Path,
) -> None:
    candidates = read(str(vendor))
    assert set(candidates.settings.values()) == {(SWAPPINESS,), (DIRTY, BACKGROUND)}


def test_what_cannot_be_carried_is_named_with_its_line(vendor: Path) -> None:
    left_out = read(str(vendor)).left_out
    assert "kernel.no_such_setting" in left_out
    assert [name for name in left_out if "line 5" in name]


def test_a_setting_that_is_in_force_already_is_no_candidate() -> None:
    now = Tunables().read("/proc/sys/vm/swappiness")
    candidates = read(f"{SWAPPINESS}={now}+vm.page-cluster={_other('vm.page-cluster')}")
    assert list(candidates.settings) == ["vm.page-cluster"]
    assert candidates.left_out[SWAPPINESS].startswith("already in force")


@pytest.mark.parametrize("selector", ["stock", "stock,stock-again"])
def test_the_untouched_machine_alone_is_refused(selector: str) -> None:
    with pytest.raises(BadInput, match="only the untouched machine"):
        read(selector)


def test_two_sets_that_disagree_on_a_setting_are_refused() -> None:
    with pytest.raises(BadInput, match="not among values"):
        read(f"one:{SWAPPINESS}=7,other:{SWAPPINESS}=8")


@pytest.mark.parametrize("chosen", [[SWAPPINESS], [f"{DIRTY} + {BACKGROUND}"]])
def test_the_manifest_of_a_choice_requests_exactly_that_choice(
    vendor: Path, chosen: list[str]
) -> None:
    candidates = read(str(vendor))
    text = candidates.manifest(chosen, "chosen")
    wanted = {part for name in chosen for part in candidates.settings[name]}
    assert {tweak.key for tweak in manifest.parse(text, "chosen", "chosen").tweaks} == wanted


def test_a_choice_keeps_the_settings_of_a_process() -> None:
    """They are no operator's business, and the workload's process needs them all the same."""
    candidates = read("malloc-keep-memory,malloc-one-arena")
    text = candidates.manifest(["GLIBC_TUNABLES"], "chosen")
    (tweak,) = manifest.parse(text, "chosen", "chosen").tweaks
    assert (tweak.kind, tweak.key) == ("environment", "GLIBC_TUNABLES")
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(text)] == ["malloc-keep-memory"]


THP, KSM = "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/ksm"


def _script(name: str, text: str, skyhook: str = "") -> str:
    """A manifest with one script, in a package of this name."""
    package = {
        "version": "1.0.0",
        "image": "ghcr.io/nvidia/skyhook-packages/shellscript",
        "configMap": {"apply.sh": text},
    }
    about = {
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "Skyhook",
        "metadata": {"name": skyhook or name},
    }
    return yaml.safe_dump({**about, "spec": {"packages": {name: package}}})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(f"echo always > {THP}", f"echo never > {THP}", id="plain"),
        pytest.param(
            f"file={THP}\necho always > $file",
            f'for file in {THP}; do\n    echo never > "$file"\ndone',
            id="variables",
        ),
        pytest.param("sysctl -w vm.swappiness=7", "echo 8 > /proc/sys/vm/swappiness", id="sysctl"),
    ],
)
@pytest.mark.parametrize("skyhook", ["", "same"])
def test_scripts_that_write_one_file_differently_are_refused(
    tmp_path: Path, one: str, other: str, skyhook: str
) -> None:
    (tmp_path / "one.yaml").write_text(_script("one", one, skyhook))
    (tmp_path / "other.yaml").write_text(_script("other", other, skyhook))
    with pytest.raises(BadInput, match="write different values to"):
        read(f"{tmp_path}/one.yaml,{tmp_path}/other.yaml")


def test_a_script_and_a_setting_of_one_file_must_agree(tmp_path: Path) -> None:
    value = _other(SWAPPINESS)
    (tmp_path / "one.yaml").write_text(_script("one", f"echo {value} > /proc/sys/vm/swappiness"))
    assert list(read(f"{tmp_path}/one.yaml,other:{SWAPPINESS}={value}").settings.values()) == [
        (SWAPPINESS, "script:one/one")
    ]
    with pytest.raises(BadInput, match="write different values to"):
        read(f"{tmp_path}/one.yaml,other:{SWAPPINESS}=9")


def test_scripts_whose_values_are_unknown_stay_together(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(_script("one", f"echo 1 > {KSM}/run\necho $A > {THP}"))
    (tmp_path / "other.yaml").write_text(_script("other", f"echo $B > {THP}"))
    candidates = read(f"{tmp_path}/one.yaml,{tmp_path}/other.yaml")
    assert list(candidates.settings.values()) == [("script:one/one", "script:other/other")]


def test_skyhooks_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    """On a cluster the second would replace the first."""
    (tmp_path / "one.yaml").write_text(_script("one", "echo 1 > /sys/kernel/mm/ksm/run", "same"))
    (tmp_path / "other.yaml").write_text(
        _script("one", f"echo {_other(SWAPPINESS)} > /proc/sys/vm/swappiness", "same")
    )
    candidates = read(f"{tmp_path}/one.yaml,{tmp_path}/other.yaml")
    assert set(candidates.settings) == {"script:same/one", "script:same-2/one"}
    records = list(yaml.safe_load_all(candidates.manifest(list(candidates.settings), "chosen")))
    assert [record["metadata"]["name"] for record in records] == ["same", "same-2"]


def test_a_boot_token_of_the_running_kernel_is_no_candidate(tmp_path: Path) -> None:
    """It is in force in all arms; another one would need a reboot."""
    token = (Tunables().read("/proc/cmdline") or "").split()[0]
    package = {
        "version": "1.0.0",
        "image": "ghcr.io/nvidia/skyhook-packages/tuning",
        "interrupt": {"type": "reboot"},
        "configMap": {
            "grub.conf": token,
            "sysctl.conf": f"vm.page-cluster={_other('vm.page-cluster')}",
        },
    }
    about = {
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "Skyhook",
        "metadata": {"name": "boot"},
    }
    (tmp_path / "boot.yaml").write_text(
        yaml.safe_dump({**about, "spec": {"packages": {"tuning": package}}})
    )
    candidates = read(f"{tmp_path}/boot.yaml")
    assert list(candidates.settings) == ["vm.page-cluster"]
    assert len(candidates.left_out) == 1
