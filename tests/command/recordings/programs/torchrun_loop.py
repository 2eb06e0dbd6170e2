"""Two ranks under torchrun (torch 2.15.0), each with a tqdm bar or a line per step.

    torchrun --nproc-per-node=2 --tee=3 torchrun_loop.py FORM SLEEP_S

FORM: `bar` or `lines`. `--tee=3` prints what both ranks print, `[default0]:` before each line.
"""

from __future__ import annotations

import os
import sys

from clock import Clock
from tqdm import tqdm

FORM, SLEEP_S = sys.argv[1], float(sys.argv[2])
STEPS, RANK = 120, int(os.environ["RANK"])
clock = Clock(SLEEP_S, warmup=2)
for step in tqdm(range(STEPS), desc=f"rank {RANK}", disable=FORM != "bar"):
    clock.sleep()
    clock.step()
    if FORM == "lines" and step % 5 == 0:
        print(f"rank {RANK} step {step} loss {3.0 / (step + 1):.4f}")
if RANK == 0:
    clock.tell()
