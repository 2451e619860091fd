// Trace contexts of requests, as W3C's header `traceparent` has them: the trace of the caller goes on, with a span of
// this server's own.
#pragma once

#include <string>
#include <string_view>

namespace aglow::serve {

struct Trace {
  std::string id;    // 32 digits
  std::string span;  // 16 digits, of this server
  std::string flags = "00";
  std::string header() const { return "00-" + id + "-" + span + "-" + flags; }
};

// That of the header, or a new one where there is none or it is malformed.
Trace traceOf(std::string_view traceparent);

}  // namespace aglow::serve
