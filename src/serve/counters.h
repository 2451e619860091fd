// What a server counts of its protocols; networks and devices are counted by the host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace aglow::serve {

struct Counters {
  // By HTTP status, and by gRPC's number of a state.
  std::array<std::atomic<uint64_t>, 600> http{};
  std::array<std::atomic<uint64_t>, 17> grpc{};
  std::atomic<uint64_t> bytesIn = 0, bytesOut = 0;  // bodies over HTTP
  std::atomic<int64_t> connections = 0;             // open now
  std::atomic<uint64_t> refusedConnections = 0, timeouts = 0;
  std::atomic<int64_t> buffered = 0;  // bytes of requests that are being read or run

  void countHttp(int status) { ++http[static_cast<size_t>(status) % http.size()]; }
  void countGrpc(int state) { ++grpc[static_cast<size_t>(state) % grpc.size()]; }
};

}  // namespace aglow::serve
