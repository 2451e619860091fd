// aglow devices: what the machine has besides its processor, for --backend.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/opencl/devices.h"
#include "backends/opencl/peak.h"
#include "backends/package_cache.h"
#include "cli/cli.h"

namespace aglow::cli {

namespace {

std::string_view typeName(opencl::Bits type) {
  return (type & opencl::kTypeGpu) != 0 ? "GPU" : (type & opencl::kTypeCpu) != 0 ? "CPU" : "accelerator";
}

// Those that say what kernels could use.
std::vector<std::string> ofInterest(const opencl::Device& device) {
  constexpr std::string_view kParts[] = {"fp16",   "fp64", "subgroup", "int64",   "dot_product", "il_program",
                                         "matrix", "nv_",  "bfloat",   "unified", "svm",         "p2p"};
  std::vector<std::string> found;
  for (const std::string& extension : device.extensions)
    if (std::any_of(std::begin(kParts), std::end(kParts),
                    [&](std::string_view part) { return extension.find(part) != std::string::npos; }))
      found.push_back(extension);
  return found;
}

std::string peakText(const std::optional<MachinePeak>& peak) {
  if (!peak) return "not measured (aglow bench --instructions does, aglow devices --measure)";
  return fmt::format("{:.1f} GFLOP/s, {:.1f} GB/s", peak->flops * 1e-9, peak->bytesPerSecond * 1e-9);
}

std::string asText(const std::vector<opencl::Device>& devices, const std::vector<std::optional<MachinePeak>>& peaks) {
  constexpr uint64_t kMiB = 1 << 20;
  std::string out;
  for (size_t i = 0; i < devices.size(); ++i) {
    const opencl::Device& device = devices[i];
    const std::vector<std::string> extensions = ofInterest(device);
    out += fmt::format(
        "opencl:{}  {} ({}, {}), {}, driver {}\n"
        "    {} compute units{}, groups of {} items with {} KiB, {} MiB of memory{}, buffers of {} MiB\n"
        "    f64 {}, f16 {}, kernels as source{}{}{}\n"
        "    {} ({}), by {}; extensions of interest: {}\n"
        "    peak {}\n",
        device.address(), device.name, typeName(device.type), device.platformName, device.version, device.driver,
        device.computeUnits, device.clockMhz > 0 ? fmt::format(" at {} MHz", device.clockMhz) : "", device.groupItems,
        device.localBytes >> 10, device.globalBytes / kMiB, device.unifiedMemory ? " shared with the host" : "",
        device.allocationBytes / kMiB, device.doubles ? "yes" : "no", device.halves ? "yes" : "in f32",
        device.il.empty() ? "" : " or ", device.il, device.available ? "" : "; not available", device.platformName,
        device.platformVersion, device.vendor, extensions.empty() ? "none" : fmt::to_string(fmt::join(extensions, " ")),
        peakText(peaks[i]));
  }
  return out.empty() ? fmt::format("no platform of OpenCL has a device\n  hint: {}\n", opencl::kWhyNoDevice) : out;
}

std::string asJson(const std::vector<opencl::Device>& devices, const std::vector<std::optional<MachinePeak>>& peaks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < devices.size(); ++i) {
    const opencl::Device& device = devices[i];
    list.push_back({{"backend", fmt::format("opencl:{}", device.address())},
                    {"name", device.name},
                    {"type", typeName(device.type)},
                    {"platform", device.platformName},
                    {"platform_version", device.platformVersion},
                    {"vendor", device.vendor},
                    {"version", device.version},
                    {"driver", device.driver},
                    {"available", device.available},
                    {"compute_units", device.computeUnits},
                    {"clock_mhz", device.clockMhz},
                    {"group_items", device.groupItems},
                    {"step_items", device.stepItems},
                    {"vector_floats", device.vectorFloats},
                    {"local_bytes", device.localBytes},
                    {"global_bytes", device.globalBytes},
                    {"allocation_bytes", device.allocationBytes},
                    {"unified_memory", device.unifiedMemory},
                    {"f64", device.doubles},
                    {"f16", device.halves},
                    {"il", device.il},
                    {"extensions", device.extensions}});
    if (const std::optional<MachinePeak>& peak = peaks[i]) {
      list.back()["peak_gflops"] = peak->flops * 1e-9;
      list.back()["peak_gbytes_per_s"] = peak->bytesPerSecond * 1e-9;
    }
  }
  return nlohmann::ordered_json{{"devices", list}}.dump(2) + "\n";
}

struct DevicesOptions {
  bool json = false, measure = false;
};

Status execute(const DevicesOptions& options) {
  AGLOW_TRY(const std::vector<opencl::Device> devices, opencl::devices());
  const std::string cache = cacheFolder({});
  std::vector<std::optional<MachinePeak>> peaks;
  for (const opencl::Device& device : devices) {
    peaks.push_back(opencl::keptPeak(device, cache));
    if (options.measure && device.available) {
      AGLOW_TRY(peaks.back(), opencl::measuredPeak(device, cache, true));
    }
  }
  return printOut(options.json ? asJson(devices, peaks) : asText(devices, peaks));
}

}  // namespace

Command devicesCommand() {
  auto options = std::make_shared<DevicesOptions>();
  return {.name = "devices",
          .doc = "List the devices of the machine",
          .options = {{"--measure", &options->measure, "Measure their peak; the best of all measurements counts"},
                      {"--json", &options->json, "For programs"}},
          .footer = "Examples:\n  aglow devices\n  aglow devices --measure --json",
          .action = [options] { return finish(execute(*options)); }};
}

}  // namespace aglow::cli
