// Placement of buffers: time, and how far the arena is above the bytes alive at once. With AGLOW_MEMORY_TRACES naming a
// file of allocation traces (lines MODEL name, ALLOC id bytes, FREE id, then MEM), those are placed as well.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "memory/placement.h"
#include "support/sizes.h"

namespace aglow {
namespace {

// Lifetimes and sizes of all lengths, the same on every machine.
std::vector<Buffer> syntheticBuffers(int64_t count) {
  std::vector<Buffer> buffers;
  uint64_t state = 1;
  for (int32_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto length = static_cast<int32_t>(1 + (state >> 40) % 12);
    buffers.push_back({static_cast<int64_t>(1 + (state >> 33) % 1000) * 64, i, i + length});
  }
  return buffers;
}

void placement(benchmark::State& state) {
  const std::vector<Buffer> buffers = syntheticBuffers(state.range(0));
  Placement result;
  for (auto _ : state) result = placeBuffers(buffers);
  state.counters["aboveBound"] = static_cast<double>(result.bytes) / static_cast<double>(liveBytes(buffers)) - 1;
}
BENCHMARK(placement)->Arg(100)->Arg(1000)->Arg(4000)->Arg(50000)->Unit(benchmark::kMillisecond);

std::vector<std::vector<Buffer>> readTraces(const std::string& path) {
  std::vector<std::vector<Buffer>> traces;
  std::map<int64_t, size_t> open;
  std::ifstream file(path);
  int32_t time = 0;
  int64_t id = 0, bytes = 0;
  for (std::string word; file >> word;) {
    if (word == "MODEL") {
      std::getline(file, word);
      traces.emplace_back();
      open.clear();
      time = 0;
    } else if (word == "ALLOC" && file >> id >> bytes) {
      open[id] = traces.back().size();
      traces.back().push_back({alignUp(bytes, 64), time++, INT32_MAX});
    } else if (word == "FREE" && file >> id) {
      traces.back()[open.at(id)].end = time++;
    }
  }
  return traces;
}

void placementOfTraces(benchmark::State& state) {
  const char* path = std::getenv("AGLOW_MEMORY_TRACES");
  const auto traces = path == nullptr ? std::vector<std::vector<Buffer>>() : readTraces(path);
  if (traces.empty()) {
    state.SkipWithError("AGLOW_MEMORY_TRACES names no traces");
    return;
  }
  double atBound = 0, worst = 0;
  for (auto _ : state) {
    atBound = worst = 0;
    for (const std::vector<Buffer>& buffers : traces) {
      const double above =
          static_cast<double>(placeBuffers(buffers).bytes) / static_cast<double>(liveBytes(buffers)) - 1;
      atBound += above == 0 ? 1 : 0;
      worst = std::max(worst, above);
    }
  }
  state.counters["traces"] = static_cast<double>(traces.size());
  state.counters["atBound"] = atBound;
  state.counters["worstAboveBound"] = worst;
}
BENCHMARK(placementOfTraces)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace aglow
