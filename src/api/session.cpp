// Sessions of the C interface: a model for whatever sizes come.
#include "dynamic/session.h"

#include "aglow/aglow.h"
#include "api/faults.h"
#include "api/options.h"
#include "api/results.h"
#include "api/tensors.h"
#include "import/model_file.h"
#include "support/stop.h"

using namespace aglow;

struct aglow_session {
  std::unique_ptr<Session> session;
  std::function<bool()> stop;  // asked by runs
};

namespace {

aglow_status open(Result<onnx::Model> model, const aglow_options& options, std::string_view place,
                  aglow_session** session) {
  if (!model.ok()) return fail(model.error());
  SessionOptions request{.import = importOptions(options, place),
                         .compile = options.compile,
                         .backend = options.backend,
                         .prepared = options.prepared,
                         .pad = options.pad};
  auto opened = Session::open(*std::move(model), std::move(request));
  if (!opened.ok()) return fail(place.empty() ? opened.diagnostics() : Diagnostics(opened.diagnostics()).at(place));
  *session = new aglow_session{*std::move(opened), options.stop};
  return AGLOW_OK;
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
    const onnx::Graph& graph = session->session->graph();
    const auto values = inputsOf(graph, inputs, count);
    if (!values.ok()) return fail(values.error());
    const StopScope scope(session->stop);
    auto outputs = session->session->run(*values);
    if (!outputs.ok()) return fail(outputs.diagnostics());
    auto made = std::make_unique<aglow_results>();
    for (size_t i = 0; i < outputs->size(); ++i)
      if (const Status added = addResults(graph.outputs[i], (*outputs)[i], made->tensors); !added.ok())
        return fail(added.error());
    *results = made.release();
    return AGLOW_OK;
  });
}

size_t aglow_results_count(const aglow_results* results) { return results->tensors.size(); }
const aglow_tensor* aglow_results_get(const aglow_results* results, size_t index) {
  return index < results->tensors.size() ? &results->tensors[index].described() : nullptr;
}
void aglow_results_free(aglow_results* results) { delete results; }
