// Aglow's C++ interface: load a model, bind memory to its inputs and outputs, run it. Needs C++17; faults are
// exceptions of type aglow::Error. A thin cover of the C interface, so that program and library may come from different
// compilers.
//
//   aglow::Model model("digits.onnx", aglow::Options().threads(2));
//   std::vector<float> image(model.inputs()[0].elements()), scores(model.outputs()[0].elements());
//   model.bindInput(0, image.data(), image.size());
//   model.bindOutput(0, scores.data(), scores.size());
//   model.run();
#pragma once

#include <aglow/aglow.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace aglow {
// Inside of the library the same names mean other things.
inline namespace v1 {

class Error : public std::runtime_error {
public:
  Error(aglow_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  aglow_status status() const { return status_; }

private:
  aglow_status status_;
};

namespace detail {

inline void check(aglow_status status) {
  if (status != AGLOW_OK) throw Error(status, aglow_error_text());
}

using Warning = std::function<void(const std::string&)>;

struct Free {
  void operator()(aglow_options* options) const { aglow_options_free(options); }
  void operator()(aglow_model* model) const { aglow_free(model); }
  void operator()(aglow_request* request) const { aglow_request_free(request); }
  void operator()(aglow_session* session) const { aglow_session_close(session); }
  void operator()(aglow_results* results) const { aglow_results_free(results); }
  void operator()(aglow_host* host) const { aglow_host_free(host); }
};

}  // namespace detail

// How to compile; every setter returns the options, so that calls can be chained.
class Options {
public:
  Options() : handle_(aglow_options_new()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }

  Options& backend(const std::string& name) { return checked(aglow_options_set_backend(handle(), name.c_str())); }
  // 0: one per processor.
  Options& threads(int count) { return checked(aglow_options_set_threads(handle(), count)); }
  // Runs side by side, 0: two per processor; and callers that may wait meanwhile.
  Options& contexts(int count) { return checked(aglow_options_set_contexts(handle(), count)); }
  Options& queue(int callers) { return checked(aglow_options_set_queue(handle(), callers)); }
  Options& cache(const std::string& folder) { return checked(aglow_options_set_cache(handle(), folder.c_str())); }
  Options& memoryLimit(int64_t bytes) { return checked(aglow_options_set_memory_limit(handle(), bytes)); }
  Options& dim(const std::string& name, int64_t size) {
    return checked(aglow_options_set_dim(handle(), name.c_str(), size));
  }
  Options& shape(const std::string& input, const std::vector<int64_t>& dims) {
    return checked(aglow_options_set_shape(handle(), input.c_str(), dims.data(), dims.size()));
  }
  // The value of an input that decides on shapes.
  Options& value(const std::string& input, aglow_kind kind, const std::vector<int64_t>& dims, const void* data) {
    return checked(aglow_options_set_value(handle(), input.c_str(), kind, dims.data(), dims.size(), data));
  }

  // "bf16", "int8-weights", "int4-weights" or "float".
  Options& precision(const std::string& name, const std::string& keepFloat = {}) {
    return checked(aglow_options_set_precision(handle(), name.c_str(), keepFloat.c_str()));
  }
  // Integers of 8 bits where a profile has ranges; an empty word is the default.
  Options& int8(const std::string& profile, const std::string& calibration = {}, const std::string& schema = {},
                const std::string& keepFloat = {}) {
    return checked(
        aglow_options_set_int8(handle(), profile.c_str(), calibration.c_str(), schema.c_str(), keepFloat.c_str()));
  }

  // Refuses models that depart from the standard, also where their meaning is plain.
  Options& strict(bool on = true) { return checked(aglow_options_set_strict(handle(), on ? 1 : 0)); }
  // Measures which tiles of products a device is quickest with, for so many seconds at most.
  Options& tune(double seconds = 60) { return checked(aglow_options_set_tune(handle(), seconds)); }
  // Computes f64 on devices as two f32 each.
  Options& f64Pairs(bool on = true) { return checked(aglow_options_set_f64_pairs(handle(), on ? 1 : 0)); }
  // Called with departures that are accepted, from any thread that loads or runs a model.
  Options& onWarning(std::function<void(const std::string&)> warn) {
    warning_ = std::make_shared<detail::Warning>(std::move(warn));
    const aglow_warning call = [](const char* text, void* context) { (*static_cast<detail::Warning*>(context))(text); };
    return checked(aglow_options_set_warning(handle(), call, warning_.get()));
  }

  // Asked from time to time by each thread that runs a model on a device or in the interpreter; true ends the run. The
  // function has to outlive what is loaded with these options.
  Options& stopWhen(std::function<bool()>& asked) {
    const aglow_stop call = [](void* context) { return (*static_cast<std::function<bool()>*>(context))() ? 1 : 0; };
    return checked(aglow_options_set_stop(handle(), call, &asked));
  }

  // Of sessions: sizes to compile for at once, and whether inputs are padded to the next of them.
  Options& prepare(const std::string& dim, const std::vector<int64_t>& sizes) {
    return checked(aglow_options_prepare(handle(), dim.c_str(), sizes.data(), sizes.size()));
  }
  Options& padding(bool on) { return checked(aglow_options_set_padding(handle(), on ? 1 : 0)); }

  aglow_options* handle() const { return handle_.get(); }
  // What has to live as long as models that were opened with these options.
  std::shared_ptr<detail::Warning> warning() const { return warning_; }

private:
  Options& checked(aglow_status status) {
    detail::check(status);
    return *this;
  }
  std::unique_ptr<aglow_options, detail::Free> handle_;
  std::shared_ptr<detail::Warning> warning_;
};

struct TensorInfo {
  std::string name;
  aglow_kind kind;
  std::vector<int64_t> dims;
  size_t bytes;

  size_t elements() const {
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    return count;
  }
};

// Memory for runs of a function, apart from that of others: different threads run different requests of one model side
// by side. The model outlives it.
class Request {
public:
  Request(aglow_model* model, const std::string& function) {
    aglow_request* request = nullptr;
    detail::check(aglow_request_new(model, function.c_str(), &request));
    handle_.reset(request);
  }

  template <class T>
  void bindInput(size_t index, const T* data, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "tensors hold plain elements");
    detail::check(aglow_request_bind_input(handle_.get(), index, data, count * sizeof(T)));
  }
  template <class T>
  void bindOutput(size_t index, T* data, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "tensors hold plain elements");
    detail::check(aglow_request_bind_output(handle_.get(), index, data, count * sizeof(T)));
  }
  void run() { detail::check(aglow_request_run(handle_.get())); }

private:
  std::unique_ptr<aglow_request, detail::Free> handle_;
};

