// The header of a bundle, which is its manual as well, and weights as C.
#include <fmt/format.h>

#include <array>

#include "backends/cpu/bundle/bundle.h"
#include "backends/cpu/bundle/c_names.h"
#include "backends/cpu/code/run_time.h"

namespace aglow::codegen {

namespace {

std::string_view cType(ElemKind kind) {
  switch (storageKind(kind)) {
    case ElemKind::Float32:
      return "float";
    case ElemKind::Float64:
      return "double";
    case ElemKind::Float16:
    case ElemKind::BFloat16:
    case ElemKind::UInt16:
      return "uint16_t";
    case ElemKind::Int2:
    case ElemKind::Int4:
    case ElemKind::Int8:
      return "int8_t";
    case ElemKind::Int16:
      return "int16_t";
    case ElemKind::Int32:
      return "int32_t";
    case ElemKind::Int64:
      return "int64_t";
    case ElemKind::UInt32:
      return "uint32_t";
    case ElemKind::UInt64:
      return "uint64_t";
    default:
      return "uint8_t";
  }
}

// The digits of the smallest number are not a constant in C, for they stand without their sign.
std::string cNumber(const std::string& number) {
  return number == std::to_string(INT64_MIN) ? "INT64_MIN" : fmt::format("INT64_C({})", number);
}

class HeaderWriter {
public:
  explicit HeaderWriter(const Bundle& bundle) : bundle_(bundle), upper_(upperCase(bundle.name)) {}

  std::string text() {
    manual();
    put("#ifndef AGLOW_BUNDLE_{0}_H\n#define AGLOW_BUNDLE_{0}_H\n\n#include <stdint.h>\n\n", upper_);
    common();
    for (const BundleEntry& entry : bundle_.entries) macros(entry);
    put("#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n");
    declarations();
    put("#ifdef __cplusplus\n}}\n#endif\n\n#endif\n");
    return std::move(text_);
  }

private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  static std::string sizesOf(const BundleTensor& tensor) { return commentText(tensor.type.text()); }

  void manual() {
    const BundleEntry& first = bundle_.entries.front();
    put("/* {}: a neural network, compiled by Aglow {}\n *\n", bundle_.name, AGLOW_VERSION);
    put(" * target    {}, {} {}\n", bundle_.triple, bundle_.onDevice ? "kernels chosen for" : "processor",
        commentText(bundle_.cpu));
    if (!bundle_.onDevice)
      put(" * needs     {}\n", bundle_.features.empty() ? "nothing beyond the base instructions"
                                                        : fmt::format("{}", fmt::join(bundle_.features, " ")));
    put(" * weights   {}, {} bytes, hash 0x{:016x}; others of layout 0x{:016x} may take their place\n *\n",
        weightsFile(), bundle_.constants.bytes(), bundle_.constants.hash(), bundle_.layout);
    for (const BundleEntry& entry : bundle_.entries) {
      put(" * {}()\n", entry.name);
      tensors("in ", entry.inputs);
      tensors("out", entry.outputs);
      for (const std::string& name : entry.unused)
        put(" *   in   {:<24} is not used, or was fixed when the model was compiled\n", commentText(name));
      put(" *\n");
    }
    if (hasState()) stateManual();
    if (bundle_.onDevice) {
      deviceManual(first);
      return;
    }
    put(" * The functions allocate nothing, print nothing and keep nothing: calls with separate mutable memory{} and\n"
        " * activations may run at the same time. All memory is the caller's, aligned to {}_ALIGNMENT bytes:\n",
        hasState() ? ", state" : "", upper_);
    put(" *   constants    {}_CONSTANTS_BYTES, the weights as they are in the file; only read\n", upper_);
    put(" *   mutableMem   {}_MUTABLE_BYTES, inputs and outputs at their offsets\n", upperCase(first.name));
    put(" *   activations  {}_ACTIVATIONS_BYTES, whose contents mean nothing before and after a call\n",
        upperCase(first.name));
    if (hasState())
      put(" *   state        {}_STATE_BYTES, shared by all functions: what one leaves there, the next one finds\n",
          upper_);
    put(" *\n");
    example(first);
    put(" */\n");
  }

