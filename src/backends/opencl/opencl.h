// The OpenCL backend: kernels as text for the driver's compiler, memory and queues of one device.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "backends/device/kernel_rules.h"
#include "backends/device/tuner.h"
#include "backends/device_backend.h"
#include "backends/opencl/devices.h"
#include "codegen/clike/launch.h"

namespace aglow {

namespace opencl {
class Driver;
}

struct OpenClOptions {
  // What kernels are chosen by; none: the device's own shape.
  std::optional<codegen::DeviceShape> shape = {};
  // Folder of the code cache, in which what is built and measured for the device is kept; empty: nowhere.
  std::string cache = {};
  int64_t memoryBytes = 0;  // of the device's memory that programs use at most; 0: what it has
  // With time for it, kernels are measured that can be written in several ways.
  device::TuneOptions tune = {};
  bool f64Pairs = false;  // f64 as two f32 each, also where the device has none
};

class OpenClBackend final : public DeviceBackend {
public:
  // The device as opencl::chooseDevice takes it; Device where there is none.
  static Result<std::shared_ptr<const OpenClBackend>> create(std::string_view device, OpenClOptions options = {});

  const opencl::Device& device() const { return device_; }
  const codegen::DeviceShape& shape() const { return rules_.shape(); }
  const std::string& cache() const { return cache_; }
  std::string_view name() const override { return "opencl"; }
  Decision supports(const Node& node) const override { return rules_.supports(node); }
  Result<std::optional<Plan>> plan(const Program& program, const Instr& instr) const override;
  void changePhases(PhaseList& phases) const override;
  const FusePolicy* fusePolicy() const override { return &rules_.fusing(); }
  LatencyModel latencies() const override;
  using Backend::compile;
  Result<std::unique_ptr<Executable>> compile(std::vector<Program> programs,
                                              const BackendOptions& options) const override;

private:
  OpenClBackend(opencl::Device device, const codegen::DeviceShape& shape, std::string cache, int64_t memoryBytes)
      : device_(std::move(device)), rules_(shape), cache_(std::move(cache)), memoryBytes_(memoryBytes) {}

  void tune(device::TuneOptions options);

  opencl::Device device_;
  device::KernelRules rules_;
  std::string cache_;
  int64_t memoryBytes_;
  std::shared_ptr<opencl::Driver> driver_;  // one context for all that is tried, measured and loaded
  std::shared_ptr<device::Tuner> tuner_;
};

}  // namespace aglow
