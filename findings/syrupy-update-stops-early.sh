#!/usr/bin/env bash
# Guess: `pytest -x --snapshot-update` updates the snapshots of the tests that ran, and keeps the
# snapshots of the tests after the one that failed.
# Real: syrupy counts the snapshots of collected tests that did not run as unused. After `-x` has
# ended the session early, the snapshots of the failed test and of all later ones are deleted.
# Package: syrupy 7.0.2, pytest 9.2.0 (PyPI). Source: github.com/syrupy-project/syrupy
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q syrupy==7.0.2 pytest==9.2.0
cat > test_three.py <<"EOF"
def test_first(snapshot):
    assert snapshot == 1


def test_second(snapshot):
    assert snapshot == 2


def test_third(snapshot):
    assert snapshot == 3
EOF
venv/bin/pytest -q -p no:cacheprovider --snapshot-update > first
names() { grep -c '^# name: ' __snapshots__/test_three.ambr || true; }
before=$(names)

sed -i 's/    assert snapshot == 2/    raise ValueError/' test_three.py
venv/bin/pytest -q -p no:cacheprovider -x --snapshot-update > second || true
after=$(names)
grep -i snapshot second
echo "snapshots before: $before; after a session that -x ended at the second test: $after"

[[ $before == 3 ]] || changed "$before snapshots were written, not 3"
[[ $after == 1 ]] || changed "$after snapshots remain, not 1"
