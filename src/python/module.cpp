// The module aglow._core: what the Python part of the package builds on.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "backends/package_cache.h"
#include "compile/phases.h"
#include "dynamic/quant_report.h"
#include "import/onnx/op_import.h"
#include "ops/all_ops.h"
#include "python/arrays.h"
#include "python/calls.h"
#include "python/errors.h"
#include "python/graph.h"
#include "python/host.h"
#include "python/model.h"
#include "python/names.h"
#include "python/reports.h"
#include "python/trainer.h"
#include "quant/profile_file.h"
#include "quant/quantize.h"
#include "runtime/threads.h"
#include "support/machine.h"
#include "support/stop.h"

namespace aglow::python {

namespace nb = nanobind;

namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;
using Dims = std::map<std::string, int64_t>;
using PreparedDims = std::map<std::string, std::vector<int64_t>>;

// A signal that came while Python could not see to it (Ctrl-C) ends the compilation at the next pass.
Status noticeSignals(const StageEvent&) {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() == 0) return {};
  return Error{.code = Code::Interrupted, .message = "interrupted by a signal"};
}

Model* readModel(const std::string& path, const std::string& init) {
  std::unique_ptr<Model> model = released([&] { return Model::read(path, init); });
  return model.release();
}

SharedBytes shared(const nb::bytes& data) {
  return {.bytes = {static_cast<const std::byte*>(data.data()), data.size()}, .owner = keep(data)};
}

Model* parseModel(const nb::bytes& data, const std::optional<nb::bytes>& init) {
  const SharedBytes file = shared(data), weights = init ? shared(*init) : SharedBytes{};
  std::unique_ptr<Model> model = released([&] { return Model::parse(file, init ? &weights : nullptr); });
  return model.release();
}

// The graph as it is now: what is built on afterwards is another model.
Model* modelOf(const Graph& graph) {
  std::unique_ptr<Model> model = released([&] { return Model::ofText(textFormOf(*graph.module)); });
  return model.release();
}

Model* parseText(nb::handle written) {
  TextForm form{.text = bytesOf(written), .blobs = {}};
  std::unique_ptr<Model> model = released([&] { return Model::ofText(std::move(form)); });
  return model.release();
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

    const nb::object shape = spec.isRanked ? nb::object(nb::tuple(dims)) : nb::none();
    list.append(nb::make_tuple(text(spec.name), text(spec.kind), text(spec.type), shape, spec.isSequence,
                               spec.isOptional, spec.hasDefault, text(spec.keys)));
  }
  return list;
}

Inputs inputsOf(const nb::dict& given) {
  Inputs inputs;
  for (const auto& [name, value] : given) inputs[bytesOf(name)] = valueOf(value);
  return inputs;
}

// The values outlive the call, and arrays may change.
Inputs copiesOf(Inputs values) {
  for (auto& [name, value] : values)
    for (Tensor& tensor : value.tensors) tensor = copyOf(tensor);
  return values;
}

// What becomes integers or narrower floats: the text of a profile, calibration, schema, names to keep; null for floats.
Result<std::shared_ptr<const quant::Request>> requestOf(const std::string& precision, const std::string& profile,
                                                        const std::string& calibration, const std::string& schema,
                                                        const std::vector<std::string>& keepFloat) {
  if (precision == "float") return std::shared_ptr<const quant::Request>();
  if (precision != "int8") return quant::requestOf(precision, keepFloat);
  AGLOW_TRY(quant::Profile ranges, quant::parseProfile(profile));
  return quant::requestOf(std::move(ranges), calibration, schema, keepFloat);
}

// How samples are run.
SessionOptions sampling(const std::string& backend, int threads, const std::string& cache, const Shapes& shapes,
                        const Dims& dims, const std::vector<std::string>& disable, bool strict) {
  SessionOptions options;
  options.compile.backend = backend;
  options.compile.disabled.insert(disable.begin(), disable.end());
  options.compile.observer = noticeSignals;
  options.import.shapes = shapes;
  options.import.dims = dims;
  options.import.tolerance.strict = strict;
  options.backend.memoryLimit = machineMemory();
  options.backend.threads = std::max(threads, 0);
  options.compile.cache = cacheFolder(cache);
  return options;
}

