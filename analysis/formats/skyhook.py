"""Settings by section that a Skyhook manifest requests, and the number of its scripts.

Only `spec` is read. An exported manifest also carries status, labels and, as an annotation, the
text of an older version: none of these was requested. The run side reads manifests before it
applies them and is strict; here a manifest only describes an arm of old data.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from analysis.files import must_be_file
from analysis.terms import Setting, Unreadable

MAX_BYTES = 1 << 20
PROCESS = {"environment.conf": "environment", "process.conf": "process"}
KINDS = ("Skyhook", "NodeWright")  # renamed in 2026
LISTS = ("List", "SkyhookList", "NodeWrightList")
SWAPPED = str.maketrans("./", "/.")
BOOT_TOKEN = re.compile(r'(?:"[^"]*"|[^\s"])+')
LIMIT = re.compile(r"([A-Za-z]+)\s*[=:]\s*(\S+)")
SERVICE = re.compile(r"service_(.+?)(?:\.service)?\.conf")


class SkyhookManifest(NamedTuple):
    """Requested settings in the order written, a repeated key by its last value, and `scripts`.

    An empty manifest is the untouched machine.
    """

    settings: tuple[Setting, ...] = ()
    scripts: int = 0
    warnings: tuple[str, ...] = ()
    sha256: str | None = None


def read(path: Path) -> SkyhookManifest:
    """Read a manifest file. One with comments only requests nothing.

    Raises: Unreadable, with the file's name, for anything that is not a manifest.
    """
    try:
        must_be_file(path)
        raw = path.read_bytes()
        if len(raw) > MAX_BYTES:
            raise Unreadable(
                f"{path}: larger than 1 MiB, too large for a Skyhook manifest; check the file name."
            )
        documents = list(yaml.safe_load_all(raw.decode("utf-8")))
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # An invalid date raises ValueError; thousands of brackets exhaust the recursion limit.
        raise Unreadable(
            f"{path}: not YAML ({' '.join(str(error).split())[:120]}); copy it from its source "
            "again."
        ) from None
    settings: dict[object, Setting] = {}
    scripts = 0
    warnings: list[str] = []
    for label, package in _packages(documents, path):
        image, sections = (
            package.get("image"),
            _mapping(package.get("configMap"), f"{path}: configMap of {label}"),
        )
        kind = str(image).rpartition("/")[2].partition("@")[0].partition(":")[0]
        if kind not in ("tuning", "shellscript", "process"):
            warnings.append(
                f"package {label}: image {image} is of an unknown kind; its changes are ignored."
            )
            continue
        if kind == "shellscript":
            scripts += len(sections)
            continue
        for section, text in sections.items():
            result = _settings(str(section), str(text or ""))
            if result is None:
                warnings.append(f"package {label}: section {section} is unknown and ignored.")
            for setting in result or ():
                # The order and number of boot tokens matter (hugepagesz=1G hugepages=2
                # hugepagesz=2M …): keep all.
                key = len(settings) if setting.kind == "boot" else (setting.kind, setting.key)
                settings.pop(key, None)
                settings[key] = setting
    return SkyhookManifest(
        tuple(settings.values()), scripts, tuple(warnings), hashlib.sha256(raw).hexdigest()
    )


def _packages(documents: list[object], path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    for document in documents:
        record = _mapping(document, f"{path}: the file")
        items = record.get("items") if record.get("kind") in LISTS else [record] if record else []
        if not isinstance(items, list):
            raise Unreadable(
                f"{path}: a List without a list of items; copy it from its source again."
            )
        for item in items:
            skyhook = _mapping(item, f"{path}: an item")
            if skyhook.get("kind") not in KINDS:
                raise Unreadable(
                    f"{path}: contains a {skyhook.get('kind')!r}, but a Skyhook is expected; "
                    "check the file name."
                )
            spec = _mapping(skyhook.get("spec"), f"{path}: spec")
            for label, package in _mapping(spec.get("packages"), f"{path}: packages").items():
                yield str(label), _mapping(package, f"{path}: package {label}")


def _settings(section: str, text: str) -> list[Setting] | None:
    service = SERVICE.fullmatch(section)
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] not in "#;"
    ]
    if section == "grub.conf":
        tokens = [token.replace('"', "") for line in lines for token in BOOT_TOKEN.findall(line)]
        return [Setting("boot", *_split(token)) for token in tokens]
    if section == "sysctl.conf":
        return [
            Setting("sysctl", _sysctl(key.removeprefix("-").strip()), value)
            for key, value in map(_split, lines)
        ]
    if section == "ulimit.conf":
        return [
            Setting("ulimit", *limit.groups()) for line in lines if (limit := LIMIT.fullmatch(line))
        ]
    if section in PROCESS:
        return [Setting(PROCESS[section], *_split(line)) for line in lines]
    if service:
        directives = (_split(line) for line in lines if not line.startswith("["))
        return [Setting("service", f"{service[1]}.{key}", value) for key, value in directives]
    return None


def _split(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key.strip(), value.strip()


def _sysctl(key: str) -> str:
    """Normalise a key like sysctl(8): the first separator decides.

    `net/ipv4/conf/eth0.100/rp_filter` is `net.ipv4.conf.eth0/100.rp_filter`.
    """
    first = next((letter for letter in key if letter in "./"), ".")
    return key.translate(SWAPPED) if first == "/" else key


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(
            f"{where} is {type(value).__name__} but a mapping is expected; copy the manifest from "
            "its source again."
        )
    return value
