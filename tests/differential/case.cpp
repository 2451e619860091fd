#include "case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/text.h"
#include "random_graph.h"
#include "support/check.h"

namespace aglow::differential {

namespace {

constexpr std::string_view kValueSuffix = ".value";

constexpr KindSet kStandardKinds =
    kindSet(ElemKind::Float32, ElemKind::Float64, ElemKind::Int32, ElemKind::Int64, ElemKind::Bool);

// Values that arithmetic treats in a way of its own.
Tensor withOddValues(Random& random, const Tensor& plain) {
  const Type& type = plain.type();
  if (isFloat(type.kind())) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    static const std::vector<double> kOdd{kInf,  -kInf, std::nan(""), 0.0,   -0.0, 1e30,
                                          -1e30, 1e-30, 1e-42,        65504, 0.5,  -1};
    std::vector<double> values = plain.doubles();
    for (double& v : values)
      if (random.chance(0.2)) v = random.pick(kOdd);
    return Tensor::fromDoubles(type, values);
  }
  if (!isInteger(type.kind())) return plain;
  static const std::vector<int64_t> kOdd{0,         -1,        1,         std::numeric_limits<int64_t>::max(),
                                         INT32_MIN, INT32_MAX, INT16_MIN, std::numeric_limits<int64_t>::min(),
                                         127,       -128,      255,       7};
  std::vector<int64_t> values = plain.toInts();
  for (int64_t& v : values)
    if (random.chance(0.2)) v = random.pick(kOdd);
  return Tensor::fromInts(type, values);
}

}  // namespace

Case drawCase(uint64_t seed, const DrawOptions& options) {
  Case made{.module = std::make_unique<Module>(), .inputs = {}};
  Random random(seed);
  RandomOptions how{.maxElements = options.maxElements, .constants = random.real(0, 0.8)};
  how.predicates = random.chance(0.1) ? 0.2 : 0;
  how.tries = 1000;
  // Target operators come from the layout phase, for the backend that asks for them.
  how.allowed = [](const OpDef& op) { return op.kind != OpKind::Target; };
  if (options.standard) {
    how.kinds = kStandardKinds;
    how.predicates = 0;
  }
  RandomGraph graph(*made.module, random.bits(), how);
  graph.addFunction("main", static_cast<int>(random.between(1, options.nodes)));
  const bool odd = !options.standard && random.chance(0.15);
  const bool positive = random.chance(0.3);
  std::vector<const Node*> predicates;
  for (const auto& node : made.function().nodes())
    if (node->predicate()) predicates.push_back(node->predicate().node);
  for (const Placeholder* place : inputsOf(made.function())) {
    Tensor value = randomTensor(random, place->type(), positive ? 0.1 : -4, 4);
    if (odd) value = withOddValues(random, value);
    // Where a predicate is false, results may be anything.
    if (std::find(predicates.begin(), predicates.end(), place) != predicates.end())
      value = Tensor::fromInts(place->type(), std::vector<int64_t>(static_cast<size_t>(place->type().elements()), 1));
    made.inputs.emplace(place->name(), std::move(value));
  }
  return made;
}

Case cloned(const Case& from) {
  BlobStore blobs;
  auto module = parseModule(print(*from.module, &blobs), blobs);
  AGLOW_CHECK(module.ok(), "a graph's text does not read back");
  return {.module = *std::move(module), .inputs = from.inputs};
}

Status writeCase(const std::string& path, const Case& from) {
  const Case copy = cloned(from);
  for (const auto& [name, value] : copy.inputs) copy.module->addConstant(name + std::string(kValueSuffix), value);
  return writeModule(path, *copy.module);
}

Result<Case> readCase(const std::string& path) {
  AGLOW_TRY(std::unique_ptr<Module> module, readModule(path));
  Case read{.module = std::move(module), .inputs = {}};
  for (const Placeholder* place : inputsOf(read.function())) {
    Node* value = read.module->findStorage(place->name() + std::string(kValueSuffix));
    if (value == nullptr || value->op() != Op::Constant)
      return Error{Code::BadText, "no value is kept for input '" + place->name() + "'", path};
    read.inputs.emplace(place->name(), static_cast<Constant*>(value)->tensor());
    read.module->eraseStorage(value);
  }
  return read;
}

void dropDeadNodes(Case& of) {
  Function& function = of.function();
  for (Node* node = function.back(); node != nullptr;) {
    Node* previous = function.previous(node);
    if (node->op() != Op::Save && node->uses().empty()) function.erase(node);
    node = previous;
  }
  std::vector<Node*> unused;
  for (const auto& node : of.module->storage())
    if (node->uses().empty()) unused.push_back(node.get());
  for (Node* node : unused) {
    if (const auto value = of.inputs.find(node->name()); value != of.inputs.end()) of.inputs.erase(value);
    of.module->eraseStorage(node);
  }
}

}  // namespace aglow::differential
