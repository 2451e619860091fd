// Networks of modules in text form, on the reference backend unless another is asked for.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "graph/text.h"
#include "runtime/network.h"

namespace aglow::testing_support {

inline std::shared_ptr<Network> loadedNetwork(std::string_view text, const BackendOptions& backend = {},
                                              const std::string& name = std::string(kReferenceBackend)) {
  auto module = parseModule(text);
  EXPECT_TRUE(module.ok()) << module.error().text();
  CompileOptions options;
  options.backend = name;
  auto network = Network::load(*compileModule(*std::move(module), options), backend);
  EXPECT_TRUE(network.ok()) << network.error().text();
  return *std::move(network);
}

}  // namespace aglow::testing_support
