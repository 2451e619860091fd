// What samples of one value tell, by the reference kernel of Observe.
#pragma once

#include "quant/watch.h"
#include "unit/reference_harness.h"

namespace aglow::quant {

inline Observed observedIn(const std::vector<Tensor>& samples, int axis) {
  Module module;
  Function& function = *module.addFunction("main");
  Builder b(function);
  const Value x = b.input("x", samples.front().type());
  Watched watched = observeValue(b, {.name = "x", .value = x, .channelAxis = axis});
  Tensor counts = watched.counts->initial(), channels = watched.channels->initial();
  const Attrs attrs = function.front()->attrs();
  for (const Tensor& sample : samples) {
    Result<std::vector<Tensor>> results = runOp(attrs, {counts, channels, sample});
    AGLOW_CHECK(results.ok(), results.error().text());
    counts = (*results)[0];
    channels = (*results)[1];
  }
  return observed(counts, channels, std::ssize(samples));
}

}  // namespace aglow::quant
