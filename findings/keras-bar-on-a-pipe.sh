#!/usr/bin/env bash
# Guess: the bar of keras writes no colours and no backspaces if its output is not a terminal.
# Real: fit(verbose=1) writes ANSI colours, runs of backspaces and carriage returns to a pipe
# as well, so no line starts with a count.
# Package: keras 3.15.1 with jax 0.10.2. Source: github.com/keras-team/keras
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check keras==3.15.1 jax==0.10.2 numpy==2.4.6

export KERAS_BACKEND=jax
cat > fit.py <<"EOF"
import keras
import numpy

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((640, 4)), numpy.ones(640), epochs=2, verbose=1)
EOF
venv/bin/python -c "import keras; print(\"keras\", keras.__version__)"
venv/bin/python fit.py | cat > report
head -c 300 report | cat -v
echo
count() { { grep -oP "$1" report || true; } | wc -l; }
colours=$(count "\x1b\[[0-9;]*m")
backspaces=$(count "\x08")
echo "$colours colour codes and $backspaces backspaces on a pipe"

[[ $colours -gt 0 ]] || changed "there are no colours"
[[ $backspaces -gt 0 ]] || changed "there are no backspaces"
