"""A small /proc, /sys and /etc in a folder: plain files, so that nothing real is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fixtures.kernel import config_files
from fixtures.kernel.machine import Machine, Write
from fixtures.kernel.tunables import alike
from fixtures.terms import Script

Value = TypeVar("Value")

# As read on Linux 6.18 with one virtio disk; random/boot_id and loop0 are there to be passed over.
SETTINGS = {
    "/proc/sys/vm/swappiness": "60",
    "/proc/sys/vm/dirty_ratio": "20",
    "/proc/sys/vm/dirty_bytes": "0",
    "/proc/sys/vm/min_free_kbytes": "67584",
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "/proc/sys/net/core/rmem_max": "212992",
    "/proc/sys/kernel/core_pattern": "core.[%e].%p",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "/sys/block/vda/queue/scheduler": "none [mq-deadline] kyber",
    "/sys/block/vda/queue/read_ahead_kb": "128",
}
CONFIG = {
    "/etc/sysctl.conf": "# nothing\n",
    "/etc/sysctl.d/10-net.conf": "net.core.rmem_max = 212992\n\n\n",
    "/etc/security/limits.d/90.conf": "* - nofile  1024",  # no newline at its end
    "/etc/udev/rules.d/60-io.rules": 'KERNEL=="sd[a-z]", ATTR{queue/scheduler}="none"\n',
}
PASSED_OVER = {
    "/proc/sys/kernel/random/boot_id": "6a1f0d5e-0000-4000-8000-000000000001",
    "/proc/sys/vm/drop_caches": "0",
    "/sys/block/loop0/queue/read_ahead_kb": "128",
    "/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/targets/0/regions/0/end": "15569256448",
}
UNDER_TEST = tuple(SETTINGS)


@dataclass(frozen=True)
class FakeRoot:
    """A tree in `path/root`; its machine's journal and lock stand beside it, in `path/state`."""

    path: Path

    @property
    def root(self) -> Path:
        return self.path / "root"

    @property
    def state(self) -> Path:
        return self.path / "state"

    @property
    def journal(self) -> Path:
        return self.state / "journal.jsonl"

    def lose_journal(self) -> None:
        """With the copy of its first record: a disk that was wiped."""
        for name in ("journal.jsonl", "journal.snapshot"):
            (self.state / name).unlink()

    def machine(self) -> Machine:
        """As a new process would see it."""
        return Machine(self.root, self.state)

    def real(self, path: str) -> Path:
        return Path(f"{self.root}{path}")

    def put(self, path: str, text: str | None) -> None:
        """Write as another program: a kernel setting gets its newline, None removes the file."""
        if text is None:
            self.real(path).unlink(missing_ok=True)
            return
        self.real(path).parent.mkdir(parents=True, exist_ok=True)
        self.real(path).write_text(text if path.startswith("/etc/") else f"{text}\n")

    def get(self, path: str) -> str | None:
        try:
            text = self.real(path).read_text()
        except FileNotFoundError:
            return None
        return text if path.startswith("/etc/") else text.removesuffix("\n")

    def script(self, stage: str, text: str, package: str = "tune") -> Script:
        return Script(package, stage, f"ROOT={self.root}\n{text}")

    def reboot(self) -> None:
        """Another boot id; the kernel starts with its own values, files stay."""
        for path, text in SETTINGS.items():
            self.put(path, text)
        self.put("/proc/sys/kernel/random/boot_id", "6a1f0d5e-0000-4000-8000-000000000002")

    def wrong(self) -> dict[str, str | None]:
        """Return all that differs from the tree as made, to the byte in configuration files."""
        paths = {str(p)[len(str(self.root)) :] for p in self.root.rglob("*") if p.is_file()}
        made = {**SETTINGS, **CONFIG, **PASSED_OVER}
        return {
            p: self.get(p)
            for p in sorted(paths | made.keys())
            if not alike(p, made.get(p), self.get(p))
        }

    def must_be_as_found(self) -> None:
        """Nothing is changed, and no journal is left."""
        assert (self.wrong(), self.journal.exists()) == ({}, False)


def make(path: Path) -> FakeRoot:
    """A fresh tree below `path`."""
    fake = FakeRoot(path)
    for name, text in {**SETTINGS, **CONFIG, **PASSED_OVER}.items():
        fake.put(name, text)
    return fake


def plain(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return values or changes with only the text of each configuration file, and no folders."""

    def strip(value: Any) -> Any:
        return (
            tuple(map(strip, value))
            if isinstance(value, tuple)
            else value and config_files.text(value)
        )

    folders = {path for path, value in values.items() if '"kind": "folder"' in str(value)}
    return {
        path: strip(value) if path.startswith("/etc/") else value
        for path, value in values.items()
        if path not in folders
    }


def writes(values: Sequence[tuple[str, str]]) -> list[Write]:
    """(path, value) as a tweak set would ask for them."""
    return [Write(path, value, path.rpartition("/")[2]) for path, value in values]
