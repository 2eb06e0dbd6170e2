#!/usr/bin/env bash
# Guess: ip_forward set to 1 and back to 0 leaves the other settings as they were.
# Real: the way back sets conf/all/accept_redirects to 1, whatever its value was. A tool that
# restores ip_forward alone changes a second setting.
# Package: none; kernel 6.18 (needs root; the settings are those of a new network namespace).
# Source: git.kernel.org, net/ipv4/devinet.c
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

uname -r
cat > inside <<"EOF"
cd /proc/sys/net/ipv4
echo 0 > ip_forward
echo 0 > conf/all/accept_redirects
echo "accept_redirects before: $(< conf/all/accept_redirects)"
echo 1 > ip_forward
echo 0 > ip_forward
echo "accept_redirects after: $(< conf/all/accept_redirects)"
EOF
unshare --net bash -eu inside | tee report

grep -qx "accept_redirects before: 0" report || changed "the setting cannot be set to 0"
grep -qx "accept_redirects after: 1" report || changed "the setting stays as it was"
