// gRPC for a service. server.cpp alone includes gRPC.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "serve/counters.h"
#include "serve/limits.h"
#include "serve/log.h"
#include "serve/service.h"

namespace aglow::serve {

struct GrpcOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 8001;          // 0: any that is free
  std::string certificate, key;  // PEM files; both or none
  std::string token;             // empty: none is asked for
  Limits limits;
};

class GrpcServer {
public:
  static Result<std::unique_ptr<GrpcServer>> start(Service& service, Counters& counters, const Log& log,
                                                   const GrpcOptions& options);
  ~GrpcServer();

  uint16_t port() const;
  // Takes no more calls, waits for those under way, and cancels what is left then.
  void shutdown(std::chrono::milliseconds wait);

private:
  class Impl;
  explicit GrpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace aglow::serve
