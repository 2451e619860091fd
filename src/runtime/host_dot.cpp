// What is where on a host, as a drawing.
#include <fmt/format.h>

#include "graph/dot.h"
#include "runtime/host.h"

namespace aglow {

std::string drawDot(const std::vector<NetworkInfo>& networks, const std::vector<DeviceStatistics>& devices) {
  std::string text = "digraph host {\n  rankdir=LR; node [shape=box, style=filled, fontname=Helvetica];\n";
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceStatistics& device = devices[i];
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", i,
                        fmt::format("{}{}\\n{} of {} bytes", escapeDot(device.name), device.healthy ? "" : " (out)",
                                    device.memoryUsed, device.memoryLimit));
    for (size_t n = 0; n < networks.size(); ++n)
      for (size_t replica = 0; replica < networks[n].replicas.size(); ++replica)
        for (size_t part = 0; part < networks[n].replicas[replica].size(); ++part) {
          const std::vector<std::string>& places = networks[n].replicas[replica];
          if (places[part] != device.name) continue;
          const std::string label = escapeDot(networks[n].name) +
                                    (places.size() > 1 ? fmt::format(" part {}", part) : "") +
                                    (networks[n].replicas.size() > 1 ? fmt::format("\\nreplica {}", replica + 1) : "");
          text += fmt::format("    n{}r{}p{} [label=\"{}\", fillcolor=\"/pastel19/{}\"];\n", n, replica, part, label,
                              n % 9 + 1);
        }
    text += "  }\n";
  }
  return text + "}\n";
}

}  // namespace aglow
