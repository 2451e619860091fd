// Hosts of the C interface: many networks on many devices.
#include "runtime/host.h"

#include <condition_variable>
#include <mutex>

#include "aglow/aglow.h"
#include "api/faults.h"
#include "api/options.h"
#include "api/results.h"
#include "api/tensors.h"
#include "dynamic/model_source.h"
#include "runtime/device.h"

using namespace aglow;

struct aglow_host {
  std::unique_ptr<HostManager> host;
};

namespace {

std::string wordOf(const char* text) { return text == nullptr ? std::string() : text; }

Result<NetworkOptions> networkOptions(const aglow_network_options& given) {
  const auto wrong = [](const char* what) { return Error{.code = Code::Usage, .message = what}; };
  if (given.replicas < 0 || given.most_replicas < 0 || given.batch_rows < 0 || given.batch_delay_us < 0 ||
      given.parts < 0)
    return wrong("a number of a network's options is negative");
  if (given.batch_sizes == nullptr && given.batch_size_count > 0) return wrong("batch_sizes is null");
  NetworkOptions options;
  if (given.version != nullptr) options.version = given.version;
  options.makeCurrent = given.keep_current == 0;
  if (given.replicas > 0) options.replicas = given.replicas;
  options.mostReplicas = given.most_replicas;
  if (given.queue > 0) options.queue = given.queue;
  if (given.batch_rows > 0) options.batch.rows = given.batch_rows;
  options.batch.delay = std::chrono::microseconds(given.batch_delay_us);
  options.batch.sizes.assign(given.batch_sizes, given.batch_sizes + given.batch_size_count);
  const std::string devices = wordOf(given.devices);
  for (size_t from = 0; from < devices.size();) {
    const size_t end = std::min(devices.find(' ', from), devices.size());
    if (end > from) options.devices.push_back(devices.substr(from, end - from));
    from = end + 1;
  }
  return options;
}

Diagnosed<std::unique_ptr<aglow_results>> resultsOf(const NetworkSpec& spec, const RunReply& reply) {
  if (!reply.outputs.ok()) return reply.outputs.diagnostics();
  auto results = std::make_unique<aglow_results>();
  const std::vector<ModelValue>& values = *const_cast<Outputs&>(reply.outputs);
  for (size_t i = 0; i < values.size(); ++i)
    if (Status added = addResults({.name = spec.outputs[i].name, .type = {}}, values[i], results->tensors); !added.ok())
      return added.error();
  return results;
}

struct Asked {
  RunRequest request;
  NetworkSpec spec;
};

Result<Asked> ask(const HostManager& host, const aglow_host_request& given) {
  AGLOW_TRY(NetworkInfo info, host.network(wordOf(given.network), wordOf(given.version)));
  Asked asked{.request = {.network = info.name, .version = wordOf(given.version)}, .spec = std::move(info.spec)};
  AGLOW_TRY(asked.request.inputs, inputsOf({}, given.inputs, given.count));
  asked.request.priority = given.priority;
  if (given.timeout_us > 0) asked.request.deadline = host.clock()->now() + std::chrono::microseconds(given.timeout_us);
  return asked;
}

bool isWhole(const aglow_host_request* request) {
  return request != nullptr && request->network != nullptr && (request->inputs != nullptr || request->count == 0);
}

}  // namespace

aglow_status aglow_host_new(const char* devices, aglow_host** host) {
  if (host == nullptr) return wrongUse("an argument is null");
  *host = nullptr;
  return guarded([&] {
    auto specs = parseDevices(wordOf(devices));
    if (!specs.ok()) return fail(specs.error());
    auto made = HostManager::create({.devices = *std::move(specs)});
    if (!made.ok()) return fail(made.error());
    *host = new aglow_host{*std::move(made)};
    return AGLOW_OK;
  });
}

void aglow_host_free(aglow_host* host) { delete host; }

aglow_status aglow_host_add(aglow_host* host, const char* name, const char* path, const aglow_options* options,
                            const aglow_network_options* network) {
  if (host == nullptr || name == nullptr || path == nullptr) return wrongUse("an argument is null");
  return guarded([&] {
    const aglow_options& given = orDefault(options);
    const aglow_network_options wanted = network == nullptr ? aglow_network_options{} : *network;
    auto asked = networkOptions(wanted);
    if (!asked.ok()) return fail(asked.error());
    PartitionRequest request{.parts = static_cast<size_t>(wanted.parts)};
    if (wanted.criterion != nullptr) {
      auto criterion = criterionOf(wanted.criterion);
      if (!criterion.ok()) return fail(criterion.error());
      request.criterion = *criterion;
    }
    const SessionOptions session{.import = importOptions(given, path),
                                 .compile = given.compile,
                                 .backend = given.backend,
                                 .prepared = given.prepared,
                                 .pad = given.pad};
    const auto added = addModel(*host->host, name, path, session, *asked, std::move(request));
    return added.ok() ? AGLOW_OK : fail(added.diagnostics());
  });
}

