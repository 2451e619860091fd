#include "serve/program/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/package_cache.h"
#include "cli/device_plans.h"
#include "dynamic/model_source.h"
#include "support/file.h"

namespace aglow::serve {

namespace {

// Options of models that make sense for all of them at once.
constexpr std::string_view kOfModels[] = {"--dim",    "--cpu",       "--features",  "--disable",
                                          "--strict", "--precision", "--keep-float"};

}  // namespace

std::vector<cli::Option> ServeOptions::options() {
  using cli::Between;
  using cli::UpTo;
  std::vector<cli::Option> rows = {
      {.names = "models",
       .place = &models,
       .doc = "Model files, and folders of them; a model is named as its file without the ending",
       .type = "FILE|DIR",
       .required = true},
      {"--host", &address, "Address to listen at (default: 127.0.0.1, this machine alone)", "ADDRESS"},
      {.names = "--http-port",
       .place = &httpPort,
       .doc = "0: any that is free",
       .type = "PORT",
       .check = Between{0, 65535},
       .showDefault = true},
      {.names = "--grpc-port",
       .place = &grpcPort,
       .doc = "0: any that is free",
       .type = "PORT",
       .check = Between{0, 65535},
       .showDefault = true},
      {"--no-http", &noHttp, "Without HTTP"},
      {"--no-grpc", &noGrpc, "Without gRPC"},
      {"--devices", &devices, "Devices of the host, e.g. \"cpu:0-3 cpu:4-7\" (default: one of all cores)", "LIST"},
      {.names = "--replicas",
       .place = &replicas,
       .doc = "Copies of each model",
       .type = "N",
       .check = Between{1, 1024},
       .showDefault = true},
      {.names = "--max-replicas",
       .place = &mostReplicas,
       .doc = "More copies of a model while its requests wait, up to so many, on devices without one",
       .type = "N",
       .check = Between{0, 1024}},
      {.names = "--parts",
       .place = &parts,
       .doc = "Cut each model into so many; 0: where no device has room for it",
       .type = "N",
       .check = Between{0, 1024}},
      {.names = "--criterion",
       .place = &criterion,
       .doc = "What a cut is best for: memory, time, communication, pipeline or support",
       .type = "WHAT",
       .check = cli::OneOf{"memory,time,communication,pipeline,support"},
       .showDefault = true},
      {.names = "--partition",
       .place = &plans,
       .doc = "Cut a model by hand: its nodes and the names of their devices, as a JSON object",
       .type = "MODEL=FILE.json"},
      {.names = "--max-batch",
       .place = &batch,
       .doc = "Rows of requests that are run as one, at most",
       .type = "ROWS",
       .check = Between{1, 65536},
       .showDefault = true},
      {.names = "--batch-delay-us",
       .place = &batchDelay,
       .doc = "How long a request may wait for others",
       .type = "N",
       .check = Between{0, 10000000},
       .showDefault = true},
      {.names = "--batch-sizes",
       .place = &batchSizes,
       .doc = "Numbers of rows that batches are filled up to, e.g. 1,4,16",
       .type = "N,…",
       .commas = true},
      {.names = "--queue",
       .place = &queue,
       .doc = "Requests of a model that may wait or run; more are refused",
       .type = "N",
       .check = Between{1, 1000000},
       .showDefault = true},
      {.names = "--host-queue",
       .place = &hostQueue,
       .doc = "The same of all models together",
       .type = "N",
       .check = Between{1, 10000000},
       .showDefault = true},
      {"--keep-going", &keepGoing, "Serve the other models where one cannot be loaded"},
      {.names = "--max-body-mb",
       .place = &bodyMb,
       .doc = "Size of a request",
       .type = "MB",
       .check = Between{1, 2047},
       .showDefault = true},
      {.names = "--max-tensor-mb",
       .place = &tensorMb,
       .doc = "Size of a tensor of a request",
       .type = "MB",
       .check = Between{1, 2047},
       .showDefault = true},
      {.names = "--max-buffered-mb",
       .place = &bufferedMb,
       .doc = "Size of all requests at a time",
       .type = "MB",
       .check = Between{1, 1 << 20},
       .showDefault = true},
      {.names = "--max-connections",
       .place = &connections,
       .doc = "Connections over HTTP",
       .type = "N",
       .check = Between{1, 1000000},
       .showDefault = true},
      {.names = "--header-timeout-s",
       .place = &headSeconds,
       .doc = "For the header of a request",
       .type = "S",
       .check = UpTo{86400},
       .showDefault = true},
      {.names = "--body-timeout-s",
       .place = &bodySeconds,
       .doc = "For the rest of it, and for taking the answer",
       .type = "S",
       .check = UpTo{86400},
       .showDefault = true},
      {.names = "--idle-timeout-s",
       .place = &idleSeconds,
       .doc = "Of a connection without a request",
       .type = "S",
       .check = UpTo{86400},
       .showDefault = true},
      {.names = "--io-threads",
       .place = &ioThreads,
       .doc = "Threads that read and write",
       .type = "N",
       .check = Between{1, 64},
       .showDefault = true},
      {"--tls-cert", &certificate, "Certificate with its chain, as PEM: both ports speak TLS", "FILE"},
      {"--tls-key", &key, "Its key, as PEM", "FILE"},
      {.names = "--token-file",
       .place = &tokenFile,
       .doc = "File with the bearer token that clients have to send",
       .type = "FILE",
       .environment = "AGLOW_TOKEN_FILE"},
      {.names = "--drain-s",
       .place = &drainSeconds,
       .doc = "How long accepted requests may take after SIGTERM",
       .type = "S",
       .check = Between{0, 86400},
       .showDefault = true},
      {.names = "--log",
       .place = &logLevel,
       .doc = "What is logged, on stderr: errors, info, or requests",
       .type = "LEVEL",
       .check = cli::OneOf{"errors,info,requests"},
       .showDefault = true},
      {"--cache", &cache, "Folder where compiled models are kept for the next time, or off", "DIR"},
      {"--pad", &pad, "Fill inputs up with zeros to the next size of those that --dim NAME=1,4,16 prepares"},
      {"--json", &json, "Say on stdout as JSON where it listens, once it is ready"},
  };
  for (const cli::Option& row : model.options())
    if (std::ranges::find(kOfModels, row.names) != std::end(kOfModels)) rows.push_back(row);
  return rows;
}

Limits ServeOptions::limits() const {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  Limits limits;
  limits.body = int64_t{bodyMb} << 20;
  limits.tensor = int64_t{tensorMb} << 20;
  limits.buffered = int64_t{bufferedMb} << 20;
  limits.connections = static_cast<size_t>(connections);
  limits.headTime = milliseconds(headSeconds);
  limits.bodyTime = milliseconds(bodySeconds);
  limits.idle = milliseconds(idleSeconds);
  return limits;
}

Result<HostOptions> ServeOptions::host() const {
  HostOptions host{.queue = static_cast<size_t>(hostQueue)};
  if (!devices.empty()) {
    AGLOW_TRY(host.devices, parseDevices(devices));
  }
  return host;
}

Result<ServiceOptions> ServeOptions::service() const {
  ServiceOptions service{.models = models};
  service.network.replicas = replicas;
  if (mostReplicas > replicas) service.network.mostReplicas = mostReplicas;
  service.network.queue = static_cast<size_t>(queue);
  service.network.batch = {.rows = batch, .delay = std::chrono::microseconds(batchDelay), .sizes = batchSizes};
  cli::ModelOptions words = model;
  AGLOW_TRY(const auto several, cli::takeSeveralSizes(words.dims));
  AGLOW_TRY(cli::ParsedOptions parsed, words.parse(cacheFolder(cache)));
  SessionOptions session{.import = std::move(parsed.import), .compile = std::move(parsed.compile), .pad = pad};
  session.prepared.insert(several.begin(), several.end());
  if (pad && several.empty())
    return Error{.code = Code::Usage,
                 .message = "--pad needs sizes to fill up to",
                 .where = {},
                 .hint = "name them with --dim, e.g. --dim batch=1,4,16"};
  AGLOW_TRY(const PartitionCriterion best, criterionOf(criterion));
  const PartitionRequest cut{.criterion = best, .parts = static_cast<size_t>(parts)};
  std::map<std::string, std::map<std::string, std::string>> byHand;
  for (const std::string& plan : plans) {
    const size_t equals = plan.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error{.code = Code::Usage, .message = fmt::format("--partition {}: expected MODEL=FILE.json", plan)};
    AGLOW_TRY(byHand[plan.substr(0, equals)], cli::readDevicePlan(plan.substr(equals + 1)));
  }
  service.add = [session, cut, byHand](HostManager& host, const std::string& name, const std::string& path,
                                       const NetworkOptions& network) {
    PartitionRequest request = cut;
    if (const auto plan = byHand.find(name); plan != byHand.end()) request.byHand = plan->second;
    return addModel(host, name, path, session, network, std::move(request));
  };
  return service;
}

Result<std::string> ServeOptions::token() const {
  if (tokenFile.empty()) return std::string();
  AGLOW_TRY(const SharedBytes file, readFile(tokenFile));
  std::string token(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.empty()) return Error{.code = Code::Usage, .message = "the file holds no token", .where = tokenFile};
  return token;
}

LogLevel ServeOptions::log() const {
  if (logLevel == "errors") return LogLevel::Errors;
  return logLevel == "requests" ? LogLevel::Requests : LogLevel::Info;
}

}  // namespace aglow::serve
