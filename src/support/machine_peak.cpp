// Peak measurements in plain vector code, compiled once per vector width; the widest that the processor has is used.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "support/machine.h"

namespace aglow {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <int Bytes>
using Vector [[gnu::vector_size(Bytes)]] = float;

// ---------------------------------------------------------------- arithmetic

// As many independent sums as hide the latency of a multiply-add and still fit into sixteen registers. They begin with
// different values, or the compiler would see that they are one.
constexpr int kSums = 12;

template <class V>
[[gnu::always_inline]] inline float multiplyAdd(int64_t rounds, float start) {
  const V f = 0.5F * start - V{}, a = start - V{};
  V s0 = a + 0, s1 = a + 1, s2 = a + 2, s3 = a + 3, s4 = a + 4, s5 = a + 5;
  V s6 = a + 6, s7 = a + 7, s8 = a + 8, s9 = a + 9, s10 = a + 10, s11 = a + 11;
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = s0 * f + a, s1 = s1 * f + a, s2 = s2 * f + a, s3 = s3 * f + a, s4 = s4 * f + a, s5 = s5 * f + a;
    s6 = s6 * f + a, s7 = s7 * f + a, s8 = s8 * f + a, s9 = s9 * f + a, s10 = s10 * f + a, s11 = s11 * f + a;
  }
  const V sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11;
  return sum[0];
}

// ---------------------------------------------------------------- memory

template <class V>
[[gnu::always_inline]] inline float readAll(const float* data, int64_t count) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  V s0{}, s1{}, s2{}, s3{};
  for (int64_t i = 0; i < count; i += 4 * kLanes) {
    s0 += *reinterpret_cast<const V*>(data + i);
    s1 += *reinterpret_cast<const V*>(data + i + kLanes);
    s2 += *reinterpret_cast<const V*>(data + i + 2 * kLanes);
    s3 += *reinterpret_cast<const V*>(data + i + 3 * kLanes);
  }
  const V sum = s0 + s1 + s2 + s3;
  return sum[0];
}

// ---------------------------------------------------------------- one version per instruction set

struct Probes {
  int lanes;
  float (*multiplyAdd)(int64_t rounds, float start);
  float (*readAll)(const float* data, int64_t count);
};

#define AGLOW_PROBES(name, bytes, ...)                                                                 \
  __VA_ARGS__ float multiplyAdd##name(int64_t n, float x) { return multiplyAdd<Vector<bytes>>(n, x); } \
  __VA_ARGS__ float readAll##name(const float* p, int64_t n) { return readAll<Vector<bytes>>(p, n); }  \
  constexpr Probes k##name{(bytes) / static_cast<int>(sizeof(float)), multiplyAdd##name, readAll##name};

AGLOW_PROBES(Baseline, 16)
#if defined(__x86_64__)
AGLOW_PROBES(Avx2, 32, [[gnu::target("avx2,fma")]])
AGLOW_PROBES(Avx512, 64, [[gnu::target("avx512f")]])

const Probes& probes() {
  if (__builtin_cpu_supports("avx512f")) return kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2;
  return kBaseline;
}
#else
const Probes& probes() { return kBaseline; }
#endif

// Keeps results from being optimised away.
volatile float sink;

// The best rate of short pieces of work: others may use the machine at times.
template <class Piece>
double bestRate(double amount, int pieces, const Piece& piece) {
  double best = 0;
  for (int i = 0; i < pieces; ++i) {
    const Clock::time_point begin = Clock::now();
    sink = piece(i);
    best = std::max(best, amount / secondsSince(begin));
  }
  return best;
}

double flopsOfThread() {
  const Probes& probe = probes();
  constexpr int64_t kRounds = 1 << 15;
  const volatile float start = 1;
  return bestRate(2.0 * kRounds * kSums * probe.lanes, 100, [&](int) { return probe.multiplyAdd(kRounds, start); });
}

double bytesPerSecondOfThread(const float* data, int64_t count) {
  constexpr int kPieces = 16;
  const int64_t part = count / kPieces;
  return bestRate(static_cast<double>(part) * sizeof(float), 2 * kPieces,
                  [&](int i) { return probes().readAll(data + i % kPieces * part, part); });
}

template <class Work>
double sumOverThreads(int count, const Work& work) {
  std::vector<double> rates(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  const auto measure = [&](int i) { rates[static_cast<size_t>(i)] = work(i); };
  threads.reserve(static_cast<size_t>(count));
  try {
    for (int i = 1; i < count; ++i) threads.emplace_back(measure, i);
  } catch (const std::system_error&) {
    // The others have to do.
  }
  measure(0);
  for (std::thread& thread : threads) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

MachinePeak measurePeak(int threads) {
  // More than the caches of one core's share; a part per thread, of whole vectors.
  constexpr int64_t kBytes = int64_t{256} << 20;
  const int64_t part = kBytes / threads / 65536 * 65536;
  struct alignas(64) Line {
    float values[16] = {};
  };
  const std::vector<Line> lines(static_cast<size_t>(kBytes) / sizeof(Line));
  const float* data = lines.data()->values;
  MachinePeak peak;
  peak.flops = sumOverThreads(threads, [](int) { return flopsOfThread(); });
  peak.bytesPerSecond = sumOverThreads(threads, [&](int i) {
    const int64_t count = part / static_cast<int64_t>(sizeof(float));
    return bytesPerSecondOfThread(data + i * count, count);
  });
  return peak;
}

}  // namespace aglow