// One function of a model, which outlives it.
class Function {
public:
  Function(aglow_model* model, std::string name) : model_(model), name_(std::move(name)) {
    select();
    for (size_t i = 0; i < aglow_num_inputs(model); ++i) inputs_.push_back(describe(*aglow_input(model, i)));
    for (size_t i = 0; i < aglow_num_outputs(model); ++i) outputs_.push_back(describe(*aglow_output(model, i)));
  }

  const std::string& name() const { return name_; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  // The number of a name, or -1.
  int findInput(const std::string& name) const { return find(inputs_, name); }
  int findOutput(const std::string& name) const { return find(outputs_, name); }

  // Every run reads and writes where the elements lie, until something else is bound.
  template <class T>
  void bindInput(size_t index, const T* data, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "tensors hold plain elements");
    select();
    detail::check(aglow_bind_input(model_, index, data, count * sizeof(T)));
  }
  template <class T>
  void bindOutput(size_t index, T* data, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "tensors hold plain elements");
    select();
    detail::check(aglow_bind_output(model_, index, data, count * sizeof(T)));
  }

  void run() {
    select();
    detail::check(aglow_run(model_));
  }
  // Runs with memory of their own, for another thread.
  Request request() const { return Request(model_, name_); }

  static TensorInfo describe(const aglow_tensor_info& info) {
    return {info.name, info.kind, std::vector<int64_t>(info.dims, info.dims + info.rank), info.bytes};
  }

private:
  void select() const { detail::check(aglow_select(model_, name_.c_str())); }
  static int find(const std::vector<TensorInfo>& list, const std::string& name) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].name == name) return static_cast<int>(i);
    return -1;
  }

  aglow_model* model_;
  std::string name_;
  std::vector<TensorInfo> inputs_, outputs_;
};

