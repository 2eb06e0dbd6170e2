#!/usr/bin/env bash
# Guess: each redraw of a tqdm bar is new progress.
# Real: tqdm.write draws the bar again with the count and the rate of the last redraw,
# although the loop has moved on. The count is too low for the time of such a redraw.
# Package: tqdm 4.70.1. Source: github.com/tqdm/tqdm
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check tqdm==4.70.1

cat > loop.py <<"EOF"
from tqdm import tqdm

for step in tqdm(range(20), mininterval=3600):
    if step in (9, 19):
        tqdm.write(f"{step} steps done")
EOF
venv/bin/python -c "import tqdm; print(\"tqdm\", tqdm.__version__)"
venv/bin/python loop.py 2> bar
tr "\r" "\n" < bar | grep "|"
stale=$(tr "\r" "\n" < bar | grep -c " 0/20 " || true)
echo "$stale redraws of 0/20, of which two came after 9 and 19 steps"

[[ $stale == 3 ]] || changed "0/20 is drawn $stale times, not 3 times"
