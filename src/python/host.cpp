#include "python/host.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/package_cache.h"
#include "dynamic/model_source.h"
#include "python/arrays.h"
#include "python/errors.h"
#include "python/names.h"

namespace aglow::python {

namespace nb = nanobind;

namespace {

using Sizes = std::map<std::string, std::vector<int64_t>>;

// Replies need the GIL, so nobody waits for them with it.
class Host {
public:
  explicit Host(std::unique_ptr<HostManager> host) : host_(std::move(host)) {}
  ~Host() { close(); }

  void close() {
    const nb::gil_scoped_release release;
    host_.reset();
  }
  Diagnosed<HostManager*> get() const {
    if (host_) return host_.get();
    return Error{.code = Code::Usage, .message = "the host is closed"};
  }

private:
  std::unique_ptr<HostManager> host_;
};

HostManager& managerOf(const Host& host) {
  auto manager = host.get();
  if (!manager.ok()) raise(manager.diagnostics());
  return **manager;
}

Host* openHost(const std::string& devices, size_t queue) {
  return new Host(released([&]() -> Diagnosed<std::unique_ptr<HostManager>> {
    auto specs = parseDevices(devices);
    if (!specs.ok()) return specs.error();
    auto host = HostManager::create({.devices = *std::move(specs), .queue = queue});
    if (!host.ok()) return host.error();
    return *std::move(host);
  }));
}

void add(Host& host, const std::string& name, const std::string& path, const std::string& version, bool makeCurrent,
         int replicas, int mostReplicas, size_t queue, int64_t batchRows, int64_t batchDelay,
         const std::vector<int64_t>& batchSizes, const std::vector<std::string>& devices, size_t parts,
         const std::string& criterion, const std::map<std::string, std::string>& plan,
         const std::map<std::string, int64_t>& dims, const Sizes& prepared, const std::string& cache) {
  HostManager& manager = managerOf(host);
  const NetworkOptions network{
      .version = version,
      .makeCurrent = makeCurrent,
      .replicas = replicas,
      .mostReplicas = mostReplicas,
      .queue = queue,
      .batch = {.rows = batchRows, .delay = std::chrono::microseconds(batchDelay), .sizes = batchSizes},
      .devices = devices};
  released([&]() -> Diagnosed<Unit> {
    PartitionRequest request{.parts = parts, .byHand = plan};
    auto found = criterionOf(criterion);
    if (!found.ok()) return found.error();
    request.criterion = *found;
    SessionOptions options;
    options.import.dims = dims;
    options.prepared = prepared;
    options.compile.cache = cacheFolder(cache);
    return addModel(manager, name, path, options, network, std::move(request));
  });
}

// The exception that a fault is raised as. The GIL is held.
nb::object exceptionOf(const Diagnostics& faults) {
  try {
    raise(faults);
  } catch (nb::python_error& fault) {
    return nb::borrow(fault.value());
  }
}

void call(const nb::object& callback, RunReply reply) {
  const nb::gil_scoped_acquire acquire;
  try {
    if (!reply.outputs.ok()) {
      callback(exceptionOf(reply.outputs.diagnostics()), nb::none());
      return;
    }
    nb::list values;
    for (ModelValue& value : *reply.outputs) values.append(objectOf(std::move(value)));
    callback(nb::none(), values);
  } catch (nb::python_error& fault) {
    fault.discard_as_unraisable("a reply of aglow.Host");
  }
}

uint64_t submit(Host& host, const std::string& network, const std::string& version, const nb::dict& inputs,
                int priority, double timeout, nb::object callback) {
  HostManager& manager = managerOf(host);
  RunRequest request{.network = network, .version = version, .priority = priority};
  for (const auto& [name, value] : inputs) {
    ModelValue& given = request.inputs[bytesOf(name)];
    given = valueOf(value);
    for (Tensor& tensor : given.tensors) tensor = copyOf(tensor);  // callers may change theirs before it is read
  }
  if (timeout > 0)
    request.deadline =
        manager.clock()->now() + std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(timeout));
  const auto holder = std::make_shared<nb::object>(std::move(callback));
  const std::shared_ptr<const void> keeps = keep(*holder);
  return released([&]() -> Diagnosed<uint64_t> {
    auto accepted = manager.runNetwork(std::move(request), [keeps, raw = holder->ptr()](RunReply reply) {
      const nb::gil_scoped_acquire acquire;
      call(nb::borrow(raw), std::move(reply));
    });
    if (!accepted.ok()) return accepted.error();
    return *accepted;
  });
}

nb::list portsOf(const std::vector<PortSpec>& ports) {
  nb::list list;
  for (const PortSpec& port : ports) {
    nb::list dims;
    for (const OpenDim& dim : port.dims) {
      if (dim.size >= 0)
        dims.append(dim.size);
      else if (!dim.symbol.empty())
        dims.append(text(dim.symbol));
      else
        dims.append(nb::none());
    }
    const std::string_view kind = port.holds == PortSpec::Holds::Strings ? "string"
                                  : port.holds == PortSpec::Holds::Other ? ""
                                  : port.hasKind                         ? elemName(port.kind)
                                                                         : "any";
    list.append(nb::make_tuple(text(port.name), text(kind), text(port.text),
                               port.hasRank ? nb::object(nb::tuple(dims)) : nb::none(), port.hasDefault));
  }
  return list;
}

nb::list networksOf(const Host& host) {
  nb::list list;
  for (const NetworkInfo& info : managerOf(host).networks()) {
    nb::list replicas;
    for (const std::vector<std::string>& devices : info.replicas) {
      nb::list names;
      for (const std::string& name : devices) names.append(text(name));
      replicas.append(names);
    }
    list.append(nb::make_tuple(text(info.name), text(info.version), info.current, info.ready, portsOf(info.spec.inputs),
                               portsOf(info.spec.outputs), replicas));
  }
  return list;
}

nb::dict statisticsOf(const Host& host) {
  const HostStatistics all = managerOf(host).statistics();
  nb::list networks, devices;
  for (const NetworkStatistics& one : all.networks) {
    nb::dict row, batches;
    for (const auto& [rows, count] : one.batches) batches[nb::int_(rows)] = count;
    row["name"] = text(one.name);
    row["version"] = text(one.version);
    row["current"] = one.current;
    row["accepted"] = one.accepted;
    row["refused"] = one.refused;
    row["succeeded"] = one.succeeded;
    row["failed"] = one.failed;
    row["cancelled"] = one.cancelled;
    row["expired"] = one.expired;
    row["retried"] = one.retried;
    row["waiting"] = one.waiting;
    row["running"] = one.running;
    row["replicas"] = one.replicas;
    row["wanted"] = one.wanted;
    row["runs"] = one.runs;
    row["batches"] = batches;
    row["p50_us"] = one.total.quantile(0.5);
    row["p90_us"] = one.total.quantile(0.9);
    row["p99_us"] = one.total.quantile(0.99);
    networks.append(row);
  }
  for (const DeviceStatistics& one : all.devices) {
    nb::dict row;
    row["name"] = text(one.name);
    row["backend"] = text(one.backend);
    row["healthy"] = one.healthy;
    row["fault"] = text(one.fault);
    row["memory_limit"] = one.memoryLimit;
    row["memory_used"] = one.memoryUsed;
    row["waiting"] = one.waiting;
    row["running"] = one.running;
    row["runs"] = one.runs;
    row["failures"] = one.failures;
    row["utilisation"] = one.utilisation;
    devices.append(row);
  }
  nb::dict statistics;
  statistics["networks"] = networks;
  statistics["devices"] = devices;
  statistics["refused"] = all.refused;
  statistics["under_way"] = all.underWay;
  return statistics;
}

void drain(Host& host) {
  HostManager& manager = managerOf(host);
  released([&]() -> Diagnosed<Unit> {
    std::promise<void> drained;
    manager.drain([&] { drained.set_value(); });
    drained.get_future().wait();
    return Unit{};
  });
}

void done(const Status& status) {
  if (!status.ok()) raise(status.error());
}

}  // namespace

