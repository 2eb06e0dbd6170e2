"""Pictures of I/O runs that come from anywhere, DLIO's result folders among them: every one that can be drawn, a file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.saving import write_whole
from analysis.wording import ended

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .terms import IoRun


def write(runs: Sequence[IoRun], folder: Path, form: str = "png") -> tuple[list[Path], dict[str, str]]:
    """Draw what can be drawn into a folder; answers the files, and why the other pictures are missing.

    Raises: OSError, where a file cannot be written.
    """
    from analysis.plots import pictures  # noqa: PLC0415  # matplotlib, which a table need not wait for
    from analysis.plots.scene import NothingToDraw, Scene  # noqa: PLC0415  # as above
    from analysis.plots.style import written  # noqa: PLC0415  # as above

    from .responses import judged_alike  # noqa: PLC0415  # as above

    scene = Scene((), io=tuple(judged_alike(run for run in runs if run.epochs)))
    files: list[Path] = []
    missing: dict[str, str] = {}
    for name, picture in pictures().items():
        if "io" not in getattr(picture, "REPORTS", ()):
            continue
        try:
            content = written(picture.draw(scene), form)
        except NothingToDraw as reason:
            missing[name] = ended(str(reason))
            continue
        path = folder / f"{name}.{form}"
        write_whole(path, content)
        files.append(path)
    return files, missing
