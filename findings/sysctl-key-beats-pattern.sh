#!/usr/bin/env bash
# Guess: in a file of sysctl settings the last line that matches a key wins.
# Real: an explicit key wins over a pattern whatever their order, in procps and in systemd. A
# pattern on the last line does not change the key of the first line.
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

key="net.ipv4.conf.lo.rp_filter = 2"
pattern="net.ipv4.conf.*.rp_filter = 1"
printf "%s\n" "$key" "$pattern" > key-first.conf
printf "%s\n" "$pattern" "$key" > pattern-first.conf
for program in procps systemd; do
    for order in key-first pattern-first; do
        echo 0 > /proc/sys/net/ipv4/conf/lo/rp_filter
        "$program" "$order.conf"
        echo "$program, $order: $(< /proc/sys/net/ipv4/conf/lo/rp_filter)"
    done
done
EOF
unshare --net bash -eu inside | tee report

[[ $(grep -c ": 2$" report) == 4 ]] || changed "the key does not win in all four cases"
