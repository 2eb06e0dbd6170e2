"""Record the output of a real program, chunk by chunk as its pipes deliver it.

    python -m tests.command.recordings.record tqdm-fast --program='tqdm 4.67.1' --truth='{"step_s":
    0.005}' -- python bar.py

A recording is a file of JSON lines. The first is its header: `program` (with version), `command`,
`recorded` (date), `exit_code`, `wall_s` (from before the spawn), and `truth`, known without reading
the output: `{"step_s": …}` (seconds per step of the steady part, by a clock inside the program or a
known sleep) or `{"rate_per_s": …, "unit": "B"}` or `{"run_s": …}`. Each other line is a chunk:
`[seconds since before the spawn, "out" or "err", text]`. A program whose own clock alone gives the
truth writes it, as the same JSON, into the file that the variable RECORDING_TRUTH names. Headers
name scripts in `programs/`, loops around each library, which the history of this folder has.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import selectors
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run the command and write the recording."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("--program", required=True, help="what it is, with its version")
    parser.add_argument(
        "--truth",
        type=json.loads,
        default={},
        help="JSON; what the program writes to $RECORDING_TRUTH is added",
    )
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    with tempfile.NamedTemporaryFile("r") as told:
        environment = {"PYTHONUNBUFFERED": "1", **os.environ, "RECORDING_TRUTH": told.name}
        chunks, wall_s, code = record(args.command, environment)
        own = told.read()
    header = {
        "program": args.program,
        "command": args.command,
        "recorded": dt.datetime.now(dt.UTC).date().isoformat(),
        "exit_code": code,
        "wall_s": round(wall_s, 4),
        "truth": {**args.truth, **(json.loads(own) if own else {})},
    }
    path = HERE / f"{args.name}.jsonl"
    path.write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [header, *chunks]),
        encoding="utf-8",
    )
    print(
        f"{path}: {len(chunks)} chunks, {path.stat().st_size / 1000:.1f} kB, exit code {code}, "
        f"{wall_s:.2f} s, truth {header['truth']}"
    )


def record(
    command: list[str], environment: dict[str, str]
) -> tuple[list[tuple[float, str, str]], float, int]:
    """Its chunks, how long it took (seconds from before the spawn), and its exit code."""
    chunks = []
    began_s = time.monotonic()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        with selectors.DefaultSelector() as selector:
            for file, name in ((process.stdout, "out"), (process.stderr, "err")):
                selector.register(file, selectors.EVENT_READ, name)  # type: ignore[arg-type]
            while selector.get_map():
                for key, _ in selector.select():
                    chunk = os.read(key.fd, 1 << 16)
                    if chunk:
                        chunks.append(
                            (
                                round(time.monotonic() - began_s, 5),
                                key.data,
                                chunk.decode(errors="replace"),
                            )
                        )
                    else:
                        selector.unregister(key.fileobj)
        code = process.wait()
    return chunks, time.monotonic() - began_s, code


if __name__ == "__main__":
    main()
