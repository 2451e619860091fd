#include "train/training_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compile/evaluate.h"
#include "graph/text.h"
#include "support/quote.h"
#include "support/sha256.h"
#include "support/suggest.h"
#include "train/variables.h"

namespace aglow {

namespace {

Error usage(std::string message, std::string hint = {}) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

// The batch's size where inputs leave their first dimension open.
void settleBatch(const onnx::Graph& graph, int64_t samples, const TrainingPlan& plan, onnx::ImportOptions& import) {
  for (const onnx::ValueInfo& input : graph.inputs) {
    const std::vector<onnx::Dim>& dims = input.type.dims;
    if (dims.empty() || plan.fixed.contains(input.name) || import.shapes.contains(input.name)) continue;
    if (dims[0].kind == onnx::Dim::Kind::Symbol) import.dims.try_emplace(dims[0].symbol, samples);
    const bool onlyBatch = std::all_of(dims.begin() + 1, dims.end(),
                                       [](const onnx::Dim& dim) { return dim.kind == onnx::Dim::Kind::Value; });
    if (dims[0].kind != onnx::Dim::Kind::Unknown || !onlyBatch) continue;
    std::vector<int64_t> shape{samples};
    for (size_t i = 1; i < dims.size(); ++i) shape.push_back(dims[i].value);
    import.shapes[input.name] = std::move(shape);
  }
}

// What the model is, but for the values of what trains: these change.
std::string hashOf(const Function& function, const std::vector<std::string>& variables) {
  std::string text;
  for (const auto& node : function.module().storage()) {
    const bool trains = std::find(variables.begin(), variables.end(), node->name()) != variables.end();
    const Tensor* value = trains ? nullptr : initialBytes(*node);
    text += fmt::format("{} {} {}\n", quoted(node->name()), node->type().text(),
                        trains             ? "trains"
                        : value == nullptr ? ""
                                           : fmt::format("{:016x}", value->hash()));
  }
  return hexadecimal(sha256(text + print(function)));
}

std::string settingsText(const TrainingPlan& plan) {
  const auto listed = [](const GivenSettings& settings) {
    std::string text;
    for (const auto& [name, value] : settings) text += fmt::format(" {}={}", name, value);
    return text;
  };
  std::string text = fmt::format("loss {}{}, optimizer {}{}, batch {}", plan.loss.name, listed(plan.loss.settings),
                                 plan.optimizer, listed(plan.settings), plan.batch);
  if (plan.clipValue > 0) text += fmt::format(", clip-value {}", plan.clipValue);
  if (plan.clipNorm > 0) text += fmt::format(", clip-norm {}", plan.clipNorm);
  if (plan.batchNormMomentum) text += fmt::format(", batch-norm-momentum {}", *plan.batchNormMomentum);
  return text;
}

// Whether a variable multiplies from the right, or spreads its inputs: then these are along its first axis.
bool hasInputsFirst(const Node& variable) {
  return std::any_of(variable.uses().begin(), variable.uses().end(), [](const Use& use) {
    const bool isWeight = use.user->op() == Op::MatMul || use.user->op() == Op::ConvTranspose;
    return isWeight && use.slot == 1;
  });
}

bool isWritten(const Node& variable) {
  return std::any_of(variable.uses().begin(), variable.uses().end(),
                     [](const Use& use) { return use.user->op() == Op::Save && use.slot == 1; });
}

class Making {
public:
  Making(const TrainingSource& source, const TrainingPlan& plan) : source_(source), plan_(plan) {}

  Diagnosed<TrainingModule> run() {
    if (auto read = this->read(); !read.ok()) return read.diagnostics();
    if (Status begun = initialize(); !begun.ok()) return begun.error();
    if (Status made = extend(); !made.ok()) return made.error();
    return std::move(made_);
  }

