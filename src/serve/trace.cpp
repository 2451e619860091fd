#include "serve/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace aglow::serve {

namespace {

uint64_t randomBits() {
  thread_local std::mt19937_64 bits{(uint64_t{std::random_device{}()} << 32) ^ std::random_device{}()};
  return bits() | 1;  // all zeros would be invalid
}

bool isHex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }) &&
         text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

Trace traceOf(std::string_view traceparent) {
  Trace trace{.id = {}, .span = fmt::format("{:016x}", randomBits())};
  // 00-<32 digits>-<16 digits>-<2 digits>
  if (traceparent.size() == 55 && traceparent.starts_with("00-") && traceparent[35] == '-' && traceparent[52] == '-' &&
      isHex(traceparent.substr(3, 32)) && isHex(traceparent.substr(36, 16)) &&
      isHex(std::string("1").append(traceparent.substr(53)))) {
    trace.id = traceparent.substr(3, 32);
    trace.flags = traceparent.substr(53);
  } else {
    trace.id = fmt::format("{:016x}{:016x}", randomBits(), randomBits());
  }
  return trace;
}

}  // namespace aglow::serve
