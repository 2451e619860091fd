// Sessions of the C interface: a model for whatever sizes come.
#include "runtime/session.h"

#include <fmt/format.h>

#include <cstring>

#include "aglow/aglow.h"
#include "api/faults.h"
#include "api/options.h"
#include "import/model_file.h"
#include "support/machine.h"

using namespace aglow;

struct aglow_session {
  std::unique_ptr<Session> session;
};

struct aglow_results {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  std::vector<aglow_tensor> described;  // of the two above
};

namespace {

aglow_status open(Result<onnx::Model> model, const aglow_options& options, std::string_view place,
                  aglow_session** session) {
  if (!model.ok()) return fail(model.error());
  SessionOptions request{.compile = compileOptions(options, place),
                         .backend = options.backend,
                         .prepared = options.prepared,
                         .pad = options.pad};
  if (request.backend.threads == 0) request.backend.threads = machineThreads();
  auto opened = Session::open(*std::move(model), std::move(request));
  if (!opened.ok()) return fail(place.empty() ? opened.diagnostics() : Diagnostics(opened.diagnostics()).at(place));
  *session = new aglow_session{*std::move(opened)};
  return AGLOW_OK;
}

// A tensor over the caller's bytes.
Result<Tensor> tensorOf(const aglow_tensor& given) {
  const auto fault = [&](std::string message) {
    return Error{.code = Code::BadBinding,
                 .message = std::move(message),
                 .where = fmt::format("input '{}'", given.name != nullptr ? given.name : "")};
  };
  // C lets any number pass for one of the enumeration.
  int32_t number = 0;
  std::memcpy(&number, &given.kind, sizeof number);
  const std::optional<ElemKind> kind = elemKindByOnnx(number);
  if (!kind) return fault(fmt::format("there is no kind {}", number));
  if (given.name == nullptr || (given.dims == nullptr && given.rank > 0)) return fault("its name or shape is null");
  auto shape = Shape::create(std::vector<int64_t>(given.dims, given.dims + given.rank));
  if (!shape.ok()) return Error(shape.error()).at(fmt::format("input '{}'", given.name));
  const Type type(*kind, *std::move(shape));
  if (given.data == nullptr && type.bytes() > 0) return fault("its address is null");
  // The caller keeps the bytes until the run is over.
  return Tensor(type, static_cast<const std::byte*>(given.data), nullptr);
}

Tensor copyOf(const Tensor& tensor) {
  Tensor copy(tensor.type());
  std::memcpy(copy.mutableData(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  return copy;
}

void add(aglow_results& results, std::string name, const Tensor& tensor) {
  results.names.push_back(std::move(name));
  // An output may be an input as it came, whose bytes are the caller's.
  results.tensors.push_back(tensor.ownsBytes() ? tensor : copyOf(tensor));
}

}  // namespace

aglow_status aglow_session_open(const char* path, const aglow_options* options, aglow_session** session) {
  if (path == nullptr || session == nullptr) return wrongUse("an argument is null");
  *session = nullptr;
  return guarded([&] { return open(readModelFile(path), orDefault(options), path, session); });
}

aglow_status aglow_session_open_memory(const void* bytes, size_t size, const aglow_options* options,
                                       aglow_session** session) {
  if (bytes == nullptr || session == nullptr) return wrongUse("an argument is null");
  *session = nullptr;
  return guarded([&] {
    return open(parseModelFile({.bytes = {static_cast<const std::byte*>(bytes), size}, .owner = nullptr}),
                orDefault(options), "", session);
  });
}

void aglow_session_close(aglow_session* session) { delete session; }

aglow_status aglow_session_run(aglow_session* session, const aglow_tensor* inputs, size_t count,
                               aglow_results** results) {
  if (session == nullptr || results == nullptr || (inputs == nullptr && count > 0))
    return wrongUse("an argument is null");
  *results = nullptr;
  return guarded([&] {
    std::map<std::string, ModelValue> values;
    for (size_t i = 0; i < count; ++i) {
      auto tensor = tensorOf(inputs[i]);
      if (!tensor.ok()) return fail(tensor.error());
      values[inputs[i].name] = ModelValue::of(*std::move(tensor));
    }
    auto outputs = session->session->run(values);
    if (!outputs.ok()) return fail(outputs.diagnostics());
    auto made = std::make_unique<aglow_results>();
    const std::vector<onnx::ValueInfo>& declared = session->session->graph().outputs;
    for (size_t i = 0; i < outputs->size(); ++i) {
      const ModelValue& value = (*outputs)[i];
      if (value.hasStrings())
        return fail(Error{
            .code = Code::UnsupportedFeature,
            .message = fmt::format("output '{}' holds strings, which this interface does not give", declared[i].name)});
      for (size_t k = 0; k < value.tensors.size(); ++k)
        add(*made, value.isSequence ? fmt::format("{}[{}]", declared[i].name, k) : declared[i].name, value.tensors[k]);
    }
    for (size_t i = 0; i < made->tensors.size(); ++i) {
      const Tensor& tensor = made->tensors[i];
      made->described.push_back({.name = made->names[i].c_str(),
                                 .kind = static_cast<aglow_kind>(elemInfo(storageKind(tensor.type().kind())).onnx),
                                 .rank = static_cast<size_t>(tensor.type().shape().rank()),
                                 .dims = tensor.type().shape().dims().data(),
                                 .data = tensor.data()});
    }
    *results = made.release();
    return AGLOW_OK;
  });
}

size_t aglow_results_count(const aglow_results* results) { return results->described.size(); }
const aglow_tensor* aglow_results_get(const aglow_results* results, size_t index) {
  return index < results->described.size() ? &results->described[index] : nullptr;
}
void aglow_results_free(aglow_results* results) { delete results; }
