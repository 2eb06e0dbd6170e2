// A benchmark of sleeps: each iteration takes SLEEP_US microseconds.
// Build: g++ -O2 google_benchmark.cpp -lbenchmark -lpthread -o google_benchmark
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <unistd.h>

static int sleep_us() { return atoi(getenv("SLEEP_US")); }

static void sleep(benchmark::State& state) {
  for (auto _ : state) usleep(sleep_us());
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * 4096);
}
BENCHMARK(sleep)->UseRealTime()->Unit(benchmark::kMicrosecond);

static void fails(benchmark::State& state) {
  if (getenv("FAIL")) state.SkipWithError("fails by design");
  for (auto _ : state) usleep(sleep_us());
}
BENCHMARK(fails)->UseRealTime();

BENCHMARK_MAIN();
