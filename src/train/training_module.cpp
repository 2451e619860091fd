#include "train/training_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compile/evaluate.h"
#include "grad/shapes.h"
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

// The axis of samples, from 0 on.
Result<int64_t> sampleAxis(const TrainingPlan& plan, const std::string& name, size_t rank) {
  const auto given = plan.sampleAxes.find(name);
  if (given == plan.sampleAxes.end()) return 0;
  const auto axes = static_cast<int64_t>(rank);
  if (given->second < -axes || given->second >= axes)
    return usage(fmt::format("the samples of {}, which has {} axes, cannot lie along axis {}", quoted(name), axes,
                             given->second));
  return given->second < 0 ? given->second + axes : given->second;
}

// The batch's size where inputs leave the dimension of samples open.
Status settleBatch(const onnx::Graph& graph, int64_t samples, const TrainingPlan& plan, onnx::ImportOptions& import) {
  for (const onnx::ValueInfo& input : graph.inputs) {
    const std::vector<onnx::Dim>& dims = input.type.dims;
    if (dims.empty() || plan.fixed.contains(input.name) || import.shapes.contains(input.name)) continue;
    AGLOW_TRY(const auto axis, sampleAxis(plan, input.name, dims.size()));
    const auto batch = static_cast<size_t>(axis);
    if (dims[batch].kind == onnx::Dim::Kind::Symbol) import.dims.try_emplace(dims[batch].symbol, samples);
    std::vector<int64_t> shape;
    for (const onnx::Dim& dim : dims)
      if (&dim == &dims[batch] || dim.kind == onnx::Dim::Kind::Value)
        shape.push_back(&dim == &dims[batch] ? samples : dim.value);
    if (dims[batch].kind == onnx::Dim::Kind::Unknown && shape.size() == dims.size())
      import.shapes[input.name] = std::move(shape);
  }
  return {};
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
    if (Status turned = turnSamples(); !turned.ok()) return turned.error();
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
    const int64_t samples = (plan_.batch + plan_.accumulate - 1) / plan_.accumulate;
    if (Status settled = settleBatch(model.graph, samples, plan_, options); !settled.ok()) return settled.error();
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

  // Samples lie along the first axis in the eyes of all that follows.
  Status turnSamples() {
    Module& module = *made_.module;
    Function& predict = *module.findFunction(made_.predict);
    loss_ = plan_.loss;
    const std::vector<Placeholder*> outputs = outputsOf(predict);
    if (loss_.output.empty() && !outputs.empty()) loss_.output = outputs.front()->name();
    for (const auto& item : plan_.sampleAxes) {
      const std::string& name = item.first;
      const auto input = std::find_if(made_.inputs.begin(), made_.inputs.end(),
                                      [&](const SampleInput& one) { return one.name == name; });
      const bool isInput = input != made_.inputs.end();
      Node* place = isInput                ? module.findStorage(input->placeholder)
                    : name == loss_.output ? module.findStorage(name)
                                           : nullptr;
      if (place == nullptr) {
        std::vector<std::string_view> names{loss_.output};
        for (const SampleInput& one : made_.inputs) names.push_back(one.name);
        return usage(fmt::format("there is no input with samples, or output that is compared, {}", quoted(name)),
                     didYouMean(name, names));
      }
      const Type& type = place->type();
      AGLOW_TRY(const int64_t axis, sampleAxis(plan_, name, static_cast<size_t>(type.rank())));
      if (axis == 0) continue;
      for (const auto& other : module.functions())
        for (const std::vector<Placeholder*>& places : {inputsOf(*other), outputsOf(*other)})
          if (other.get() != &predict && std::find(places.begin(), places.end(), place) != places.end())
            return usage(fmt::format("function {} uses {} too: its samples have to lie along the first axis",
                                     quoted(other->name()), quoted(name)));
      const std::vector<int64_t> first = grad::frontFirst({axis}, type.rank());
      Builder b(predict);
      if (isInput) {
        std::vector<int64_t> dims;
        for (const int64_t a : first) dims.push_back(type.dim(static_cast<int>(a)));
        AGLOW_TRY(Shape shape, Shape::create(dims));
        Placeholder* rows = module.addPlaceholder(name + ".samples", type.withShape(std::move(shape)));
        const Value turned = b.before(predict.front()).named(name).transposed(rows->result(), grad::inverse(first));
        replaceAllUses(place->result(), turned);
        module.eraseStorage(place);
        input->placeholder = rows->name();
        input->type = rows->type();
      } else {
        const std::vector<Node*> saves = predict.saves();
        Node* save = *std::find_if(saves.begin(), saves.end(), [&](Node* s) { return s->input(1).node == place; });
        const Value value = save->input(0);
        predict.erase(save);
        module.eraseStorage(place);
        b.named(name).output(name, b.transposed(value, first));
      }
    }
    return {};
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
        AGLOW_OK(begin(*node, *std::move(value)));
        any = true;
      }
      if (!any)
        return usage(fmt::format("no variable that fits {} has the axes that initializer {} needs", quoted(pattern),
                                 quoted(how.name)));
    }
    for (const auto& [name, value] : plan_.values) AGLOW_OK(begin(*module.findStorage(name), value));
    return {};
  }

  // Gives storage another first value.
  Status begin(Node& node, Tensor value) {
    if (isWritten(node))
      return usage(fmt::format("{} is written by a function of the module: its first value is that of the module",
                               quoted(node.name())));
    Module& module = *made_.module;
    Placeholder* state =
        node.op() == Op::Constant ? module.thaw(static_cast<Constant*>(&node)) : static_cast<Placeholder*>(&node);
    module.thaw(module.freeze(state, std::move(value)));
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
    AGLOW_TRY(made_.loss, addLoss(evaluate, loss_));
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
            "name the axis of others (--sample-axis); an input that is the same for all samples can be given once for "
            "all (--input)");
    if (made_.samples < 1) return usage("the model takes batches of no samples");
    return {};
  }

  const TrainingSource& source_;
  const TrainingPlan& plan_;
  Loss loss_;  // the plan's, with the name of its output
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
