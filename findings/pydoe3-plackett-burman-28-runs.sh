#!/usr/bin/env bash
# Guess: pbdesign(n) of pyDOE3 makes a Plackett-Burman design for any number of factors, in the next multiple of
# four runs: its documentation names the count of factors as the only argument, without a limit.
# Real: designs exist for 4, 12 and 20 runs times a power of two. 24 to 27 factors, which take 28 runs, end in
# "n must be a multiple of 4", which 28 is; so do 32 to 35 (36 runs), 40 to 43 (44), 48 to 59 (52, 56 and 60).
# Asked for more factors than needed, 31 in place of 24, it makes a design of which any columns may be left out.
# Package: pyDOE3 1.6.2 of PyPI. Source: github.com/relf/pyDOE3
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check pyDOE3==1.6.2 numpy==2.4.6 scipy==1.17.1

cat > designs.py <<'EOF'
import numpy
import pyDOE3

refused = []
for factors in range(4, 64):
    try:
        design = pyDOE3.pbdesign(factors)
    except AssertionError as error:
        refused.append(factors)
        message = str(error)
        continue
    assert numpy.array_equal(design.T @ design, len(design) * numpy.eye(factors))
print(message)
print(*refused)
print(*pyDOE3.pbdesign(31).shape)
EOF
venv/bin/python designs.py | tee seen

[[ $(sed -n 1p seen) == *"n must be a multiple of 4"* ]] || changed "it says $(sed -n 1p seen)"
[[ $(sed -n 2p seen) == "$(echo {24..27} {32..35} {40..43} {48..59})" ]] || changed "it refuses $(sed -n 2p seen)"
[[ $(sed -n 3p seen) == "32 31" ]] || changed "31 factors take $(sed -n 3p seen)"
