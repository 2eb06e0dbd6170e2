"""The machines of simulated nodes: folders that stages and reboots change as they would a machine.

On such a node every pod ends well and nothing runs. Where `<machines>/<node>` is a fake root
(`tests.fake_root`), the stand-in itself does there what the pod would have done; so what is
measured and put back on the node is what the manifest says.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.fake_root import SETTINGS, FakeRoot

from .packages import KNOWN, kind_of

Object = dict[str, Any]
CMDLINE, BOOT_ID = "/proc/cmdline", "/proc/sys/kernel/random/boot_id"
GRUB, GRUB_CFG = "/etc/default/grub", "/boot/grub/grub.cfg"
KERNEL = "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro"
# As grub-mkconfig reads them, the last one having the last word.
READ_GRUB = (
    'cd "$1"; for file in etc/default/grub etc/default/grub.d/*.cfg; do [ ! -f "$file" ] || . '
    '"$file"; done; '
    'echo "$GRUB_CMDLINE_LINUX_DEFAULT"'
)
UPDATE_GRUB = '#!/bin/bash\nbash -c \'{read}\' update-grub "{root}" > "{root}{target}"\n'


class Machines:
    """Those of a folder. A node of which there is no folder is none of them."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def has(self, node: str) -> bool:
        return self._folder is not None and (self._folder / node).is_dir()

    def carry_out(self, node: str, package: Object, stage: str) -> None:
        """What the pod of this stage does on its node."""
        if not self.has(node):
            return
        assert self._folder is not None
        fake, given = FakeRoot(self._folder / node), package.get("configMap") or {}
        if kind_of(package) == "tuning" and stage == "config":
            _tune(fake, package["name"], given)
        if kind_of(package) not in KNOWN and stage == "config":
            _write(fake, given.get("writes", ""))
        if kind_of(package) == "shellscript" and (
            text := given.get(f"{stage.replace('-', '_')}.sh")
        ):
            tools = f"{_tools(fake)}:{os.environ['PATH']}"
            subprocess.run(
                ["bash", "-c", text],
                env={**os.environ, "PATH": tools, "ROOT": str(fake.root)},
                check=True,
            )

    def reboot(self, node: str, boot_id: str) -> None:
        """Boot with the boot loader's command line, kernel defaults and /etc/sysctl.d."""
        if not self.has(node):
            return
        assert self._folder is not None
        fake = FakeRoot(self._folder / node)
        for path, value in SETTINGS.items():
            fake.put(path, value)
        for file in sorted(fake.real("/etc/sysctl.d").glob("*.conf")):
            _sysctls(fake, file.read_text())
        fake.put(CMDLINE, f"{KERNEL} {(fake.get(GRUB_CFG) or '').strip()}".strip())
        fake.put(BOOT_ID, boot_id)


def booted(fake: FakeRoot, boot_id: str, options: str = "quiet splash") -> FakeRoot:
    """A machine that was booted with these options, as its boot loader's files say."""
    fake.put(GRUB, f'GRUB_CMDLINE_LINUX_DEFAULT="{options}"\n')
    fake.put(GRUB_CFG, options)
    fake.put(CMDLINE, f"{KERNEL} {options}")
    fake.put(BOOT_ID, boot_id)
    return fake


def _tune(fake: FakeRoot, name: str, given: dict[str, str]) -> None:
    """NVIDIA's package `tuning`: its files and names."""
    if "sysctl.conf" in given:
        fake.put(f"/etc/sysctl.d/999-{name}-tuning.conf", given["sysctl.conf"])
        _sysctls(fake, given["sysctl.conf"])
    if "grub.conf" in given:
        tokens = " ".join(
            line.strip()
            for line in given["grub.conf"].splitlines()
            if line.strip() and not line.strip().startswith("#")
        )
        text = f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {tokens}"\n'
        fake.put(f"/etc/default/grub.d/999-{name}-tuning.cfg", text)
        subprocess.run([_tools(fake) / "update-grub"], check=True)


def _write(fake: FakeRoot, writes: str) -> None:
    """A package of a kind of its own: what it writes stands in its configMap, a file a line."""
    for path, _, value in (line.partition(" ") for line in writes.splitlines()):
        fake.put(path, value)
        if path.startswith("/etc/default/grub"):
            subprocess.run([_tools(fake) / "update-grub"], check=True)


def _sysctls(fake: FakeRoot, text: str) -> None:
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith("#"):
            fake.put(f"/proc/sys/{key.strip().replace('.', '/')}", value.strip())


def _tools(fake: FakeRoot) -> Path:
    """The folder of the machine's own programs, of which there is one."""
    program = fake.path / "bin/update-grub"
    program.parent.mkdir(exist_ok=True)
    fake.real(GRUB_CFG).parent.mkdir(parents=True, exist_ok=True)
    program.write_text(UPDATE_GRUB.format(read=READ_GRUB, root=fake.root, target=GRUB_CFG))
    program.chmod(0o755)
    return program.parent
