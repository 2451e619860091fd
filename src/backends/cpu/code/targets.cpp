#include "backends/cpu/code/targets.h"

namespace aglow::codegen {

namespace {

constexpr std::string_view kX86[] = {"64bit", "sse2"}, kArm[] = {"fp-armv8", "neon"}, kRiscv[] = {"m", "a", "f", "d"};
constexpr TestedTarget kTargets[] = {
    {"x86_64-linux-gnu", "x86-64", kX86},
    {"aarch64-linux-gnu", "generic", kArm},
    {"riscv64-linux-gnu", "generic-rv64", kRiscv},
};

}  // namespace

std::span<const TestedTarget> testedTargets() { return kTargets; }

}  // namespace aglow::codegen