// A compiled model. Its own inputs, outputs and runs are those of its only function, or of the one named main. What is
// bound to it is one thread's; others run requests.
class Model {
public:
  explicit Model(const std::string& path, const Options& options = {}) {
    aglow_model* model = nullptr;
    detail::check(aglow_load(path.c_str(), options.handle(), &model));
    adopt(model);
  }
  // An ONNX file in memory, which has to live as long as the model.
  Model(const void* bytes, size_t size, const Options& options = {}) {
    aglow_model* model = nullptr;
    detail::check(aglow_load_memory(bytes, size, options.handle(), &model));
    adopt(model);
  }

  const aglow_model_info& info() const { return *aglow_info(handle()); }
  const std::vector<Function>& functions() const { return functions_; }
  // By name, or, without one, the only function or that named main.
  Function& function(const std::string& name = {}) {
    return const_cast<Function&>(static_cast<const Model&>(*this).function(name));
  }
  const Function& function(const std::string& name = {}) const {
    const std::string wanted = !name.empty() ? name : functions_.size() == 1 ? functions_[0].name() : "main";
    for (const Function& one : functions_)
      if (one.name() == wanted) return one;
    detail::check(aglow_select(handle(), name.c_str()));
    throw Error(AGLOW_INTERNAL, "a function is missing");
  }

  const std::vector<TensorInfo>& inputs() const { return function().inputs(); }
  const std::vector<TensorInfo>& outputs() const { return function().outputs(); }
  int findInput(const std::string& name) const { return function().findInput(name); }
  int findOutput(const std::string& name) const { return function().findOutput(name); }
  template <class T>
  void bindInput(size_t index, const T* data, size_t count) {
    function().bindInput(index, data, count);
  }
  template <class T>
  void bindOutput(size_t index, T* data, size_t count) {
    function().bindOutput(index, data, count);
  }
  void run() { function().run(); }
  Request request() const { return function().request(); }

  // What the functions leave for the next run. The elements are copied; their type is for the caller to know.
  std::vector<TensorInfo> states() const {
    std::vector<TensorInfo> list;
    for (size_t i = 0; i < aglow_num_states(handle()); ++i)
      list.push_back(Function::describe(*aglow_state(handle(), i)));
    return list;
  }
  template <class T>
  std::vector<T> state(const std::string& name) const {
    static_assert(std::is_trivially_copyable_v<T>, "tensors hold plain elements");
    const size_t index = stateIndex(name);
    std::vector<T> values(aglow_state(handle(), index)->bytes / sizeof(T));
    detail::check(aglow_get_state(handle(), index, values.data(), values.size() * sizeof(T)));
    return values;
  }
  template <class T>
  void setState(const std::string& name, const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>, "tensors hold plain elements");
    detail::check(aglow_set_state(handle(), stateIndex(name), values.data(), values.size() * sizeof(T)));
  }
  void resetState() { detail::check(aglow_reset_state(handle())); }

  aglow_model* handle() const { return handle_.get(); }

private:
  void adopt(aglow_model* model) {
    handle_.reset(model);
    for (size_t i = 0; i < aglow_num_functions(model); ++i)
      functions_.emplace_back(model, aglow_function_name(model, i));
  }
  size_t stateIndex(const std::string& name) const {
    const int index = aglow_find_state(handle(), name.c_str());
    if (index < 0) throw Error(AGLOW_USAGE, "the model has no state '" + name + "'");
    return static_cast<size_t>(index);
  }

  std::unique_ptr<aglow_model, detail::Free> handle_;
  std::vector<Function> functions_;
};

// What a run of a session gives: tensors that live as long as this.
class Results {
public:
  explicit Results(aglow_results* results) : handle_(results) {}

  size_t size() const { return aglow_results_count(handle_.get()); }
  const aglow_tensor& operator[](size_t index) const {
    const aglow_tensor* tensor = aglow_results_get(handle_.get(), index);
    if (tensor == nullptr) throw std::out_of_range("there is no such result");
    return *tensor;
  }
  // The elements, whose type the caller has to know.
  template <class T>
  const T* data(size_t index) const {
    return static_cast<const T*>((*this)[index].data);
  }

private:
  std::unique_ptr<aglow_results, detail::Free> handle_;
};

