// The C interface of include/aglow/aglow.h. Nothing thrown inside leaves through it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>

#include "aglow/aglow.h"
#include "api/faults.h"
#include "api/options.h"
#include "codegen/code_cache.h"
#include "import/model_file.h"
#include "support/machine.h"
#include "support/quote.h"

namespace aglow {

thread_local std::string lastError;

namespace {

// A model's input or output: how callers see it, where its bytes are, and which placeholder it is.
struct Slot {
  std::string name;
  Type type;
  aglow_tensor_info info = {};
  std::byte* data = nullptr;
  bool bound = false;
  int binding = -1;  // of the executable; none where the program does not need it
};

// ONNX has no number for quantized kinds; the bytes are those of plain integers.
aglow_kind kindOf(const Type& type) { return static_cast<aglow_kind>(elemInfo(storageKind(type.kind())).onnx); }

void addSlots(const std::vector<Port>& ports, std::span<const Binding> bindings, const std::string& prefix,
              std::deque<Slot>& slots) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    const std::string name = prefix.empty() ? port.name : fmt::format("{}[{}]", prefix, i);
    addSlots(port.items, bindings, name, slots);
    if (port.kind != Port::Kind::Tensor) continue;
    Slot& slot = slots.emplace_back(Slot{.name = name, .type = port.type});
    slot.info = {.name = slot.name.c_str(),
                 .kind = kindOf(slot.type),
                 .rank = static_cast<size_t>(slot.type.shape().rank()),
                 .dims = slot.type.shape().dims().data(),
                 .bytes = static_cast<size_t>(slot.type.bytes())};
    const auto it =
        std::find_if(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.name == port.placeholder; });
    if (it != bindings.end()) slot.binding = static_cast<int>(it - bindings.begin());
  }
}

Status bindSlot(std::deque<Slot>& slots, size_t index, std::byte* data, size_t bytes, std::string_view what) {
  if (index >= slots.size())
    return Error{.code = Code::Usage,
                 .message = fmt::format("there is no {} {}, the model has {}", what, index, slots.size())};
  Slot& slot = slots[index];
  const auto fault = [&](std::string message) {
    return Error{.code = Code::BadBinding,
                 .message = std::move(message),
                 .where = fmt::format("{} {}", what, quoted(slot.name))};
  };
  if (bytes != slot.info.bytes)
    return fault(fmt::format("{} takes {} bytes, got {}", slot.type.text(), slot.info.bytes, bytes));
  if (data == nullptr && bytes > 0) return fault("the address is null");
  const auto unit = static_cast<uintptr_t>(elemBytes(slot.type.kind()));
  if (reinterpret_cast<uintptr_t>(data) % unit != 0)
    return fault(fmt::format("its address is not a multiple of {}, the size of an element", unit));
  slot.data = data;
  slot.bound = true;
  return {};
}

// The addresses in the order of the executable.
Result<std::vector<TensorRef>> refsOf(const std::deque<Slot>& slots, std::span<const Binding> bindings,
                                      std::string_view what) {
  std::vector<TensorRef> refs(bindings.size());
  for (const Slot& slot : slots) {
    if (!slot.bound)
      return Error{.code = Code::MissingBinding,
                   .message = fmt::format("{} {} of type {} is not bound", what, quoted(slot.name), slot.type.text())};
    if (slot.binding >= 0) refs[static_cast<size_t>(slot.binding)] = {&slot.type, slot.data};
  }
  return refs;
}