void addHost(nb::module_& m) {
  m.def("open_host", &openHost, nb::arg("devices"), nb::arg("queue"), nb::rv_policy::take_ownership);
  nb::class_<Host>(m, "Host")
      .def("add", &add, nb::arg("name"), nb::arg("path"), nb::arg("version"), nb::arg("make_current"),
           nb::arg("replicas"), nb::arg("most_replicas"), nb::arg("queue"), nb::arg("batch_rows"),
           nb::arg("batch_delay_us"), nb::arg("batch_sizes"), nb::arg("devices"), nb::arg("parts"),
           nb::arg("criterion"), nb::arg("plan"), nb::arg("dims"), nb::arg("prepared"), nb::arg("cache"))
      .def("remove", [](Host& host, const std::string& name,
                        const std::string& version) { done(managerOf(host).removeNetwork(name, version)); })
      .def("set_current", [](Host& host, const std::string& name,
                             const std::string& version) { done(managerOf(host).setCurrent(name, version)); })
      .def("submit", &submit, nb::arg("network"), nb::arg("version"), nb::arg("inputs"), nb::arg("priority"),
           nb::arg("timeout"), nb::arg("callback"))
      .def("cancel",
           [](Host& host, uint64_t id) {
             HostManager& manager = managerOf(host);
             const nb::gil_scoped_release release;
             return manager.cancel(id);
           })
      .def("drain", &drain)
      .def("close", &Host::close)
      .def("networks", &networksOf)
      .def("statistics", &statisticsOf);
}

}  // namespace aglow::python
