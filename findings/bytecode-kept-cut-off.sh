#!/usr/bin/env bash
# Guess: Python writes bytecode (.pyc) whole or not at all: to a temporary file, which it renames.
# Real: a short write goes unnoticed and the cut file is renamed. If the disk
# is full (here: a limit on the size of files), the import itself succeeds. Each later import of
# that module ends with an EOFError, even when there is room again, until the file is removed.
# Package: Python of Debian 12, 3.11.2-6+deb12u8. Issue, with the fix in later releases:
# github.com/python/cpython/issues/126606
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    python3.11-minimal=3.11.2-6+deb12u8 libpython3.11-minimal=3.11.2-6+deb12u8
for package in *.deb; do dpkg -x "$package" .; done
python() { PYTHONDONTWRITEBYTECODE='' PYTHONHOME=$folder/usr usr/bin/python3.11 "$@"; }

seq -f 'number_%g = 1' 1000 > numbers_1.py
python -c 'import platform; print("Python", platform.python_version())'
(ulimit -f 4 && python -c 'import numbers_1; print("written:", numbers_1.number_1)')
size=$(stat -c %s __pycache__/numbers_1.cpython-311.pyc)
echo "$size bytes of bytecode"
code=0
python -c 'import numbers_1' 2> error || code=$?
tail -n 1 error
echo "exit code of the next import, without a limit: $code"

[[ $size == 4096 ]] || changed "the bytecode has $size bytes, not 4096"
[[ $code == 1 ]] || changed "the next import exits with $code, not 1"
grep -q '^EOFError' error || changed "the next import does not end with an EOFError"