aglow_status aglow_host_remove(aglow_host* host, const char* name, const char* version) {
  return setting(host != nullptr && name != nullptr, [&] { return host->host->removeNetwork(name, wordOf(version)); });
}

aglow_status aglow_host_set_current(aglow_host* host, const char* name, const char* version) {
  return setting(host != nullptr && name != nullptr && version != nullptr,
                 [&] { return host->host->setCurrent(name, version); });
}

aglow_status aglow_host_run(aglow_host* host, const aglow_host_request* request, aglow_results** results) {
  if (host == nullptr || results == nullptr || !isWhole(request)) return wrongUse("an argument is null");
  *results = nullptr;
  return guarded([&] {
    auto asked = ask(*host->host, *request);
    if (!asked.ok()) return fail(asked.error());
    const RunReply reply = host->host->runNetwork(std::move(asked->request)).get();
    auto made = resultsOf(asked->spec, reply);
    if (!made.ok()) return fail(made.diagnostics());
    *results = made->release();
    return AGLOW_OK;
  });
}

aglow_status aglow_host_submit(aglow_host* host, const aglow_host_request* request, aglow_reply reply, void* context,
                               uint64_t* id) {
  if (host == nullptr || reply == nullptr || !isWhole(request)) return wrongUse("an argument is null");
  return guarded([&] {
    auto asked = ask(*host->host, *request);
    if (!asked.ok()) return fail(asked.error());
    const auto done = [spec = std::move(asked->spec), reply, context](const RunReply& answer) {
      aglow_results* results = nullptr;
      const aglow_status status = guarded([&] {
        auto made = resultsOf(spec, answer);
        if (!made.ok()) return fail(made.diagnostics());
        results = made->release();
        return AGLOW_OK;
      });
      reply(status, status == AGLOW_OK ? "" : lastError.c_str(), results, context);
    };
    const auto accepted = host->host->runNetwork(std::move(asked->request), done);
    if (!accepted.ok()) return fail(accepted.error());
    if (id != nullptr) *id = *accepted;
    return AGLOW_OK;
  });
}

int aglow_host_cancel(aglow_host* host, uint64_t id) { return host != nullptr && host->host->cancel(id) ? 1 : 0; }

void aglow_host_drain(aglow_host* host) {
  std::promise<void> drained;
  host->host->drain([&] { drained.set_value(); });
  drained.get_future().wait();
}

aglow_status aglow_host_network_statistics(aglow_host* host, const char* name, const char* version,
                                           aglow_network_statistics* statistics) {
  if (host == nullptr || name == nullptr || statistics == nullptr) return wrongUse("an argument is null");
  return guarded([&] {
    const auto info = host->host->network(name, wordOf(version));
    if (!info.ok()) return fail(info.error());
    for (const NetworkStatistics& one : host->host->statistics().networks)
      if (one.name == name && one.version == (*info).version)
        *statistics = {one.accepted,
                       one.refused,
                       one.succeeded,
                       one.failed,
                       one.cancelled,
                       one.expired,
                       one.retried,
                       one.runs,
                       one.waiting,
                       one.running,
                       one.replicas,
                       one.total.quantile(0.5),
                       one.total.quantile(0.9),
                       one.total.quantile(0.99)};
    return AGLOW_OK;
  });
}

size_t aglow_host_device_count(const aglow_host* host) { return host == nullptr ? 0 : host->host->devices().size(); }

aglow_status aglow_host_device_statistics(aglow_host* host, size_t device, aglow_device_statistics* statistics) {
  if (host == nullptr || statistics == nullptr) return wrongUse("an argument is null");
  if (device >= host->host->devices().size()) return wrongUse("there is no device of this number");
  return guarded([&] {
    const DeviceManager& one = *host->host->devices()[device];
    const DeviceStatistics facts = one.statistics();
    *statistics = {one.name().c_str(), facts.healthy ? 1 : 0, facts.memoryLimit,
                   facts.memoryUsed,   facts.waiting,         facts.running,
                   facts.runs,         facts.failures,        facts.utilisation};
    return AGLOW_OK;
  });
}
