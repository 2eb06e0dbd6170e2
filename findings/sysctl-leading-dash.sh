#!/usr/bin/env bash
# Guess: a dash before a key makes each program ignore errors, and "-PATTERN" without a value
# excludes every matching key from an earlier pattern.
# Real: with a missing key systemd exits with 0, procps 4.0.2 prints an error and exits with 1.
# "-KEY" without a value excludes that key; "-PATTERN" has no effect and causes no message.
# Package: procps 2:4.0.2-3, systemd 252.39-1~deb12u2 of Debian 12 (needs root; the settings are
# those of a new network namespace). Source: gitlab.com/procps-ng/procps, github.com/systemd/systemd
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    procps=2:4.0.2-3 libproc2-0=2:4.0.2-3 \
    systemd=252.39-1~deb12u2 libsystemd-shared=252.39-1~deb12u2
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
LD_LIBRARY_PATH=$libraries sbin/sysctl --version
LD_LIBRARY_PATH=$libraries/systemd lib/systemd/systemd-sysctl --version | sed -n 1p
export libraries
cat > inside <<"EOF"
procps() { LD_LIBRARY_PATH=$libraries sbin/sysctl -q -p "$PWD/$1"; }
systemd() { LD_LIBRARY_PATH=$libraries/systemd lib/systemd/systemd-sysctl "$PWD/$1"; }

echo "-net.ipv4.no_such_key = 1" > missing.conf
printf "%s\n" "net.ipv4.conf.*.rp_filter = 1" "-net.ipv4.conf.lo.rp_filter" > key.conf
printf "%s\n" "net.ipv4.conf.*.rp_filter = 1" "-net.ipv4.conf.l*.rp_filter" > pattern.conf
for program in procps systemd; do
    code=0
    "$program" missing.conf || code=$?
    echo "$program, missing key: exit code $code"
    for dash in key pattern; do
        echo 0 > /proc/sys/net/ipv4/conf/lo/rp_filter
        "$program" "$dash.conf"
        echo "$program, -$dash: $(< /proc/sys/net/ipv4/conf/lo/rp_filter)"
    done
done
EOF
unshare --net bash -eu inside | tee report

expected="procps, missing key: exit code 1
procps, -key: 0
procps, -pattern: 1
systemd, missing key: exit code 0
systemd, -key: 0
systemd, -pattern: 1"
[[ $(< report) == "$expected" ]] || changed "the rows are not
$expected"
