// What a server answers over HTTP, apart from connections: from the parts of a request to the parts of a response.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/counters.h"
#include "serve/json_codec.h"
#include "serve/log.h"
#include "serve/service.h"

namespace aglow::serve {

// The bytes of a request: aligned so that binary tensors behind JSON of `jsonSize` bytes can be read where they lie,
// and counted among those that are buffered.
class Body {
public:
  // RequestTooLarge, or Busy where others have taken the memory.
  static Result<std::shared_ptr<Body>> make(size_t bytes, size_t jsonSize, const Limits& limits, Counters& counters);
  ~Body();
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  std::span<std::byte> bytes() { return {memory_ + start_, size_}; }
  void shrink(size_t bytes) { size_ = bytes; }

private:
  Body(std::byte* memory, size_t start, size_t size, Counters& counters)
      : memory_(memory), start_(start), size_(size), counted_(static_cast<int64_t>(size)), counters_(counters) {}

  std::byte* memory_;
  size_t start_, size_;
  int64_t counted_;
  Counters& counters_;
};

struct HttpRequest {
  std::string method, target;
  std::string authorization, traceparent, encoding;
  std::optional<size_t> jsonSize;  // of the header Inference-Header-Content-Length
  std::shared_ptr<Body> body;      // null: none
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string text = {};
  std::vector<Blob> blobs = {};  // behind the text
  size_t size() const;
};

struct RouterOptions {
  Limits limits;
  std::string token;  // empty: none is asked for
};

class Router {
public:
  using Respond = std::function<void(HttpResponse)>;

  Router(Service& service, Counters& counters, const Log& log, RouterOptions options)
      : service_(service), counters_(counters), log_(log), options_(std::move(options)) {}

  // Whether a request may have a body, by its method and path: asked before the body is read.
  std::optional<HttpResponse> refuseEarly(const HttpRequest& request) const;
  // Called exactly once, on any thread.
  void handle(HttpRequest request, Respond respond) const;

  Counters& counters() const { return counters_; }
  const Limits& limits() const { return options_.limits; }
  const Log& log() const { return log_; }
  bool draining() const { return service_.host().draining(); }
  static HttpResponse fault(int status, std::string_view text);
  static HttpResponse fault(const Error& error);

private:
  struct Call;
  struct Route;
  static const std::vector<Route>& routes();
  bool authorized(std::string_view authorization, std::string_view path) const;
  void infer(Call& call) const;

  Service& service_;
  Counters& counters_;
  const Log& log_;
  const RouterOptions options_;
};

// Compares in a time that does not tell how much of it is right.
bool sameToken(std::string_view given, std::string_view wanted);

}  // namespace aglow::serve
