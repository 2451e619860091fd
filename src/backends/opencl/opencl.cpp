#include "backends/opencl/opencl.h"

#include <fmt/format.h>

#include "backends/device/layout.h"
#include "backends/opencl/driver.h"
#include "backends/opencl/executable.h"
#include "backends/opencl/kernels.h"

namespace aglow {

Result<std::shared_ptr<const OpenClBackend>> OpenClBackend::create(std::string_view choice, OpenClOptions options) {
  AGLOW_TRY(opencl::Device device, opencl::chooseDevice(choice));
  AGLOW_TRY(std::shared_ptr<opencl::Driver> driver, opencl::Driver::of(device));
  device.ptx = opencl::takesPtx(device);
  device.pairs = options.f64Pairs;
  const codegen::DeviceShape own{.sharesLocal = (device.type & opencl::kTypeCpu) == 0,
                                 .groupItems = static_cast<int64_t>(device.groupItems),
                                 .localBytes = static_cast<int64_t>(device.localBytes),
                                 .argumentBytes = static_cast<int64_t>(device.argumentBytes),
                                 .computeUnits = static_cast<int64_t>(device.computeUnits),
                                 .stepItems = static_cast<int64_t>(device.stepItems),
                                 .vectorFloats = static_cast<int64_t>(device.vectorFloats),
                                 .multipliesHalves = device.ptx && device.stepItems == 32,
                                 .copiesAhead = device.ptx};
  codegen::DeviceShape shape = options.shape.value_or(own);
  shape.pairs = device.computesPairs();
  const auto all = static_cast<int64_t>(std::min<uint64_t>(device.globalBytes, INT64_MAX));
  std::shared_ptr<OpenClBackend> backend(
      new OpenClBackend(std::move(device), shape, std::move(options.cache), std::min(options.memoryBytes, all)));
  backend->driver_ = std::move(driver);
  if (options.tune.seconds > 0) backend->tune(std::move(options.tune));
  return std::shared_ptr<const OpenClBackend>(std::move(backend));
}

void OpenClBackend::tune(device::TuneOptions options) {
  tuner_ = std::make_shared<device::Tuner>(shape(), cache_, opencl::deviceIdentity(device_), std::move(options),
                                           [this](Program program, const codegen::Ways& ways) {
                                             codegen::DeviceShape shape = rules_.shape();
                                             shape.ways = &ways;
                                             return device::secondsOf(std::move(program),
                                                                      OpenClBackend(device_, shape, {}, 0));
                                           });
  rules_.choose(*tuner_);
}

// Of multiplications with additions, a GPU makes about 128 at once in each of its units, a processor 16. Its own memory
// is some ten times as fast as the way to it.
LatencyModel OpenClBackend::latencies() const {
  const bool gpu = (device_.type & opencl::kTypeGpu) != 0;
  const double flopsAtOnce = gpu ? 256 : 32, clockMhz = device_.clockMhz > 0 ? device_.clockMhz : 1000;
  LatencyModel model{.flopsPerSecond = std::max(1e9, 1e6 * device_.computeUnits * clockMhz * flopsAtOnce),
                     .bytesPerSecond = gpu ? 500e9 : 20e9,
                     .startSeconds = 5e-6,
                     .copyBytesPerSecond = device_.unifiedMemory ? 10e9 : 12e9,
                     .copyStartSeconds = 10e-6,
                     .travel = memoryBytes_ > 0        ? LatencyModel::Travel::Always
                               : device_.unifiedMemory ? LatencyModel::Travel::Never
                                                       : LatencyModel::Travel::WhereFull,
                     .memoryBytes = static_cast<int64_t>(std::min<uint64_t>(device_.globalBytes, INT64_MAX)),
                     .bufferBytes = static_cast<int64_t>(std::min<uint64_t>(device_.allocationBytes, INT64_MAX))};
  if (memoryBytes_ > 0) model.memoryBytes = memoryBytes_;
  return model;
}

Result<std::optional<Plan>> OpenClBackend::plan(const Program& program, const Instr& instr) const {
  AGLOW_TRY(std::optional<Plan> plan, rules_.plan(program, instr));
  if (tuner_ == nullptr) return plan;
  AGLOW_OK(tuner_->tune(program, instr));
  return rules_.plan(program, instr);
}

void OpenClBackend::changePhases(PhaseList& phases) const {
  phases.insertAfter("optimize-core", device::layoutPhase(shape()));
  phases.insertAfter("irgen", planPhase());
  phases.insertAfter("plan", fusePhase(rules_.fusing()));
}

Result<std::unique_ptr<Executable>> OpenClBackend::compile(std::vector<Program> programs,
                                                           const BackendOptions& options) const {
  AGLOW_OK(checkMemory(programs, options));
  return opencl::makeExecutable(std::move(programs), device_, shape(), memoryBytes_, options, cache_);
}

}  // namespace aglow
