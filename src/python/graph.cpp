#include "python/graph.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "graph/builder.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "ops/all_ops.h"
#include "python/arrays.h"
#include "python/errors.h"
#include "python/names.h"
#include "support/quote.h"

namespace aglow::python {

namespace nb = nanobind;

namespace {

struct ValueRef {
  std::shared_ptr<Module> module;
  Value value;
};

// Makes nodes of one function.
struct FunctionBuilder {
  std::shared_ptr<Module> module;
  Function* function = nullptr;
};

// What code that builds gives, or the error that it met as an exception.
template <class F>
auto built(F&& code) {
  auto result = building(std::forward<F>(code));
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}

ElemKind kindOf(const std::string& name) {
  const std::optional<ElemKind> kind = elemKindByName(name);
  if (!kind) fail(Code::Usage, fmt::format("there is no kind of elements {}", quoted(name)), "f32, i64, bool, bf16, …");
  return *kind;
}

template <class T>
T as(nb::handle value, const AttrDef& def) {
  T result;
  if (!nb::try_cast(value, result))
    fail(Code::Usage, fmt::format("the attribute '{}' does not take a value of this type", def.name));
  return result;
}

AttrValue attrOf(nb::handle value, const AttrDef& def) {
  switch (def.kind) {
    case AttrKind::Int:
      return as<int64_t>(value, def);
    case AttrKind::Bool:
      return int64_t{as<bool>(value, def)};
    case AttrKind::Float:
      return as<double>(value, def);
    case AttrKind::Ints:
      return as<std::vector<int64_t>>(value, def);
    case AttrKind::Floats:
      return as<std::vector<double>>(value, def);
    case AttrKind::Enum: {
      auto word = as<std::string>(value, def);
      const std::string choices = fmt::format("|{}|", def.choices);
      if (choices.find("|" + word + "|") == std::string::npos)
        fail(Code::Usage, fmt::format("the attribute '{}' is '{}'; expected one of {}", def.name, word, def.choices));
      return word;
    }
    case AttrKind::Word:
      return as<std::string>(value, def);
    case AttrKind::Elem:
      break;
  }
  return kindOf(as<std::string>(value, def));
}

nb::list make(FunctionBuilder& self, const std::string& op, const nb::list& operands, const nb::dict& attrs,
              const std::string& name, const std::optional<ValueRef>& predicate) {
  nb::list results;
  const Node* made = built([&]() -> const Node* {
    const std::optional<Op> found = findOp(op);
    if (!found || opDef(*found).kind == OpKind::Storage)
      fail(Code::Usage, fmt::format("there is no operator {}", quoted(op)), "docs/ops.md lists them");
    std::vector<Value> inputs;
    for (const nb::handle operand : operands) {
      if (operand.is_none()) {
        inputs.emplace_back();
        continue;
      }
      const auto& ref = nb::cast<const ValueRef&>(operand);
      if (ref.module != self.module) fail(Code::Usage, "a value of another graph is used");
      inputs.push_back(ref.value);
    }
    Attrs values(opDef(*found));
    for (const auto& [key, value] : attrs) {
      const std::string attr = bytesOf(key);
      const int index = values.indexOf(attr);
      if (index < 0) fail(Code::Usage, fmt::format("{} has no attribute {}", op, quoted(attr)));
      values.setAt(index, attrOf(value, values.op().attrs[index]));
    }
    Builder builder(*self.function);
    builder.named(name);
    if (predicate) builder.when(predicate->value);
    return builder.make(std::move(inputs), std::move(values));
  });
  for (int i = 0; i < made->resultCount(); ++i)
    results.append(nb::cast(ValueRef{self.module, {const_cast<Node*>(made), i}}));
  return results;
}

std::string inferred(const Type& type) { return type.text(); }

// Functions that name the same input mean the same storage.
ValueRef input(FunctionBuilder& self, nb::handle name, const std::string& kind, std::vector<int64_t> shape) {
  const std::string bytes = bytesOf(name);
  return {self.module, built([&] {
            const Type type(kindOf(kind), orFail(Shape::create(std::move(shape))));
            if (Node* present = self.module->findStorage(bytes)) {
              if (present->op() != Op::Placeholder || static_cast<Placeholder*>(present)->isState())
                fail(Code::Usage, fmt::format("{} is storage already, and no input", quoted(bytes)));
              if (present->type() != type)
                fail(Code::Usage, fmt::format("the input {} is {} already, and cannot be {}", quoted(bytes),
                                              inferred(present->type()), inferred(type)));
              return present->result();
            }
            return self.module->addPlaceholder(bytes, type)->result();
          })};
}

bool writes(const Function& function, const Node* target) {
  const std::vector<Node*> saves = function.saves();
  return std::any_of(saves.begin(), saves.end(), [&](const Node* save) { return save->input(1).node == target; });
}

void output(FunctionBuilder& self, nb::handle name, const ValueRef& value) {
  const std::string bytes = bytesOf(name);
  built([&] {
    if (value.module != self.module) fail(Code::Usage, "a value of another graph is used");
    Builder builder(*self.function);
    Node* present = self.module->findStorage(bytes);
    if (present == nullptr) {
      builder.output(bytes, value.value);
      return 0;
    }
    if (present->op() != Op::Placeholder || static_cast<Placeholder*>(present)->isState())
      fail(Code::Usage, fmt::format("{} is storage already, and no output", quoted(bytes)));
    if (writes(*self.function, present)) fail(Code::Usage, fmt::format("the output {} is given twice", quoted(bytes)));
    builder.save(value.value, static_cast<Placeholder*>(present));
    return 0;
  });
}

// The bytes stay where they are; the graph keeps their owner.
ValueRef constant(Graph& graph, nb::handle name, nb::handle pair) {
  const ModelValue value = valueOf(pair);
  return {graph.module, graph.module->addConstant(bytesOf(name), value.tensor())->result()};
}

ValueRef state(Graph& graph, nb::handle name, nb::handle pair) {
  const std::string bytes = bytesOf(name);
  const ModelValue value = valueOf(pair);
  return {graph.module, built([&] {
            if (graph.module->findStorage(bytes) != nullptr)
              fail(Code::Usage, fmt::format("{} is storage already", quoted(bytes)));
            return graph.module->addState(bytes, copyOf(value.tensor()))->result();
          })};
}

void save(FunctionBuilder& self, const ValueRef& value, const ValueRef& target) {
  built([&] {
    const Placeholder* place = asPlaceholder(target.value);
    if (place == nullptr || !place->isState()) fail(Code::Usage, "a value is saved into state");
    if (writes(*self.function, place))
      fail(Code::Usage, fmt::format("the state {} is written twice by one function", quoted(place->name())));
    Builder(*self.function).save(value.value, const_cast<Placeholder*>(place));
    return 0;
  });
}

FunctionBuilder function(Graph& graph, nb::handle name) {
  const std::string bytes = bytesOf(name);
  if (graph.module->findFunction(bytes) != nullptr)
    raise(Error{.code = Code::Usage, .message = fmt::format("the graph has a function {} already", quoted(bytes))});
  return {graph.module, graph.module->addFunction(bytes)};
}

Graph parseGraph(nb::handle text) {
  const std::string bytes = bytesOf(text);
  std::unique_ptr<Module> module = released([&]() -> Diagnosed<std::unique_ptr<Module>> {
    auto parsed = parseModule(bytes);
    if (!parsed.ok()) return parsed.error();
    return *std::move(parsed);
  });
  return {std::shared_ptr<Module>(std::move(module))};
}

Graph readGraph(const std::string& path) {
  std::unique_ptr<Module> module = released([&]() -> Diagnosed<std::unique_ptr<Module>> {
    auto read = readModule(path);
    if (!read.ok()) return read.error();
    return *std::move(read);
  });
  return {std::shared_ptr<Module>(std::move(module))};
}

void writeGraph(const Graph& graph, const std::string& path) {
  released([&]() -> Diagnosed<Unit> {
    if (const Status written = writeModule(path, *graph.module); !written.ok()) return written.error();
    return Unit{};
  });
}

void verifyGraph(const Graph& graph) {
  released([&]() -> Diagnosed<Unit> {
    if (const Status valid = verify(*graph.module); !valid.ok()) return valid.error();
    return Unit{};
  });
}

nb::tuple shapeOf(const ValueRef& ref) {
  nb::list dims;
  for (const int64_t dim : ref.value.shape().dims()) dims.append(dim);
  return nb::tuple(dims);
}

// (number of the function, "" for storage; name; operator; result types; operands as (row, result)), rows in order.
nb::list nodesOf(const Graph& graph) {
  nb::list rows;
  std::unordered_map<const Node*, size_t> numbers;
  const auto add = [&](const Node& node, std::string_view function) {
    nb::list types, operands;
    for (const Type& type : node.types()) types.append(text(type.text()));
    for (const Value operand : node.inputs())
      if (operand) operands.append(nb::make_tuple(numbers.at(operand.node), operand.index));
    numbers[&node] = numbers.size();
    rows.append(nb::make_tuple(text(function), text(node.name()), text(node.def().name), types, operands));
  };
  for (const auto& node : graph.module->storage()) add(*node, "");
  for (const auto& function : graph.module->functions())
    for (const auto& node : function->nodes()) add(*node, function->name());
  return rows;
}

}  // namespace

void addGraph(nb::module_& m) {
  nb::class_<ValueRef>(m, "Value")
      .def_prop_ro("shape", &shapeOf)
      .def_prop_ro("kind", [](const ValueRef& ref) { return text(elemName(ref.value.kind())); })
      .def_prop_ro("type", [](const ValueRef& ref) { return text(ref.value.type().text()); })
      .def_prop_ro("name", [](const ValueRef& ref) { return text(ref.value.node->name()); })
      .def_prop_ro("index", [](const ValueRef& ref) { return ref.value.index; });
  nb::class_<FunctionBuilder>(m, "Builder")
      .def("make", &make, nb::arg("op"), nb::arg("operands"), nb::arg("attrs"), nb::arg("name"),
           nb::arg("predicate").none())
      .def("input", &input, nb::arg("name"), nb::arg("kind"), nb::arg("shape"))
      .def("output", &output, nb::arg("name"), nb::arg("value"))
      .def("save", &save, nb::arg("value"), nb::arg("target"));
  nb::class_<Graph>(m, "Graph")
      .def(nb::init<>())
      .def_static("parse", &parseGraph, nb::arg("text"))
      .def_static("read", &readGraph, nb::arg("path"))
      .def("function", &function, nb::arg("name"))
      .def("constant", &constant, nb::arg("name"), nb::arg("value"))
      .def("state", &state, nb::arg("name"), nb::arg("value"))
      .def("write", &writeGraph, nb::arg("path"))
      .def("verify", &verifyGraph)
      .def_prop_ro("text", [](const Graph& graph) { return text(print(*graph.module)); })
      .def_prop_ro("functions",
                   [](const Graph& graph) {
                     nb::list names;
                     for (const auto& one : graph.module->functions()) names.append(text(one->name()));
                     return names;
                   })
      .def_prop_ro("nodes", &nodesOf);
}

}  // namespace aglow::python
