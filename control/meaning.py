"""Compare requested values with the kernel's, which merges ranges, sorts lists and rounds."""

from __future__ import annotations

import re
from typing import Literal

from .known_keys import Form, about

Agreement = Literal["same", "rounded", ""]
# lib/vsprintf.c simple_strtoul with base 0, as kernel/sysctl.c proc_get_long calls it.
_BASE_0 = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))", re.ASCII)
NUMBER_CHARACTERS = 21  # TMPBUFLEN - 1
_DECIMAL = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SCALED = re.compile(r"([0-9]+)([kKmMgGtT])", re.ASCII)
_RANGES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*", re.ASCII)
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}
MOST_LISTED = 1 << 20  # ports are 65,536, CPUs fewer
PAGE_KB, TICK_MS = (4, 16, 64), 10  # of all machines; CONFIG_HZ is 100 or more
# lib/kstrtox.c kstrtobool
_SWITCHES = {"y": "1", "t": "1", "1": "1", "on": "1", "n": "0", "f": "0", "0": "0", "of": "0"}


def agrees(path: str, requested: str | None, answer: str | None) -> Agreement:
    """Return whether an answer is the requested value: "same", "rounded", or "" (something else).

    Both are texts as `shown` has them; `path` is the kernel's file, whose form decides.
    """
    if requested is None or answer is None:
        return "same" if requested is answer else ""
    forms: set[Form] = {known.reads_back for known in about(path)}
    if "mask" in forms:
        return "same" if _mask(requested) == _mask(answer) is not None else ""
    left, right = ([_meant(path, word) for word in text.split()] for text in (requested, answer))
    if (
        left == right
        or _is_same(path, forms, requested, answer)
        or _is_completed(path, left, right)
    ):
        return "same"
    if len(left) == len(right) == 1 and isinstance(left[0], int) and isinstance(right[0], int):
        return "rounded" if _is_rounded(forms, left[0], right[0]) else ""
    return ""


def _is_same(path: str, forms: set[Form], requested: str, answer: str) -> bool:
    return (
        (_scaled(requested) is not None and str(_scaled(requested)) == answer)
        or (_ranges(requested) == _ranges(answer) is not None)
        or ("words" in forms and set(requested.split()) == set(answer.split()))
        or (
            path.startswith("/sys/")
            and _switch(requested, counts="switch" in forms)
            == _switch(answer, counts=False)
            is not None
        )
    )


def _is_completed(path: str, left: list[int | str], right: list[int | str]) -> bool:
    """Return True if an answer starts with the given numbers and keeps the rest (proc_dointvec)."""
    numbers = all(isinstance(word, int) for word in left + right)
    return path.startswith("/proc/sys/") and numbers and bool(left) and left == right[: len(left)]


def number_of(path: str, word: str) -> int | None:
    """Parse a number as this file does: 010 is 8 for a sysctl, but 10 for sysfs."""
    if path.startswith("/sys/") and not path.startswith("/sys/module/"):
        return int(word) if _DECIMAL.fullmatch(word) else None
    match = _BASE_0.fullmatch(word)
    if match is None:
        return None
    sign, hexadecimal, octal, decimal = match.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (octal, 8) if octal else (decimal, 10)
    return int(f"{sign}{digits}", base)


def number(text: str) -> int | None:
    """Return the number that the kernel reads from a text; None if it is not a number."""
    word = text.strip(" \t\n\v\f\r")
    fits = len(word) <= NUMBER_CHARACTERS and not word.startswith("+")
    return number_of("/proc/sys", word) if fits else None


def _meant(path: str, word: str) -> int | str:
    result = number_of(path, word)
    return word if result is None else result


def _is_rounded(forms: set[Form], requested: int, answer: int) -> bool:
    return (
        ("pages down" in forms and any(answer == requested // size * size for size in PAGE_KB))
        or (
            "power of two" in forms
            and answer == 1 << max(0, requested - 1).bit_length()
            and answer > 1
        )
        or ("ticks" in forms and 0 <= answer - requested < TICK_MS)
    )


def _mask(text: str) -> int | None:
    digits = text.replace(",", "").removeprefix("0x")
    return int(digits, 16) if re.fullmatch("[0-9a-fA-F]+", digits) else None


def _ranges(text: str) -> set[int] | None:
    if not _RANGES.fullmatch(text):
        return None
    result: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) - int(first) > MOST_LISTED:
            return None
        result |= set(range(int(first), int(last or first) + 1))
    return result


def _scaled(text: str) -> int | None:
    match = _SCALED.fullmatch(text)
    return int(match[1]) << _UNITS[match[2].lower()] if match else None


def _switch(text: str, *, counts: bool) -> str | None:
    if counts and text.isdecimal():
        return "1" if int(text) else "0"
    return (
        _SWITCHES.get(text[:2].lower()) or _SWITCHES.get(text[:1].lower())
        if len(text.split()) == 1
        else None
    )
