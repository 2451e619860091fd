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

class OpenClBackend final : public DeviceBackend {
public:
  // The device as opencl::chooseDevice takes it; Device where there is none. Kernels
  // are chosen by its own shape, or by another that it can run.
  // What is built and measured for the device is kept in the folder of the code cache, unless it is empty. Programs use
  // no more than `memoryBytes` of the device's memory; 0: what it has. With time for it, kernels are measured that can
  // be written in several ways.
  static Result<std::shared_ptr<const OpenClBackend>> create(std::string_view device,
                                                             std::optional<codegen::DeviceShape> shape = {},
                                                             std::string cache = {}, int64_t memoryBytes = 0,
                                                             device::TuneOptions tune = {});

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
