"""Scripts' effects switched off and on by writing values: fake root, real kernel with kill -9."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.kernel.machine import Machine, Write
from fixtures.kernel.tunables import Tunables, diff, shown
from fixtures.kernel.turns import Switch
from fixtures.terms import Script, TweakRefused
from fixtures.tweaks import resolve
from tests import fake_root
from tests.kernel.kills import is_switching, kill_once, phase, to_and_fro

if TYPE_CHECKING:
    from tests.fake_root import FakeRoot

SWAPPINESS, READ_AHEAD = "/proc/sys/vm/swappiness", "/sys/block/vda/queue/read_ahead_kb"
ENABLED, SCHEDULER = "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/block/vda/queue/scheduler"
EXPIRE = "/sys/block/vda/queue/iosched/read_expire"
SEED = 20240302
# As a kernel file answers: all the words, the chosen one in brackets. That of the fake root holds
# what was written last.
APPLY = (
    f"echo 'always madvise [never]' > $ROOT{ENABLED}; echo 4096 > $ROOT{READ_AHEAD}; echo ran >> "
    "$ROOT/apply"
)
UNDO = f"echo madvise > $ROOT{ENABLED}; echo 128 > $ROOT{READ_AHEAD}; echo ran >> $ROOT/uninstall"


@pytest.fixture(autouse=True)
def scripts_of_the_killed_leave_nothing_in_tmp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scripts").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scripts"))


def scripts(fake: FakeRoot, apply: str = APPLY, undo: str = UNDO) -> list[Script]:
    return [fake.script("apply", apply), fake.script("uninstall", undo)]


def stands(fake: FakeRoot) -> tuple[str | None, str | None]:
    return shown(fake.get(ENABLED)), fake.get(READ_AHEAD)


@pytest.mark.parametrize(
    "typed", [[], fake_root.writes([(SWAPPINESS, "10")])], ids=["alone", "beside typed settings"]
)
def test_scripts_run_once_and_what_they_changed_goes_to_and_fro(
    fake: FakeRoot, typed: list[Write]
) -> None:
    machine = fake.machine()
    machine.apply("x", typed, scripts(fake))
    switch = Switch(machine)
    swappiness = "10" if typed else "60"
    for _ in range(3):
        switch.to("found")
        assert (stands(fake), fake.get(SWAPPINESS)) == (("madvise", "128"), "60")
        assert fake.real(ENABLED).read_text() == "madvise\n", (
            "the word that was chosen, not the list of all"
        )
        switch.to("set")
        assert (stands(fake), fake.get(SWAPPINESS)) == (("never", "4096"), swappiness)
    result = machine.restore()
    assert [fake.real(f"/{name}").read_text() for name in ("apply", "uninstall")] == [
        "ran\n",
        "ran\n",
    ]
    assert (stands(fake), fake.get(SWAPPINESS), result.left_alone, result.stuck) == (
        ("madvise", "128"),
        "60",
        {},
        {},
    )


def test_a_process_that_dies_is_put_back_by_the_next(fake: FakeRoot) -> None:
    machine = fake.machine()
    machine.apply(
        "x", [], scripts(fake, undo=f"echo always > $ROOT{ENABLED}; echo 1 > $ROOT{SWAPPINESS}")
    )
    switch = Switch(machine)
    switch.to("found")
    switch.to("set")
    result = fake.machine().restore()
    fake.real("/apply").unlink()
    assert (result.left_alone, result.stuck, result.elsewhere, fake.wrong()) == ({}, {}, {}, {})


def test_who_writes_what_a_script_set_is_noticed_and_left_alone(fake: FakeRoot) -> None:
    """The undo script, which knows nothing of them, writes over it; that is mended too."""
    machine = fake.machine()
    machine.apply("x", [], scripts(fake))
    switch = Switch(machine)
    fake.put(ENABLED, "[always] madvise never")
    with pytest.raises(TweakRefused, match=r"enabled was 'always' at a segment's end"):
        switch.to("found")
    assert set(machine.restore().left_alone) == {ENABLED}
    assert stands(fake) == ("always", "128")


@pytest.mark.parametrize(
    ("apply", "why"),
    [
        (
            f"{APPLY}; echo 'vm.swappiness = 1' > $ROOT/etc/sysctl.d/99-new.conf",
            r"sysctl\.d/99-new\.conf is a file, which programs read",
        ),
        (f"{APPLY}; echo '# other' > $ROOT/etc/sysctl.conf", r"/etc/sysctl\.conf is a file"),
        (
            (
                f"{APPLY}; mkdir -p $ROOT/sys/module/x/parameters; echo 1 > "
                "$ROOT/sys/module/x/parameters/y"
            ),
            r"parameters/y appeared with them",
        ),
        (f"{APPLY}; rm $ROOT/proc/sys/vm/dirty_bytes", r"dirty_bytes vanished with them"),
        ("true", "they changed nothing visible"),
        (
            f"echo 10 > $ROOT{SWAPPINESS}",
            "they changed nothing visible",
        ),  # the typed setting did that already
    ],
)
def test_what_is_no_value_is_refused_and_all_goes_back(
    fake: FakeRoot, apply: str, why: str
) -> None:
    machine = fake.machine()
    machine.apply(
        "x",
        fake_root.writes([(SWAPPINESS, "10")]),
        [*scripts(fake, apply), fake.script("apply_check", "true")],
    )
    with pytest.raises(
        TweakRefused, match=rf"Its scripts cannot be switched: .*{why}.* Measure it in whole cells"
    ):
        Switch(machine)
    machine.restore()
    for name in ("/apply", "/uninstall", "/sys/module/x/parameters/y"):
        fake.real(name).unlink(missing_ok=True)
    assert {
        path: now for path, now in fake.wrong().items() if not path.endswith("dirty_bytes")
    } == {}


@pytest.mark.parametrize("found", ["mq-deadline", "none"])
def test_files_that_a_scheduler_brings_come_and_go_with_it(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    """They come with kernel defaults (block/elevator.c); other values, found or set, come back."""
    write = Tunables.write

    def elevator(self: Tunables, path: str, value: str | None) -> None:
        if path == EXPIRE and fake.get(EXPIRE) is None:
            raise FileNotFoundError(2, "No such file or directory")
        write(self, path, value)
        if path == SCHEDULER:
            fake.put(EXPIRE, None if "[none]" in str(value) or value == "none" else "500")

    monkeypatch.setattr(Tunables, "write", elevator)
    with_files, without = (
        f"echo 'none [mq-deadline]' > $ROOT{SCHEDULER}",
        f"rm $ROOT{EXPIRE}; echo '[none] mq-deadline' > $ROOT{SCHEDULER}",
    )
    fake.put(SCHEDULER, "[none] mq-deadline" if found == "none" else "none [mq-deadline]")
    if found == "mq-deadline":
        fake.put(EXPIRE, "300")
    else:
        with_files = (
            f"{with_files}; mkdir -p $ROOT{EXPIRE.rpartition('/')[0]}; echo 200 > $ROOT{EXPIRE}"
        )
    machine = fake.machine()
    machine.apply(
        "x", [], [fake.script("apply", without if found == "mq-deadline" else with_files)]
    )
    switch = Switch(machine)
    there, then = ("300", None) if found == "mq-deadline" else (None, "200")
    for _ in range(2):
        switch.to("found")
        assert (shown(fake.get(SCHEDULER)), fake.get(EXPIRE)) == (found, there)
        switch.to("set")
        assert fake.get(EXPIRE) == then
    switch.to("found")
    assert (fake.machine().restore().stuck, shown(fake.get(SCHEDULER)), fake.get(EXPIRE)) == (
        {},
        found,
        there,
    )


def killed_again_and_again(
    times: int,
    longest_s: float,
    cycle: Callable[[], None],
    folder: Path,
    check: Callable[[], object],
) -> set[str]:
    """Kill, restore, compare; every other time not before values take turns.

    Returns: how far the killed had come.
    """
    rng, phases = random.Random(SEED), set[str]()
    for number in range(times):
        if number % 2:
            kill_once(rng, longest_s, cycle)
        else:
            kill_once(rng, longest_s / 10, cycle, lambda: is_switching(folder))
        phases.add(phase(folder))
        assert check() == ({}, {}, [], {}), number
    return phases


@pytest.mark.slow
def test_two_hundred_kills_on_a_fake_root(fake: FakeRoot) -> None:
    """In scripts too: what those had begun is put back, and a cut-off undo script does no harm."""
    asked = fake_root.writes([(SWAPPINESS, "10")])
    mine = scripts(fake, APPLY.rpartition(";")[0], UNDO.rpartition(";")[0])

    def check() -> object:
        result = fake.machine().restore()
        return result.stuck, result.left_alone, list(fake.state.glob("*.jsonl")), fake.wrong()

    phases = killed_again_and_again(
        200, 0.06, lambda: to_and_fro(fake.machine(), asked, mine, 20), fake.state, check
    )
    assert phases >= {"switching", "scripts"}


@pytest.mark.usefixtures("kernel_unchanged")
@pytest.mark.parametrize(
    "name", ["thp-always", "thp-never", "training-host", "block-readahead", "block-scheduler-none"]
)
def test_kills_on_the_real_kernel(name: str, tmp_path: Path) -> None:
    """Kill each catalogue set five times while it switches; compare the whole machine each time."""
    from fixtures.tweaks.local import plan

    tunables = Tunables()
    (named,) = resolve(name)
    wanted = plan(named, tunables)
    if wanted.cannot:
        pytest.skip("; ".join(wanted.cannot))
    pristine = tunables.snapshot()
    machine = Machine(folder=tmp_path)
    if not machine.apply("probe", wanted.writes, wanted.scripts).changed:
        machine.restore()
        pytest.skip("this machine has it already")
    machine.restore()

    def check() -> object:
        result = Machine(folder=tmp_path).restore()
        return (
            result.stuck,
            result.left_alone,
            list(tmp_path.glob("*.jsonl")),
            diff(pristine, tunables.snapshot()),
        )

    killed_again_and_again(
        5,
        0.3,
        lambda: to_and_fro(Machine(folder=tmp_path), wanted.writes, wanted.scripts, 100_000),
        tmp_path,
        check,
    )
