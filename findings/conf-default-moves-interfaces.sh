#!/usr/bin/env bash
# Guess: net/ipv4/conf/default/* is for interfaces that are made later.
# Real: a write there also moves each interface that has no address, whose own file was never written
# and that is older than the first write to "default". One write to the interface's own file, of the
# number that stands there, ends that. A tool that restores an interface before "default" gives the
# interface a value of its own.
# Package: iproute2 6.1.0-3 of Debian 12 for the interfaces; kernel 6.18 (needs root and /dev/net/tun;
# the settings are those of a new network namespace). Source: git.kernel.org, net/ipv4/devinet.c
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root iproute2=6.1.0-3
dpkg-deb -x ./*.deb tree
uname -r
cat > inside <<"EOF"
ip=$PWD/tree/bin/ip
cd /proc/sys/net/ipv4/conf
"$ip" tuntap add bare0 mode tun
"$ip" tuntap add own0 mode tun
"$ip" tuntap add used0 mode tun
before=$(< default/rp_filter)
echo "$before" > own0/rp_filter
"$ip" address add 192.0.2.1/24 dev used0
after=$((before == 2 ? 1 : 2))
echo "$after" > default/rp_filter
"$ip" tuntap add late0 mode tun
echo "$before" > default/rp_filter
moved() { [ "$(< "$1/rp_filter")" = "$2" ] && echo "$1 moved" || echo "$1 stays"; }
moved late0 "$before"
echo "$after" > default/rp_filter
moved bare0 "$after"
moved own0 "$after"
moved used0 "$after"
EOF
unshare --net bash -eu inside | tee report

grep -qx "bare0 moved" report || changed "an interface without an address stays"
grep -qx "own0 stays" report || changed "an interface whose own file was written is moved"
grep -qx "used0 stays" report || changed "an interface with an address is moved"
grep -qx "late0 stays" report || changed "an interface made after a write to default is moved"
