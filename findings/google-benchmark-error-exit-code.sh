#!/usr/bin/env bash
# Guess: a program of google-benchmark exits with a non-zero code if a benchmark reports an error.
# Real: it exits with 0. The row of the benchmark reads "ERROR OCCURRED" instead of a time.
# Package: libbenchmark-dev 1.7.1-1 of Debian 12 (needs g++). Source: github.com/google/benchmark
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    libbenchmark-dev=1.7.1-1 libbenchmark1debian=1.7.1-1
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
cat > program.cpp <<"EOF"
#include <benchmark/benchmark.h>

static void Fails(benchmark::State& state) {
  for (auto _ : state) {
    state.SkipWithError("no data");
    break;
  }
}
BENCHMARK(Fails);
BENCHMARK_MAIN();
EOF
g++ -Iusr/include program.cpp -L"$libraries" -lbenchmark -lpthread -o program

echo "google-benchmark 1.7.1-1"
code=0
LD_LIBRARY_PATH=$libraries ./program 2> log | tee report || code=$?
echo "exit code $code"

[[ $code == 0 ]] || changed "the program exits with $code, not 0"
grep -qE "^Fails +ERROR OCCURRED: .no data.$" report || changed "the row does not show the error"
