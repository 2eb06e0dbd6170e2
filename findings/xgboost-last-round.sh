#!/usr/bin/env bash
# Guess: verbose_eval=10 of xgboost prints every tenth round and nothing else.
# Real: it prints the last round too. The last two lines can be fewer than ten rounds apart, so
# a reader that counts ten rounds per line computes a wrong last step time.
# Package: xgboost-cpu 3.2.0. Source: github.com/dmlc/xgboost
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check xgboost-cpu==3.2.0 numpy==2.4.6

cat > train.py <<"EOF"
import numpy
import xgboost

print("xgboost", xgboost.__version__)
data = numpy.random.default_rng(1).normal(size=(200, 4))
matrix = xgboost.DMatrix(data, data[:, 0])
xgboost.train({"nthread": 1}, matrix, 25, evals=[(matrix, "train")], verbose_eval=10)
EOF
venv/bin/python train.py | tee report
rounds=$({ grep -oP "^\[\K[0-9]+" report || true; } | paste -sd " ")
echo "rounds: $rounds"

[[ $rounds == "0 10 20 24" ]] || changed "the rounds are $rounds"
