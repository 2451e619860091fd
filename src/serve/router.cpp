#include "serve/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "serve/documents.h"
#include "serve/trace.h"

namespace aglow::serve {

namespace {

constexpr size_t kAlignment = 64;

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Segments of a path without its query, %XX decoded; none where it is malformed.
std::optional<std::vector<std::string>> segmentsOf(std::string_view target) {
  target = target.substr(0, target.find('?'));
  if (!target.starts_with('/')) return std::nullopt;
  std::vector<std::string> segments;
  for (size_t at = 0; at < target.size(); ++at) {
    if (target[at] == '/') {
      segments.emplace_back();
      continue;
    }
    if (target[at] != '%') {
      segments.back() += target[at];
      continue;
    }
    if (at + 2 >= target.size() || hexDigit(target[at + 1]) < 0 || hexDigit(target[at + 2]) < 0) return std::nullopt;
    segments.back() += static_cast<char>(hexDigit(target[at + 1]) * 16 + hexDigit(target[at + 2]));
    at += 2;
  }
  if (segments.back().empty()) segments.pop_back();  // a slash at the end says nothing
  return segments;
}

HttpResponse json(std::string text, int status = 200) { return {.status = status, .text = std::move(text)}; }

}  // namespace

Result<std::shared_ptr<Body>> Body::make(size_t bytes, size_t jsonSize, const Limits& limits, Counters& counters) {
  if (std::cmp_greater(bytes, limits.body))
    return tooLarge(fmt::format("the body has {} bytes, at most {} are taken", bytes, limits.body));
  if (counters.buffered.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes) > limits.buffered) {
    counters.buffered -= static_cast<int64_t>(bytes);
    return Error{.code = Code::Busy, .message = "the requests under way take all the memory there is for them"};
  }
  const size_t start = (kAlignment - jsonSize % kAlignment) % kAlignment;
  auto* memory =
      static_cast<std::byte*>(::operator new(start + bytes + kBytesBehind, std::align_val_t{kAlignment}, std::nothrow));
  if (memory == nullptr) {
    counters.buffered -= static_cast<int64_t>(bytes);
    return Error{.code = Code::OutOfMemory, .message = "no memory for the request"};
  }
  // What is behind is read, and decides nothing.
  std::fill_n(memory + start + bytes, kBytesBehind, std::byte{});
  return std::shared_ptr<Body>(new Body(memory, start, bytes, counters));
}

Body::~Body() {
  ::operator delete(memory_, std::align_val_t{kAlignment});
  counters_.buffered -= counted_;
}

size_t HttpResponse::size() const {
  size_t bytes = text.size();
  for (const Blob& blob : blobs) bytes += blob.bytes.size();
  return bytes;
}

HttpResponse Router::fault(int status, std::string_view text) { return json(errorJson(text), status); }