  void deviceManual(const BundleEntry& first) {
    put(" * {0}.c runs the kernels on a device by OpenCL 1.2: link it with -lOpenCL. {0}_open() takes a device, builds "
        "the\n"
        " * kernels and uploads the constants, which are not needed afterwards. One thread at a time uses an open "
        "device; a\n"
        " * program may open several. mutableMem has {1}_MUTABLE_BYTES, inputs and outputs at their offsets.\n *\n",
        bundle_.name, upperCase(first.name));
    put(" *   {0}_device *device;\n *   if ({0}_open(NULL, constants, &device) != {1}_OK) puts({0}_words(device));\n",
        bundle_.name, upper_);
    copyIn(first);
    put(" *   if ({}(device, mutableMem) != {}_OK) ...;\n", first.name, upper_);
    copyOut(first);
    put(" *   {}_close(device);\n */\n", bundle_.name);
  }

  void copyIn(const BundleEntry& entry) {
    if (!entry.inputs.empty())
      put(" *   memcpy({0}_{1}(mutableMem), x, {0}_{1}_BYTES);\n", upperCase(entry.name), entry.inputs.front().symbol);
  }
  void copyOut(const BundleEntry& entry) {
    if (!entry.outputs.empty())
      put(" *   const {} *y = {}_{}(mutableMem);\n", cType(entry.outputs.front().type.kind()), upperCase(entry.name),
          entry.outputs.front().symbol);
  }

  bool hasState() const { return bundle_.stateBytes > 0; }

  void stateManual() {
    put(" * state\n");
    for (const BundleState& state : bundle_.states)
      put(" *        {:<24} {:<28} at {}, {} bytes\n", commentText(state.region.name),
          commentText(state.region.type.text()), state.offset, state.region.type.bytes());
    put(" *\n");
  }

  std::string weightsFile() const { return bundle_.name + (bundle_.weightsInC ? "_weights.c" : ".weights.bin"); }

  void tensors(const char* what, const std::vector<BundleTensor>& list) {
    for (const BundleTensor& tensor : list) {
      put(" *   {}  {:<24} {:<28} at {}, {} bytes\n", what, commentText(tensor.name), sizesOf(tensor), tensor.offset,
          tensor.type.bytes());
      if (tensor.labels)
        put(" *{:32}{}\n", "",
            tensor.labels->of == Labels::Of::Columns ? "each row is a map, with a column for each key"
                                                     : "each element says which of the words it is");
    }
  }

  void example(const BundleEntry& entry) {
    put(" *   if ({}_check(constants) != {}_OK) ...;\n", bundle_.name, upper_);
    copyIn(entry);
    if (hasState()) put(" *   if ({}_state_init(constants, state) != {}_OK) ...;\n", bundle_.name, upper_);
    put(" *   if ({}(constants, mutableMem, activations{}) != {}_OK) ...;\n", entry.name, hasState() ? ", state" : "",
        upper_);
    copyOut(entry);
  }

  void common() {
    put("#define {}_VERSION \"{}\"\n", upper_, AGLOW_VERSION);
    put("#define {}_TARGET \"{}\"\n", upper_, bundle_.triple);
    put("#define {}_CPU {}\n", upper_, cString(bundle_.cpu));
    put("#define {}_FEATURES \"{}\"\n", upper_, fmt::join(bundle_.features, " "));
    put("#define {}_WEIGHTS_HASH UINT64_C(0x{:016x})\n", upper_, bundle_.constants.hash());
    put("#define {}_WEIGHTS_LAYOUT UINT64_C(0x{:016x})\n", upper_, bundle_.layout);
    if (!bundle_.options.empty()) put("#define {}_OPTIONS {}\n", upper_, cString(bundle_.options));
    put("#define {}_ALIGNMENT {}\n", upper_, Program::kAlignment);
    put("#define {}_CONSTANTS_BYTES {}\n\n", upper_, bundle_.constants.bytes());
    put("/* What the functions give. An entry adds the number of the instruction that failed: see {0}_STATUS and\n"
        " * {0}_INSTRUCTION. */\n",
        upper_);
    const std::span<const BundleStatus> statuses =
        bundle_.onDevice ? std::span<const BundleStatus>(kDeviceStatuses) : kBundleStatuses;
    for (const BundleStatus& status : statuses)
      put("#define {}_{} {} /* {} */\n", upper_, status.name, status.value, status.meaning);
    put("#define {}_STATUS(result) ((result) & {})\n", upper_, (1 << kStatusBits) - 1);
    put("#define {}_INSTRUCTION(result) ((result) >> {})\n\n", upper_, kStatusBits);
    if (hasState()) stateMacros();
  }

