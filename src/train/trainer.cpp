#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/text.h"
#include "import/onnx/export.h"
#include "import/onnx/model_writer.h"
#include "import/onnx/rewrite_file.h"
#include "support/quote.h"
#include "support/suggest.h"

namespace aglow {

namespace {

std::vector<int64_t> countedRows(int64_t begin, int64_t end) {
  std::vector<int64_t> rows;
  for (int64_t i = begin; i < end; ++i) rows.push_back(i);
  return rows;
}

void setScalar(Tensor& tensor, float value) { std::memcpy(tensor.mutableData(), &value, sizeof value); }

// How many labels the scores of the first samples get right.
int64_t countRight(const Tensor& scores, const Tensor& labels, int64_t axis, int64_t samples) {
  const Type& type = scores.type();
  const std::vector<double> values = scores.doubles();
  const std::vector<int64_t> wanted = labels.toInts();
  const int64_t classes = type.dim(static_cast<int>(axis));
  int64_t inner = 1;
  for (int i = static_cast<int>(axis) + 1; i < type.rank(); ++i) inner *= type.dim(i);
  const int64_t rows = labels.type().elements() / labels.type().dim(0) * samples;
  int64_t right = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row / inner * classes * inner + row % inner;
    int64_t best = 0;
    for (int64_t k = 1; k < classes; ++k)
      if (values[static_cast<size_t>(first + k * inner)] > values[static_cast<size_t>(first + best * inner)]) best = k;
    right += best == wanted[static_cast<size_t>(row)] ? 1 : 0;
  }
  return right;
}

}  // namespace

Trainer::Trainer(TrainingSource source, TrainingPlan plan, TrainingModule module, std::unique_ptr<Network> network,
                 uint64_t seed)
    : source_(std::move(source)), plan_(std::move(plan)), module_(std::move(module)), network_(std::move(network)) {
  position_.seed = seed;
}

Diagnosed<std::unique_ptr<Trainer>> Trainer::open(TrainingSource source, TrainingPlan plan, CompileOptions compile,
                                                  const BackendOptions& backend, uint64_t seed) {
  plan.seed = seed;
  auto module = makeTrainingModule(source, plan);
  if (!module.ok()) return module.diagnostics();
  auto copy = makeTrainingModule(source, plan);
  if (!copy.ok()) return copy.diagnostics();
  compile.functions = {};
  auto compiled = compileModule(std::move(copy->module), compile);
  if (!compiled.ok())
    return source.path.empty() ? compiled.diagnostics() : Diagnostics(compiled.diagnostics()).at(source.path);
  auto network = Network::load(*std::move(compiled), backend);
  if (!network.ok()) return network.error();
  std::unique_ptr<Trainer> trainer(
      new Trainer(std::move(source), std::move(plan), *std::move(module), *std::move(network), seed));
  const auto prepare = [&](Call& call, const std::string& function) -> Status {
    AGLOW_TRY(call, trainer->callOf(function));
    return {};
  };
  Status ready = prepare(trainer->predict_, trainer->module_.predict);
  if (ready.ok()) ready = prepare(trainer->evaluate_, trainer->module_.evaluate);
  if (ready.ok()) ready = prepare(trainer->train_, trainer->module_.step.name);
  if (ready.ok() && trainer->module_.accumulates())
    ready = prepare(trainer->update_, updateName(trainer->module_.step));
  if (ready.ok()) ready = trainer->seedCounters();
  if (!ready.ok()) return ready.error();
  return trainer;
}

Result<Trainer::Call> Trainer::callOf(const std::string& function) const {
  Call call;
  AGLOW_TRY(call.function, network_->find(function));
  for (const Binding& binding : network_->inputs(call.function)) {
    const auto fixed = module_.fixed.find(binding.name);
    call.inputs.push_back(fixed != module_.fixed.end() ? fixed->second : Tensor(binding.type));
    if (call.inputs.back().type() != binding.type)
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("expected {} for {}, got {}", binding.type.text(), quoted(binding.name),
                                          call.inputs.back().type().text())};
  }
  for (const Binding& binding : network_->outputs(call.function)) call.outputs.emplace_back(binding.type);
  return call;
}

void Trainer::bind(Call& call, const std::string& placeholder, const std::function<void(Tensor&)>& fill) const {
  const std::span<const Binding> bindings = network_->inputs(call.function);
  for (size_t i = 0; i < bindings.size(); ++i)
    if (bindings[i].name == placeholder) fill(call.inputs[i]);
}

const Tensor& Trainer::outputOf(const Call& call, const std::string& placeholder) const {
  const std::span<const Binding> bindings = network_->outputs(call.function);
  for (size_t i = 0; i < bindings.size(); ++i)
    if (bindings[i].name == placeholder) return call.outputs[i];
  AGLOW_CHECK(false, "no function gives the output " + placeholder);
  return call.outputs.front();
}

