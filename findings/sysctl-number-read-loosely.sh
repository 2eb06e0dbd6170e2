#!/usr/bin/env bash
# Guess: a malformed number in a file of sysctl settings is an error, and 031 is 31.
# Real: procps hands the whole text to the kernel, which reads 031 as octal (25) and takes the
# first number of "41 # comment" and of "51 52". All three exit with 0.
# Package: procps 2:4.0.2-3 of Debian 12 (needs root; the setting is that of a new network
# namespace). Source: gitlab.com/procps-ng/procps; kernel 6.18, git.kernel.org
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    procps=2:4.0.2-3 libproc2-0=2:4.0.2-3
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
LD_LIBRARY_PATH=$libraries sbin/sysctl --version
uname -r
export libraries
cat > inside <<"EOF"
while read -r text; do
    echo "net.ipv4.tcp_fin_timeout = $text" > one.conf
    LD_LIBRARY_PATH=$libraries sbin/sysctl -q -p one.conf
    echo "written: $text; in force: $(< /proc/sys/net/ipv4/tcp_fin_timeout)"
done
EOF
printf "%s\n" "031" "41 # comment" "51 52" | unshare --net bash -eu inside | tee report

expected="written: 031; in force: 25
written: 41 # comment; in force: 41
written: 51 52; in force: 51"
[[ $(< report) == "$expected" ]] || changed "the rows are not
$expected"
