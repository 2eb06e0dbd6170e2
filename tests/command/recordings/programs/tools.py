"""Record benchmark tools again: `python -m tests.command.recordings.programs.tools [PREFIX …]`.

rows.py lists the recordings and truths.py reads their truth. Debian packages: fio, sysbench, wrk,
apache2-utils, redis, stress-ng, p7zip-full, iperf3, hyperfine, hey, qperf, linux-perf,
libbenchmark-dev. PyPI: pytest-benchmark, pyperf, aiperf. What must run or exist before:

    pgbench -i, with PGHOST, PGUSER and PGDATABASE set; iperf3 -s -p 5299; qperf
    redis-server --port 6399, with a string under the key `counter`
    g++ -O2 google_benchmark.cpp -lbenchmark -lpthread -o google_benchmark, on PATH
    sysbench fileio --file-total-size=16M --file-num=2 prepare, in $SYSBENCH_FILES
    a tokenizer of Hugging Face's kind in /tmp/tokenizer, for aiperf and sglang
    sglang/benchmark of SGLang's wheel on PYTHONPATH: its client runs without the server

mock_server.py is started here. Ports 8110 and 8120 answer after 40 and 80 ms, or with a token per
40 and 80 ms. Port 8119 also fails each fifth request. Port 8125
answers after 2.5 s.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.command.recordings.programs.rows import HERE, Row, rows

RECORDINGS = HERE.parent
HOUSE = RECORDINGS.parents[2]
SERVERS = (("8110", "40"), ("8120", "80"), ("8119", "40", "5"), ("8125", "2500"))


def main(prefixes: list[str]) -> None:
    """Record the rows whose name begins with one of the prefixes."""
    server = str(HERE / "mock_server.py")
    servers = [subprocess.Popen([sys.executable, server, *options]) for options in SERVERS]
    try:
        time.sleep(1)
        for row in rows():
            if not prefixes or row.name.startswith(tuple(prefixes)):
                record(row)
                finish(RECORDINGS / f"{row.name}.jsonl", row)
    finally:
        for process in servers:
            process.terminate()


def record(row: Row) -> None:
    """Run the recorder."""
    recorder = ["-m", "tests.command.recordings.record", row.name, f"--program={row.program}", "--"]
    paths = [str(HOUSE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **row.variables}
    folder = os.environ.get("SYSBENCH_FILES") if "fileio" in row.command else None
    command = [sys.executable, *recorder, *row.command]
    subprocess.run(command, env=environment, cwd=folder, check=True)


def finish(path: Path, row: Row) -> None:
    """Put truth and variables into the header, and general names for host and folders."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(first)
    chunks = [json.loads(line) for line in rest]
    if not header["truth"]:
        header["truth"] = row.truth("".join(text for _, _, text in chunks))
    if row.variables:
        header["variables"] = row.variables
    lines = [json.dumps(line, ensure_ascii=False) for line in [header, *chunks]]
    clean = "\n".join(lines) + "\n"
    private = {str(HERE): "programs", str(HOUSE): ".", str(Path.home()): "/home/user"}
    for folder, general in private.items():
        clean = clean.replace(folder, general)
    clean = re.sub(rf"\b{re.escape(platform.node())}\b", "host", clean)
    path.write_text(clean, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