Status Trainer::run(Call& call) const {
  std::vector<TensorRef> in, out;
  for (const Tensor& tensor : call.inputs) in.push_back(tensor.ref());
  for (const Tensor& tensor : call.outputs) out.push_back(tensor.ref());
  return network_->run(call.function, in, out);
}

Status Trainer::run(Call& call, const CheckedData& data, std::span<const int64_t> rows, double weight) {
  for (const auto& [placeholder, array] : data.arrays)
    bind(call, placeholder, [&](Tensor& into) { gatherRows(array, rows, into); });
  bind(call, module_.loss.weights, [&](Tensor& into) {
    auto* weights = reinterpret_cast<float*>(into.mutableData());
    for (int64_t i = 0; i < module_.samples; ++i) weights[i] = i < std::ssize(rows) ? static_cast<float>(weight) : 0.0F;
  });
  return run(call);
}

Result<double> Trainer::step(const CheckedData& data, std::span<const int64_t> rows, double rate) {
  const auto setRate = [&](Tensor& into) { setScalar(into, static_cast<float>(rate)); };
  const double weight = 1.0 / static_cast<double>(rows.size());
  double loss = 0;
  bind(train_, "rate", setRate);
  for (size_t from = 0; from < rows.size(); from += static_cast<size_t>(module_.samples)) {
    const size_t count = std::min(rows.size() - from, static_cast<size_t>(module_.samples));
    AGLOW_OK(run(train_, data, rows.subspan(from, count), weight));
    loss += outputOf(train_, module_.loss.loss).doubles()[0];
  }
  if (module_.accumulates()) {
    bind(update_, "rate", setRate);
    AGLOW_OK(run(update_));
  }
  return loss;
}

Diagnosed<EvaluationResult> Trainer::evaluate(const Dataset& data) {
  const std::lock_guard lock(mutex_);
  const auto checked = checkData(data, module_);
  if (!checked.ok()) return checked.error();
  EvaluationResult result;
  int64_t right = 0;
  for (int64_t from = 0; from < checked->samples; from += module_.samples) {
    const int64_t count = std::min(module_.samples, checked->samples - from);
    const Status done =
        run(evaluate_, *checked, countedRows(from, from + count), 1.0 / static_cast<double>(checked->samples));
    if (!done.ok()) return done.error();
    result.loss += outputOf(evaluate_, module_.loss.loss).doubles()[0];
    if (module_.loss.classes == 0) continue;
    Tensor labels(module_.module->findStorage(module_.loss.target)->type());
    gatherRows(checked->arrays.at(module_.loss.target), countedRows(from, from + count), labels);
    right += countRight(outputOf(evaluate_, module_.loss.output), labels, module_.loss.axis, count);
  }
  if (module_.loss.classes > 0)
    result.accuracy =
        static_cast<double>(right) / static_cast<double>(checked->arrays.at(module_.loss.target).type().elements());
  return result;
}

Diagnosed<Tensor> Trainer::predict(const std::map<std::string, Tensor>& inputs) {
  const std::lock_guard lock(mutex_);
  if (inputs.empty()) return Error{.code = Code::MissingBinding, .message = "no inputs are given"};
  const Tensor& first = inputs.begin()->second;
  if (first.type().rank() == 0)
    return Error{.code = Code::BadBinding, .message = "expected samples along the first axis"};
  // Targets are no part of it, but the checks are the same.
  const Type& wanted = module_.module->findStorage(module_.loss.target)->type();
  std::vector<int64_t> dims = wanted.shape().dims();
  dims[0] = first.type().dim(0);
  auto shape = Shape::create(dims);
  if (!shape.ok()) return shape.error();
  const auto checked = checkData({.inputs = inputs, .target = Tensor(Type(wanted.kind(), *std::move(shape)))}, module_);
  if (!checked.ok()) return checked.error();
  const Tensor& one = outputOf(predict_, module_.loss.output);
  dims = one.type().shape().dims();
  dims[0] = checked->samples;
  auto whole = Shape::create(dims);
  if (!whole.ok()) return whole.error();
  Tensor all(one.type().withShape(*std::move(whole)));
  const int64_t bytes = one.bytes() / module_.samples;
  for (int64_t from = 0; from < checked->samples; from += module_.samples) {
    const int64_t count = std::min(module_.samples, checked->samples - from);
    if (const Status done = run(predict_, *checked, countedRows(from, from + count), 1); !done.ok())
      return done.error();
    std::memcpy(all.mutableData() + from * bytes, one.data(), static_cast<size_t>(count * bytes));
  }
  return all;
}

// ---------------------------------------------------------------- state