  Diagnosed<TrainingModule> run(const std::map<std::string, Tensor>& values) {
    if (auto read = this->read(); !read.ok()) return read.diagnostics();
    Module& module = *made_.module;
    for (const auto& [name, value] : values) {
      Node* node = module.findStorage(name);
      auto* variable =
          node->op() == Op::Constant ? module.thaw(static_cast<Constant*>(node)) : static_cast<Placeholder*>(node);
      module.freeze(variable, value);
    }
    return std::move(made_);
  }

private:
  Diagnosed<Unit> read() {
    if (plan_.batch < 1 || plan_.accumulate < 1 || plan_.accumulate > plan_.batch)
      return usage(fmt::format("a batch of {} samples cannot be cut into {} runs", plan_.batch, plan_.accumulate));
    return source_.model ? importModel() : parseModule();
  }

  Diagnosed<Unit> importModel() {
    const onnx::Model& model = *source_.model;
    std::vector<std::string> others;
    for (const onnx::TensorProto& tensor : model.graph.initializers) others.push_back(tensor.name);
    for (const onnx::Node& node : model.graph.nodes)
      others.insert(others.end(), node.outputs.begin(), node.outputs.end());
    auto chosen = chooseVariables(plan_.variables, trainableNames(model), others);
    if (!chosen.ok()) return chosen.error();
    ReferenceEvaluator evaluator;
    onnx::ImportOptions options = plan_.import;
    options.evaluator = &evaluator;
    options.variables = chosen->names;
    settleBatch(model.graph, (plan_.batch + plan_.accumulate - 1) / plan_.accumulate, plan_, options);
    for (const auto& [name, value] : plan_.fixed) options.given[name] = ModelValue::of(value);
    auto imported = onnx::importModel(model, options);
    if (!imported.ok()) return imported.diagnostics();
    made_.module = std::move(imported->module);
    made_.predict = imported->interface.function;
    for (const std::string& name : chosen->names)
      if (const Node* node = made_.module->findStorage(name); isVariable(node)) made_.step.variables.push_back(name);
    for (const std::string& name : chosen->byName)
      if (!isVariable(made_.module->findStorage(name)))
        return usage(
            fmt::format("{} cannot be trained: it is no constant of floats, nothing depends on it, or its "
                        "value decides a shape",
                        quoted(name)));
    for (const Port& port : imported->interface.inputs)
      if (port.kind == Port::Kind::Tensor)
        addInput(port.name, *made_.module->findStorage(port.placeholder));
      else if (port.kind != Port::Kind::Frozen)
        return Error{.code = Code::UnsupportedFeature,
                     .message = fmt::format("input {} is no tensor, which cannot be a sample", quoted(port.name))};
    return Unit{};
  }

  static bool isVariable(const Node* node) {
    const Placeholder* place = node == nullptr ? nullptr : asPlaceholder({const_cast<Node*>(node), 0});
    return place != nullptr && place->isState() && isFloat(place->type().kind()) && !place->uses().empty();
  }

  Diagnosed<Unit> parseModule() {
    auto module = readModule(source_.path);
    if (!module.ok()) return module.error();
    made_.module = *std::move(module);
    std::vector<std::string> names;
    for (const auto& function : made_.module->functions()) names.push_back(function->name());
    auto chosen = chooseFunction(names, plan_.function);
    if (!chosen.ok()) return chosen.error();
    made_.predict = names[*chosen];
    auto variables = chooseVariables(plan_.variables, trainableNames(*made_.module));
    if (!variables.ok()) return variables.error();
    made_.step.variables.assign(variables->names.begin(), variables->names.end());
    for (const Placeholder* place : inputsOf(*made_.module->findFunction(made_.predict)))
      addInput(place->name(), *place);
    return Unit{};
  }

  void addInput(const std::string& name, const Node& place) {
    if (const auto it = plan_.fixed.find(name); it != plan_.fixed.end())
      made_.fixed[place.name()] = it->second;
    else
      made_.inputs.push_back({.name = name, .placeholder = place.name(), .type = place.type()});
  }

