"""Compile stand-ins for libcuda.so.1 (fake_cuda.c) and libnvidia-ml.so.1 (telemetry/fake_nvml.c).

Everything else is real: the workload's process, NVRTC and the machine code it makes, cuda-bindings,
nvidia-ml-py. The effect of the kernel's code on a GPU is not tested.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HOUSE = Path(__file__).parents[2]
HERE = Path(__file__).parent
SOURCES = {
    "libcuda.so.1": HERE / "fake_cuda.c",
    "libnvidia-ml.so.1": HERE.parent / "telemetry" / "fake_nvml.c",
}


def built(folder: Path) -> Path:
    """Compile them under the names by which the real libraries are found. Needs a C compiler."""
    for name, source in SOURCES.items():
        command = [
            "cc",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
            "-o",
            str(folder / name),
            str(source),
        ]
        subprocess.run([*command, "-lm", "-ldl"], check=True)
    return folder


def environment(folder: Path, **settings: object) -> dict[str, str]:
    """A process's environment, in which the stand-ins are what is found."""
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        **{name: str(value) for name, value in settings.items()},
    }
