#!/usr/bin/env bash
# Guess: each test of sysbench prints "events per second", as the cpu test does.
# Real: the threads test prints no rate at all. A reader must divide "total number of events"
# by "total time".
# Package: sysbench 1.0.20+ds-5 of Debian 12. Source: github.com/akopytov/sysbench
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    sysbench=1.0.20+ds-5 libaio1=0.3.113-4 libluajit2-5.1-2=2.1-20230119-1 \
    libluajit2-5.1-common=2.1-20230119-1 libmariadb3=1:10.11.19-0+deb12u1 \
    libpq5=15.20-0+deb12u1 libldap-2.5-0=2.5.13+dfsg-5 libsasl2-2=2.1.28+dfsg-10+deb12u1
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
sysbench() { LD_LIBRARY_PATH=$libraries usr/bin/sysbench "$@"; }

sysbench --version
for test in cpu threads; do
    sysbench "$test" --time=1 run > "$test"
    echo "$test:"
    grep -E "events|total time" "$test"
done

grep -q "events per second" cpu || changed "the cpu test prints no rate"
! grep -qiE "per second|/sec|/s:" threads || changed "the threads test prints a rate"
grep -qE "total number of events: +[1-9]" threads || changed "the threads test counts no events"