  void stateMacros() {
    put("/* Memory of the state, with the addresses of its parts. */\n#define {}_STATE_BYTES {}\n", upper_,
        bundle_.stateBytes);
    for (const BundleState& state : bundle_.states)
      place(upper_ + "_STATE_" + state.symbol, state.region.type, state.offset, "state");
    put("\n");
  }

  // The macros of a tensor at its offset in some memory.
  void place(const std::string& name, const Type& type, int64_t offset, std::string_view memory) {
    put("#define {}_OFFSET {}\n", name, offset);
    put("#define {}_BYTES {}\n", name, type.bytes());
    put("#define {}_ELEMENTS {}\n", name, type.elements());
    put("#define {}_RANK {}\n", name, type.rank());
    for (int axis = 0; axis < type.rank(); ++axis) put("#define {}_DIM{} {}\n", name, axis, type.dim(axis));
    put("#define {}_SHAPE {{{}}}\n", name,
        type.rank() == 0 ? "1" : fmt::format("{}", fmt::join(type.shape().dims(), ", ")));
    put("#define {0}({1}) (({2} *)(void *)(({1}) + {0}_OFFSET))\n", name, memory, cType(type.kind()));
  }

  void macros(const BundleEntry& entry) {
    const std::string upper = upperCase(entry.name);
    put("/* Memory of {}(), with the addresses of its inputs and outputs. */\n", entry.name);
    put("#define {}_MUTABLE_BYTES {}\n", upper, entry.mutableBytes);
    if (!bundle_.onDevice) put("#define {}_ACTIVATIONS_BYTES {}\n", upper, entry.activationBytes());
    std::set<std::string> done;
    for (const auto* list : {&entry.inputs, &entry.outputs}) {
      for (const BundleTensor& tensor : *list) {
        if (!done.insert(tensor.symbol).second) continue;
        place(upper + "_" + tensor.symbol, tensor.type, tensor.offset, "mutableMem");
        if (tensor.labels) labels(upper + "_" + tensor.symbol, *tensor.labels);
      }
    }
    put("\n");
  }

  // For the initializer of an array: const char *const keys[] = NAME_KEYS;
  void labels(const std::string& name, const Labels& labels) {
    const char* what = labels.of == Labels::Of::Columns ? "KEYS" : "WORDS";
    std::vector<std::string> texts;
    for (int64_t i = 0; i < sizeOf(labels.names); ++i)
      texts.push_back(areStrings(labels.names) ? cString(keyText(labels.names, i)) : cNumber(keyText(labels.names, i)));
    put("#define {}_{}_COUNT {}\n", name, what, texts.size());
    put("#define {}_{} {{{}}}\n", name, what, fmt::join(texts, ", "));
  }

  void deviceDeclarations() {
    put("typedef struct {0}_device {0}_device;\n\n", bundle_.name);
    put("/* {0}_OK, {0}_BAD_MEMORY or {0}_BAD_WEIGHTS. */\nint {1}_check(const uint8_t *constants);\n\n", upper_,
        bundle_.name);
    put("/* The device as PLATFORM/DEVICE: numbers, or parts of their names; either may be left out. NULL: what the\n"
        " * environment's AGLOW_OPENCL_DEVICE says, else the first, a GPU before others. After a failure {0}_words() "
        "says\n"
        " * what was wrong, and the device is good for {0}_close() alone. */\n"
        "int {0}_open(const char *device, const uint8_t *constants, {0}_device **opened);\n"
        "void {0}_close({0}_device *device);\n"
        "/* What the last failure was, in words. */\n"
        "const char *{0}_words(const {0}_device *device);\n\n",
        bundle_.name);
    if (hasState())
      put("/* The state lies on the device, with its initial values at first. All of it begins again; is copied out; "
          "is\n"
          " * replaced. */\n"
          "int {0}_state_init({0}_device *device);\n"
          "int {0}_state_read({0}_device *device, uint8_t *state);\n"
          "int {0}_state_write({0}_device *device, const uint8_t *state);\n\n",
          bundle_.name);
    for (const BundleEntry& entry : bundle_.entries)
      put("int {}({}_device *device, uint8_t *mutableMem);\n", entry.name, bundle_.name);
    put("\n");
  }

