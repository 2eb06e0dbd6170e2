#!/usr/bin/env bash
# Guess: "openssl speed" divides the bytes by the elapsed time.
# Real: without -elapsed it divides by the user CPU time of the process. On a CPU shared with a
# second process it prints about twice the rate of -elapsed, so the effect of a scheduling or
# throttling setting stays invisible.
# Package: openssl 3.0.22-1~deb12u2 of Debian 12. Source: github.com/openssl/openssl
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    openssl=3.0.22-1~deb12u2 libssl3=3.0.22-1~deb12u2
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
cpu=$(taskset --cpu-list --pid $$ | sed "s/.*: //; s/[^0-9].*//")
openssl() {
    LD_LIBRARY_PATH=$libraries OPENSSL_CONF=/dev/null taskset -c "$cpu" usr/bin/openssl "$@"
}
rate() {
    openssl speed -seconds 2 -evp sha256 -bytes 1024 "$@" 2>> log |
        awk '/^sha256/ {print $2}'
}

openssl version
taskset -c "$cpu" python3 -c "while True: pass" &
trap 'kill %1; rm -rf "$folder"' EXIT
by_cpu_time=$(rate)
by_wall_time=$(rate -elapsed)
grep "^Doing" log
echo "a busy neighbour on CPU $cpu: $by_cpu_time without -elapsed, $by_wall_time with"

awk -v cpu="${by_cpu_time%k}" -v wall="${by_wall_time%k}" 'BEGIN {exit !(cpu > 1.4 * wall)}' ||
    changed "both ways give about the same rate"
