// Faults on their way through the C interface: a status, and words that the thread can ask for.
#pragma once

#include <new>
#include <string>

#include "aglow/aglow.h"
#include "support/diagnostics.h"

namespace aglow {

extern thread_local std::string lastError;

inline aglow_status fail(const Diagnostics& diagnostics) {
  lastError.clear();
  for (const Error& error : diagnostics.errors()) lastError += (lastError.empty() ? "" : "\n") + error.text();
  return static_cast<aglow_status>(diagnostics.exitCode());
}
inline aglow_status fail(Error error) { return fail(Diagnostics(std::move(error))); }
inline aglow_status wrongUse(std::string message) {
  return fail(Error{.code = Code::Usage, .message = std::move(message)});
}

// Runs the body of a function, and turns what it throws into a status.
template <class Body>
aglow_status guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    // What there is to say needs no memory.
    lastError = "out of memory";
    return AGLOW_OUT_OF_RESOURCES;
  } catch (const std::exception& fault) {
    return fail(Error{.code = Code::Internal, .message = fault.what()});
  }
}

// A body that gives a Status, with arguments that were checked for being there.
template <class Set>
aglow_status setting(bool valid, const Set& set) {
  if (!valid) return wrongUse("an argument is null or negative");
  return guarded([&] {
    const Status status = set();
    return status.ok() ? AGLOW_OK : fail(status.error());
  });
}

}  // namespace aglow
