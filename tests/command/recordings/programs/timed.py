"""Any command, timed from outside: `python timed.py WORK COMMAND…`.

WORK is how much the command does, by its own options (bytes, requests): the truth is that per
second. For 0 it is the seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

work, *command = sys.argv[1:]
began_s = time.perf_counter()
done = subprocess.run(command, check=False)
run_s = time.perf_counter() - began_s
truth = {"rate_per_s": float(work) / run_s} if float(work) else {"run_s": run_s}
Path(os.environ["RECORDING_TRUTH"]).write_text(json.dumps(truth), encoding="utf-8")
sys.exit(done.returncode)
