"""Doctor's findings: others that may turn this machine's knobs, and obstacles to a run.

It only reads.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures import doctor
from fixtures.kernel import lock
from fixtures.kernel.journal import Journal
from fixtures.kernel.tunables import Tunables
from fixtures.terms import Tweak, TweakSet

SETS = [
    TweakSet(
        "one", tweaks=(Tweak("sysctl", "vm.swappiness", "10"), Tweak("ulimit", "nofile", "512"))
    ),
    TweakSet("two", tweaks=(Tweak("sysctl", "net.ipv4.tcp_rmem", "4096 87380 6291456"),)),
]


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture(autouse=True)
def own_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a machine of our own: who holds the real one is not the question here."""
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", tmp_path_factory.mktemp("machine"))


@pytest.mark.parametrize("name", [name for name in doctor.MANAGERS if len(name) <= 15])
def test_each_manager_that_runs_is_named_with_what_it_does(tmp_path: Path, name: str) -> None:
    write(tmp_path, "proc/17/comm", f"{name}\n")
    write(tmp_path, "proc/18/comm", "bash\n")
    found = list(doctor.managers(tmp_path))
    assert [(f.mark, f.subject) for f in found] == [("warn", name)]
    assert doctor.MANAGERS[name] in found[0].detail


@pytest.mark.parametrize(
    "path",
    ["etc/sysctl.conf", "etc/sysctl.d/99-x.conf", "run/sysctl.d/x.conf", "usr/lib/sysctl.d/x.conf"],
)
@pytest.mark.parametrize(
    "line",
    [
        "vm.swappiness = 1",
        "vm.swappiness=1",
        "  vm.swappiness =1",
        "-vm.swappiness = 1",
        "vm/swappiness = 1",
    ],
)
def test_a_file_that_sets_a_key_of_a_tweak_set_is_named(
    tmp_path: Path, path: str, line: str
) -> None:
    """In every spelling that sysctl.d(5) knows."""
    write(tmp_path, "proc/sys/vm/swappiness", "60\n")
    write(tmp_path, path, f"# vm.swappiness = 3\n{line}\nkernel.other = 1\n")
    found = list(doctor.sysctl_files(SETS, tmp_path))
    assert [(f.mark, f.subject) for f in found] == [("warn", "vm.swappiness")]
    assert f"is also set by {tmp_path / path}: 1 (the kernel runs with 60)" in found[0].detail


def test_a_free_machine_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path / "state"))
    found = {f.subject: f for f in doctor.examine()}
    assert found["machine lock"].mark == found["journal"].mark == "ok"
    assert not doctor.worst(found.values())
    assert {
        f"tweak set {path.stem}"
        for path in (Path(__file__).parents[1] / "data/tweaks").glob("*.yaml")
    } <= found.keys()


def test_a_set_that_is_in_force_already_is_worth_a_look(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/vm/swappiness", "10\n")
    write(tmp_path, "proc/sys/vm/dirty_ratio", "20\n")
    swappiness, dirty = (
        Tweak("sysctl", "vm.swappiness", "10"),
        Tweak("sysctl", "vm.dirty_ratio", "8"),
    )
    sets = [TweakSet("whole", tweaks=(swappiness,)), TweakSet("half", tweaks=(swappiness, dirty))]
    found = {f.subject: f for f in doctor._catalogue(sets, Tunables(tmp_path))}
    assert (found["tweak set whole"].mark, found["tweak set half"].mark) == ("warn", "ok")
    assert all("already in force: vm.swappiness" in f.detail for f in found.values())


def test_a_set_that_leaves_a_state_is_not_merely_applicable(tmp_path: Path) -> None:
    """`vm.min_free_kbytes`: its value is put back, what its write means to the kernel is not."""
    write(tmp_path, "proc/sys/vm/min_free_kbytes", "67584\n")
    write(tmp_path, "proc/meminfo", "MemTotal: 8000000 kB\n")
    sets = [TweakSet("one", tweaks=(Tweak("sysctl", "vm.min_free_kbytes", "131072"),))]
    fine, warned = doctor._catalogue(sets, Tunables(tmp_path))
    assert (fine.mark, fine.applicable, warned.mark) == ("ok", "", "warn")
    assert "cannot be put back" in warned.detail


def test_a_run_that_is_going_on_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path))
    with lock.held(tmp_path):
        found = list(doctor.examine())
    held = next(f for f in found if f.subject == "machine lock")
    assert held.mark == "no"
    assert "held by process" in held.detail
    assert doctor.worst(found)


def test_a_journal_that_a_killed_run_left_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path))
    journal = Journal(tmp_path)
    journal.begin({"record": "begin"})
    found = list(doctor.examine())
    journal.close()  # a real run on this machine would take it for one that was killed
    assert next(f for f in found if f.subject == "journal").mark == "no"
    assert doctor.worst(found)


def test_a_state_folder_that_cannot_be_written_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path / "file"))
    assert doctor.worst(doctor.examine())


def test_clocks_that_vary_and_shared_cores_are_worth_a_look(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    files = {
        "cpufreq/policy0/scaling_governor": ("schedutil", "performance"),
        "cpufreq/policy8/scaling_governor": ("schedutil", "performance"),
        "cpufreq/boost": ("1", "0"),
        "intel_pstate/no_turbo": ("0", "1"),
        "smt/active": ("1", "0"),
    }
    subjects = ("CPU governor", "CPU boost", "SMT")

    def seen() -> list[str]:
        return [one.detail for one in doctor._noise(tmp_path) if one.subject in subjects]

    assert seen() == []
    for at, count in ((0, 4), (1, 0)):
        for path, values in files.items():
            write(tmp_path, f"{cpu}/{path}", f"{values[at]}\n")
        assert len(seen()) == count
        assert not count or seen()[0].endswith(
            f"(/{cpu}/cpufreq/policy*/scaling_governor: schedutil)"
        )
