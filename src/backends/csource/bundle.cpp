#include "backends/csource/bundle.h"

#include <fmt/format.h>

#include "backends/bundle_types.h"
#include "backends/cpu/bundle/c_names.h"
#include "backends/cpu/code/run_time.h"
#include "backends/csource/plain_text.h"
#include "backends/device/kernel_texts.h"
#include "inst/fused.h"

namespace aglow::csource {

namespace {

using codegen::Bundle;
using codegen::BundleEntry;
using codegen::BundleTensor;
using codegen::Launch;

class SourceWriter {
public:
  SourceWriter(const Bundle& bundle, const codegen::DeviceShape& shape)
      : bundle_(bundle), shape_(shape), upper_(codegen::upperCase(bundle.name)) {}

  std::string text() {
    for (const BundleEntry& entry : bundle_.entries) functions_ += function(entry);
    put("/* {0}: a neural network in C99, written by Aglow {1}. {0}.h is its manual; it takes any compiler, and links "
        "with -lm.\n * Compilers make loops of vectors where they are asked to: -O3, and the processor (-march=...). "
        "*/\n#include \"{0}.h\"\n",
        bundle_.name, AGLOW_VERSION);
    text_ += prelude();
    put("\n/* ---- kernels, which are called for each of their items ---- */\n");
    text_ += kernels_.source({});
    put("\n/* ---- functions ---- */\n");
    text_ += hashText();
    check();
    stateInit();
    text_ += functions_;
    put("\n/* ---- names, types and sizes for programs: the structures of aglow/bundle.h ---- */\n{}", bundleTypes());
    info();
    return std::move(text_);
  }

private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  bool hasState() const { return bundle_.stateBytes > 0; }
  std::string parameters() const {
    return fmt::format("const uint8_t *constants, uint8_t *mutableMem, uint8_t *activations{}",
                       hasState() ? ", uint8_t *state" : "");
  }

  void check() {
    put("\nint {0}_check(const uint8_t *constants) {{\n"
        "  uint64_t seal[2];\n"
        "  if (!aglow_fits(constants)) return {1}_BAD_MEMORY;\n"
        "  memcpy(seal, constants + ({1}_CONSTANTS_BYTES - 64), sizeof seal);\n"
        "  if (seal[1] != {1}_WEIGHTS_LAYOUT) return {1}_BAD_WEIGHTS;\n"
        "  return aglow_hash_of(constants, {1}_CONSTANTS_BYTES / 64 - 1) == seal[0] ? {1}_OK : {1}_BAD_WEIGHTS;\n}}\n",
        bundle_.name, upper_);
  }

  void stateInit() {
    if (!hasState()) return;
    put("\nint {0}_state_init(const uint8_t *constants, uint8_t *state) {{\n"
        "  if (!aglow_fits(constants) || !aglow_fits(state)) return {1}_BAD_MEMORY;\n",
        bundle_.name, upper_);
    for (const codegen::BundleState& part : bundle_.states) {
      if (part.initial == codegen::BundleState::kZeros)
        put("  memset(state + {}, 0, {});\n", part.offset, part.region.type.bytes());
      else
        put("  memcpy(state + {}, constants + {}, {});\n", part.offset, part.initial, part.region.type.bytes());
    }
    put("  return {}_OK;\n}}\n", upper_);
  }

  // Where the region begins, as an expression.
  static std::string addressOf(const BundleEntry& entry, const Extent& extent) {
    const Region& root = entry.program[extent.root];
    const auto at = [&](const char* memory, int64_t offset) {
      return offset + extent.begin == 0 ? memory : fmt::format("{} + {}", memory, offset + extent.begin);
    };
    if (const auto* allocated = root.as<Allocated>()) return at("activations", allocated->offset);
    if (root.as<ConstantInit>() != nullptr) return at("(uint8_t *)constants", entry.memory[extent.root].offset);
    for (size_t i = 0; i < entry.offsets.size(); ++i)
      if (entry.memory.placeholders()[i] == extent.root) return at("mutableMem", entry.offsets[i]);
    for (size_t i = 0; i < entry.stateOffsets.size(); ++i)
      if (entry.memory.states()[i] == extent.root) return at("state", entry.stateOffsets[i]);
    AGLOW_CHECK(false, "a region that lies nowhere");
    return {};
  }

  // The instructions as calls of their kernels, in order.
  std::string function(const BundleEntry& entry) {
    const Program& program = entry.program;
    const std::vector<Extent> extents = program.extents();
    std::string body;
    bool checks = false;
    for (size_t i = 0; i < program.instrs.size(); ++i) {
      const Instr& instr = program.instrs[i];
      if (instr.isMarker() || instr.kind == Instr::Kind::CopyWait) continue;
      std::string calls;
      bool reports = false;
      for (const Launch& launch : codegen::launchesOf(program, instr, shape_)) {
        calls += call(entry, i, extents, launch);
        for (const auto& argument : launch.arguments) reports = reports || argument.operand == Launch::kFault;
      }
      if (calls.empty()) continue;
      body += fmt::format("  /* {}: {} */\n{}", i, codegen::commentText(title(instr)), calls);
      if (reports)
        body +=
            fmt::format("  if (fault.seen != 0) return {}_BAD_INDEX | {} << {};\n", upper_, i, codegen::kStatusBits);
      checks = checks || reports;
    }
    return fmt::format(
        "\nint {}({}) {{\n{}  if (!aglow_fits(constants) || !aglow_fits(mutableMem) || !aglow_fits(activations){}) "
        "return "
        "{}_BAD_MEMORY;\n"
        "{}  return {}_OK;\n}}\n",
        entry.name, parameters(), checks ? "  struct fault fault = {0, 0, 0};\n" : "",
        hasState() ? " || !aglow_fits(state)" : "", upper_, body, upper_);
  }

