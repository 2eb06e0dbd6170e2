#!/usr/bin/env bash
# Guess: a write to queue/iostats changes iostats alone; of the text that stands there, nothing.
# Real: the write raises queue/read_ahead_kb of the same disk to the kernel's own choice: at least
# 128, and more on a rotational disk. max_sectors_kb, add_random and write_cache do the same. A small
# read-ahead that was set first is lost; a large one stays, so tests with large values see nothing.
# Package: none; kernel 6.18 (needs root; the disk is a loop device of a file made here).
# Source: git.kernel.org, block/blk-settings.c, blk_apply_bdi_limits
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
truncate -s 16M "$folder/disk"
device=$(losetup --find --show "$folder/disk")
trap 'losetup -d "$device"; rm -rf "$folder"' EXIT
cd "/sys/block/${device#/dev/}/queue"

uname -r
for rotational in 0 1; do
  echo "$rotational" > rotational
  for asked in 16 8192; do
    echo "$asked" > read_ahead_kb
    cat iostats > "$folder/same"
    cat "$folder/same" > iostats
    echo "rotational=$rotational read_ahead_kb=$asked, after iostats: $(< read_ahead_kb)"
  done
done | tee "$folder/report"

grep -qx "rotational=0 read_ahead_kb=16, after iostats: 128" "$folder/report" || changed "16 stays 16"
grep -qx "rotational=0 read_ahead_kb=8192, after iostats: 8192" "$folder/report" || changed "8192 is lowered"
more=$(sed -n 's/rotational=1 read_ahead_kb=16, after iostats: //p' "$folder/report")
[ "$more" -gt 128 ] || changed "a rotational disk gets no more than 128"
