// aglow-serve: the program that `aglow serve` becomes. It listens, loads its models, and ends on SIGTERM once
// everything that it accepted is answered.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <thread>

#include "cli/cli.h"
#include "cli/parser.h"
#include "serve/grpc/server.h"
#include "serve/http/server.h"
#include "serve/json_codec.h"
#include "serve/program/options.h"

namespace aglow::serve {

namespace {

using std::chrono::steady_clock;

// As many connections as the system lets a program have.
void raiseDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t endings() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  return signals;
}

// All parts of a server, in the order in which they are made.
struct Server {
  Log log;
  Counters counters;
  std::unique_ptr<HostManager> host;
  std::unique_ptr<Service> service;
  std::unique_ptr<Router> router;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<GrpcServer> grpc;
};

Status start(Server& server, const ServeOptions& options) {
  if (options.certificate.empty() != options.key.empty())
    return Error{.code = Code::Usage, .message = "--tls-cert and --tls-key go together"};
  AGLOW_TRY(HostOptions hostOptions, options.host());
  AGLOW_TRY(ServiceOptions serviceOptions, options.service());
  AGLOW_TRY(const std::string token, options.token());
  AGLOW_TRY(Repository repository, Repository::create(options.models));
  AGLOW_TRY(server.host, HostManager::create(std::move(hostOptions)));
  server.service = std::make_unique<Service>(*server.host, std::move(repository), std::move(serviceOptions));
  const Limits limits = options.limits();
  server.router = std::make_unique<Router>(*server.service, server.counters, server.log,
                                           RouterOptions{.limits = limits, .token = token});
  if (!options.noHttp) {
    AGLOW_TRY(server.http, HttpServer::start(*server.router, {.address = options.address,
                                                              .port = static_cast<uint16_t>(options.httpPort),
                                                              .threads = options.ioThreads,
                                                              .certificate = options.certificate,
                                                              .key = options.key}));
  }
  if (!options.noGrpc) {
    AGLOW_TRY(server.grpc, GrpcServer::start(*server.service, server.counters, server.log,
                                             {.address = options.address,
                                              .port = static_cast<uint16_t>(options.grpcPort),
                                              .certificate = options.certificate,
                                              .key = options.key,
                                              .token = token,
                                              .limits = limits}));
  }
  return {};
}

// Accepted requests are answered, others refused, for as long as there may be; false where some are left then.
bool drain(Server& server, std::chrono::seconds longest) {
  const auto until = steady_clock::now() + longest;
  server.log.write(LogLevel::Info, "draining", {});
  server.service->end();
  if (server.http) server.http->stopListening();
  const auto left = [&] {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now()));
  };
  std::thread grpcEnds([&] {
    if (server.grpc) server.grpc->shutdown(left());
  });
  // Connections that stay open hear that the server ends when they ask for something, for a moment longer.
  constexpr std::chrono::milliseconds kLinger{200}, kStep{5};
  auto quietSince = steady_clock::now();
  while (server.http && steady_clock::now() < until && steady_clock::now() - quietSince < kLinger) {
    std::this_thread::sleep_for(kStep);
    if (server.http->underWay() > 0) quietSince = steady_clock::now();
  }
  grpcEnds.join();
  return server.host->statistics().underWay == 0 && (!server.http || server.http->underWay() == 0);
}

// Where it listens: "ready http://127.0.0.1:8000 grpc://127.0.0.1:8001", or an object with `http` and `grpc`.
std::string readyLine(const Server& server, const ServeOptions& options) {
  std::string plain = "ready", json;
  const auto add = [&](std::string_view protocol, const std::string& url) {
    plain += " " + url;
    json += fmt::format(R"({}"{}": {})", json.empty() ? "" : ", ", protocol, jsonString(url));
  };
  if (server.http)
    add("http", fmt::format("http{}://{}:{}", options.key.empty() ? "" : "s", options.address, server.http->port()));
  if (server.grpc) add("grpc", fmt::format("grpc://{}:{}", options.address, server.grpc->port()));
  return options.json ? "{" + json + "}" : plain;
}

ExitCode serve(const ServeOptions& options) {
  raiseDescriptors();
  Server server{.log = Log(options.log())};
  if (const Status started = start(server, options); !started.ok()) return cli::report(started.error());
  std::atomic<bool> failed = false;
  server.service->loadAll(
      [&](const std::string& name, const Status& loaded) {
        if (loaded.ok()) return server.log.write(LogLevel::Info, "loaded", {{"model", std::string_view(name)}});
        const std::string why = faultText(loaded.error());
        server.log.write(LogLevel::Errors, "not loaded",
                         {{"model", std::string_view(name)}, {"error", std::string_view(why)}});
        if (options.keepGoing || failed.exchange(true)) return;
        ::kill(::getpid(), SIGTERM);
      },
      [&] {
        if (failed) return;
        server.log.write(LogLevel::Info, "ready", {});
        std::cout << readyLine(server, options) << std::endl;
      });
  const sigset_t signals = endings();
  int signal = 0;
  while (::sigwait(&signals, &signal) != 0) continue;
  const bool whole = drain(server, std::chrono::seconds(failed ? 0 : options.drainSeconds));
  server.log.write(whole ? LogLevel::Info : LogLevel::Errors, whole ? "ended" : "ended with requests left", {});
  const ExitCode code = failed ? ExitCode::BadModel : whole ? ExitCode::Ok : ExitCode::OutOfResources;
  // What is left, or a model that is still being compiled, is not waited for.
  if (!whole || !server.service->idle()) ::_exit(static_cast<int>(code));
  return code;
}

constexpr const char* kExamples = R"(Examples:
  aglow serve models/                            all models of a folder, at 127.0.0.1:8000 and 8001
  aglow serve a.onnx b.aglow --max-batch 8 --batch-delay-us 500
  curl localhost:8000/v2/models/a                what it takes and gives
  curl localhost:8000/v2/models/a/infer -d '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}'

A browser shows models, queues and latencies at http://localhost:8000/, Prometheus reads /metrics.)";

cli::Command command() {
  auto options = std::make_shared<ServeOptions>();
  return {.name = "serve",
          .doc = "Serve models over HTTP and gRPC (Open Inference Protocol)",
          .options = options->options(),
          .footer = kExamples,
          .action = [options] { return serve(*options); }};
}

}  // namespace
}  // namespace aglow::serve

int main(int argc, char** argv) {
  using namespace aglow;
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  // Before there are other threads, which inherit it: one waits for them.
  const sigset_t signals = serve::endings();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    const cli::Program program{.name = "aglow",
                               .doc = "aglow " AGLOW_VERSION,
                               .version = "aglow " AGLOW_VERSION,
                               .footer = "",
                               .commands = {serve::command()}};
    const Result<cli::Action> action = cli::parse(program, argc, argv);
    return static_cast<int>(action.ok() ? (*action)() : cli::report(action.error()));
  } catch (const std::exception& fault) {
    return static_cast<int>(cli::report(Error{.code = Code::Internal, .message = fault.what()}));
  }
}
