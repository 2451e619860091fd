#include "train/trainer.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/package_cache.h"
#include "compile/phases.h"
#include "python/arrays.h"
#include "python/errors.h"
#include "python/names.h"
#include "python/trainer.h"
#include "quant/request.h"
#include "runtime/threads.h"
#include "support/machine.h"

namespace aglow::python {

namespace nb = nanobind;

namespace {

using Settings = std::map<std::string, double>;

std::map<std::string, Tensor> tensorsOf(const nb::dict& arrays, bool copied = false) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, value] : arrays) {
    const Tensor tensor = valueOf(value).tensor();
    tensors[bytesOf(name)] = copied ? copyOf(tensor) : tensor;
  }
  return tensors;
}

Dataset datasetOf(const nb::dict& inputs, nb::handle target) {
  return {.inputs = tensorsOf(inputs), .target = valueOf(target).tensor()};
}

// What Python raised ends what is under way, and is raised again in the end.
template <class T, class Body>
Diagnosed<T> inPython(const Body& body) {
  const nb::gil_scoped_acquire acquire;
  try {
    if (PyErr_CheckSignals() == 0) return body();
  } catch (nb::python_error& fault) {
    fault.restore();
  }
  return Error{.code = Code::Interrupted, .message = "interrupted"};
}

nb::object numberOrNone(const std::optional<double>& number) {
  return number ? nb::object(nb::float_(*number)) : nb::none();
}

nb::tuple tupleOf(const TrainingReport& report) {
  return nb::make_tuple(report.ofEpoch, report.epoch, report.epochs, report.step, report.steps, report.loss,
                        report.rate, report.samplesPerSecond, numberOrNone(report.validationLoss),
                        numberOrNone(report.accuracy), report.isBest);
}

TrainingReport reportOf(const nb::tuple& tuple) {
  return {.ofEpoch = nb::cast<bool>(tuple[0]),
          .epoch = nb::cast<int64_t>(tuple[1]),
          .epochs = nb::cast<int64_t>(tuple[2]),
          .step = nb::cast<int64_t>(tuple[3]),
          .steps = nb::cast<int64_t>(tuple[4]),
          .loss = nb::cast<double>(tuple[5]),
          .rate = nb::cast<double>(tuple[6]),
          .samplesPerSecond = nb::cast<double>(tuple[7]),
          .validationLoss = tuple[8].is_none() ? std::nullopt : std::optional(nb::cast<double>(tuple[8])),
          .accuracy = tuple[9].is_none() ? std::nullopt : std::optional(nb::cast<double>(tuple[9]))};
}

Trainer* openTrainer(const std::string& path, const std::optional<nb::bytes>& data, const std::string& init,
                     const std::string& loss, const std::string& output, const Settings& lossSettings,
                     const std::string& optimizer, const Settings& settings, double clipValue, double clipNorm,
                     std::optional<double> batchNormMomentum, const std::vector<std::string>& variables,
                     const std::vector<std::pair<std::string, std::string>>& initializers, const std::string& function,
                     int64_t batch, int64_t accumulate, const std::map<std::string, int64_t>& sampleAxes,
                     const nb::dict& fixed, const std::map<std::string, std::vector<int64_t>>& shapes,
                     const std::map<std::string, int64_t>& dims, const std::string& backend, int threads,
                     const std::string& cache, int64_t memoryLimit, const std::vector<std::string>& disable,
                     bool strict, uint64_t seed, int64_t recompute, const std::string& precision) {
  const SharedBytes file =
      data ? SharedBytes{.bytes = {static_cast<const std::byte*>(data->data()), data->size()}, .owner = keep(*data)}
           : SharedBytes{};
  TrainingPlan plan{.loss = {.name = loss, .output = output, .settings = {lossSettings.begin(), lossSettings.end()}},
                    .optimizer = optimizer,
                    .settings = {settings.begin(), settings.end()},
                    .clipValue = clipValue,
                    .clipNorm = clipNorm,
                    .batchNormMomentum = batchNormMomentum,
                    .variables = variables,
                    .function = function,
                    .batch = batch,
                    .accumulate = accumulate,
                    .fixed = tensorsOf(fixed, true),
                    .sampleAxes = sampleAxes};
  plan.import.shapes = shapes;
  plan.import.dims = dims;
  plan.import.tolerance.strict = strict;
  CompileOptions compile;
  compile.backend = backend;
  compile.disabled.insert(disable.begin(), disable.end());
  compile.cache = cacheFolder(cache);
  compile.recompute = recompute;
  compile.observer = [](const StageEvent&) -> Status {
    const auto seen = inPython<Unit>([] { return Unit{}; });
    if (seen.ok()) return {};
    return seen.diagnostics().errors().front();
  };
  std::unique_ptr<Trainer> trainer = released([&]() -> Diagnosed<std::unique_ptr<Trainer>> {
    if (precision != "float") {
      auto request = quant::requestOf(precision, {});
      if (!request.ok()) return request.error();
      compile.quantize = *std::move(request);
    }
    if (Status status = checkOptions(compile); !status.ok()) return status.error();
    for (const auto& [pattern, words] : initializers) {
      auto how = parseInitializer(words);
      if (!how.ok()) return how.error();
      plan.initializers.emplace_back(pattern, *std::move(how));
    }
    BackendOptions options{.memoryLimit = memoryLimit > 0 ? memoryLimit : machineMemory(),
                           .threads = std::max(threads, 0)};
    startThreads(options);
    auto source = data ? parseSource(file) : readSource(path, init);
    if (!source.ok()) return source.error();
    return Trainer::open(*std::move(source), std::move(plan), compile, options, seed);
  });
  return trainer.release();
}

