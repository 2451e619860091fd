// aglow devices: what the machine has besides its processor, for --backend.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "backends/opencl/devices.h"
#include "cli/cli.h"

namespace aglow::cli {

namespace {

std::string_view typeName(opencl::Bits type) {
  return (type & opencl::kTypeGpu) != 0 ? "GPU" : (type & opencl::kTypeCpu) != 0 ? "CPU" : "accelerator";
}

std::string asText(const std::vector<opencl::Device>& devices) {
  constexpr uint64_t kMiB = 1 << 20;
  std::string out;
  for (const opencl::Device& device : devices)
    out += fmt::format(
        "opencl:{}  {} ({}, {}), {}, driver {}\n"
        "    {} compute units at {} MHz, groups of {} items with {} KiB, {} MiB of memory{}, buffers of {} MiB\n"
        "    f64 {}, f16 {}{}\n",
        device.address(), device.name, typeName(device.type), device.platformName, device.version, device.driver,
        device.computeUnits, device.clockMhz, device.groupItems, device.localBytes >> 10, device.globalBytes / kMiB,
        device.unifiedMemory ? " shared with the host" : "", device.allocationBytes / kMiB,
        device.doubles ? "yes" : "no (--backend opencl needs it)", device.halves ? "yes" : "in f32",
        device.available ? "" : "; not available");
  return out.empty() ? "no platform of OpenCL has a device\n" : out;
}

std::string asJson(const std::vector<opencl::Device>& devices) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const opencl::Device& device : devices)
    list.push_back({{"backend", fmt::format("opencl:{}", device.address())},
                    {"name", device.name},
                    {"type", typeName(device.type)},
                    {"platform", device.platformName},
                    {"version", device.version},
                    {"driver", device.driver},
                    {"available", device.available},
                    {"compute_units", device.computeUnits},
                    {"clock_mhz", device.clockMhz},
                    {"group_items", device.groupItems},
                    {"local_bytes", device.localBytes},
                    {"global_bytes", device.globalBytes},
                    {"allocation_bytes", device.allocationBytes},
                    {"unified_memory", device.unifiedMemory},
                    {"f64", device.doubles},
                    {"f16", device.halves}});
  return nlohmann::ordered_json{{"devices", list}}.dump(2) + "\n";
}

}  // namespace

Command devicesCommand() {
  auto json = std::make_shared<bool>(false);
  return {.name = "devices",
          .doc = "List the devices of the machine",
          .options = {{"--json", json.get(), "For programs"}},
          .action = [json] {
            const auto devices = opencl::devices();
            if (!devices.ok()) return report(devices.error());
            return finish(printOut(*json ? asJson(*devices) : asText(*devices)));
          }};
}

}  // namespace aglow::cli