Profiler* profilerOf(const Model& model, const std::string& backend, int threads, const std::string& cache,
                     const Shapes& shapes, const Dims& dims, const std::vector<std::string>& disable, bool strict) {
  SessionOptions options = sampling(backend, threads, cache, shapes, dims, disable, strict);
  std::unique_ptr<Profiler> profiler = released([&]() -> Diagnosed<std::unique_ptr<Profiler>> {
    if (Status status = checkOptions(options.compile); !status.ok()) return status.error();
    startThreads(options.backend);
    return model.profiler(options);
  });
  return profiler.release();
}

// A Python function of what each sample gave, a list of its outputs for each. What it raises is raised in the end.
Metric metricOf(const std::string& name, const nb::callable& metric) {
  const auto of = [&metric](const SampleOutputs& outputs) -> Diagnosed<double> {
    const nb::gil_scoped_acquire acquire;
    try {
      nb::list samples;
      for (const std::vector<ModelValue>& one : outputs) {
        nb::list values;
        for (const ModelValue& value : one) values.append(objectOf(value));
        samples.append(values);
      }
      return nb::cast<double>(nb::float_(metric(samples)));
    } catch (nb::python_error& fault) {
      fault.restore();
      return Error{.code = Code::Interrupted, .message = "the metric raised an exception"};
    }
  };
  return {.name = name, .of = of};
}

std::vector<Inputs> samplesOf(const nb::list& samples) {
  std::vector<Inputs> values;
  for (const nb::handle sample : samples) values.push_back(copiesOf(inputsOf(nb::cast<nb::dict>(sample))));
  return values;
}

// A model that is looked at in integers, on samples; both outlive it.
Diagnosed<ReportRequest> comparison(const Model& model, SessionOptions& options, const std::vector<Inputs>& samples) {
  if (Status status = checkOptions(options.compile); !status.ok()) return status.error();
  startThreads(options.backend);
  auto compile = model.compiler();
  if (!compile.ok()) return compile.diagnostics();
  const auto each = [&samples](const ReportRequest::UseSample& use) -> Diagnosed<Unit> {
    for (const Inputs& sample : samples)
      if (auto used = use(sample); !used.ok()) return used;
    return Unit{};
  };
  return ReportRequest{.compile = *std::move(compile),
                       .options = options.compile,
                       .import = options.import,
                       .backend = options.backend,
                       .samples = each};
}

// The profile with the layers that have to stay in floats.
nb::str checkProfile(const Model& model, const std::string& backend, int threads, const std::string& cache,
                     const Shapes& shapes, const Dims& dims, const std::vector<std::string>& disable, bool strict,
                     const std::string& profile, const nb::list& samples, double reach) {
  SessionOptions options = sampling(backend, threads, cache, shapes, dims, disable, strict);
  const std::vector<Inputs> values = samplesOf(samples);
  return text(released([&]() -> Diagnosed<std::string> {
    auto checked = quant::parseProfile(profile);
    if (!checked.ok()) return checked.error();
    auto asked = comparison(model, options, values);
    if (!asked.ok()) return asked.diagnostics();
    if (auto found = keepWhatMatters(*checked, *std::move(asked), reach); !found.ok()) return found.diagnostics();
    return quant::profileText(*checked);
  }));
}

// The report as JSON, as text and as a page.
nb::tuple reportOf(const Model& model, const std::string& backend, int threads, const std::string& cache,
                   const Shapes& shapes, const Dims& dims, const std::vector<std::string>& disable, bool strict,
                   const std::string& profile, const std::string& calibration, const std::string& schema,
                   const std::vector<std::string>& keepFloat, const nb::list& samples,
                   const std::optional<nb::callable>& metric, std::optional<double> reach, std::optional<double> drop,
                   bool layers, const std::string& title, const std::string& metricName) {
  SessionOptions options = sampling(backend, threads, cache, shapes, dims, disable, strict);
  const std::vector<Inputs> values = samplesOf(samples);
  const std::vector<std::string> texts = released([&]() -> Diagnosed<std::vector<std::string>> {
    auto request = requestOf("int8", profile, calibration, schema, keepFloat);
    if (!request.ok()) return request.error();
    options.compile.quantize = *std::move(request);
    auto asked = comparison(model, options, values);
    if (!asked.ok()) return asked.diagnostics();
    if (metric) asked->metric = metricOf(metricName, *metric);
    asked->layers = layers;
    asked->reach = reach;
    asked->drop = drop;
    auto report = reportOn(*asked);
    if (!report.ok()) return report.diagnostics();
    return std::vector{quant::jsonOf(*report), quant::textOf(*report), quant::htmlOf(*report, title)};
  });
  return nb::make_tuple(text(texts[0]), text(texts[1]), text(texts[2]));
}