nb::dict fit(Trainer& trainer, const nb::dict& inputs, nb::handle target, int64_t epochs, double rate,
             const std::string& schedule, const std::optional<nb::callable>& rateOf, bool shuffle, bool dropLast,
             const std::optional<nb::tuple>& validation, int64_t patience, double minDelta, bool restoreBest,
             const std::string& checkpoint, int64_t checkpointEvery, bool resume,
             const std::optional<nb::callable>& report) {
  const Dataset data = datasetOf(inputs, target);
  Dataset held;
  if (validation) held = datasetOf(nb::cast<nb::dict>((*validation)[0]), (*validation)[1]);
  FitOptions options{.epochs = epochs,
                     .rate = rate,
                     .shuffle = shuffle,
                     .dropLast = dropLast,
                     .validation = validation ? &held : nullptr,
                     .patience = patience,
                     .minDelta = minDelta,
                     .restoreBest = restoreBest,
                     .checkpoint = checkpoint,
                     .checkpointEvery = checkpointEvery,
                     .resume = resume};
  if (rateOf)
    options.rateOf = [&](int64_t step) { return inPython<double>([&] { return nb::cast<double>((*rateOf)(step)); }); };
  options.report = [&](const TrainingReport& made) {
    return inPython<bool>([&] { return report && nb::cast<bool>((*report)(tupleOf(made))); });
  };
  const FitResult result = released([&]() -> Diagnosed<FitResult> {
    auto parsed = RateSchedule::parse(schedule);
    if (!parsed.ok()) return parsed.error();
    options.schedule = *parsed;
    return trainer.fit(data, options);
  });
  nb::list history;
  for (const TrainingReport& epoch : result.history) history.append(tupleOf(epoch));
  nb::dict found;
  found["epochs"] = result.epochs;
  found["steps"] = result.steps;
  found["seconds"] = result.seconds;
  found["samples_per_second"] = result.samplesPerSecond;
  found["stopped_early"] = result.stoppedEarly;
  found["history"] = history;
  return found;
}

nb::tuple evaluate(Trainer& trainer, const nb::dict& inputs, nb::handle target) {
  const Dataset data = datasetOf(inputs, target);
  const EvaluationResult result = released([&] { return trainer.evaluate(data); });
  return nb::make_tuple(result.loss, numberOrNone(result.accuracy));
}

nb::object predict(Trainer& trainer, const nb::dict& inputs) {
  const std::map<std::string, Tensor> given = tensorsOf(inputs);
  return objectOf(ModelValue::of(released([&] { return trainer.predict(given); })));
}

// The same for what gives a Status.
template <class Body>
void done(const Body& body) {
  released([&]() -> Diagnosed<Unit> {
    if (const Status status = body(); !status.ok()) return status.error();
    return Unit{};
  });
}

nb::tuple specOf(const std::string& name, const Type& type, bool samples) {
  nb::list dims;
  for (int i = 0; i < type.rank(); ++i)
    if (i == 0 && samples)
      dims.append(nb::none());
    else
      dims.append(type.dim(i));
  return nb::make_tuple(text(name), text(elemName(type.kind())), text(type.text()), nb::tuple(dims), false, false,
                        false, text(""));
}

