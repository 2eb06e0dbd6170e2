"""Tweak sets to take apart, made up for the tests of designs."""

from __future__ import annotations

from fixtures.terms import TweakSet
from fixtures.tweaks.manifest import parse

TYPES = "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\n"


def manifest(
    sections: dict[str, str],
    annotations: dict[str, str] | None = None,
    scripts: tuple[str, ...] = (),
) -> str:
    """A manifest with one tuning package of these sections, and a package for each script."""
    lines = [TYPES + "metadata:\n  name: p\n  annotations:", "    deeptweak/description: made up"]
    lines += [f"    {key}: '{words}'" for key, words in (annotations or {}).items()]
    lines += ["spec:\n  packages:\n    tuning:\n      image: r/tuning\n      configMap:"]
    for section, text in sections.items():
        lines += [f"        {section}: |-", *(f"          {line}" for line in text.split("\n"))]
    lines += [
        f"    {name}:\n      image: r/shellscript\n      configMap: {{apply.sh: 'true'}}"
        for name in scripts
    ]
    return "\n".join(lines)


def sysctls(*keys: str, annotations: dict[str, str] | None = None) -> TweakSet:
    """A set of sysctls, each set to 1."""
    return parse(manifest({"sysctl.conf": "\n".join(f"{key}=1" for key in keys)}, annotations), "p")
