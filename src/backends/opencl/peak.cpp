#include "backends/opencl/peak.h"

#include <algorithm>
#include <limits>
#include <span>

#include "backends/device/kept.h"
#include "backends/opencl/driver.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/timeline.h"
#include "support/stopwatch.h"

namespace aglow::opencl {

namespace {

// Chains of multiply-adds that are independent of each other, in scalars and in vectors: which of them keeps the units
// busy is the device's affair, and the best counts.
constexpr int kChains = 8;
constexpr const char* kFlops = R"(
__kernel void KERNEL_NAME(__global VECTOR* out, float start, int rounds) {
  VECTOR f = start * 0.5f, a = start;
  VECTOR s0 = a, s1 = a + 1, s2 = a + 2, s3 = a + 3, s4 = a + 4, s5 = a + 5, s6 = a + 6, s7 = a + 7;
  for (int i = 0; i < rounds; ++i) {
    s0 = fma(s0, f, a), s1 = fma(s1, f, a), s2 = fma(s2, f, a), s3 = fma(s3, f, a);
    s4 = fma(s4, f, a), s5 = fma(s5, f, a), s6 = fma(s6, f, a), s7 = fma(s7, f, a);
  }
  out[get_global_id(0)] = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
}
)";
constexpr const char* kCopy = R"(
__kernel void KERNEL_NAME(__global const VECTOR* from, __global VECTOR* to) {
  to[get_global_id(0)] = from[get_global_id(0)];
}
)";
struct Form {
  const char* type;
  int lanes;
};
constexpr Form kForms[] = {{"float", 1}, {"float4", 4}, {"float16", 16}};

class Prober {
public:
  static Result<Prober> create(const Device& device, const std::string& cache) {
    Prober prober;
    AGLOW_TRY(prober.driver_, Driver::of(device));
    for (const Form& form : kForms)
      for (const char* text : {kFlops, kCopy}) prober.kernels_.add(device::replaced(text, "VECTOR", form.type));
    AGLOW_OK(prober.kernels_.build(device, prober.driver_->context(), cache));
    AGLOW_TRY(prober.queue_, prober.driver_->makeQueue(kQueueProfiling));
    const uint64_t bytes = std::min({uint64_t{256} << 20, device.allocationBytes / 2, device.globalBytes / 8});
    prober.bytes_ = bytes / kUnit * kUnit;
    AGLOW_TRY(prober.from_, prober.driver_->makeBuffer(prober.bytes_));
    AGLOW_TRY(prober.to_, prober.driver_->makeBuffer(prober.bytes_));
    prober.group_ = std::min<size_t>(device.groupItems, 256);
    prober.units_ = std::max<size_t>(device.computeUnits, 1);
    return prober;
  }

  Result<MachinePeak> peak() {
    MachinePeak peak;
    for (size_t i = 0; i < std::size(kForms); ++i) {
      AGLOW_TRY(const double flops, flopsIn(i));
      AGLOW_TRY(const double bytes, bytesIn(i));
      peak.flops = std::max(peak.flops, flops);
      peak.bytesPerSecond = std::max(peak.bytesPerSecond, bytes);
    }
    return peak;
  }

private:
  static constexpr uint64_t kUnit = 1 << 20;  // whole groups of whole vectors
  static constexpr double kLongEnough = 0.02, kWorthWaiting = 0.002;
  static constexpr int kMostRounds = 1 << 22, kTries = 4;

  Prober() = default;

  // More rounds until it takes long enough to be told from what a launch costs.
  Result<double> flopsIn(size_t form) {
    AGLOW_TRY(const OwnKernel kernel, kernels_.make(2 * form));
    const size_t items = std::min<size_t>(units_ * group_ * 8, bytes_ / (kForms[form].lanes * sizeof(float)));
    const float start = 1;
    double best = 0;
    for (int rounds = 64; rounds <= kMostRounds; rounds *= 4) {
      AGLOW_OK(argument(kernel, 0, from_.get()));
      AGLOW_OK(argument(kernel, 1, start));
      AGLOW_OK(argument(kernel, 2, rounds));
      AGLOW_TRY(const double seconds, quickestOf(kernel, items / group_ * group_));
      best = std::max(
          best, 2.0 * kChains * kForms[form].lanes * rounds * static_cast<double>(items / group_ * group_) / seconds);
      if (seconds > kLongEnough) break;
    }
    return best;
  }

  Result<double> bytesIn(size_t form) {
    AGLOW_TRY(const OwnKernel kernel, kernels_.make(2 * form + 1));
    AGLOW_OK(argument(kernel, 0, from_.get()));
    AGLOW_OK(argument(kernel, 1, to_.get()));
    const size_t each = kForms[form].lanes * sizeof(float), items = bytes_ / each / group_ * group_;
    AGLOW_TRY(const double seconds, quickestOf(kernel, items));
    return 2.0 * static_cast<double>(items * each) / seconds;
  }

  template <class T>
  Status argument(const OwnKernel& kernel, uint32_t at, const T& value) const {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return statusOf("clSetKernelArg", driver_->api().SetKernelArg(kernel.get(), at, bytes.size(), bytes.data()));
  }

  // Of several launches: into the first PoCL counts the building of the kernel for its group.
  Result<double> quickestOf(const OwnKernel& kernel, size_t items) const {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTries; ++i) {
      AGLOW_TRY(const double seconds, secondsOf(kernel, items));
      least = std::min(least, seconds);
    }
    return least;
  }

  Result<double> secondsOf(const OwnKernel& kernel, size_t items) const {
    const Api& api = driver_->api();
    Event event = nullptr;
    const Stopwatch watch;
    AGLOW_OK(statusOf("clEnqueueNDRangeKernel", api.EnqueueNDRangeKernel(queue_.get(), kernel.get(), 1, nullptr, &items,
                                                                         &group_, 0, nullptr, &event)));
    const OwnEvent owner(api, event);
    AGLOW_OK(driver_->finish(queue_.get()));
    const double waited = watch.seconds();
    AGLOW_TRY(const uint64_t start, timeOf(api, event, kProfileStart));
    AGLOW_TRY(const uint64_t end, timeOf(api, event, kProfileEnd));
    const double told = static_cast<double>(std::max<uint64_t>(end - start, 1)) * 1e-9;
    // Some drivers tell times of nothing: Mesa's rusticl has a nanosecond for whatever it was.
    return told < 0.1 * waited && waited > kWorthWaiting ? waited : told;
  }

  std::shared_ptr<Driver> driver_;
  KernelSet kernels_;
  OwnQueue queue_;
  OwnMemory from_, to_;
  uint64_t bytes_ = 0;
  size_t group_ = 1, units_ = 1;
};

device::Kept keptIn(const Device& device, const std::string& cache) {
  return {cache, PackageCache::kMeasured, deviceIdentity(device), "peak of multiply-adds and copies"};
}

}  // namespace

std::optional<MachinePeak> keptPeak(const Device& device, const std::string& cache) {
  return keptIn(device, cache).peak();
}

Result<MachinePeak> measuredPeak(const Device& device, const std::string& cache, bool again) {
  const std::optional<MachinePeak> known = keptPeak(device, cache);
  if (known && !again) return *known;
  AGLOW_TRY(Prober prober, Prober::create(device, cache));
  AGLOW_TRY(MachinePeak peak, prober.peak());
  if (known) peak = {std::max(peak.flops, known->flops), std::max(peak.bytesPerSecond, known->bytesPerSecond)};
  keptIn(device, cache).keep(peak);
  return peak;
}

}  // namespace aglow::opencl
