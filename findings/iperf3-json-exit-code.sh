#!/usr/bin/env bash
# Guess: iperf3 exits with a non-zero code if it reaches no server, with -J too.
# Real: with -J it exits with 0. Only the key "error" in the document shows the failure.
# Package: iperf3 3.12-1+deb12u2 of Debian 12. Source: github.com/esnet/iperf
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    iperf3=3.12-1+deb12u2 libiperf0=3.12-1+deb12u2 libsctp1=1.0.19+dfsg-2
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
iperf3() { LD_LIBRARY_PATH=$libraries usr/bin/iperf3 "$@"; }

iperf3 --version | head -n 1
text_code=0
iperf3 --client 127.0.0.1 --port 9 || text_code=$?
json_code=0
iperf3 --client 127.0.0.1 --port 9 --json | tee document.json || json_code=$?
echo "exit code as text: $text_code; with --json: $json_code"

[[ $text_code == 1 ]] || changed "the text form exits with $text_code, not 1"
[[ $json_code == 0 ]] || changed "the JSON form exits with $json_code, not 0"
python3 -c 'import json; assert json.load(open("document.json"))["error"]' ||
    changed "the document has no error"
