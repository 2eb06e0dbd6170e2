#!/usr/bin/env bash
# Guess: "redis-benchmark -q" prints one line per test if its output is not a terminal.
# Real: it redraws its progress on the same line with carriage returns, and the result is the
# end of that line. The first rate on the line, "rps=0.0", is a sample.
# Package: redis 5:7.0.15-1~deb12u10 of Debian 12. Source: github.com/redis/redis
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 \
    libhiredis0.14=0.14.1-3 libjemalloc2=5.3.0-1 liblua5.1-0=5.1.5-9 liblzf1=3.6-3 \
    lua-bitop=1.0.2-7 lua-cjson=2.1.0+dfsg-2.2 libatomic1=12.2.0-14+deb12u1
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
benchmark() { LD_LIBRARY_PATH=$libraries usr/bin/redis-benchmark "$@"; }

LD_LIBRARY_PATH=$libraries \
    usr/bin/redis-server --port 0 --unixsocket "$folder/socket" --save "" > log &
trap 'kill %1; wait; rm -rf "$folder"' EXIT
until [[ -S socket ]]; do sleep 0.1; done

benchmark --version
benchmark -s "$folder/socket" -n 60000 -c 1 -q -t get > report
tr "\r" "\n" < report | grep -v "^ *$"
lines=$(grep -c "GET" report || true)
redraws=$(tr "\r" "\n" < report | grep -c "rps=" || true)
echo "$lines line with $redraws redraws and the result"

[[ $lines == 1 ]] || changed "the test takes $lines lines"
[[ $redraws -ge 2 ]] || changed "there are $redraws redraws"
tr "\r" "\n" < report |
    grep -qE "^GET: [0-9.]+ requests per second" || changed "the result is missing"