  void weightsDeclaration() {
    if (bundle_.weightsInC)
      put("/* {}_weights.c */\nextern const uint8_t {}_weights[{}_CONSTANTS_BYTES];\n\n", bundle_.name, bundle_.name,
          upper_);
  }

  void declarations() {
    if (bundle_.onDevice) {
      deviceDeclarations();
      weightsDeclaration();
      return;
    }
    if (bundle_.threads) parallelTypes();
    put("/* {0}_OK, {0}_BAD_MEMORY, {0}_BAD_CPU or {0}_BAD_WEIGHTS. To be asked before the first run. */\n", upper_);
    put("int {}_check(const uint8_t *constants);\n\n", bundle_.name);
    const std::string_view state = hasState() ? ", uint8_t *state" : "";
    if (hasState())
      put("/* Writes the initial values. {0}_OK or {0}_BAD_MEMORY. */\n"
          "int {1}_state_init(const uint8_t *constants, uint8_t *state);\n\n",
          upper_, bundle_.name);
    for (const BundleEntry& entry : bundle_.entries) {
      put("int {}(const uint8_t *constants, uint8_t *mutableMem, uint8_t *activations{});\n", entry.name, state);
      if (bundle_.threads)
        put("int {}_parallel(const uint8_t *constants, uint8_t *mutableMem, uint8_t *activations{},\n"
            "    const {}_parallel_for *parallelFor);\n",
            entry.name, state, bundle_.name);
    }
    put("\n/* Names, types and sizes for programs: see aglow/bundle.h. */\nstruct aglow_bundle_info;\n");
    put("extern const struct aglow_bundle_info {}_info;\n\n", bundle_.name);
    weightsDeclaration();
  }

  void parallelTypes() {
    put("/* How the host spreads work over threads: run() calls step(addresses, from, to) for parts that cover begin "
        "to\n"
        " * end, on any threads (`threads` are worth their while), returns when all are done, and gives the largest "
        "of\n"
        " * their results. Results do not depend on the parts. Without one (null), all is done by the calling thread. "
        "*/\n");
    put("typedef int32_t {}_step(void *const *addresses, int64_t begin, int64_t end);\n", bundle_.name);
    put("typedef struct {0}_parallel_for {{\n"
        "  int32_t (*run)(void *context, {0}_step *step, void *const *addresses, int64_t begin,\n"
        "                 int64_t end, int32_t threads);\n"
        "  void *context;\n}} {0}_parallel_for;\n\n",
        bundle_.name);
  }

  const Bundle& bundle_;
  std::string upper_;
  std::string text_;
};

}  // namespace

std::string bundleHeader(const Bundle& bundle) { return HeaderWriter(bundle).text(); }

std::string bundleWeightsInC(const Bundle& bundle) {
  std::string text = fmt::format("/* The weights of {}. */\n#include \"{}.h\"\n\n", bundle.name, bundle.name);
  text += fmt::format(
      "#if defined(__cplusplus)\n#define AGLOW_ALIGNED alignas({0})\n#elif __STDC_VERSION__ >= 201112L\n"
      "#define AGLOW_ALIGNED _Alignas({0})\n#else\n#define AGLOW_ALIGNED __attribute__((aligned({0})))\n#endif\n\n",
      Program::kAlignment);
  text += fmt::format("AGLOW_ALIGNED const uint8_t {}_weights[{}_CONSTANTS_BYTES] = {{", bundle.name,
                      upperCase(bundle.name));
  std::array<std::string, 256> numbers;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = fmt::format("{},", i);
  text.reserve(static_cast<size_t>(bundle.constants.bytes()) * 4);
  int64_t at = 0;
  for (const std::span<const std::byte> piece : bundle.constants.pieces()) {
    for (const std::byte value : piece) {
      if (at++ % 32 == 0) text += '\n';
      text += numbers[static_cast<size_t>(value)];
    }
  }
  return text + "\n};\n";
}

}  // namespace aglow::codegen
