#!/usr/bin/env bash
# Guess: a tqdm bar redraws every mininterval (0.1 s), so a stall is visible within 0.1 s.
# Real: tqdm adapts the number of steps between redraws. If the steps become slow, the bar
# stands still: after fast steps, 20 steps of 50 ms draw nothing for one second. (A thread of
# tqdm corrects the number of steps only after 10 s.)
# Package: tqdm 4.70.1. Source: github.com/tqdm/tqdm
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check tqdm==4.70.1

cat > loop.py <<"EOF"
import time

from tqdm import tqdm

FAST = 3_000_000
for step in tqdm(range(FAST + 20)):
    if step >= FAST:
        time.sleep(0.05)
EOF
venv/bin/python -c "import tqdm; print(\"tqdm\", tqdm.__version__)"
venv/bin/python loop.py 2> bar
tr "\r" "\n" < bar | tail -n 4
slow=$(tr "\r" "\n" < bar | grep -cE " 30000(0[1-9]|1[0-9])/" || true)
echo "$slow redraws within the last second, before the bar closes"

[[ $slow -le 2 ]] || changed "the slow steps are drawn $slow times"
