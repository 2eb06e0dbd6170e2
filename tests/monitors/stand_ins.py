"""Stand-ins for programs that need a GPU, put first on PATH.

Small scripts act as documented, in the programs' words; they are no recordings.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fixtures.monitors import programs as asked
from tests.programs import PYTHON

if TYPE_CHECKING:
    import pytest

# Two GPUs. As documented: a header, then a line a GPU each -lms milliseconds until it is killed.
NVIDIA_SMI = """
if sys.argv[1:] == ["-L"]:
    print("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0)\\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-1)")
elif sys.argv[1:] == ["--version"]:
    print("NVIDIA-SMI version  : 550.90.12\\nNVML version        : 550.90")
else:
    options = dict(zip(sys.argv[3::2], sys.argv[4::2]))
    fields = sys.argv[1].removeprefix("--query-gpu=").split(",")
    assert sys.argv[2] == "--format=csv"
    units = {"utilization.gpu": "%", "utilization.memory": "%", "memory.total": "MiB",
             "memory.used": "MiB", "power.draw": "W", "clocks.current.sm": "MHz"}
    print(", ".join(f"{field} [{units[field]}]" if field in units else field for field in fields),
          flush=True)
    texts = {"name": "NVIDIA A100-SXM4-40GB", "pstate": "P0",
             "timestamp": "2026/11/22 08:00:00.000"}
    while True:
        for gpu in ("0", "1"):
            cells = {**dict.fromkeys(fields, "17"), **texts,
                     **{field: f"17 {unit}" for field, unit in units.items()}, "index": gpu}
            print(", ".join("[N/A]" if gpu == "1" and field == "power.draw" else cells[field]
                            for field in fields), flush=True)
        time.sleep(int(options["-lms"]) / 1000)
"""
# As in DCGM's source: two header lines, rows, the header again after some, and an end by SIGINT
# after the delay.
DCGMI = """
if sys.argv[1:] == ["--version"]:
    sys.exit(print("dcgmi  version: 3.3.5"))
assert sys.argv[1] == "dmon"
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
stopped = []
signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
count, header = int(options.get("-c", "0")), "#Entity   GPUTL   MCUTL   GRACT\\nID"
print(header, flush=True)
ticks = 0
while not stopped:
    ticks += 1
    for gpu in (0, 1):
        print(f"GPU {gpu}     {'N/A' if gpu else 7}     0     0.000", flush=True)
    if ticks == count:
        sys.exit()
    time.sleep(int(options.get("-d", "1000")) / 1000)
    if ticks % 3 == 0:
        print(header, flush=True)
print("\\n\\ndmon was stopped do to receiving a signal")
"""
# It speaks on stdout before and after, and what it was given beside stdin, stdout and stderr it
# does not hand on.
NSYS = """
import itertools, subprocess
if sys.argv[1:] == ["--version"]:
    sys.exit(print("NVIDIA Nsight Systems version 2024.5.1.113-245134619542v0"))
assert sys.argv[1] == "profile"
options = list(itertools.takewhile(lambda one: one.startswith("--"), sys.argv[2:]))
report = next(one.partition("=")[2] for one in options if one.startswith("--output="))
print("Collecting data...", flush=True)
done = subprocess.run(sys.argv[2 + len(options):], close_fds=True)
print("Generating '/tmp/nsys-report-4f71.qdstrm'", flush=True)
open(report + ".nsys-rep", "w").write("a stand-in's report")
sys.exit(done.returncode)
"""
NCU = """
import subprocess
if sys.argv[1:] == ["--version"]:
    sys.exit(print("NVIDIA (R) Nsight Compute Command Line Profiler\\nCopyright (c)\\n"
                   "Version 2024.3.2.0 (build 34861637)"))
at = sys.argv.index("-o") + 2
with open(sys.argv[sys.argv.index("--log-file") + 1], "w") as log:
    print("==PROF== Connected to process 4711", file=log, flush=True)
    print("a word on stdout", flush=True)
    code = subprocess.run(sys.argv[at:], close_fds=True).returncode
    for kernel in range(3):
        print(f'==PROF== Profiling "kernel{kernel}": 0%....50%....100% - 10 passes', file=log)
open(sys.argv[at - 1] + ".ncu-rep", "w").write("a stand-in's report")
sys.exit(code)
"""
FAILS = "sys.exit(print(WORDS) or 9)"
SILENT = "pass"
NEVER_ANSWERS = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)"


def put(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Put stand-ins first on PATH; `nvidia_smi` is nvidia-smi.

    Nothing else that this PATH had is taken away.
    """
    folder.mkdir(exist_ok=True)
    for name, script in programs.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"{PYTHON}import signal, sys, time\n{script}\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(asked, "OWN", folder)


def nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any such program."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(asked, "OWN", folder)