nb::list inputsOf(const Trainer& trainer) {
  nb::list list;
  for (const SampleInput& input : trainer.module().inputs) list.append(specOf(input.name, input.type, true));
  return list;
}

nb::list statesOf(const Trainer& trainer) {
  nb::list list;
  for (const Binding& binding : trainer.states()) list.append(specOf(binding.name, binding.type, false));
  return list;
}

nb::object stateOf(const Trainer& trainer, nb::handle name) {
  const std::string bytes = bytesOf(name);
  return objectOf(ModelValue::of(released([&]() -> Diagnosed<Tensor> {
    auto value = trainer.state(bytes);
    if (!value.ok()) return value.error();
    return *std::move(value);
  })));
}

void setState(Trainer& trainer, nb::handle name, nb::handle value) {
  const std::string bytes = bytesOf(name);
  const Tensor given = valueOf(value).tensor();
  done([&] { return trainer.setState(bytes, given); });
}

}  // namespace

void addTrainer(nb::module_& m) {
  const auto names = [](const auto& rows) {
    nb::list list;
    for (const auto& row : rows) list.append(text(row.name));
    return list;
  };
  m.def("losses", [names] { return names(losses()); });
  m.def("optimizers", [names] { return names(optimizers()); });
  m.def("progress_line",
        [](const nb::tuple& report, int width) { return text(progressLine(reportOf(report), width)); });
  m.def("epoch_line", [](const nb::tuple& report) { return text(epochLine(reportOf(report))); });
  m.def("open_trainer", &openTrainer, nb::arg("path"), nb::arg("data").none(), nb::arg("init"), nb::arg("loss"),
        nb::arg("output"), nb::arg("loss_settings"), nb::arg("optimizer"), nb::arg("settings"), nb::arg("clip_value"),
        nb::arg("clip_norm"), nb::arg("batch_norm_momentum").none(), nb::arg("variables"), nb::arg("initializers"),
        nb::arg("function"), nb::arg("batch"), nb::arg("accumulate"), nb::arg("sample_axes"), nb::arg("fixed"),
        nb::arg("shapes"), nb::arg("dims"), nb::arg("backend"), nb::arg("threads"), nb::arg("cache"),
        nb::arg("memory_limit"), nb::arg("disable"), nb::arg("strict"), nb::arg("seed"), nb::arg("recompute"),
        nb::arg("precision"), nb::rv_policy::take_ownership);
  nb::class_<Trainer>(m, "Trainer")
      .def_prop_ro("variables",
                   [](const Trainer& trainer) {
                     nb::list list;
                     for (const std::string& name : trainer.variables()) list.append(text(name));
                     return list;
                   })
      .def_prop_ro("inputs", &inputsOf)
      .def_prop_ro("states", &statesOf)
      .def_prop_ro("step", [](const Trainer& trainer) { return trainer.position().step; })
      .def_prop_ro("epoch", [](const Trainer& trainer) { return trainer.position().epoch; })
      .def("fit", &fit, nb::arg("inputs"), nb::arg("target"), nb::arg("epochs"), nb::arg("rate"), nb::arg("schedule"),
           nb::arg("rate_of").none(), nb::arg("shuffle"), nb::arg("drop_last"), nb::arg("validation").none(),
           nb::arg("patience"), nb::arg("min_delta"), nb::arg("restore_best"), nb::arg("checkpoint"),
           nb::arg("checkpoint_every"), nb::arg("resume"), nb::arg("report").none())
      .def("evaluate", &evaluate, nb::arg("inputs"), nb::arg("target"))
      .def("predict", &predict, nb::arg("inputs"))
      .def("state", &stateOf, nb::arg("name"))
      .def("set_state", &setState, nb::arg("name"), nb::arg("value"))
      .def("reset_state", [](Trainer& trainer) { done([&] { return trainer.reset(); }); })
      .def("save", [](const Trainer& trainer, const std::string& path) { done([&] { return trainer.save(path); }); })
      .def("restore", [](Trainer& trainer, const std::string& path) { done([&] { return trainer.restore(path); }); })
      .def("export",
           [](const Trainer& trainer, const std::string& path) { done([&] { return trainer.exportModel(path); }); })
      .def("export_module",
           [](const Trainer& trainer, const std::string& path) { done([&] { return trainer.exportModule(path); }); });
}

}  // namespace aglow::python
