// The module aglow._core: what the Python part of the package builds on.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "codegen/code_cache.h"
#include "compile/text_files.h"
#include "import/onnx/op_import.h"
#include "ops/all_ops.h"
#include "python/arrays.h"
#include "python/errors.h"
#include "python/model.h"
#include "support/machine.h"

namespace aglow::python {

namespace nb = nanobind;

namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;
using Dims = std::map<std::string, int64_t>;

nb::str text(std::string_view bytes) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

// Names need not be UTF-8; what Python makes of them is taken back here.
std::string bytesOf(nb::handle name) {
  const nb::object encoded = nb::steal(PyUnicode_AsEncodedString(name.ptr(), "utf-8", "surrogateescape"));
  if (!encoded.is_valid()) throw nb::python_error();
  return {PyBytes_AS_STRING(encoded.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(encoded.ptr()))};
}

// A signal that came while Python could not see to it (Ctrl-C) ends the compilation at the next pass.
Status noticeSignals(const StageEvent&) {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() == 0) return {};
  return Error{.code = Code::Interrupted, .message = "interrupted by a signal"};
}

Model* openModel(const std::optional<std::string>& path, const nb::object& data, const std::string& backend,
                 int threads, const std::string& cache, int64_t memoryLimit, const Shapes& shapes, const Dims& dims,
                 int optLevel, const std::vector<std::string>& disable) {
  CompileOptions options;
  options.backend = backend.empty() ? std::string(backendNames().back()) : backend;
  options.shapes = shapes;
  options.dims = dims;
  options.target.optLevel = optLevel;
  options.disabled.insert(disable.begin(), disable.end());
  options.observer = noticeSignals;
  const BackendOptions memory{.memoryLimit = memoryLimit > 0 ? memoryLimit : machineMemory(),
                              .threads = threads > 0 ? threads : machineThreads(),
                              .cache = codegen::cacheFolder(cache)};
  onnx::Bytes bytes;
  std::shared_ptr<const void> owner;
  if (!data.is_none()) {
    bytes = {reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(data.ptr())),
             static_cast<size_t>(PyBytes_GET_SIZE(data.ptr()))};
    owner = keep(data);
  }
  std::unique_ptr<Model> opened = released([&]() -> Diagnosed<std::unique_ptr<Model>> {
    if (path && isTextForm(*path)) return Model::open(std::nullopt, *path, options, memory);
    auto model = path ? onnx::readModel(*path) : onnx::parseModel(bytes, owner);
    if (!model.ok()) return model.error();
    return Model::open(*std::move(model), path.value_or(""), options, memory);
  });
  return opened.release();
}

nb::list specsOf(const std::vector<Spec>& specs) {
  nb::list list;
  for (const Spec& spec : specs) {
    nb::list dims;
    for (const onnx::Dim& dim : spec.dims) {
      if (dim.kind == onnx::Dim::Kind::Value)
        dims.append(dim.value);
      else if (dim.kind == onnx::Dim::Kind::Symbol)
        dims.append(text(dim.symbol));
      else
        dims.append(nb::none());
    }
    const bool optional = spec.form == Spec::Form::Optional || spec.form == Spec::Form::OptionalSequence;
    const bool sequence = spec.form == Spec::Form::Sequence || spec.form == Spec::Form::OptionalSequence;
    const nb::object kind = spec.kind ? nb::object(text(elemName(*spec.kind))) : nb::none();
    const nb::object shape = spec.ranked ? nb::object(nb::tuple(dims)) : nb::none();
    list.append(nb::make_tuple(text(spec.name), kind, text(spec.type), shape, sequence, optional, spec.hasDefault));
  }
  return list;
}

std::map<std::string, ModelValue> givenOf(const Model& model, const nb::dict& inputs) {
  std::map<std::string, ModelValue> given;
  for (const auto& [name, value] : inputs) {
    const std::string key = bytesOf(name);
    for (const Spec& spec : model.inputs())
      if (spec.name == key && spec.kind) given[key] = valueOf(value, *spec.kind);
  }
  return given;
}

nb::list run(Model& model, const nb::dict& inputs) {
  const std::map<std::string, ModelValue> given = givenOf(model, inputs);
  std::vector<ModelValue> outputs = released([&] { return model.run(given); });
  nb::list results;
  for (ModelValue& value : outputs) results.append(objectOf(std::move(value)));
  return results;
}

std::string textOf(const Model& model, const std::string& after, bool onProgram, const Shapes& shapes, const Dims& dims,
                   const nb::dict& values) {
  CompileOptions options = model.options();
  options.given = givenOf(model, values);
  options.stopAfter = after;
  for (const auto& [name, shape] : shapes) options.shapes[name] = shape;
  for (const auto& [name, size] : dims) options.dims[name] = size;
  return released([&] { return model.text(options, onProgram); });
}

nb::list operators() {
  nb::list names;
  for (const std::string& name : onnx::supportedOperators()) names.append(text(name));
  return names;
}

}  // namespace

NB_MODULE(_core, m) {
  m.attr("version") = AGLOW_VERSION;
  m.def("backends", [] {
    nb::list names;
    for (const std::string_view name : backendNames()) names.append(text(name));
    return names;
  });
  m.def("operators", &operators);
  m.def("codes", [] {
    nb::list rows;
    for (const CodeInfo& info : allCodes())
      rows.append(nb::make_tuple(text(info.id), static_cast<int>(info.exit), text(info.title), text(info.explanation)));
    return rows;
  });
  nb::class_<Model>(m, "Model")
      .def_prop_ro("inputs", [](const Model& model) { return specsOf(model.inputs()); })
      .def_prop_ro("outputs", [](const Model& model) { return specsOf(model.outputs()); })
      .def("run", &run, nb::arg("inputs"))
      .def("text", &textOf, nb::arg("after"), nb::arg("on_program"), nb::arg("shapes"), nb::arg("dims"),
           nb::arg("values"));
  m.def("open", &openModel, nb::arg("path").none(), nb::arg("data").none(), nb::arg("backend"), nb::arg("threads"),
        nb::arg("cache"), nb::arg("memory_limit"), nb::arg("shapes"), nb::arg("dims"), nb::arg("opt_level"),
        nb::arg("disable"), nb::rv_policy::take_ownership);
}

}  // namespace aglow::python