void addSample(Profiler& profiler, const nb::dict& inputs) {
  const Inputs given = inputsOf(inputs);
  released([&] { return profiler.add(given); });
}

// The profiles of several runs as one.
nb::str joinProfiles(const std::vector<std::string>& texts) {
  return text(released([&]() -> Diagnosed<std::string> {
    quant::Profile all;
    for (const std::string& one : texts) {
      const auto profile = quant::parseProfile(one);
      if (!profile.ok()) return profile.error();
      if (Status added = all.add(*profile); !added.ok()) return added.error();
    }
    return quant::profileText(all);
  }));
}

nb::list openModel(Model& model, const std::string& backend, int threads, int contexts, int queue,
                   const std::string& cache, int64_t memoryLimit, const Shapes& shapes, const Dims& dims,
                   const PreparedDims& prepared, bool pad, const nb::dict& values, int optLevel,
                   const std::vector<std::string>& disable, bool strict, const std::string& precision,
                   const std::string& profile, const std::string& calibration, const std::string& schema,
                   const std::vector<std::string>& keepFloat, double tune, bool f64Pairs) {
  SessionOptions options;
  options.compile.backend = backend;
  options.compile.tune.seconds = tune;
  options.compile.f64Pairs = f64Pairs;
  options.import.shapes = shapes;
  options.import.dims = dims;
  options.import.given = copiesOf(inputsOf(values));
  options.compile.target.optLevel = optLevel;
  options.compile.disabled.insert(disable.begin(), disable.end());
  options.compile.observer = noticeSignals;
  options.backend.memoryLimit = memoryLimit > 0 ? memoryLimit : machineMemory();
  options.backend.threads = std::max(threads, 0);
  options.backend.contexts = contexts;
  options.backend.queue = queue;
  options.compile.cache = cacheFolder(cache);
  options.prepared = prepared;
  options.pad = pad;
  std::vector<std::string> notes;
  options.import.tolerance.strict = strict;
  released([&]() -> Diagnosed<Unit> {
    auto request = requestOf(precision, profile, calibration, schema, keepFloat);
    if (!request.ok()) return request.error();
    options.compile.quantize = *std::move(request);
    if (!model.isCompiled())
      if (Status status = checkOptions(options.compile); !status.ok()) return status.error();
    if (Status status = checkContexts(contexts, queue); !status.ok()) return status.error();
    notes = startThreads(options.backend);
    if (auto refused = whyRefused(options.compile.cache)) notes.push_back(*std::move(refused));
    return model.open(options);
  });
  nb::list list;
  for (const std::string& note : notes) list.append(text(note));
  return list;
}

nb::list functionsOf(const Model& model) {
  nb::list list;
  for (const FunctionSpec& function : model.functions())
    list.append(nb::make_tuple(text(function.name), specsOf(function.inputs), specsOf(function.outputs)));
  return list;
}

nb::object stateOf(Model& model, nb::handle name) {
  const std::string bytes = bytesOf(name);
  return objectOf(released([&] { return model.state(bytes); }));
}

void setState(Model& model, nb::handle name, nb::handle value) {
  const std::string bytes = bytesOf(name);
  const ModelValue given = valueOf(value);
  released([&] { return model.setState(bytes, given); });
}

nb::list run(Model& model, nb::handle function, const nb::dict& inputs) {
  const std::string name = bytesOf(function);
  const Inputs given = inputsOf(inputs);
  std::vector<ModelValue> outputs = released([&] {
    const StopScope scope(signalCame);
    return model.run(name, given);
  });
  nb::list results;
  for (ModelValue& value : outputs) results.append(objectOf(std::move(value)));
  return results;
}

