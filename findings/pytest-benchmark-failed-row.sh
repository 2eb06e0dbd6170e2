#!/usr/bin/env bash
# Guess: pytest-benchmark leaves a failed test out of its table and of its JSON, or marks it.
# Real: a test that fails after its measurement has a row and a JSON entry like any other, and
# neither is marked. Only the exit code and the summary of pytest show the failure.
# Package: pytest-benchmark 5.3.1, pytest 9.2.0. Source: github.com/ionelmc/pytest-benchmark
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check pytest-benchmark==5.3.1 pytest==9.2.0

cat > test_two.py <<"EOF"
def test_passes(benchmark):
    assert benchmark(sum, [1, 2]) == 3


def test_fails(benchmark):
    assert benchmark(sum, [1, 2]) == 4
EOF
venv/bin/pip list 2> log | grep pytest
code=0
venv/bin/pytest -q --tb=no --benchmark-max-time=0.1 --benchmark-columns=median \
    --benchmark-json=saved.json test_two.py > report || code=$?
grep -E "^(Name|test_|FAILED)" report
venv/bin/python - <<"EOF" | tee entries
import json

for entry in json.load(open("saved.json"))["benchmarks"]:
    marks = [key for key in entry if "fail" in key or "error" in key or "outcome" in key]
    print("JSON:", entry["name"], "marks:", marks)
EOF

[[ $code == 1 ]] || changed "pytest exits with $code, not 1"
grep -qE "^test_fails +[0-9]" report || changed "the table has no row of the failed test"
grep -qF "JSON: test_fails marks: []" entries || changed "the JSON omits or marks the failed test"
