// A bundle: a model as code, header and weights that any C program can use, without a runtime. The code is an object of
// machine code, or a C file that runs kernels on a device.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/code/constant_pool.h"
#include "backends/cpu/code/memory_map.h"
#include "graph/interface.h"
#include "inst/program.h"

namespace aglow::codegen {

// A program's text, as the source that debug information points to.
struct Listing {
  std::string file;  // without a folder
  std::string text;
  std::vector<int> lines;  // of instructions, from 1

  int programLine() const { return lines.empty() ? 1 : lines.front() - 1; }
};

// A placeholder as the caller sees it.
struct BundleTensor {
  std::string name;    // the model's
  std::string symbol;  // in macros; unique in its entry
  Type type;
  Access access = Access::In;
  int64_t offset = 0;  // in mutable memory
  std::shared_ptr<const Labels> labels = nullptr;
};

// A region of state, which all entries share.
struct BundleState {
  static constexpr int64_t kZeros = -1;

  std::string symbol;  // in macros; unique in the bundle
  Region region;
  int64_t offset = 0;   // in the state's memory
  int64_t initial = 0;  // where its initial value is among the constants, or kZeros
};

// One function of the bundle: a function of the model for one set of sizes.
struct BundleEntry {
  std::string name;
  Program program;
  MemoryMap memory;
  std::vector<BundleTensor> inputs, outputs;  // in the model's order; what is both stands in both
  std::vector<std::string> unused;            // names of inputs that have no say in the outputs
  std::vector<int64_t> offsets;               // in mutable memory, of memory.placeholders()
  std::vector<int64_t> stateOffsets;          // in the state's memory, of memory.states()
  int64_t mutableBytes = 0;
  Listing listing;

  // At least one byte each, so that arrays can be declared.
  int64_t activationBytes() const;
};

struct Bundle {
  std::string name;
  std::string triple, cpu;
  std::vector<std::string> features;  // that NAME_check looks for
  bool threads = false;               // with a second function per entry, which takes a parallel_for
  bool weightsInC = false;
  bool debug = false;
  bool onDevice = false;  // functions take an open device instead of memory for constants, results and state
  std::vector<BundleEntry> entries;
  std::vector<BundleState> states;
  int64_t stateBytes = 0;  // aligned; 0: the functions take no state
  ConstantPool constants;
  uint64_t layout = 0;  // once it is sealed
  std::string options;  // what it was compiled with, as words of a command line

  // UnsupportedFeature where a program has other state under the name of one that is there.
  Status add(const std::string& entry, Program program, const Interface& interface);
  // After the last entry.
  void seal();

private:
  Result<int64_t> placeState(const Region& region);
};

// Names for functions of a bundle that clash neither with each other nor with what else the bundle defines.
std::vector<std::string> bundleFunctionNames(const std::string& bundle, const std::vector<std::string>& functions);

// What code knows of the weights it is for: where they lie, and what it computes with them, but not their values.
// Bundles of one layout may exchange them.
uint64_t layoutOf(const Bundle& bundle);

// What its functions give: the low bits of run_time.h.
struct BundleStatus {
  const char* name;
  int value;
  const char* meaning;
};
inline constexpr int kBundleBadMemory = 2, kBundleBadCpu = 3, kBundleBadWeights = 4;
inline constexpr BundleStatus kBundleStatuses[] = {
    {"OK", 0, "done"},
    {"BAD_INDEX", 1, "an index lies outside of its axis; nothing outside was touched"},
    {"BAD_MEMORY", kBundleBadMemory, "an address is null or not aligned"},
    {"BAD_CPU", kBundleBadCpu, "this processor lacks instructions that the code uses"},
    {"BAD_WEIGHTS", kBundleBadWeights, "the constants are damaged, or of another layout than the code's"},
};

// What those of a bundle for devices give.
inline constexpr BundleStatus kDeviceStatuses[] = {
    kBundleStatuses[0],
    kBundleStatuses[1],
    {"BAD_MEMORY", kBundleBadMemory, "an address is null"},
    {"BAD_DEVICE", kBundleBadCpu, "there is no device that can run the kernels"},
    kBundleStatuses[4],
    {"DEVICE_FAULT", 5, "a call of OpenCL failed"},
    {"NO_MEMORY", 6, "host or device has no memory left"},
};

// The header's macros: after the bundle's name, where the statuses stand as well; after an entry's name; and after the
// symbol of a tensor, which keeps clear of all of them.
inline constexpr std::string_view kBundleMacros[] = {
    "VERSION",   "TARGET",          "CPU",    "FEATURES",    "WEIGHTS_HASH", "WEIGHTS_LAYOUT", "OPTIONS",
    "ALIGNMENT", "CONSTANTS_BYTES", "STATUS", "INSTRUCTION",
};
inline constexpr std::string_view kEntryMacros[] = {"MUTABLE_BYTES", "ACTIVATIONS_BYTES"};
inline constexpr std::string_view kTensorMacros[] = {
    "",      "_OFFSET", "_BYTES", "_ELEMENTS", "_RANK", "_SHAPE", "_KEYS", "_KEYS_COUNT", "_WORDS", "_WORDS_COUNT",
    "_DIM0", "_DIM1",   "_DIM2",  "_DIM3",     "_DIM4", "_DIM5",  "_DIM6", "_DIM7",       "_DIM8",  "_DIM9"};

// The text of NAME.h.
std::string bundleHeader(const Bundle& bundle);
// The text of NAME_weights.c.
std::string bundleWeightsInC(const Bundle& bundle);

}  // namespace aglow::codegen