HttpResponse Router::fault(const Error& error) {
  HttpResponse response = fault(statusOf(error.code).http, faultText(error));
  if (response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

bool sameToken(std::string_view given, std::string_view wanted) {
  unsigned differences = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < wanted.size(); ++i)
    differences |= static_cast<unsigned char>(wanted[i]) ^ static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return differences == 0;
}

bool Router::authorized(std::string_view authorization, std::string_view path) const {
  // Probes of orchestrators have no token, and the page has no data.
  if (options_.token.empty() || path == "/" || path.starts_with("/v2/health/")) return true;
  constexpr std::string_view kBearer = "Bearer ";
  return authorization.starts_with(kBearer) && sameToken(authorization.substr(kBearer.size()), options_.token);
}

struct Router::Call {
  HttpRequest request;
  std::string model, version;  // of the path
  Respond respond;
};

// A row of what is served: the method, and a path in which * stands for a model's name and # for a version.
struct Router::Route {
  std::string_view method, path;
  void (*action)(const Router&, Call&);

  bool matches(const std::vector<std::string>& segments, Call& call) const {
    size_t at = 1, i = 0;
    for (; at < path.size(); ++i) {
      const size_t end = std::min(path.find('/', at), path.size());
      const std::string_view word = path.substr(at, end - at);
      if (i == segments.size()) return false;
      if (word == "*")
        call.model = segments[i];
      else if (word == "#")
        call.version = segments[i];
      else if (word != segments[i])
        return false;
      at = end + 1;
    }
    return i == segments.size();
  }
};

namespace {

void repositoryDone(const Router::Respond& respond, const Status& done) {
  respond(done.ok() ? json("{}") : Router::fault(done.error()));
}

}  // namespace

const std::vector<Router::Route>& Router::routes() {
  constexpr auto kModelReady = [](const Router& self, Call& call) {
    if (auto model = self.service_.find(call.model, call.version); !model.ok())
      return call.respond(fault(model.error()));
    const bool ready = self.service_.modelReady(call.model, call.version);
    call.respond(ready ? json("{}") : fault(503, "the model cannot run now"));
  };
  constexpr auto kMetadata = [](const Router& self, Call& call) {
    const auto model = self.service_.find(call.model, call.version);
    call.respond(model.ok() ? json(modelMetadata(**model, self.service_.versionsOf(call.model)))
                            : fault(model.error()));
  };
  constexpr auto kInfer = [](const Router& self, Call& call) { self.infer(call); };
  static const std::vector<Route> kRoutes = {
      {"GET", "/",
       [](const Router&, Call& call) {
         call.respond({.type = "text/html; charset=utf-8",
                       .headers = {{"Content-Security-Policy",
                                    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                    "img-src data:; connect-src 'self'"}},
                       .text = std::string(statusPage())});
       }},
      {"GET", "/status",
       [](const Router& self, Call& call) { call.respond(json(statusJson(self.service_, self.counters_))); }},
      {"GET", "/metrics",
       [](const Router& self, Call& call) {
         call.respond(
             {.type = "text/plain; version=0.0.4; charset=utf-8", .text = metricsText(self.service_, self.counters_)});
       }},
      {"GET", "/v2", [](const Router&, Call& call) { call.respond(json(serverMetadata())); }},
      {"GET", "/v2/health/live", [](const Router&, Call& call) { call.respond(json(R"({"live":true})")); }},
      {"GET", "/v2/health/ready",
       [](const Router& self, Call& call) {
         call.respond(self.service_.ready() ? json(R"({"ready":true})") : json(R"({"ready":false})", 503));
       }},
      {"GET", "/v2/models/*", kMetadata},
      {"GET", "/v2/models/*/versions/#", kMetadata},
      {"GET", "/v2/models/*/ready", kModelReady},
      {"GET", "/v2/models/*/versions/#/ready", kModelReady},
      {"POST", "/v2/models/*/infer", kInfer},
      {"POST", "/v2/models/*/versions/#/infer", kInfer},
      {"POST", "/v2/repository/index",
       [](const Router& self, Call& call) { call.respond(json(indexJson(self.service_.index()))); }},
      {"POST", "/v2/repository/models/*/load",
       [](const Router& self, Call& call) {
         self.service_.load(call.model,
                            [respond = call.respond](const Status& done) { repositoryDone(respond, done); });
       }},
      {"POST", "/v2/repository/models/*/unload",
       [](const Router& self, Call& call) {
         self.service_.unload(call.model,
                              [respond = call.respond](const Status& done) { repositoryDone(respond, done); });
       }},
  };
  return kRoutes;
}

std::optional<HttpResponse> Router::refuseEarly(const HttpRequest& request) const {
  if (!authorized(request.authorization, request.target)) {
    HttpResponse response = fault(401, "a bearer token is asked for, and it has to be the right one");
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  if (!request.encoding.empty() && request.encoding != "identity")
    return fault(415, "bodies come as they are, without Content-Encoding");
  return std::nullopt;
}

void Router::handle(HttpRequest request, Respond respond) const {
  const auto start = std::chrono::steady_clock::now();
  const Trace trace = traceOf(request.traceparent);
  if (request.body) counters_.bytesIn += request.body->bytes().size();
  // Every answer is counted, carries the trace, and may be logged.
  const auto logged = log_.shows(LogLevel::Requests)
                          ? std::make_shared<std::pair<std::string, std::string>>(request.method, request.target)
                          : nullptr;
  Call call{.request = std::move(request),
            .respond = [this, respond = std::move(respond), trace, logged, start](HttpResponse response) {
              response.headers.emplace_back("traceparent", trace.header());
              counters_.countHttp(response.status);
              counters_.bytesOut += response.size();
              if (logged) {
                const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
                log_.write(LogLevel::Requests, "request",
                           {{"protocol", "http"},
                            {"method", std::string_view(logged->first)},
                            {"path", std::string_view(logged->second)},
                            {"status", int64_t{response.status}},
                            {"ms", took.count()},
                            {"bytes", static_cast<int64_t>(response.size())},
                            {"trace_id", std::string_view(trace.id)},
                            {"span_id", std::string_view(trace.span)}});
              }
              respond(std::move(response));
            }};
  if (auto refused = refuseEarly(call.request)) return call.respond(*std::move(refused));
  const auto segments = segmentsOf(call.request.target);
  if (!segments) return call.respond(fault(400, "the path is malformed"));
  std::string allowed;
  for (const Route& route : routes()) {
    if (!route.matches(*segments, call)) continue;
    if (route.method == call.request.method) return route.action(*this, call);
    allowed = route.method;
  }
  if (allowed.empty()) return call.respond(fault(404, "there is nothing at this path"));
  HttpResponse response = fault(405, fmt::format("this path takes {} only", allowed));
  response.headers.emplace_back("Allow", allowed);
  call.respond(std::move(response));
}

void Router::infer(Call& call) const {
  if (!call.request.body) return call.respond(fault(badRequest("a request has a body")));
  const std::shared_ptr<Body>& body = call.request.body;
  auto request =
      decodeRequest(body->bytes(), call.request.jsonSize.value_or(body->bytes().size()), body, options_.limits);
  if (!request.ok()) return call.respond(fault(request.error()));
  request->model = std::move(call.model);
  request->version = std::move(call.version);
  service_.infer(*std::move(request), [respond = std::move(call.respond)](Result<InferAnswer> answer) {
    if (!answer.ok()) return respond(fault(answer.error()));
    auto encoded = encodeAnswer(*answer);
    if (!encoded.ok()) return respond(fault(encoded.error()));
    HttpResponse response{.text = std::move(encoded->json), .blobs = std::move(encoded->blobs)};
    if (!response.blobs.empty()) {
      response.type = "application/octet-stream";
      response.headers.emplace_back("Inference-Header-Content-Length", std::to_string(response.text.size()));
    }
    respond(std::move(response));
  });
}

}  // namespace aglow::serve
