#!/usr/bin/env bash
# Guess: "Requests/sec" of hey counts the requests that the server answered.
# Real: it counts refused requests too. With every request refused, hey prints a high rate
# and exits with 0. Only "Error distribution" shows it. A server that fails fast looks fast.
# Package: hey 0.1.4-2+b4 of Debian 12. Source: github.com/rakyll/hey
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    hey=0.1.4-2+b4
for package in *.deb; do dpkg -x "$package" .; done

echo "hey 0.1.4-2+b4"
code=0
usr/bin/hey -n 20 -c 2 http://127.0.0.1:9/ > report || code=$?
grep -v "^$" report
rate=$(awk '/Requests\/sec:/ {print $2}' report)
echo "exit code $code; $rate requests per second, of which the server answered none"

[[ $code == 0 ]] || changed "hey exits with $code, not 0"
grep -q "^  \[20\].*connection refused" report || changed "not all 20 requests are refused"
awk -v rate="$rate" 'BEGIN {exit !(rate > 0)}' || changed "the rate is $rate"
