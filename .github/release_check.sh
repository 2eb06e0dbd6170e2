#!/bin/sh
# Try an installed wheel where there is no clone: sh release_check.sh ENVIRONMENT [TAG]. A tag must be `v` and the version.
set -eu
bin=$(cd "$1/bin" && pwd)
tag=${2:-}
version=$("$bin/deeptweak" --version)
if [ -n "$tag" ] && [ "deeptweak ${tag#v}" != "$version" ]; then
    echo "The tag $tag is not the version of the wheel: $version." >&2
    exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
test -s "$bin/../share/man/man1/deeptweak.1"
"$bin/deeptweak" completion bash >completion.bash
"$bin/deeptweak" demo
test -s deeptweak-demo.html
run=$("$bin/python" -c 'from deeptweak.house import HOUSE; print(*HOUSE.glob("data/runs/turns_*.json*"))')
"$bin/deeptweak" compare "$run"
printf 'import time\nfor step in range(40):\n    time.sleep(0.01)\n    print(f"step {step + 1}", flush=True)\n' >train.py
"$bin/deeptweak" run --tweaks=malloc-keep-memory --blocks=3 --wait=10m -- "$bin/python" train.py
"$bin/deeptweak" compare .benchmarks/*/0001_*.json
echo "$version: the wheel works."
