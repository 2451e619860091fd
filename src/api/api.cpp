// The C interface of include/aglow/aglow.h. Nothing thrown inside leaves through it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <new>

#include "aglow/aglow.h"
#include "api/faults.h"
#include "api/options.h"
#include "api/tensors.h"
#include "backends/package_cache.h"
#include "dynamic/whole_model.h"
#include "import/model_file.h"
#include "quant/profile_file.h"
#include "quant/quantize.h"
#include "runtime/network.h"
#include "support/machine.h"
#include "support/quote.h"
#include "support/stop.h"
#include "support/words.h"

namespace aglow {

thread_local std::string lastError;

namespace {

// A model's input or output: how callers see it, and which placeholder it is.
struct Slot {
  std::string name;
  Type type;
  aglow_tensor_info info = {};
  int binding = -1;  // of the network; none where the program does not need it
  std::unique_ptr<NamedTensor> keys = nullptr, words = nullptr;  // what its numbers stand for
};

// ONNX has no number for quantized kinds; the bytes are those of plain integers.
aglow_kind kindOf(const Type& type) { return static_cast<aglow_kind>(elemInfo(storageKind(type.kind())).onnx); }

Slot& addSlot(std::deque<Slot>& slots, const std::string& name, const Type& type) {
  Slot& slot = slots.emplace_back(Slot{.name = name, .type = type});
  slot.info = {.name = slot.name.c_str(),
               .kind = kindOf(slot.type),
               .rank = static_cast<size_t>(slot.type.shape().rank()),
               .dims = slot.type.shape().dims().data(),
               .bytes = static_cast<size_t>(slot.type.bytes())};
  return slot;
}

void addSlots(const std::vector<Port>& ports, std::span<const Binding> bindings, const std::string& prefix,
              std::deque<Slot>& slots) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    const std::string name = prefix.empty() ? port.name : fmt::format("{}[{}]", prefix, i);
    addSlots(port.items, bindings, name, slots);
    if (port.kind != Port::Kind::Tensor) continue;
    Slot& slot = addSlot(slots, name, port.type);
    if (port.labels)
      (port.labels->of == Labels::Of::Columns ? slot.keys : slot.words) = labelsOf(name, port.labels->names);
    const auto it =
        std::find_if(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.name == port.placeholder; });
    if (it != bindings.end()) slot.binding = static_cast<int>(it - bindings.begin());
  }
}

// Where callers keep the bytes of a function's inputs, or of its outputs.
class Bound {
public:
  // The slots outlive it. `what` they are is for messages.
  Bound(const std::deque<Slot>& slots, size_t placeholders, std::string_view what)
      : slots_(&slots), what_(what), isBound_(slots.size()), refs_(placeholders) {}

  Status bind(size_t index, std::byte* data, size_t bytes) {
    if (index >= slots_->size())
      return Error{.code = Code::Usage,
                   .message = fmt::format("there is no {} {}, the model has {}", what_, index, slots_->size())};
    const Slot& slot = (*slots_)[index];
    const auto fault = [&](std::string message) {
      return Error{.code = Code::BadBinding,
                   .message = std::move(message),
                   .where = fmt::format("{} {}", what_, quoted(slot.name))};
    };
    if (bytes != slot.info.bytes)
      return fault(fmt::format("{} takes {} bytes, got {}", slot.type.text(), slot.info.bytes, bytes));
    if (data == nullptr && bytes > 0) return fault("the address is null");
    const auto unit = static_cast<uintptr_t>(elemBytes(slot.type.kind()));
    if (reinterpret_cast<uintptr_t>(data) % unit != 0)
      return fault(fmt::format("its address is not a multiple of {}, the size of an element", unit));
    isBound_[index] = true;
    if (slot.binding >= 0) refs_[static_cast<size_t>(slot.binding)] = {&slot.type, data};
    return {};
  }

  Status check() const {
    for (size_t i = 0; i < isBound_.size(); ++i)
      if (!isBound_[i])
        return Error{.code = Code::MissingBinding,
                     .message = fmt::format("{} {} of type {} is not bound", what_, quoted((*slots_)[i].name),
                                            (*slots_)[i].type.text())};
    return {};
  }
  // In the order of the placeholders.
  std::span<const TensorRef> refs() const { return refs_; }

private:
  const std::deque<Slot>* slots_;
  std::string_view what_;
  std::vector<bool> isBound_;  // by slot
  std::vector<TensorRef> refs_;
};

// Of inputs, which are only read, or of outputs.
Status bindAt(Bound& bound, size_t index, const void* data, size_t bytes) {
  return bound.bind(index, static_cast<std::byte*>(const_cast<void*>(data)), bytes);
}

