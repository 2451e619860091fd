// HTTP/1.1 for a router: connections with their limits, with TLS where a certificate is given. server.cpp alone
// includes Boost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "serve/router.h"

namespace aglow::serve {

struct HttpOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 8000;          // 0: any that is free
  int threads = 2;               // that read and write
  std::string certificate, key;  // PEM files; both or none
};

class HttpServer {
public:
  // Listens; a port that is taken, or a certificate that cannot be read, is the error.
  static Result<std::unique_ptr<HttpServer>> start(const Router& router, const HttpOptions& options);
  // Closes what is still open.
  ~HttpServer();

  uint16_t port() const;
  // Takes no more connections. Answers to requests that are under way are still written, each with `Connection: close`.
  void stopListening();
  // Requests whose answers are not written yet.
  size_t underWay() const;

private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace aglow::serve
