// Instructions that a processor may lack, by LLVM's names, and where processors and systems tell of them: cpuid on x86,
// the auxiliary vector on Linux elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace aglow::codegen {

// Registers that the system has to save for the instructions to be usable.
enum class SavedState : uint32_t { None = 0, Avx = 0x06, Avx512 = 0xe6, Amx = 0x600e6 };

struct CpuidBit {
  const char* feature;
  uint32_t leaf, subleaf;
  unsigned word, bit;  // word: eax, ebx, ecx, edx
  SavedState state = SavedState::None;
};
std::span<const CpuidBit> cpuidBits();
// Of leaf 1, ecx: the system saves the states that xgetbv names.
inline constexpr uint32_t kSystemSavesState = 1u << 27;

// Bits of the words that Linux gives each process.
struct HwcapBit {
  const char* feature;
  unsigned long key;  // AT_HWCAP, AT_HWCAP2
  unsigned bit;
};
std::span<const HwcapBit> armBits();
std::span<const HwcapBit> riscvBits();

// Those of the features that the processor at hand does not have, or that nothing tells of.
std::vector<std::string> missingHere(std::span<const std::string> features);

// All that code for this very processor depends on, as text: what it says of itself, and its caches.
std::string processorText();

}  // namespace aglow::codegen
