// parse(print(m)) == m, for every module that a test builds.
#pragma once

#include <gtest/gtest.h>

#include "graph/equality.h"
#include "graph/text.h"
#include "graph/verifier.h"

namespace aglow {

// The module verifies, and its text reads back as the same module and prints as the same text.
inline void expectRoundTrip(const Module& module) {
  const Status verified = verify(module);
  EXPECT_TRUE(verified.ok()) << (verified.ok() ? "" : verified.error().text());
  BlobStore blobs;
  const std::string text = print(module, &blobs);
  const Result<std::unique_ptr<Module>> again = parseModule(text, blobs);
  ASSERT_TRUE(again.ok()) << again.error().text() << "\n" << text;
  EXPECT_EQ(difference(module, **again), "") << text;
  EXPECT_EQ(structuralHash(module), structuralHash(**again)) << text;
  EXPECT_EQ(print(**again), print(module));
}

}  // namespace aglow
