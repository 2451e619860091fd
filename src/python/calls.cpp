#include "python/calls.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/errors.h"
#include "python/names.h"
#include "support/stop.h"

namespace aglow::python {

namespace nb = nanobind;

namespace {

// A buffer of Python, given back in the end.
class View {
public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() {
    if (held_) PyBuffer_Release(&view_);
  }

  // Whether the object has one, row by row; an exception is not left behind.
  bool take(PyObject* object, int flags) {
    if (PyObject_CheckBuffer(object) == 0) return false;
    held_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    if (!held_) PyErr_Clear();
    return held_;
  }
  const Py_buffer& operator*() const { return view_; }
  const Py_buffer* operator->() const { return &view_; }

private:
  Py_buffer view_{};
  bool held_ = false;
};

struct Letter {
  char letter;
  ElemKind kind;
};
// Of struct, in this machine's sizes.
constexpr Letter kLetters[] = {{'f', ElemKind::Float32}, {'d', ElemKind::Float64}, {'e', ElemKind::Float16},
                               {'?', ElemKind::Bool},    {'b', ElemKind::Int8},    {'h', ElemKind::Int16},
                               {'i', ElemKind::Int32},   {'l', ElemKind::Int64},   {'q', ElemKind::Int64},
                               {'B', ElemKind::UInt8},   {'H', ElemKind::UInt16},  {'I', ElemKind::UInt32},
                               {'L', ElemKind::UInt64},  {'Q', ElemKind::UInt64}};

std::optional<ElemKind> kindOf(const Py_buffer& view) {
  if (view.format == nullptr || view.format[0] == 0 || view.format[1] != 0) return std::nullopt;
  for (const Letter& row : kLetters)
    if (row.letter == view.format[0] && elemBytes(row.kind) == static_cast<int>(view.itemsize)) return row.kind;
  return std::nullopt;
}

bool isAligned(const Py_buffer& view) {
  return reinterpret_cast<uintptr_t>(view.buf) % static_cast<size_t>(view.itemsize) == 0;
}

bool fits(const Py_buffer& view, const Type& type) {
  const std::vector<int64_t>& dims = type.shape().dims();
  return static_cast<size_t>(view.ndim) == dims.size() && std::equal(dims.begin(), dims.end(), view.shape) &&
         kindOf(view) == type.kind();
}

nb::object called(const nb::object& callable, std::initializer_list<PyObject*> arguments) {
  nb::object result =
      nb::steal(PyObject_Vectorcall(callable.ptr(), std::data(arguments), std::size(arguments), nullptr));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

}  // namespace

Calls::Calls(std::shared_ptr<Model> model, std::string function, std::vector<std::string> order,
             std::vector<std::string> outputs, nb::object empty, nb::object array, nb::dict dtypes)
    : model_(std::move(model)),
      function_(std::move(function)),
      order_(std::move(order)),
      outputs_(std::move(outputs)),
      makers_{std::move(empty), std::move(array), dtypes["u8"]},
      dtypes_(std::move(dtypes)) {}

nb::object Calls::call(const nb::args& arguments) {
  const nb::object notThis = nb::borrow(Py_NotImplemented);
  const size_t count = arguments.size();
  if (count != order_.size()) return notThis;
  std::vector<View> views(count);
  for (size_t i = 0; i < count; ++i)
    if (!views[i].take(nb::handle(arguments[i]).ptr(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) || !isAligned(*views[i]))
      return notThis;
  const auto isFor = [&](const Plan& plan) {
    for (size_t i = 0; i < count; ++i)
      if (!fits(*views[i], plan.types[i])) return false;
    return true;
  };
  // Kept alive here, whatever other threads do with the list during the run.
  std::shared_ptr<const Plan> plan;
  for (size_t i = 0; i < plans_.size() && !plan; ++i)
    if (isFor(*plans_[i])) {
      std::rotate(plans_.begin(), plans_.begin() + static_cast<std::ptrdiff_t>(i),
                  plans_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      plan = plans_.front();
    }
  if (!plan) {
    std::vector<Type> types;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<ElemKind> kind = kindOf(*views[i]);
      auto shape = Shape::create({views[i]->shape, views[i]->shape + views[i]->ndim});
      if (!kind || !shape.ok()) return notThis;
      types.emplace_back(*kind, *std::move(shape));
    }
    learn(std::move(types));
    return notThis;
  }
  if (!plan->whole.network) return notThis;

  std::vector<nb::object> arrays;
  std::vector<View> places(plan->outputs.size());
  std::vector<TensorRef> in, out;
  arrays.reserve(plan->outputs.size());
  in.reserve(plan->inputs.size());
  out.reserve(plan->outputs.size());
  for (size_t i = 0; i < plan->inputs.size(); ++i)
    in.push_back({&plan->inputs[i], static_cast<std::byte*>(views[plan->arguments[i]]->buf)});
  for (size_t i = 0; i < plan->outputs.size(); ++i) {
    const Output& output = plan->outputs[i];
    const nb::object memory = called(makers_.empty, {output.room.ptr(), makers_.byte.ptr()});
    if (!places[i].take(memory.ptr(), PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS)) return notThis;
    auto* begin = static_cast<std::byte*>(places[i]->buf);
    const size_t offset = -reinterpret_cast<uintptr_t>(begin) % Tensor::kAlignment;
    const nb::int_ place(offset);
    arrays.push_back(called(makers_.array, {output.shape.ptr(), output.dtype.ptr(), memory.ptr(), place.ptr()}));
    out.push_back({&output.type, begin + offset});
  }
  released([&] {
    const StopScope scope(signalCame);
    return model_->run(plan->whole, in, out);
  });
  if (plan->results.size() == 1) return arrays[plan->results.front()];
  nb::list results;
  for (const size_t number : plan->results) results.append(arrays[number]);
  return nb::tuple(results);
}

void Calls::learn(std::vector<Type> types) {
  auto plan = std::make_shared<Plan>();
  plan->types = std::move(types);
  fill(*plan);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (plans_.size() == kPlans) plans_.pop_back();
  plans_.insert(plans_.begin(), plan);
}

// What cannot go this way, faults among it, is left to the long one, which has the words for it.
void Calls::fill(Plan& plan) const {
  Inputs inputs;
  for (size_t i = 0; i < order_.size(); ++i) inputs[order_[i]] = ModelValue::of(Tensor(plan.types[i]));
  auto whole = [&] {
    const nb::gil_scoped_release release;
    return model_->whole(function_, inputs);
  }();
  if (!whole.ok() || !whole->network || PyErr_Occurred() != nullptr) return;
  const Network& network = *whole->network;
  const Interface& interface = network.functions()[whole->function];
  const auto isPlain = [](const Port& port) { return port.kind == Port::Kind::Tensor && port.labels == nullptr; };
  const auto portOf = [&](const std::vector<Port>& ports, const std::string& placeholder) -> const Port* {
    for (const Port& port : ports)
      if (isPlain(port) && port.placeholder == placeholder) return &port;
    return nullptr;
  };
  for (const Binding& binding : network.inputs(whole->function)) {
    const Port* port = portOf(interface.inputs, binding.name);
    if (port == nullptr) return;
    const auto at = std::find(order_.begin(), order_.end(), port->name);
    if (at == order_.end()) return;
    const auto argument = static_cast<size_t>(at - order_.begin());
    if (plan.types[argument] != binding.type) return;
    plan.arguments.push_back(argument);
    plan.inputs.push_back(binding.type);
  }
  const std::span<const Binding> outputs = network.outputs(whole->function);
  for (const Binding& binding : outputs) {
    const nb::str kind = text(elemName(binding.type.kind()));
    if (!dtypes_.contains(kind) || !binding.type.quant().scales.empty()) return;
    nb::list dims;
    for (const int64_t dim : binding.type.shape().dims()) dims.append(dim);
    plan.outputs.push_back(
        {nb::tuple(dims), dtypes_[kind], nb::int_(binding.type.bytes() + Tensor::kAlignment), binding.type});
  }
  for (const std::string& name : outputs_) {
    const auto isNamed = [&](const Port& port) { return port.name == name; };
    const auto port = std::find_if(interface.outputs.begin(), interface.outputs.end(), isNamed);
    if (port == interface.outputs.end() || !isPlain(*port)) return;
    const auto isIt = [&](const Binding& binding) { return binding.name == port->placeholder; };
    const auto at = std::find_if(outputs.begin(), outputs.end(), isIt);
    if (at == outputs.end()) return;
    plan.results.push_back(static_cast<size_t>(at - outputs.begin()));
  }
  plan.whole = *std::move(whole);
}

void addCalls(nb::module_& m) {
  nb::class_<Calls>(m, "Calls")
      .def(nb::init<std::shared_ptr<Model>, std::string, std::vector<std::string>, std::vector<std::string>, nb::object,
                    nb::object, nb::dict>(),
           nb::arg("model"), nb::arg("function"), nb::arg("order"), nb::arg("outputs"), nb::arg("empty"),
           nb::arg("array"), nb::arg("dtypes"))
      .def("__call__", &Calls::call);
}

}  // namespace aglow::python
