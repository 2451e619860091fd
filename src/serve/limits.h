// What a server takes from its clients at most; everything beyond is refused before memory is used for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace aglow::serve {

struct Limits {
  int64_t body = int64_t{64} << 20;           // bytes of one request
  int64_t tensor = int64_t{64} << 20;         // bytes of one tensor of it
  int64_t buffered = int64_t{1} << 30;        // bytes of all requests that are being read or run
  size_t tensors = 1024;                      // inputs, or outputs asked for, of one request
  size_t header = size_t{16} << 10;           // bytes of the header of an HTTP request
  size_t connections = 4096;                  // over HTTP at a time
  std::chrono::milliseconds idle{120000};     // that a connection may stay without a request
  std::chrono::milliseconds headTime{10000};  // from the first byte of a header to its last
  std::chrono::milliseconds bodyTime{60000};  // for the rest of a request, and for taking an answer
};

}  // namespace aglow::serve