std::vector<Binding> Trainer::states() const { return {network_->states().begin(), network_->states().end()}; }

Result<size_t> Trainer::stateIndex(const std::string& name) const {
  const size_t index = network_->findState(name);
  if (index < network_->states().size()) return index;
  std::vector<std::string_view> names;
  for (const Binding& binding : network_->states()) names.push_back(binding.name);
  return Error{.code = Code::BadBinding,
               .message = fmt::format("there is no state {}", quoted(name)),
               .where = {},
               .hint = didYouMean(name, names)};
}

Result<Tensor> Trainer::state(const std::string& name) const {
  AGLOW_TRY(const size_t index, stateIndex(name));
  return network_->state(index);
}

Status Trainer::setState(const std::string& name, const Tensor& value) {
  AGLOW_TRY(const size_t index, stateIndex(name));
  return network_->setState(index, value.ref());
}

Status Trainer::reset() {
  const std::lock_guard lock(mutex_);
  network_->resetState();
  position_ = {.seed = position_.seed};
  return seedCounters();
}

Status Trainer::seedCounters() {
  constexpr uint64_t kApart = 0x9e3779b9;  // so that trainings with neighbouring seeds have no runs in common for long
  for (const Binding& binding : network_->states())
    if (binding.type == Type(ElemKind::UInt64, Shape{}))
      AGLOW_OK(setState(binding.name, Tensor::fromInts(binding.type, {static_cast<int64_t>(position_.seed * kApart)})));
  return {};
}

Result<Trainer::Saved> Trainer::saved() const {
  Saved states;
  for (size_t i = 0; i < network_->states().size(); ++i) {
    AGLOW_TRY(states[network_->states()[i].name], network_->state(i));
  }
  return states;
}

Status Trainer::restore(const Saved& states) {
  for (const auto& [name, value] : states) AGLOW_OK(setState(name, value));
  return {};
}

Status Trainer::save(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  AGLOW_TRY(Saved states, saved());
  return writeCheckpoint(path, {.model = module_.model,
                                .settings = module_.settings,
                                .position = position_,
                                .state = std::move(states),
                                .best = {}});
}

Result<Checkpoint> Trainer::checkedCheckpoint(const std::string& path) const {
  AGLOW_TRY(Checkpoint checkpoint, readCheckpoint(path));
  const auto other = [&](std::string message, std::string hint = {}) {
    return Error{.code = Code::BadBinding, .message = std::move(message), .where = path, .hint = std::move(hint)};
  };
  if (checkpoint.model != module_.model)
    return other("the checkpoint is of another model, or of other variables of this one");
  if (checkpoint.settings != module_.settings)
    return other(fmt::format("the checkpoint was written by a training with {}; this one has {}", checkpoint.settings,
                             module_.settings));
  const std::span<const Binding> states = network_->states();
  bool same = states.size() == checkpoint.state.size();
  for (const Binding& binding : states) {
    const auto it = checkpoint.state.find(binding.name);
    same = same && it != checkpoint.state.end() && it->second.type() == binding.type;
  }
  if (!same) return other("the checkpoint has other state than this training");
  return checkpoint;
}

Status Trainer::restore(const std::string& path) {
  const std::lock_guard lock(mutex_);
  AGLOW_TRY(const Checkpoint checkpoint, checkedCheckpoint(path));
  AGLOW_OK(restore(checkpoint.state));
  position_ = checkpoint.position;
  return {};
}

// ---------------------------------------------------------------- files

Status Trainer::addModel(FileSet& files, const std::string& path) const {
  std::map<std::string, Tensor> values;
  for (const std::string& name : module_.changed) {
    AGLOW_TRY(values[name], state(name));
  }
  if (source_.model && source_.model->format == "ONNX")
    return onnx::addRewritten(files, path, source_.file, *source_.model, values);
  auto made = makeTrainedModule(source_, plan_, values);
  if (!made.ok()) return made.diagnostics().errors().front();
  AGLOW_TRY(const onnx::Model model, onnx::exportModel(*made->module->findFunction(made->predict)));
  return onnx::addModel(files, path, model);
}

Status Trainer::exportModel(const std::string& path) const {
  return writeTogether([&](FileSet& files) { return addModel(files, path); });
}

Status Trainer::exportModule(const std::string& path) const {
  TrainingPlan plan = plan_;
  for (const std::string& name : module_.changed) {
    AGLOW_TRY(const Tensor now, state(name));
    if (now.hash() != initialBytes(*module_.module->findStorage(name))->hash()) plan.values[name] = now;
  }
  if (plan.values.empty()) return writeModule(path, *module_.module);
  auto made = makeTrainingModule(source_, plan);
  if (!made.ok()) return made.diagnostics().errors().front();
  return writeModule(path, *made->module);
}

}  // namespace aglow