Result<SessionOptions> stageOptions(const Model& model, const std::string& after, const Shapes& shapes,
                                    const Dims& dims) {
  if (!after.empty()) AGLOW_OK(checkStage(after));
  SessionOptions options = model.options();
  options.compile.stopAfter = after;
  for (const auto& [name, shape] : shapes) options.import.shapes[name] = shape;
  for (const auto& [name, size] : dims) options.import.dims[name] = size;
  return options;
}

nb::str textOf(const Model& model, const std::string& after, const Shapes& shapes, const Dims& dims, bool onProgram) {
  return text(released([&]() -> Diagnosed<std::string> {
    const auto options = stageOptions(model, after, shapes, dims);
    if (!options.ok()) return options.error();
    return model.text(*options, onProgram);
  }));
}

void exportTo(const Model& model, const std::string& after, const Shapes& shapes, const Dims& dims,
              const std::string& path, bool externalData) {
  released([&]() -> Diagnosed<Unit> {
    const auto options = stageOptions(model, after, shapes, dims);
    if (!options.ok()) return options.error();
    return model.exportTo(path, *options, externalData);
  });
}

SessionOptions sizedOptions(const Model& model, const std::string& after, const Shapes& shapes, const Dims& dims) {
  return released([&]() -> Diagnosed<SessionOptions> {
    auto options = stageOptions(model, after, shapes, dims);
    if (!options.ok()) return options.error();
    return *std::move(options);
  });
}

// A graph to look at or to go on with.
Graph graphOf(const Model& model, const std::string& after, const Shapes& shapes, const Dims& dims) {
  const SessionOptions options = sizedOptions(model, after, shapes, dims);
  return {released([&]() -> Diagnosed<std::shared_ptr<Module>> {
    auto compiled = model.compileWhole(options);
    if (!compiled.ok()) return model.placed(compiled.diagnostics());
    if (!compiled->module)
      return Error{.code = Code::Usage, .message = "after '" + after + "' there is a program, and no graph any more"};
    return std::shared_ptr<Module>(std::move(compiled->module));
  })};
}

nb::list operators() {
  nb::list names;
  for (const std::string& name : onnx::supportedOperators()) names.append(text(name));
  return names;
}

}  // namespace

