// aglow doctor: what this machine and this installation have, in one page for a report.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "backends/cpu/code/cpu_features.h"
#include "backends/opencl/devices.h"
#include "backends/package_cache.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/parser.h"
#include "cli/version.h"
#include "compile/compile.h"
#include "support/machine.h"

namespace aglow::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != line.npos) return line.substr(colon + 2);
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

std::vector<std::string> instructionSets() {
  std::vector<std::string> all;
#if defined(__x86_64__)
  for (const codegen::CpuidBit& bit : codegen::cpuidBits()) all.emplace_back(bit.feature);
#elif defined(__aarch64__)
  for (const codegen::HwcapBit& bit : codegen::armBits()) all.emplace_back(bit.feature);
#elif defined(__riscv)
  for (const codegen::HwcapBit& bit : codegen::riscvBits()) all.emplace_back(bit.feature);
#endif
  const std::vector<std::string> missing = codegen::missingHere(all);
  std::erase_if(all, [&](const std::string& name) { return std::ranges::find(missing, name) != missing.end(); });
  return all;
}

Json cachesOfProcessor() {
  struct Level {
    const char* name;
    int key;
  };
  constexpr Level kLevels[] = {
      {"l1d", _SC_LEVEL1_DCACHE_SIZE}, {"l2", _SC_LEVEL2_CACHE_SIZE}, {"l3", _SC_LEVEL3_CACHE_SIZE}};
  Json sizes;
  for (const Level& level : kLevels)
    if (const long bytes = ::sysconf(level.key); bytes > 0) sizes[level.name] = bytes;
  return sizes;
}

Json backends() {
  Json rows;
  for (const std::string_view name : backendNames()) {
    const auto made = makeBackend({.backend = std::string(name)});
    rows[std::string(name)] = made.ok() ? "works" : made.error().message;
  }
  return rows;
}

Json devices() {
  Json rows = Json::array();
  if (const auto found = opencl::devices(); found.ok())
    for (const opencl::Device& device : *found)
      rows.push_back(fmt::format("opencl:{} {}", device.address(), device.name));
  return rows;
}

Json cacheOfModels() {
  const std::string folder = cacheFolder({});
  Json cache = {{"folder", folder}};
  if (const auto refused = whyRefused(folder)) cache["refused"] = *refused;
  int64_t bytes = 0;
  if (const auto entries = PackageCache(folder).entries(); entries.ok())
    for (const PackageCache::Entry& entry : *entries) bytes += entry.bytes;
  cache["bytes"] = bytes;
  return cache;
}

Json examine(bool measure) {
  const BuildFacts& build = buildFacts();
  Json facts = {
      {"version", build.version}, {"commit", build.commit}, {"llvm", build.llvm}, {"compiler", build.compiler}};
  facts["backends"] = backends();
  facts["processor"] = processorName();
  facts["instruction_sets"] = instructionSets();
  facts["cache_bytes"] = cachesOfProcessor();
  facts["processors"] = std::thread::hardware_concurrency();
  facts["usable_processors"] = machineThreads();
  facts["memory_bytes"] = machineMemory();
  if (measure) {
    const MachinePeak one = measurePeak(1), all = measurePeak(machineThreads());
    facts["peak"] = {{"gflops_one_thread", one.flops * 1e-9},
                     {"gflops", all.flops * 1e-9},
                     {"gbytes_per_s_one_thread", one.bytesPerSecond * 1e-9},
                     {"gbytes_per_s", all.bytesPerSecond * 1e-9}};
  }
  facts["devices"] = devices();
  facts["model_cache"] = cacheOfModels();
  const Program program = aglowProgram();
  if (const auto config = Config::read(program.commands); config.ok())
    facts["config"] = config->found() ? config->path() : "none";
  else
    facts["config"] = config.error().text();
  return facts;
}

std::string words(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.1f}", value.get<double>());
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value) text += (text.empty() ? "" : " ") + words(item);
    return text.empty() ? "none" : text;
  }
  return value.dump();
}

// A row for each fact; of those with parts, a row for each part.
std::string textOf(const Json& facts) {
  std::string text;
  for (const auto& [key, value] : facts.items()) {
    if (!value.is_object()) {
      text += fmt::format("{:<18} {}\n", key, words(value));
      continue;
    }
    text += key + "\n";
    for (const auto& [part, inner] : value.items()) text += fmt::format("  {:<24} {}\n", part, words(inner));
  }
  return text;
}

}  // namespace

Command doctorCommand() {
  struct Flags {
    bool json = false, quick = false;
  };
  auto flags = std::make_shared<Flags>();
  return {.name = "doctor",
          .doc = "Show what this machine and this installation have, for a report",
          .options = {{"--quick", &flags->quick, "Leave out what has to be measured: peak speed and bandwidth"},
                      {"--json", &flags->json, "Output for programs"}},
          .action = [flags] {
            const Json facts = examine(!flags->quick);
            return finish(flags->json ? printJson(facts) : printOut(textOf(facts)));
          }};
}

}  // namespace aglow::cli
