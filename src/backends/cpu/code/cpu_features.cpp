#include "backends/cpu/code/cpu_features.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

namespace aglow::codegen {

namespace {

using State = SavedState;

constexpr CpuidBit kCpuidBits[] = {
    {"sse3", 1, 0, 2, 0},
    {"ssse3", 1, 0, 2, 9},
    {"fma", 1, 0, 2, 12, State::Avx},
    {"sse4.1", 1, 0, 2, 19},
    {"sse4.2", 1, 0, 2, 20},
    {"movbe", 1, 0, 2, 22},
    {"popcnt", 1, 0, 2, 23},
    {"avx", 1, 0, 2, 28, State::Avx},
    {"f16c", 1, 0, 2, 29, State::Avx},
    {"bmi", 7, 0, 1, 3},
    {"avx2", 7, 0, 1, 5, State::Avx},
    {"bmi2", 7, 0, 1, 8},
    {"avx512f", 7, 0, 1, 16, State::Avx512},
    {"avx512dq", 7, 0, 1, 17, State::Avx512},
    {"avx512ifma", 7, 0, 1, 21, State::Avx512},
    {"avx512cd", 7, 0, 1, 28, State::Avx512},
    {"avx512bw", 7, 0, 1, 30, State::Avx512},
    {"avx512vl", 7, 0, 1, 31, State::Avx512},
    {"avx512vbmi", 7, 0, 2, 1, State::Avx512},
    {"avx512vbmi2", 7, 0, 2, 6, State::Avx512},
    {"gfni", 7, 0, 2, 8},
    {"avx512vnni", 7, 0, 2, 11, State::Avx512},
    {"avx512bitalg", 7, 0, 2, 12, State::Avx512},
    {"avx512vpopcntdq", 7, 0, 2, 14, State::Avx512},
    {"amx-bf16", 7, 0, 3, 22, State::Amx},
    {"avx512fp16", 7, 0, 3, 23, State::Avx512},
    {"amx-tile", 7, 0, 3, 24, State::Amx},
    {"amx-int8", 7, 0, 3, 25, State::Amx},
    {"avxvnni", 7, 1, 0, 4, State::Avx},
    {"avx512bf16", 7, 1, 0, 5, State::Avx512},
    {"avxifma", 7, 1, 0, 23, State::Avx},
    {"avxvnniint8", 7, 1, 3, 4, State::Avx},
    {"avxneconvert", 7, 1, 3, 5, State::Avx},
    {"avxvnniint16", 7, 1, 3, 10, State::Avx},
    {"avx10.1-256", 7, 1, 3, 19, State::Avx512},
    {"lzcnt", 0x80000001, 0, 2, 5},
    {"sse4a", 0x80000001, 0, 2, 6},
    {"xop", 0x80000001, 0, 2, 11, State::Avx},
    {"fma4", 0x80000001, 0, 2, 16, State::Avx},
    {"tbm", 0x80000001, 0, 2, 21},
};

constexpr HwcapBit kArmBits[] = {
    {"lse", 16, 8},  {"fullfp16", 16, 10}, {"rdm", 16, 12},  {"rcpc", 16, 15}, {"dotprod", 16, 20},
    {"sve", 16, 22}, {"sve2", 26, 1},      {"i8mm", 26, 13}, {"bf16", 26, 14},
};
constexpr HwcapBit kRiscvBits[] = {{"a", 16, 0}, {"c", 16, 2},  {"d", 16, 3},
                                   {"f", 16, 5}, {"m", 16, 12}, {"v", 16, 21}};

#if defined(__x86_64__)

uint64_t savedStates() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | uint64_t{high} << 32;
}

bool isHere(const std::string& feature) {
  const auto row = std::find_if(std::begin(kCpuidBits), std::end(kCpuidBits),
                                [&](const CpuidBit& bit) { return feature == bit.feature; });
  if (row == std::end(kCpuidBits)) return false;
  uint32_t words[4] = {};
  const auto ask = [&](uint32_t leaf, uint32_t subleaf) {
    return __get_cpuid_count(leaf, subleaf, &words[0], &words[1], &words[2], &words[3]) != 0;
  };
  const auto state = static_cast<uint64_t>(row->state);
  if (state != 0 && !(ask(1, 0) && (words[2] & kSystemSavesState) != 0 && (savedStates() & state) == state))
    return false;
  return ask(row->leaf, row->subleaf) && (words[row->word] >> row->bit & 1) != 0;
}

#else

std::span<const HwcapBit> ownBits() {
#if defined(__aarch64__)
  return kArmBits;
#elif defined(__riscv)
  return kRiscvBits;
#else
  return {};
#endif
}

bool isHere(const std::string& feature) {
  for (const HwcapBit& bit : ownBits())
    if (feature == bit.feature) return (getauxval(bit.key) >> bit.bit & 1) != 0;
  return false;
}

#endif

// What the processor says of itself, but for what depends on the core that is asked.
std::string identityText() {
#if defined(__x86_64__)
  struct Leaf {
    uint32_t number, part;
    uint32_t masks[4];
  };
  constexpr uint32_t kAll = ~0u;
  constexpr Leaf kLeaves[] = {
      {0, 0, {kAll, kAll, kAll, kAll}}, {1, 0, {kAll, 0, kAll, kAll}}, {7, 0, {kAll, kAll, kAll, kAll}},
      {7, 1, {kAll, kAll, kAll, kAll}}, {0xd, 1, {kAll, 0, 0, 0}},     {0x14, 0, {kAll, kAll, 0, 0}},
      {0x19, 0, {0, kAll, 0, 0}},       {0x24, 0, {0, kAll, 0, 0}},    {0x80000001, 0, {0, 0, kAll, kAll}},
      {0x80000008, 0, {0, kAll, 0, 0}},
  };
  std::string text;
  bool saves = false;
  for (const Leaf& leaf : kLeaves) {
    uint32_t words[4] = {};
    __get_cpuid_count(leaf.number, leaf.part, &words[0], &words[1], &words[2], &words[3]);
    if (leaf.number == 1) saves = (words[2] & kSystemSavesState) != 0;
    for (int i = 0; i < 4; ++i) text += fmt::format("{:08x} ", words[i] & leaf.masks[i]);
  }
  return text + fmt::format("{:x}", saves ? savedStates() : 0);
#else
  std::string text;
  for (const HwcapBit& bit : ownBits()) text += isHere(bit.feature) ? fmt::format("{} ", bit.feature) : "";
  return text;
#endif
}

}  // namespace

std::string processorText() {
  std::string text = identityText();
  for (const int name : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE})
    text += fmt::format(" {}", sysconf(name));
  return text;
}

std::span<const CpuidBit> cpuidBits() { return kCpuidBits; }
std::span<const HwcapBit> armBits() { return kArmBits; }
std::span<const HwcapBit> riscvBits() { return kRiscvBits; }

std::vector<std::string> missingHere(std::span<const std::string> features) {
  std::vector<std::string> missing(features.begin(), features.end());
  std::erase_if(missing, isHere);
  return missing;
}

}  // namespace aglow::codegen