Status checkState(const std::deque<Slot>& states, size_t index, const void* data, size_t bytes) {
  if (index >= states.size())
    return Error{.code = Code::Usage,
                 .message = fmt::format("there is no state {}, the model has {}", index, states.size())};
  const Slot& slot = states[index];
  if (bytes == slot.info.bytes && (data != nullptr || bytes == 0)) return {};
  return Error{.code = Code::BadBinding,
               .message = fmt::format("{} takes {} bytes, got {}", slot.type.text(), slot.info.bytes,
                                      data == nullptr ? "a null address" : fmt::to_string(bytes)),
               .where = fmt::format("state {}", quoted(slot.name))};
}

int find(const std::deque<Slot>& slots, const char* name) {
  for (size_t i = 0; name != nullptr && i < slots.size(); ++i)
    if (slots[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace

}  // namespace aglow

using namespace aglow;

struct aglow_request {
  Network* network;
  size_t function;
  std::function<bool()> stop;
  Bound inputs, outputs;

  Status run() const {
    AGLOW_OK(inputs.check());
    AGLOW_OK(outputs.check());
    const StopScope scope(stop);
    return network->run(function, inputs.refs(), outputs.refs());
  }
};

struct aglow_model {
  // What one function takes and gives.
  struct Slots {
    std::deque<Slot> inputs, outputs;
  };

  std::unique_ptr<Network> network;
  std::deque<Slots> functions;         // of the network, and one without slots for none
  std::deque<aglow_request> requests;  // the model's own, by function
  size_t selected = 0;
  std::function<bool()> stop;  // asked by runs
  std::deque<Slot> states;
  std::string target;
  aglow_model_info info = {};

  const Slots& slots() const { return functions[selected]; }
  aglow_request request(size_t function) const {
    return {.network = network.get(),
            .function = function,
            .stop = stop,
            .inputs = Bound(functions[function].inputs, network->inputs(function).size(), "input"),
            .outputs = Bound(functions[function].outputs, network->outputs(function).size(), "output")};
  }
  // Usage error where no function is selected.
  Status checkSelected() const {
    return selected < network->functions().size() ? Status() : Status(network->find().error());
  }
};

namespace {

aglow_status load(Diagnosed<Compilation> compiled, const aglow_options& options, aglow_model** result) {
  if (!compiled.ok()) return fail(compiled.diagnostics());
  BackendOptions backend = options.backend;
  if (backend.threads == 0) backend.threads = machineThreads();
  auto network = Network::load(*std::move(compiled), backend);
  if (!network.ok()) return fail(network.error());
  auto model = std::make_unique<aglow_model>();
  model->network = *std::move(network);
  model->stop = options.stop;
  const std::span<const Interface> functions = model->network->functions();
  for (size_t i = 0; i < functions.size(); ++i) {
    aglow_model::Slots& slots = model->functions.emplace_back();
    addSlots(functions[i].inputs, model->network->inputs(i), {}, slots.inputs);
    addSlots(functions[i].outputs, model->network->outputs(i), {}, slots.outputs);
    model->requests.push_back(model->request(i));
  }
  model->functions.emplace_back();
  const auto first = model->network->find();
  model->selected = first.ok() ? *first : functions.size();
  for (const Binding& state : model->network->states()) addSlot(model->states, state.name, state.type);
  const ExecutableFacts facts = model->network->facts();
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
  static const aglow_options none{
      .import = {}, .compile = {}, .backend = {.memoryLimit = 0, .threads = 0}};  // the default backend
  return options != nullptr ? *options : none;
}

onnx::ImportOptions aglow::importOptions(const aglow_options& options, std::string_view file) {
  onnx::ImportOptions import = options.import;
  if (options.warning != nullptr)
    import.tolerance.warn = onnx::onceEach([warn = options.warning, context = options.warningContext,
                                            place = std::string(file)](const onnx::Departure& departure) {
      if (!departure.silent) warn(departure.text(place).c_str(), context);
    });
  return import;
}

const char* aglow_error_text() { return lastError.c_str(); }
const char* aglow_version() { return AGLOW_VERSION; }

aglow_options* aglow_options_new() { return new (std::nothrow) aglow_options(orDefault(nullptr)); }
void aglow_options_free(aglow_options* options) { delete options; }

aglow_status aglow_options_set_backend(aglow_options* options, const char* name) {
  return setting(options != nullptr && name != nullptr, [&]() -> Status {
    // One that is there may need the code generator, which is loaded when there is something to compile.
    CompileOptions changed;
    changed.backend = name;
    if (!isBackend(name)) AGLOW_OK(makeBackend(changed));
    options->compile.backend = name;
    return {};
  });
}

aglow_status aglow_options_set_threads(aglow_options* options, int threads) {
  return setting(options != nullptr && threads >= 0, [&]() -> Status {
    AGLOW_OK(checkThreads(threads));
    options->backend.threads = threads;
    return {};
  });
}

aglow_status aglow_options_set_contexts(aglow_options* options, int contexts) {
  return setting(options != nullptr && contexts >= 0, [&]() -> Status {
    AGLOW_OK(checkContexts(contexts, 0));
    options->backend.contexts = contexts;
    return {};
  });
}

aglow_status aglow_options_set_queue(aglow_options* options, int callers) {
  return setting(options != nullptr && callers >= 0, [&]() -> Status {
    options->backend.queue = callers;
    return {};
  });
}

aglow_status aglow_options_set_cache(aglow_options* options, const char* folder) {
  return setting(options != nullptr && folder != nullptr, [&]() -> Status {
    options->compile.cache = cacheFolder(folder);
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
    options->import.dims[name] = size;
    return {};
  });
}

aglow_status aglow_options_set_shape(aglow_options* options, const char* input, const int64_t* dims, size_t rank) {
  return setting(options != nullptr && input != nullptr && (dims != nullptr || rank == 0), [&]() -> Status {
    AGLOW_TRY(const Shape shape, shapeOf(dims, rank));
    options->import.shapes[input] = shape.dims();
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
    options->import.given[input] = ModelValue::of(std::move(value));
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

static std::string_view wordOf(const char* text) { return text == nullptr ? "" : text; }
static std::vector<std::string> namesIn(const char* list) {
  const std::vector<std::string_view> names = splitAtCommas(wordOf(list));
  return {names.begin(), names.end()};
}

aglow_status aglow_options_set_precision(aglow_options* options, const char* precision, const char* keep_float) {
  return setting(options != nullptr, [&]() -> Status {
    options->compile.quantize = nullptr;
    if (wordOf(precision).empty() || wordOf(precision) == "float") return {};
    AGLOW_TRY(options->compile.quantize, quant::requestOf(wordOf(precision), namesIn(keep_float)));
    return {};
  });
}

aglow_status aglow_options_set_int8(aglow_options* options, const char* profile, const char* calibration,
                                    const char* schema, const char* keep_float) {
  return setting(options != nullptr, [&]() -> Status {
    if (profile == nullptr) {
      options->compile.quantize = nullptr;
      return {};
    }
    AGLOW_TRY(quant::Profile ranges, quant::readProfile(profile));
    AGLOW_TRY(options->compile.quantize,
              quant::requestOf(std::move(ranges), wordOf(calibration), wordOf(schema), namesIn(keep_float)));
    return {};
  });
}

aglow_status aglow_options_set_strict(aglow_options* options, int on) {
  return setting(options != nullptr, [&]() -> Status {
    options->import.tolerance.strict = on != 0;
    return {};
  });
}

aglow_status aglow_options_set_tune(aglow_options* options, double seconds) {
  return setting(options != nullptr && seconds >= 0 && std::isfinite(seconds), [&]() -> Status {
    options->compile.tune.seconds = seconds;
    return {};
  });
}

aglow_status aglow_options_set_f64_pairs(aglow_options* options, int on) {
  return setting(options != nullptr, [&]() -> Status {
    options->compile.f64Pairs = on != 0;
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

aglow_status aglow_options_set_stop(aglow_options* options, aglow_stop function, void* context) {
  return setting(options != nullptr, [&]() -> Status {
    options->stop = nullptr;
    if (function != nullptr) options->stop = [function, context] { return function(context) != 0; };
    return {};
  });
}

aglow_status aglow_load(const char* path, const aglow_options* options, aglow_model** model) {
  if (path == nullptr || model == nullptr) return wrongUse("an argument is null");
  *model = nullptr;
  const aglow_options& chosen = orDefault(options);
  return guarded([&] { return load(compileFile(path, chosen.compile, importOptions(chosen, path)), chosen, model); });
}

aglow_status aglow_load_memory(const void* bytes, size_t size, const aglow_options* options, aglow_model** model) {
  if (bytes == nullptr || model == nullptr) return wrongUse("an argument is null");
  *model = nullptr;
  const aglow_options& chosen = orDefault(options);
  return guarded([&] {
    auto parsed = parseModelFile({.bytes = {static_cast<const std::byte*>(bytes), size}, .owner = nullptr});
    if (!parsed.ok()) return fail(parsed.error());
    return load(compileModel(*parsed, chosen.compile, importOptions(chosen, "")), chosen, model);
  });
}

void aglow_free(aglow_model* model) { delete model; }

size_t aglow_num_functions(const aglow_model* model) { return model->network->functions().size(); }
const char* aglow_function_name(const aglow_model* model, size_t index) {
  const std::span<const Interface> functions = model->network->functions();
  return index < functions.size() ? functions[index].function.c_str() : nullptr;
}

aglow_status aglow_select(aglow_model* model, const char* function) {
  return setting(model != nullptr && function != nullptr, [&]() -> Status {
    AGLOW_TRY(model->selected, model->network->find(function));
    return {};
  });
}

size_t aglow_num_inputs(const aglow_model* model) { return model->slots().inputs.size(); }
size_t aglow_num_outputs(const aglow_model* model) { return model->slots().outputs.size(); }
const aglow_tensor_info* aglow_input(const aglow_model* model, size_t index) {
  return index < model->slots().inputs.size() ? &model->slots().inputs[index].info : nullptr;
}
const aglow_tensor_info* aglow_output(const aglow_model* model, size_t index) {
  return index < model->slots().outputs.size() ? &model->slots().outputs[index].info : nullptr;
}
const aglow_tensor* aglow_output_keys(const aglow_model* model, size_t index) {
  const auto& outputs = model->slots().outputs;
  return index < outputs.size() && outputs[index].keys != nullptr ? &outputs[index].keys->described() : nullptr;
}
const aglow_tensor* aglow_output_words(const aglow_model* model, size_t index) {
  const auto& outputs = model->slots().outputs;
  return index < outputs.size() && outputs[index].words != nullptr ? &outputs[index].words->described() : nullptr;
}
int aglow_find_input(const aglow_model* model, const char* name) { return find(model->slots().inputs, name); }
int aglow_find_output(const aglow_model* model, const char* name) { return find(model->slots().outputs, name); }
const aglow_model_info* aglow_info(const aglow_model* model) { return &model->info; }

aglow_status aglow_bind_input(aglow_model* model, size_t index, const void* data, size_t bytes) {
  return setting(model != nullptr, [&]() -> Status {
    AGLOW_OK(model->checkSelected());
    return bindAt(model->requests[model->selected].inputs, index, data, bytes);
  });
}

aglow_status aglow_bind_output(aglow_model* model, size_t index, void* data, size_t bytes) {
  return setting(model != nullptr, [&]() -> Status {
    AGLOW_OK(model->checkSelected());
    return bindAt(model->requests[model->selected].outputs, index, data, bytes);
  });
}

aglow_status aglow_run(aglow_model* model) {
  return setting(model != nullptr, [&]() -> Status {
    AGLOW_OK(model->checkSelected());
    return model->requests[model->selected].run();
  });
}

aglow_status aglow_request_new(aglow_model* model, const char* function, aglow_request** request) {
  if (model == nullptr || request == nullptr) return wrongUse("an argument is null");
  *request = nullptr;
  return setting(true, [&]() -> Status {
    size_t number = model->selected;
    if (function != nullptr) {
      AGLOW_TRY(number, model->network->find(function));
    } else {
      AGLOW_OK(model->checkSelected());
    }
    *request = new aglow_request(model->request(number));
    return {};
  });
}

void aglow_request_free(aglow_request* request) { delete request; }

aglow_status aglow_request_bind_input(aglow_request* request, size_t index, const void* data, size_t bytes) {
  return setting(request != nullptr, [&] { return bindAt(request->inputs, index, data, bytes); });
}

aglow_status aglow_request_bind_output(aglow_request* request, size_t index, void* data, size_t bytes) {
  return setting(request != nullptr, [&] { return bindAt(request->outputs, index, data, bytes); });
}

aglow_status aglow_request_run(aglow_request* request) {
  return setting(request != nullptr, [&] { return request->run(); });
}

size_t aglow_num_states(const aglow_model* model) { return model->states.size(); }
const aglow_tensor_info* aglow_state(const aglow_model* model, size_t index) {
  return index < model->states.size() ? &model->states[index].info : nullptr;
}
int aglow_find_state(const aglow_model* model, const char* name) { return find(model->states, name); }

aglow_status aglow_get_state(const aglow_model* model, size_t index, void* data, size_t bytes) {
  return setting(model != nullptr, [&]() -> Status {
    AGLOW_OK(checkState(model->states, index, data, bytes));
    AGLOW_TRY(const Tensor value, model->network->state(index));
    std::memcpy(data, value.data(), bytes);
    return {};
  });
}

aglow_status aglow_set_state(aglow_model* model, size_t index, const void* data, size_t bytes) {
  return setting(model != nullptr, [&]() -> Status {
    AGLOW_OK(checkState(model->states, index, data, bytes));
    // Bytes need not be aligned: they are copied.
    return model->network->setState(index,
                                    {&model->states[index].type, static_cast<std::byte*>(const_cast<void*>(data))});
  });
}

aglow_status aglow_reset_state(aglow_model* model) {
  return setting(model != nullptr, [&]() -> Status {
    model->network->resetState();
    return {};
  });
}
