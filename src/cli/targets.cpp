// aglow targets: the machines that code is generated for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "backends/cpu/code/targets.h"
#include "cli/cli.h"

namespace aglow::cli {

namespace {

#if defined(__x86_64__)
constexpr std::string_view kOwnArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr std::string_view kOwnArchitecture = "aarch64";
#elif defined(__riscv)
constexpr std::string_view kOwnArchitecture = "riscv64";
#else
constexpr std::string_view kOwnArchitecture = "";
#endif

Status list(bool json) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text = fmt::format("{:<22} {:<16} {:<14} {}\n", "--target", "plainest --cpu", "needs", "");
  for (const codegen::TestedTarget& target : codegen::testedTargets()) {
    const bool own = target.architecture() == kOwnArchitecture;
    rows.push_back({{"target", target.triple},
                    {"plain_cpu", target.plainCpu},
                    {"needs", std::vector<std::string>(target.needs.begin(), target.needs.end())},
                    {"this_machine", own}});
    text += fmt::format("{:<22} {:<16} {:<14} {}\n", target.triple, target.plainCpu, fmt::join(target.needs, " "),
                        own ? "this machine" : "");
  }
  if (json) return printJson({{"targets", rows}});
  return printOut(text +
                  "\nOther processors of these targets are named as LLVM names them: --cpu cortex-a76, --cpu "
                  "x86-64-v3; --features +avx2,-avx512f\nchanges single instructions.\n");
}

}  // namespace

Command targetsCommand() {
  auto json = std::make_shared<bool>(false);
  return {.name = "targets",
          .doc = "List the machines that code is generated for",
          .options = {{"--json", json.get(), "Output for programs"}},
          .footer = "Example:\n  aglow compile model.onnx -o out --emit bundle --target aarch64-linux-gnu",
          .action = [json] { return finish(list(*json)); }};
}

}  // namespace aglow::cli
