"""A tenant without a framework: a batch of n sleeps n ms, 13 ends it, above 1000 none fits.

14 do not fit into memory when they are first inferred, and do later.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from functools import partial

from fixtures.studies.power.tenant import Pacing, When, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in ("model", "image-size", "seed", "images"):
        parser.add_argument(f"--{option}")
    asked = parser.parse_args()
    if asked.model == "none-such":
        sys.exit("no network of that name")
    print(
        json.dumps({"ready": {"device": "none", "gpu": os.environ.get("CUDA_VISIBLE_DEVICES")}}),
        flush=True,
    )
    batch, pace, full = 0, Pacing(), True
    for line in sys.stdin:
        word = json.loads(line)
        if "set" in word:
            batch, pace = word["set"]["batch"], Pacing(word["set"]["cores"], word["set"]["duty"])
            print(
                json.dumps({"oom": f"batch {batch} does not fit"} if batch > 1000 else {"set": {}}),
                flush=True,
            )
            continue
        if batch == 14 and full:
            full = False
            print(json.dumps({"oom": "batch 14 does not fit"}), flush=True)
            continue
        if batch == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        print(
            json.dumps(
                {"ran": run(partial(time.sleep, batch / 1000), batch, pace, When(**word["run"]))}
            ),
            flush=True,
        )