int find(const std::deque<Slot>& slots, const char* name) {
  for (size_t i = 0; name != nullptr && i < slots.size(); ++i)
    if (slots[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace

}  // namespace aglow

using namespace aglow;

struct aglow_model {
  std::unique_ptr<Executable> executable;
  std::deque<Slot> inputs, outputs;  // in which callers keep addresses
  std::string target;
  aglow_model_info info = {};
};

namespace {

aglow_status load(Diagnosed<Compilation> compiled, const aglow_options& options, aglow_model** result) {
  if (!compiled.ok()) return fail(compiled.diagnostics());
  const Interface interface = compiled->interface;
  BackendOptions backend = options.backend;
  if (backend.threads == 0) backend.threads = machineThreads();
  auto executable = aglow::load(*std::move(compiled), backend);
  if (!executable.ok()) return fail(executable.error());
  auto model = std::make_unique<aglow_model>();
  model->executable = *std::move(executable);
  addSlots(interface.inputs, model->executable->inputs(), {}, model->inputs);
  addSlots(interface.outputs, model->executable->outputs(), {}, model->outputs);
  for (const Slot& slot : model->outputs)
    AGLOW_CHECK(slot.binding >= 0, "the program does not give the output " + slot.name);
  const ExecutableFacts facts = model->executable->facts();
  model->target = facts.target;
  model->info = {.target = model->target.c_str(),
                 .threads = facts.threads,
                 .arena_bytes = facts.arenaBytes,
                 .weights_bytes = facts.weightsBytes};
  *result = model.release();
  return AGLOW_OK;
}

Result<Shape> shapeOf(const int64_t* dims, size_t rank) {
  return Shape::create(rank == 0 ? std::vector<int64_t>{} : std::vector<int64_t>(dims, dims + rank));
}

}  // namespace

const aglow_options& aglow::orDefault(const aglow_options* options) {
  static const aglow_options none{.compile = {}, .backend = {.memoryLimit = 0, .threads = 0}};
  return options != nullptr ? *options : none;
}

CompileOptions aglow::compileOptions(const aglow_options& options, std::string_view file) {
  CompileOptions compile = options.compile;
  if (options.warning != nullptr)
    compile.tolerance.warn = onnx::onceEach([hear = options.warning, context = options.warningContext,
                                             place = std::string(file)](const onnx::Departure& departure) {
      if (!departure.silent) hear(departure.text(place).c_str(), context);
    });
  return compile;
}

const char* aglow_error_text() { return lastError.c_str(); }
const char* aglow_version() { return AGLOW_VERSION; }

aglow_options* aglow_options_new() { return new (std::nothrow) aglow_options(orDefault(nullptr)); }
void aglow_options_free(aglow_options* options) { delete options; }

aglow_status aglow_options_set_backend(aglow_options* options, const char* name) {
  return setting(options != nullptr && name != nullptr, [&]() -> Status {
    CompileOptions changed;
    changed.backend = name;
    AGLOW_OK(makeBackend(changed));
    options->compile.backend = name;
    return {};
  });
}

aglow_status aglow_options_set_threads(aglow_options* options, int threads) {
  return setting(options != nullptr && threads >= 0, [&]() -> Status {
    options->backend.threads = threads;
    return {};
  });
}

aglow_status aglow_options_set_cache(aglow_options* options, const char* folder) {
  return setting(options != nullptr && folder != nullptr, [&]() -> Status {
    options->backend.cache = codegen::cacheFolder(folder);
    return {};
  });
}

aglow_status aglow_options_set_memory_limit(aglow_options* options, int64_t bytes) {
  return setting(options != nullptr && bytes >= 0, [&]() -> Status {
    options->backend.memoryLimit = bytes;
    return {};
  });
}

aglow_status aglow_options_set_dim(aglow_options* options, const char* name, int64_t size) {
  return setting(options != nullptr && name != nullptr && size >= 0, [&]() -> Status {
    options->compile.dims[name] = size;
    return {};
  });
}

aglow_status aglow_options_set_shape(aglow_options* options, const char* input, const int64_t* dims, size_t rank) {
  return setting(options != nullptr && input != nullptr && (dims != nullptr || rank == 0), [&]() -> Status {
    AGLOW_TRY(const Shape shape, shapeOf(dims, rank));
    options->compile.shapes[input] = shape.dims();
    return {};
  });
}

aglow_status aglow_options_set_value(aglow_options* options, const char* input, aglow_kind kind, const int64_t* dims,
                                     size_t rank, const void* data) {
  const bool valid = options != nullptr && input != nullptr && (dims != nullptr || rank == 0) && data != nullptr;
  return setting(valid, [&]() -> Status {
    const std::optional<ElemKind> elem = elemKindByOnnx(kind);
    if (!elem) return Error{.code = Code::Usage, .message = fmt::format("there is no kind {}", static_cast<int>(kind))};
    AGLOW_TRY(Shape shape, shapeOf(dims, rank));
    Tensor value(Type(*elem, std::move(shape)));
    std::memcpy(value.mutableData(), data, static_cast<size_t>(value.bytes()));
    options->compile.given[input] = ModelValue::of(std::move(value));
    return {};
  });
}

aglow_status aglow_options_prepare(aglow_options* options, const char* name, const int64_t* sizes, size_t count) {
  const bool valid = options != nullptr && name != nullptr && sizes != nullptr && count > 0 &&
                     std::all_of(sizes, sizes + count, [](int64_t size) { return size >= 0; });
  return setting(valid, [&]() -> Status {
    options->prepared[name].assign(sizes, sizes + count);
    return {};
  });
}

aglow_status aglow_options_set_padding(aglow_options* options, int on) {
  return setting(options != nullptr, [&]() -> Status {
    options->pad = on != 0;
    return {};
  });
}

aglow_status aglow_options_set_strict(aglow_options* options, int on) {
  return setting(options != nullptr, [&]() -> Status {
    options->compile.tolerance.strict = on != 0;
    return {};
  });
}

aglow_status aglow_options_set_warning(aglow_options* options, aglow_warning function, void* context) {
  return setting(options != nullptr, [&]() -> Status {
    options->warning = function;
    options->warningContext = context;
    return {};
  });
}

aglow_status aglow_load(const char* path, const aglow_options* options, aglow_model** model) {
  if (path == nullptr || model == nullptr) return wrongUse("an argument is null");
  *model = nullptr;
  const aglow_options& chosen = orDefault(options);
  return guarded([&] { return load(compileFile(path, compileOptions(chosen, path)), chosen, model); });
}

aglow_status aglow_load_memory(const void* bytes, size_t size, const aglow_options* options, aglow_model** model) {
  if (bytes == nullptr || model == nullptr) return wrongUse("an argument is null");
  *model = nullptr;
  const aglow_options& chosen = orDefault(options);
  return guarded([&] {
    auto parsed = parseModelFile({.bytes = {static_cast<const std::byte*>(bytes), size}, .owner = nullptr});
    if (!parsed.ok()) return fail(parsed.error());
    return load(compileModel(*parsed, compileOptions(chosen, "")), chosen, model);
  });
}

void aglow_free(aglow_model* model) { delete model; }

size_t aglow_num_inputs(const aglow_model* model) { return model->inputs.size(); }
size_t aglow_num_outputs(const aglow_model* model) { return model->outputs.size(); }
const aglow_tensor_info* aglow_input(const aglow_model* model, size_t index) {
  return index < model->inputs.size() ? &model->inputs[index].info : nullptr;
}
const aglow_tensor_info* aglow_output(const aglow_model* model, size_t index) {
  return index < model->outputs.size() ? &model->outputs[index].info : nullptr;
}
int aglow_find_input(const aglow_model* model, const char* name) { return find(model->inputs, name); }
int aglow_find_output(const aglow_model* model, const char* name) { return find(model->outputs, name); }
const aglow_model_info* aglow_info(const aglow_model* model) { return &model->info; }

aglow_status aglow_bind_input(aglow_model* model, size_t index, const void* data, size_t bytes) {
  return setting(model != nullptr, [&] {
    // Inputs are only read.
    return bindSlot(model->inputs, index, static_cast<std::byte*>(const_cast<void*>(data)), bytes, "input");
  });
}

aglow_status aglow_bind_output(aglow_model* model, size_t index, void* data, size_t bytes) {
  return setting(model != nullptr,
                 [&] { return bindSlot(model->outputs, index, static_cast<std::byte*>(data), bytes, "output"); });
}

aglow_status aglow_run(aglow_model* model) {
  return setting(model != nullptr, [&]() -> Status {
    AGLOW_TRY(const std::vector<TensorRef> in, refsOf(model->inputs, model->executable->inputs(), "input"));
    AGLOW_TRY(const std::vector<TensorRef> out, refsOf(model->outputs, model->executable->outputs(), "output"));
    return model->executable->run(in, out);
  });
}
