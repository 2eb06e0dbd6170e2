#!/usr/bin/env bash
# Guess: `--benchmark-compare-fail=min:50%` fails, or at least warns, if the saved run does not
# contain a benchmark of this run: a gate cannot judge what it has nothing to compare with.
# Real: such a benchmark is not mentioned, and the exit code is 0. A renamed test, or one with another
# parameter, passes however slow it has become.
# Package: pytest-benchmark 5.2.3, pytest 9.0.2 (PyPI).
# Source: github.com/ionelmc/pytest-benchmark, src/pytest_benchmark/session.py
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q pytest-benchmark==5.2.3 pytest==9.0.2
write_test() {
    cat > test_sleep.py <<EOF
import time

import pytest


@pytest.mark.parametrize("batch", [$1])
def test_sleep(benchmark, batch):
    benchmark.pedantic(time.sleep, args=($2,), rounds=3)
EOF
}
run() {
    code=0
    venv/bin/pytest -q -p no:cacheprovider test_sleep.py "$@" > output 2>&1 || code=$?
    grep -E 'Comparing|regressed|Warning|passed|failed' output | cut -c1-100 || true
    echo "exit code: $code"
}

write_test 8 0.01
run --benchmark-save=before > /dev/null
write_test 8 0.2
echo "20 times as slow:"
run --benchmark-compare --benchmark-compare-fail=min:50%
[[ $code != 0 ]] || changed "a benchmark 20 times as slow passes"

write_test '"8.0"' 0.2
echo "20 times as slow, with a parameter that the saved run does not have:"
run --benchmark-compare --benchmark-compare-fail=min:50%
[[ $code == 0 ]] || changed "exit code $code for a benchmark that the saved run lacks"