  Status initialize() {
    Module& module = *made_.module;
    made_.model = hashOf(*module.findFunction(made_.predict), made_.step.variables);
    for (const auto& [pattern, how] : plan_.initializers) {
      AGLOW_TRY(const ChosenVariables chosen, chooseVariables({pattern}, made_.step.variables));
      bool any = false;
      for (const std::string& name : chosen.names) {
        Node* node = module.findStorage(name);
        if (!isFor(how, node->type()) && !chosen.byName.contains(name)) continue;
        Initializer own = how;
        own.inputsFirst = hasInputsFirst(*node);
        auto value = initialTensor(node->type(), own, name, plan_.seed);
        if (!value.ok()) return Error(value.error()).at(fmt::format("variable {}", quoted(name)));
        if (isWritten(*node))
          return usage(
              fmt::format("variable {} is written by a function of the module: its first value is that of the "
                          "module",
                          quoted(name)));
        Placeholder* state =
            node->op() == Op::Constant ? module.thaw(static_cast<Constant*>(node)) : static_cast<Placeholder*>(node);
        module.thaw(module.freeze(state, *std::move(value)));
        any = true;
      }
      if (!any)
        return usage(fmt::format("no variable that fits {} has the axes that initializer {} needs", quoted(pattern),
                                 quoted(how.name)));
    }
    return {};
  }

  Status extend() {
    Module& module = *made_.module;
    const Function& predict = *module.findFunction(made_.predict);
    made_.settings = settingsText(plan_);
    std::set<std::string> own;
    for (const auto& node : module.storage()) own.insert(node->name());
    if (module.findFunction(made_.evaluate) != nullptr)
      return usage(fmt::format("there is a function {} already", quoted(made_.evaluate)));
    Function& evaluate = *module.clone(predict, made_.evaluate);
    AGLOW_TRY(made_.loss, addLoss(evaluate, plan_.loss));
    AGLOW_OK(countSamples(savedAs(evaluate, made_.loss.output)));
    TrainingStep& step = made_.step;
    step.loss = made_.loss.loss;
    step.optimizer = plan_.optimizer;
    step.settings = plan_.settings;
    step.clipValue = plan_.clipValue;
    step.clipNorm = plan_.clipNorm;
    step.batchNormMomentum = plan_.batchNormMomentum;
    made_.runs = (plan_.batch + made_.samples - 1) / made_.samples;
    step.accumulate = made_.runs > 1;
    AGLOW_OK(addTrainingStep(evaluate, step));
    std::set<std::string> changed;
    for (const std::string& name : {step.name, updateName(step)})
      if (const Function* function = module.findFunction(name))
        for (const Node* save : function->saves())
          // Counters of runs are no part of a model.
          if (const Placeholder* place = asPlaceholder(save->input(1));
              place->isState() && isFloat(place->type().kind()) && own.contains(place->name()))
            changed.insert(place->name());
    made_.changed.assign(changed.begin(), changed.end());
    return {};
  }

  Status countSamples(Value output) {
    made_.samples = output.dim(0);
    for (const SampleInput& input : made_.inputs)
      if (input.type.rank() == 0 || input.type.dim(0) != made_.samples)
        return usage(
            fmt::format("expected samples along the first axis of the output {} {} and of every input, got {} "
                        "for {}",
                        quoted(made_.loss.output), output.type().text(), input.type.text(), quoted(input.name)),
            "an input that is the same for all samples can be given once for all (--input)");
    if (made_.samples < 1) return usage("the model takes batches of no samples");
    return {};
  }

  const TrainingSource& source_;
  const TrainingPlan& plan_;
  TrainingModule made_;
};

}  // namespace

namespace {

Diagnosed<TrainingModule> placed(Diagnosed<TrainingModule> made, const TrainingSource& source) {
  if (!made.ok() && !source.path.empty()) return Diagnostics(made.diagnostics()).at(source.path);
  return made;
}

}  // namespace

Diagnosed<TrainingModule> makeTrainingModule(const TrainingSource& source, const TrainingPlan& plan) {
  return placed(Making(source, plan).run(), source);
}

Diagnosed<TrainingModule> makeTrainedModule(const TrainingSource& source, const TrainingPlan& plan,
                                            const std::map<std::string, Tensor>& values) {
  return placed(Making(source, plan).run(values), source);
}

}  // namespace aglow
