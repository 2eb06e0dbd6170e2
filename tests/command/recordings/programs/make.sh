#!/bin/sh
# Record a program of this folder twice, slow and fast, from the root of the repository:
#     PATH=/venv/of/the/program/bin:$PATH make.sh NAME 'PROGRAM VERSION' SLOW_S FAST_S SCRIPT ARGUMENTS…
# The scripts' arguments end with the sleep of a step.
set -e
name=$1 program=$2 slow_s=$3 fast_s=$4
shift 4
for speed in slow fast; do
    [ $speed = slow ] && sleep_s=$slow_s || sleep_s=$fast_s
    python -m tests.command.recordings.record "$name-$speed" --program="$program" -- "$@" "$sleep_s"
done
# Where things lie on this machine is nobody's business.
perl -pi -e 's#(?:(?<![\w.-])|(?<=\\[nr]))/[^\s"]*/(site-packages|recordings/programs)/#$1/#g' \
    tests/command/recordings/"$name"-*.jsonl