// A model for whatever sizes come; runs of several threads go side by side.
class Session {
public:
  explicit Session(const std::string& path, const Options& options = {}) : warning_(options.warning()) {
    aglow_session* session = nullptr;
    detail::check(aglow_session_open(path.c_str(), options.handle(), &session));
    handle_.reset(session);
  }
  // An ONNX file in memory, which has to live as long as the session.
  Session(const void* bytes, size_t size, const Options& options = {}) : warning_(options.warning()) {
    aglow_session* session = nullptr;
    detail::check(aglow_session_open_memory(bytes, size, options.handle(), &session));
    handle_.reset(session);
  }

  Results run(const std::vector<aglow_tensor>& inputs) const {
    aglow_results* results = nullptr;
    detail::check(aglow_session_run(handle_.get(), inputs.data(), inputs.size(), &results));
    return Results(results);
  }

private:
  std::shared_ptr<detail::Warning> warning_;
  std::unique_ptr<aglow_session, detail::Free> handle_;
};

// Many networks on many devices; from any thread. Requests that wait when it goes are cancelled.
class Host {
public:
  // "cpu:0-3,memory=2G cpu:4-7"; "": one of all cores.
  explicit Host(const std::string& devices = {}) {
    aglow_host* host = nullptr;
    detail::check(aglow_host_new(devices.c_str(), &host));
    handle_.reset(host);
  }

  void add(const std::string& name, const std::string& path, const Options& options = {},
           const aglow_network_options& network = {}) {
    detail::check(aglow_host_add(handle_.get(), name.c_str(), path.c_str(), options.handle(), &network));
  }
  // Without a version all of them.
  void remove(const std::string& name, const std::string& version = {}) {
    detail::check(aglow_host_remove(handle_.get(), name.c_str(), version.c_str()));
  }
  void setCurrent(const std::string& name, const std::string& version) {
    detail::check(aglow_host_set_current(handle_.get(), name.c_str(), version.c_str()));
  }

  Results run(const std::string& network, const std::vector<aglow_tensor>& inputs) const {
    aglow_host_request request = {};
    request.network = network.c_str();
    request.inputs = inputs.data();
    request.count = inputs.size();
    return run(request);
  }
  Results run(const aglow_host_request& request) const {
    aglow_results* results = nullptr;
    detail::check(aglow_host_run(handle_.get(), &request, &results));
    return Results(results);
  }
  // Calls once, from a thread of the host, with a function that gives the results or throws. What the inputs point at
  // stays until then.
  uint64_t submit(const aglow_host_request& request, std::function<void(std::function<Results()>)> reply) const {
    using Reply = std::function<void(std::function<Results()>)>;
    auto holder = std::make_unique<Reply>(std::move(reply));
    const aglow_reply call = [](aglow_status status, const char* error, aglow_results* results, void* context) {
      const std::unique_ptr<Reply> own(static_cast<Reply*>(context));
      const std::string text = error;
      (*own)([status, text, results] {
        if (status != AGLOW_OK) throw Error(status, text);
        return Results(results);
      });
    };
    uint64_t id = 0;
    detail::check(aglow_host_submit(handle_.get(), &request, call, holder.get(), &id));
    holder.release();
    return id;
  }
  bool cancel(uint64_t id) const { return aglow_host_cancel(handle_.get(), id) != 0; }
  void drain() const { aglow_host_drain(handle_.get()); }
  aglow_network_statistics statistics(const std::string& network, const std::string& version = {}) const {
    aglow_network_statistics statistics = {};
    detail::check(aglow_host_network_statistics(handle_.get(), network.c_str(), version.c_str(), &statistics));
    return statistics;
  }
  std::vector<aglow_device_statistics> devices() const {
    std::vector<aglow_device_statistics> all(aglow_host_device_count(handle_.get()));
    for (size_t i = 0; i < all.size(); ++i) detail::check(aglow_host_device_statistics(handle_.get(), i, &all[i]));
    return all;
  }
  aglow_host* handle() const { return handle_.get(); }

private:
  std::unique_ptr<aglow_host, detail::Free> handle_;
};

}  // namespace v1
}  // namespace aglow
