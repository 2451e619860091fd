#include "serve/service.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/quote.h"
#include "support/suggest.h"

namespace aglow::serve {

Service::Service(HostManager& host, Repository repository, ServiceOptions options)
    : host_(host),
      repository_(std::move(repository)),
      options_(std::move(options)),
      loader_([this] { loaderLoop(); }) {}

Service::~Service() {
  {
    const std::lock_guard lock(workMutex_);
    ends_ = true;
  }
  changed_.notify_all();
  loader_.join();
}

void Service::loaderLoop() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(workMutex_);
      changed_.wait(lock, [&] { return ends_ || !work_.empty(); });
      if (ends_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
    --pending_;
  }
}

void Service::later(std::function<void()> work) {
  {
    const std::lock_guard lock(workMutex_);
    ++pending_;
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Service::loadAll(std::function<void(const std::string&, const Status&)> each, std::function<void()> done) {
  later([this, each = std::move(each), done = std::move(done)] {
    const auto models = repository_.scan();
    if (!models.ok()) each("", models.error());
    if (models.ok() && models->empty()) each("", Error{.code = Code::FileRead, .message = "there are no models"});
    if (models.ok())
      for (const auto& [name, files] : *models) each(name, loadNow(name));
    loaded_ = true;
    done();
  });
}

void Service::load(const std::string& name, Done done) {
  later([this, name, done = std::move(done)] { done(loadNow(name)); });
}

void Service::unload(const std::string& name, Done done) {
  later([this, name, done = std::move(done)] { done(unloadNow(name)); });
}

Status Service::loadNow(const std::string& name) {
  AGLOW_TRY(const auto models, repository_.scan());
  const auto files = models.find(name);
  if (files == models.end())
    return Error{.code = Code::UnknownNetwork,
                 .message = fmt::format("the repository has no model {}", aglow::quoted(name))};
  Status done;
  for (const auto& [version, file] : files->second)
    if (done = loadVersion(name, version, file); !done.ok()) break;
  std::vector<std::string> gone;
  {
    const std::unique_lock lock(mutex_);
    Versions& versions = models_[name];
    versions.fault = done.ok() ? "" : faultText(done.error());
    if (!done.ok()) return done;
    versions.current = latestOf(files->second);
    for (auto it = versions.loaded.begin(); it != versions.loaded.end();)
      if (files->second.contains(it->first)) {
        ++it;
      } else {  // a version that is not in the repository any more
        gone.push_back(it->second->network);
        it = versions.loaded.erase(it);
      }
  }
  for (const std::string& network : gone) AGLOW_OK(host_.removeNetwork(name, network));
  return {};
}

Status Service::loadVersion(const std::string& name, const std::string& version, const std::string& file) {
  auto model = std::make_shared<ServedModel>(
      ServedModel{.name = name, .version = version, .network = fmt::format("{}.{}", version, ++loads_)});
  NetworkOptions options = options_.network;
  options.version = model->network;
  if (auto added = options_.add(host_, name, file, options); !added.ok()) return firstOf(added.diagnostics());
  AGLOW_TRY(NetworkInfo info, host_.network(name, model->network));
  model->spec = std::move(info.spec);
  std::shared_ptr<const ServedModel> before = model;
  {
    const std::unique_lock lock(mutex_);
    Versions& versions = models_[name];
    std::swap(versions.loaded[version], before);
    if (versions.current.empty()) versions.current = version;
  }
  if (before) return host_.removeNetwork(name, before->network);
  return {};
}

Status Service::unloadNow(const std::string& name) {
  {
    const std::unique_lock lock(mutex_);
    const auto found = models_.find(name);
    if (found == models_.end() || found->second.loaded.empty()) return unknown(name, {});
    models_.erase(found);
  }
  return host_.removeNetwork(name);
}

std::vector<IndexRow> Service::index() const {
  std::vector<IndexRow> rows;
  const auto files = repository_.scan();
  const std::shared_lock lock(mutex_);
  for (const auto& [name, versions] : models_)
    for (const auto& [version, model] : versions.loaded) rows.push_back({name, version, true});
  if (!files.ok()) return rows;
  for (const auto& [name, known] : *files)
    for (const auto& [version, file] : known) {
      const auto found = models_.find(name);
      if (found != models_.end() && found->second.loaded.contains(version)) continue;
      const bool failed = found != models_.end() && !found->second.fault.empty();
      rows.push_back({name, version, false, failed ? found->second.fault : "not loaded"});
    }
  std::ranges::sort(rows, {}, [](const IndexRow& row) { return std::pair(row.name, row.version); });
  return rows;
}

RequestId Service::infer(InferRequest request, Answered answered) {
  // A version that is replaced just now has left the host when the request comes there: the new one takes it.
  for (int attempt = 0;; ++attempt) {
    auto found = find(request.model, request.version);
    if (!found.ok()) {
      answered(std::move(found).error());
      return 0;
    }
    const std::shared_ptr<const ServedModel> model = *std::move(found);
    const auto& outputs = model->spec.outputs;
    std::vector<std::pair<size_t, bool>> wanted;  // numbers of outputs
    for (const WantedOutput& output : request.outputs) {
      const auto named = std::ranges::find(outputs, output.name, &PortSpec::name);
      if (named == outputs.end()) {
        answered(badRequest(fmt::format("the model has no output {}", aglow::quoted(output.name))));
        return 0;
      }
      wanted.emplace_back(named - outputs.begin(), output.binary);
    }
    if (request.outputs.empty())
      for (size_t i = 0; i < outputs.size(); ++i) wanted.emplace_back(i, request.binary);
    RunRequest run{.network = model->name,
                   .version = model->network,
                   .inputs = request.inputs,
                   .priority = request.priority,
                   .inPlace = true};
    if (request.timeout) run.deadline = host_.clock()->now() + *request.timeout;
    auto accepted = host_.runNetwork(
        std::move(run), [model, answered, wanted = std::move(wanted), id = request.id](RunReply reply) {
          if (!reply.outputs.ok()) return answered(firstOf(reply.outputs.diagnostics()));
          InferAnswer answer{.model = model->name, .version = model->version, .id = id};
          for (const auto& [number, binary] : wanted)
            answer.outputs.push_back({model->spec.outputs[number].name, (*reply.outputs)[number], binary});
          answered(std::move(answer));
        });
    if (accepted.ok()) return *accepted;
    if (accepted.error().code == Code::UnknownNetwork && attempt < 3) continue;
    answered(std::move(accepted).error());
    return 0;
  }
}

Error Service::unknown(const std::string& name, const std::string& version) const {
  std::vector<std::string_view> names;
  for (const auto& [other, versions] : models_)
    if (!versions.loaded.empty()) names.push_back(other);
  const std::string which = version.empty() ? "" : fmt::format(", version {}", aglow::quoted(version));
  return {.code = Code::UnknownNetwork,
          .message = fmt::format("there is no model {}{}", aglow::quoted(name), which),
          .where = {},
          .hint = didYouMean(name, names)};
}

Result<std::shared_ptr<const ServedModel>> Service::find(const std::string& name, const std::string& version) const {
  const std::shared_lock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return unknown(name, version);
  const auto model = found->second.loaded.find(version.empty() ? found->second.current : version);
  if (model == found->second.loaded.end()) return unknown(name, version);
  return model->second;
}

std::vector<std::string> Service::versionsOf(const std::string& name) const {
  std::vector<std::string> versions;
  const std::shared_lock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return versions;
  for (const auto& [version, model] : found->second.loaded) versions.push_back(version);
  return versions;
}

bool Service::modelReady(const std::string& name, const std::string& version) const {
  const auto model = find(name, version);
  if (!model.ok()) return false;
  const auto info = host_.network(name, (*model)->network);
  return info.ok() && info->ready;
}

HostStatistics Service::statistics() const {
  HostStatistics all = host_.statistics();
  const std::shared_lock lock(mutex_);
  std::vector<NetworkStatistics> served;
  for (const auto& [name, versions] : models_)
    for (const auto& [version, model] : versions.loaded) {
      const auto found = std::ranges::find_if(all.networks, [&](const NetworkStatistics& network) {
        return network.name == name && network.version == model->network;
      });
      if (found == all.networks.end()) continue;
      served.push_back(std::move(*found));
      served.back().version = version;
      served.back().current = version == versions.current;
    }
  all.networks = std::move(served);
  return all;
}

bool Service::ready() const {
  if (!loaded_ || ending_ || host_.draining()) return false;
  const std::vector<NetworkInfo> networks = host_.networks();
  return !networks.empty() && std::ranges::all_of(networks, &NetworkInfo::ready);
}

}  // namespace aglow::serve