  static std::string title(const Instr& instr) {
    std::string names;
    for (const Instr& step : bodyOf(instr)) names += (names.empty() ? "" : "+") + std::string(instrName(step));
    return instr.origin.empty() ? names : fmt::format("{} ({})", instr.origin, names);
  }

  std::string call(const BundleEntry& entry, size_t number, const std::vector<Extent>& extents, const Launch& launch) {
    const Instr& instr = entry.program.instrs[number];
    const PlainKernel plain = plainKernel(launch.text);
    const size_t kernel = kernels_.add(plain.text);
    std::string loops, items, arguments;
    for (size_t axis = 2; axis-- > 0;) {
      const std::string name = axis == 0 ? "x" : "y";
      if (launch.items[axis] > 1)
        loops += fmt::format("for (size_t {0} = 0; {0} < {1}; ++{0}) ", name, launch.items[axis]);
      if (plain.takesItem[axis]) items = fmt::format("{}, {}", launch.items[axis] > 1 ? name : "0", items);
    }
    for (const auto& [argument, offset] : launch.arguments) {
      const RegionId region = argument == Launch::kPredicate ? instr.predicate
                              : argument == Launch::kFault   ? kNoRegion
                                                             : instr.operands[static_cast<size_t>(argument)].region;
      arguments += arguments.empty() ? "" : ", ";
      arguments += region == kNoRegion ? "&fault" : addressOf(entry, extents[static_cast<size_t>(region)]);
      if (offset != 0) arguments += fmt::format(" + {}", offset);
    }
    return fmt::format("  {}{}({}{});\n  STEP_ENDS({});\n", loops, device::KernelTexts::nameOf(kernel), items,
                       arguments, number);
  }

  // ---------------------------------------------------------------- the description

  static std::string tensorRow(const std::string& name, const Type& type, int64_t offset, const std::string& dims) {
    return fmt::format("  {{{}, {}, {}, {}, {}, {}, {}}},\n", codegen::cString(name),
                       codegen::cString(elemName(type.kind())), codegen::cString(type.text()), type.rank(), dims,
                       offset, type.bytes());
  }

  // An array of tensors, and the name it has.
  template <class List, class Row>
  std::string tensors(const std::string& name, const List& list, const Row& row) {
    if (list.empty()) return "NULL";
    std::string rows;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto& [given, type, offset] = row(list[i]);
      std::string dims = "NULL";
      if (type->rank() > 0) {
        dims = fmt::format("{}_dims_{}", name, i);
        put("static const int64_t {}[] = {{{}}};\n", dims, fmt::join(type->shape().dims(), ", "));
      }
      rows += tensorRow(given, *type, offset, dims);
    }
    put("static const aglow_bundle_tensor {}[] = {{\n{}}};\n", name, rows);
    return name;
  }

  void info() {
    const auto ofTensor = [](const BundleTensor& t) { return std::tuple(t.name, &t.type, t.offset); };
    const auto ofState = [](const codegen::BundleState& s) {
      return std::tuple(s.region.name, &s.region.type, s.offset);
    };
    std::string entries;
    for (size_t i = 0; i < bundle_.entries.size(); ++i) {
      const BundleEntry& entry = bundle_.entries[i];
      const std::string inputs = tensors(fmt::format("aglow_inputs_{}", i), entry.inputs, ofTensor);
      const std::string outputs = tensors(fmt::format("aglow_outputs_{}", i), entry.outputs, ofTensor);
      std::string run = entry.name;
      if (!hasState()) {
        run = fmt::format("aglow_run_{}", i);
        put("static int {}(const uint8_t *aglow_constants, uint8_t *aglow_memory, uint8_t *aglow_results,\n"
            "    uint8_t *aglow_state) {{\n"
            "  (void)aglow_state;\n  return {}(aglow_constants, aglow_memory, aglow_results);\n}}\n",
            run, entry.name);
      }
      entries += fmt::format("  {{{}, {}, NULL, {}, {}, {}, {}, {}, {}}},\n", codegen::cString(entry.name), run,
                             entry.mutableBytes, entry.activationBytes(), entry.inputs.size(), inputs,
                             entry.outputs.size(), outputs);
    }
    const std::string states = tensors("aglow_states", bundle_.states, ofState);
    put("static const aglow_bundle_entry aglow_entries[] = {{\n{}}};\n", entries);
    put("const aglow_bundle_info {0}_info = {{\n  AGLOW_BUNDLE_LAYOUT, {1}, {2}_VERSION, {2}_TARGET, {2}_CPU, "
        "{2}_FEATURES, "
        "{2}_WEIGHTS_HASH, {2}_CONSTANTS_BYTES,\n  {0}_check, {3}, aglow_entries, {4}, {5}, {6}, {7},\n}};\n",
        bundle_.name, codegen::cString(bundle_.name), upper_, bundle_.entries.size(), bundle_.stateBytes,
        bundle_.states.size(), states, hasState() ? bundle_.name + "_state_init" : "NULL");
  }

  const Bundle& bundle_;
  const codegen::DeviceShape& shape_;
  std::string upper_;
  device::KernelTexts kernels_;
  std::string functions_, text_;
};

}  // namespace

std::string bundleSource(const Bundle& bundle, const codegen::DeviceShape& shape) {
  return SourceWriter(bundle, shape).text();
}

}  // namespace aglow::csource
