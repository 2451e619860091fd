#include "serve/grpc/server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <mutex>

#include <inference.grpc.pb.h>
#include "serve/documents.h"
#include "serve/grpc/messages.h"
#include "serve/router.h"
#include "serve/trace.h"
#include "support/file.h"

namespace aglow::serve {

namespace {

using inference::GRPCInferenceService;
using Context = ::grpc::CallbackServerContext;
using Reactor = ::grpc::ServerUnaryReactor;
using ::grpc::Status;

Status statusFor(const Error& error) {
  return {static_cast<::grpc::StatusCode>(statusOf(error.code).grpc), faultText(error)};
}

std::string_view metadataOf(const Context& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

// A call from its begin to its end: its trace goes back at once, and its end is counted and may be logged.
class Call {
public:
  Call(Context& context, Counters& counters, const Log& log, std::string_view method, std::string_view model = {})
      : counters_(counters), log_(log), method_(method), trace_(traceOf(metadataOf(context, "traceparent"))) {
    context.AddInitialMetadata("traceparent", trace_.header());
    if (log.shows(LogLevel::Requests)) model_ = model;
  }

  void ended(const Status& status) const {
    counters_.countGrpc(status.error_code());
    if (!log_.shows(LogLevel::Requests)) return;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start_;
    log_.write(LogLevel::Requests, "request",
               {{"protocol", "grpc"},
                {"method", method_},
                {"model", std::string_view(model_)},
                {"status", int64_t{status.error_code()}},
                {"ms", took.count()},
                {"trace_id", std::string_view(trace_.id)},
                {"span_id", std::string_view(trace_.span)}});
  }

private:
  Counters& counters_;
  const Log& log_;
  std::string_view method_;
  std::string model_;
  Trace trace_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One call of ModelInfer. Its answer may come before or after the client takes the call back.
class InferCall : public Reactor {
public:
  InferCall(Service& service, Call call, inference::ModelInferResponse& response)
      : service_(service), call_(std::move(call)), response_(response) {}

  void begin(Context& context, std::shared_ptr<const inference::ModelInferRequest> message, const Limits& limits) {
    auto request = fromMessage(std::move(message), limits);
    if (!request.ok()) {
      answer(statusFor(request.error()));
      return drop();
    }
    const auto left = context.deadline() - std::chrono::system_clock::now();
    if (left < std::chrono::hours(24 * 365)) {
      const auto until =
          std::max(std::chrono::duration_cast<std::chrono::microseconds>(left), std::chrono::microseconds(1));
      request->timeout = std::min(request->timeout.value_or(until), until);
    }
    const RequestId id = service_.infer(*std::move(request), [this](Result<InferAnswer> answered) {
      if (!answered.ok()) return answer(statusFor(answered.error()));
      const auto written = toMessage(*answered, response_);
      answer(written.ok() ? Status::OK : statusFor(written.error()));
    });
    release(id);
  }

private:
  void answer(const Status& status) {
    call_.ended(status);
    Finish(status);
  }
  // What is cancelled before its number is known is cancelled here.
  void release(RequestId id) {
    bool cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      id_ = id;
      cancelled = cancelled_;
    }
    if (cancelled && id != 0) service_.cancel(id);
    drop();
  }
  void OnCancel() override {
    RequestId id = 0;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      id = id_;
    }
    if (id != 0) service_.cancel(id);
  }
  void OnDone() override { drop(); }
  // The last of the two that hold it: begin(), and gRPC.
  void drop() {
    if (--holders_ == 0) delete this;
  }

  Service& service_;
  const Call call_;
  inference::ModelInferResponse& response_;
  std::mutex mutex_;
  RequestId id_ = 0;
  bool cancelled_ = false;
  std::atomic<int> holders_ = 2;
};

// Streams are refused as soon as they open.
class RefusedStream
    : public ::grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse> {
public:
  explicit RefusedStream(const Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class Inference : public GRPCInferenceService::CallbackService {
public:
  Inference(serve::Service& service, Counters& counters, const Log& log, const GrpcOptions& options)
      : service_(service), counters_(counters), log_(log), options_(options) {}

  Reactor* ServerLive(Context* context, const inference::ServerLiveRequest*,
                      inference::ServerLiveResponse* response) override {
    response->set_live(true);
    return finish(context, callOf(context, "ServerLive"), Status::OK);
  }
  Reactor* ServerReady(Context* context, const inference::ServerReadyRequest*,
                       inference::ServerReadyResponse* response) override {
    response->set_ready(service_.ready());
    return finish(context, callOf(context, "ServerReady"), Status::OK);
  }
  Reactor* ModelReady(Context* context, const inference::ModelReadyRequest* request,
                      inference::ModelReadyResponse* response) override {
    const Call call = callOf(context, "ModelReady", request->name());
    if (auto refused = refusal(context, call)) return refused;
    response->set_ready(service_.modelReady(request->name(), request->version()));
    return finish(context, call, Status::OK);
  }
  Reactor* ServerMetadata(Context* context, const inference::ServerMetadataRequest*,
                          inference::ServerMetadataResponse* response) override {
    const Call call = callOf(context, "ServerMetadata");
    if (auto refused = refusal(context, call)) return refused;
    response->set_name(std::string(kServerName));
    response->set_version(AGLOW_VERSION);
    for (const std::string_view extension : kExtensions) response->add_extensions(std::string(extension));
    return finish(context, call, Status::OK);
  }
  Reactor* ModelMetadata(Context* context, const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override {
    const Call call = callOf(context, "ModelMetadata", request->name());
    if (auto refused = refusal(context, call)) return refused;
    const auto model = service_.find(request->name(), request->version());
    if (!model.ok()) return finish(context, call, statusFor(model.error()));
    response->set_name((*model)->name);
    for (const std::string& version : service_.versionsOf(request->name())) response->add_versions(version);
    response->set_platform("aglow");
    const auto add = [](const std::vector<PortSpec>& ports, auto* to) {
      for (const PortSpec& port : ports) {
        auto* tensor = to->Add();
        tensor->set_name(port.name);
        tensor->set_datatype(datatypeOf(port));
        for (const int64_t dim : shapeOf(port)) tensor->add_shape(dim);
      }
    };
    add((*model)->spec.inputs, response->mutable_inputs());
    add((*model)->spec.outputs, response->mutable_outputs());
    return finish(context, call, Status::OK);
  }
  Reactor* ModelInfer(Context* context, const inference::ModelInferRequest* request,
                      inference::ModelInferResponse* response) override {
    const Call call = callOf(context, "ModelInfer", request->model_name());
    if (auto refused = refusal(context, call)) return refused;
    // A run goes on to read its inputs when its call is taken back: they move to where they live as long as it does.
    auto kept = std::make_shared<inference::ModelInferRequest>();
    kept->Swap(const_cast<inference::ModelInferRequest*>(request));
    auto* infer = new InferCall(service_, call, *response);
    infer->begin(*context, std::move(kept), options_.limits);
    return infer;
  }
  ::grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>* ModelStreamInfer(
      Context* context) override {
    const Status status = authorized(*context) ? Status(::grpc::StatusCode::UNIMPLEMENTED,
                                                        "this server gives one answer to a request: call ModelInfer")
                                               : unauthenticated();
    Call(*context, counters_, log_, "ModelStreamInfer").ended(status);
    return new RefusedStream(status);
  }
  Reactor* RepositoryIndex(Context* context, const inference::RepositoryIndexRequest* request,
                           inference::RepositoryIndexResponse* response) override {
    const Call call = callOf(context, "RepositoryIndex");
    if (auto refused = refusal(context, call)) return refused;
    for (const IndexRow& row : service_.index()) {
      if (request->ready() && !row.ready) continue;
      auto* to = response->add_models();
      to->set_name(row.name);
      to->set_version(row.version);
      to->set_state(row.ready ? "READY" : "UNAVAILABLE");
      to->set_reason(row.reason);
    }
    return finish(context, call, Status::OK);
  }
  Reactor* RepositoryModelLoad(Context* context, const inference::RepositoryModelLoadRequest* request,
                               inference::RepositoryModelLoadResponse*) override {
    const Call call = callOf(context, "RepositoryModelLoad", request->model_name());
    if (auto refused = refusal(context, call)) return refused;
    Reactor* reactor = context->DefaultReactor();
    service_.load(request->model_name(), [call, reactor](const aglow::Status& done) { end(reactor, call, done); });
    return reactor;
  }
  Reactor* RepositoryModelUnload(Context* context, const inference::RepositoryModelUnloadRequest* request,
                                 inference::RepositoryModelUnloadResponse*) override {
    const Call call = callOf(context, "RepositoryModelUnload", request->model_name());
    if (auto refused = refusal(context, call)) return refused;
    Reactor* reactor = context->DefaultReactor();
    service_.unload(request->model_name(), [call, reactor](const aglow::Status& done) { end(reactor, call, done); });
    return reactor;
  }

private:
  bool authorized(const Context& context) const {
    constexpr std::string_view kBearer = "Bearer ";
    const std::string_view given = metadataOf(context, "authorization");
    return options_.token.empty() ||
           (given.starts_with(kBearer) && sameToken(given.substr(kBearer.size()), options_.token));
  }
  static Status unauthenticated() {
    return {::grpc::StatusCode::UNAUTHENTICATED, "a bearer token is asked for, and it has to be the right one"};
  }
  Call callOf(Context* context, std::string_view method, std::string_view model = {}) const {
    return {*context, counters_, log_, method, model};
  }
  // Who has no token gets nothing else.
  Reactor* refusal(Context* context, const Call& call) const {
    return authorized(*context) ? nullptr : finish(context, call, unauthenticated());
  }
  static Reactor* finish(Context* context, const Call& call, const Status& status) {
    call.ended(status);
    Reactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }
  static void end(Reactor* reactor, const Call& call, const aglow::Status& done) {
    const Status status = done.ok() ? Status::OK : statusFor(done.error());
    call.ended(status);
    reactor->Finish(status);
  }

  serve::Service& service_;  // not gRPC's class of this name
  Counters& counters_;
  const Log& log_;
  const GrpcOptions options_;
};

}  // namespace

class GrpcServer::Impl {
public:
  Impl(Service& service, Counters& counters, const Log& log, const GrpcOptions& options)
      : options_(options), inference_(service, counters, log, options) {}

  aglow::Status start() {
    std::shared_ptr<::grpc::ServerCredentials> credentials = ::grpc::InsecureServerCredentials();
    if (!options_.certificate.empty()) {
      AGLOW_TRY(const std::string certificate, readText(options_.certificate));
      AGLOW_TRY(const std::string key, readText(options_.key));
      ::grpc::SslServerCredentialsOptions secure;
      secure.pem_key_cert_pairs.push_back({key, certificate});
      credentials = ::grpc::SslServerCredentials(secure);
    }
    silenceProtobuf();
    ::grpc::ServerBuilder builder;
    const bool sixth = options_.address.find(':') != std::string::npos;
    const std::string address =
        fmt::format("{0}{1}{2}:{3}", sixth ? "[" : "", options_.address, sixth ? "]" : "", options_.port);
    // A port that another program has is not shared with it.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(address, credentials, &port_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<int64_t>(options_.limits.body, INT32_MAX)));
    builder.SetMaxSendMessageSize(-1);
    // Pings without calls, and headers without end, are cut off by gRPC.
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(options_.limits.header));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(options_.limits.idle.count()) * 10);
    ::grpc::ResourceQuota quota("aglow");
    quota.Resize(static_cast<size_t>(options_.limits.buffered));
    builder.SetResourceQuota(quota);
    builder.RegisterService(&inference_);
    server_ = builder.BuildAndStart();
    if (server_ && port_ != 0) return {};
    return Error{.code = Code::Usage, .message = "cannot listen: is the port taken?", .where = address};
  }
  uint16_t port() const { return static_cast<uint16_t>(port_); }
  void shutdown(std::chrono::milliseconds wait) {
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + wait);
  }

private:
  static Result<std::string> readText(const std::string& path) {
    AGLOW_TRY(const SharedBytes bytes, readFile(path));
    return std::string(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size());
  }

  const GrpcOptions options_;
  Inference inference_;
  int port_ = 0;
  std::unique_ptr<::grpc::Server> server_;
};

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpcServer::~GrpcServer() { impl_->shutdown(std::chrono::milliseconds(0)); }

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(Service& service, Counters& counters, const Log& log,
                                                      const GrpcOptions& options) {
  auto impl = std::make_unique<Impl>(service, counters, log, options);
  AGLOW_OK(impl->start());
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

uint16_t GrpcServer::port() const { return impl_->port(); }
void GrpcServer::shutdown(std::chrono::milliseconds wait) { impl_->shutdown(wait); }

}  // namespace aglow::serve