NB_MODULE(_core, m) {
  m.attr("version") = AGLOW_VERSION;
  m.attr("max_threads") = kMaxThreads;
  m.attr("max_contexts") = kMaxContexts;
  m.attr("default_queue") = kDefaultQueue;
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
  m.def("read", &readModel, nb::arg("path"), nb::arg("init"), nb::rv_policy::take_ownership);
  m.def("parse", &parseModel, nb::arg("data"), nb::arg("init").none(), nb::rv_policy::take_ownership);
  m.def("parse_text", &parseText, nb::arg("text"), nb::rv_policy::take_ownership);
  m.def("model_of", &modelOf, nb::arg("graph"), nb::rv_policy::take_ownership);
  m.def("compare", &compareArrays, nb::arg("got"), nb::arg("expected"), nb::arg("rtol"), nb::arg("atol"));
  m.def("bits_of", &bitsOf, nb::arg("foreign"));
  m.def("exported", &exported, nb::arg("kind"), nb::arg("bits"));
  m.def("join_profiles", &joinProfiles, nb::arg("texts"));
  m.attr("CHECKED_SAMPLES") = ProfileGoal::kSamples;
  addTrainer(m);
  addHost(m);
  addGraph(m);
  nb::class_<Profiler>(m, "Profiler")
      .def("add", &addSample, nb::arg("inputs"))
      .def_prop_ro("text", [](Profiler& profiler) {
        return text(quant::profileText(released([&]() -> Diagnosed<quant::Profile> {
          auto profile = profiler.profile();
          if (!profile.ok()) return profile.error();
          return *std::move(profile);
        })));
      });
  nb::class_<Model>(m, "Model")
      .def_prop_ro("functions", &functionsOf)
      .def_prop_ro("states", [](const Model& model) { return specsOf(model.states()); })
      .def("open", &openModel, nb::arg("backend"), nb::arg("threads"), nb::arg("contexts"), nb::arg("queue"),
           nb::arg("cache"), nb::arg("memory_limit"), nb::arg("shapes"), nb::arg("dims"), nb::arg("prepared"),
           nb::arg("pad"), nb::arg("values"), nb::arg("opt_level"), nb::arg("disable"), nb::arg("strict"),
           nb::arg("precision"), nb::arg("profile"), nb::arg("calibration"), nb::arg("schema"), nb::arg("keep_float"),
           nb::arg("tune"), nb::arg("f64_pairs"))
      .def("profiler", &profilerOf, nb::arg("backend"), nb::arg("threads"), nb::arg("cache"), nb::arg("shapes"),
           nb::arg("dims"), nb::arg("disable"), nb::arg("strict"), nb::rv_policy::take_ownership,
           nb::keep_alive<0, 1>())
      .def("check_profile", &checkProfile, nb::arg("backend"), nb::arg("threads"), nb::arg("cache"), nb::arg("shapes"),
           nb::arg("dims"), nb::arg("disable"), nb::arg("strict"), nb::arg("profile"), nb::arg("samples"),
           nb::arg("reach"))
      .def("quant_report", &reportOf, nb::arg("backend"), nb::arg("threads"), nb::arg("cache"), nb::arg("shapes"),
           nb::arg("dims"), nb::arg("disable"), nb::arg("strict"), nb::arg("profile"), nb::arg("calibration"),
           nb::arg("schema"), nb::arg("keep_float"), nb::arg("samples"), nb::arg("metric").none(),
           nb::arg("reach").none(), nb::arg("drop").none(), nb::arg("layers"), nb::arg("title"), nb::arg("metric_name"))
      .def("take_warnings",
           [](Model& model) {
             nb::list texts;
             for (const std::string& warning : model.takeWarnings()) texts.append(text(warning));
             return texts;
           })
      .def("run", &run, nb::arg("function"), nb::arg("inputs"))
      .def(
          "memory",
          [](const Model& model, const Shapes& shapes, const Dims& dims) {
            return memoryOf(model, sizedOptions(model, "", shapes, dims));
          },
          nb::arg("shapes"), nb::arg("dims"))
      .def(
          "profile",
          [](const Model& model, const std::string& function, const nb::dict& inputs, int runs) {
            return profileOf(model, model.options(), function, inputs, runs);
          },
          nb::arg("function"), nb::arg("inputs"), nb::arg("runs"))
      .def("survey", [](const Model& model) { return surveyOf(model, model.options()); })
      .def(
          "emit",
          [](const Model& model, const std::string& folder, const std::string& what, const std::string& name,
             bool threads, bool weightsInC, const std::string& triple, const std::string& processor,
             const Shapes& shapes, const Dims& dims) {
            emitCode(model, sizedOptions(model, "", shapes, dims), folder, what, name, threads, weightsInC, triple,
                     processor);
          },
          nb::arg("folder"), nb::arg("what"), nb::arg("name"), nb::arg("threads"), nb::arg("weights_in_c"),
          nb::arg("target"), nb::arg("processor"), nb::arg("shapes"), nb::arg("dims"))
      .def(
          "save",
          [](const Model& model, const std::string& path, const Shapes& shapes, const Dims& dims) {
            saveTo(model, sizedOptions(model, "", shapes, dims), path);
          },
          nb::arg("path"), nb::arg("shapes"), nb::arg("dims"))
      .def("graph", &graphOf, nb::arg("after"), nb::arg("shapes"), nb::arg("dims"))
      .def("state", &stateOf, nb::arg("name"))
      .def("set_state", &setState, nb::arg("name"), nb::arg("value"))
      .def("reset_state", &Model::resetState, nb::call_guard<nb::gil_scoped_release>())
      .def("text", &textOf, nb::arg("after"), nb::arg("shapes"), nb::arg("dims"), nb::arg("on_program"))
      .def("export", &exportTo, nb::arg("after"), nb::arg("shapes"), nb::arg("dims"), nb::arg("path"),
           nb::arg("external_data"));
  addCalls(m);
}

}  // namespace aglow::python
