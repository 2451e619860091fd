// The error model: codes are stable and found, errors read well, results carry them.
#include "support/error.h"

#include <gtest/gtest.h>

#include <set>

namespace aglow {
namespace {

TEST(Error, EveryCodeHasItsOwnIdAndARow) {
  std::set<std::string_view> ids;
  for (const CodeInfo& info : allCodes()) {
    EXPECT_TRUE(ids.insert(info.id).second) << info.id;
    EXPECT_EQ(&codeInfo(info.code), &info);
    EXPECT_EQ(findCode(info.id), &info);
    EXPECT_FALSE(info.title.empty());
    EXPECT_FALSE(info.explanation.empty());
  }
  EXPECT_EQ(findCode("e803"), &codeInfo(Code::BadNpy));
  EXPECT_EQ(findCode("E80"), nullptr);
  EXPECT_EQ(findCode(""), nullptr);
}

TEST(Error, TextNamesCodePlaceAndHint) {
  const Error error = Error{Code::BadNode, "expected rank 4, got 3", "node 'c'"}.at("m.onnx").withHint("reshape it");
  EXPECT_EQ(error.text(), "error[E205] m.onnx: node 'c': expected rank 4, got 3\n  hint: reshape it");
  EXPECT_EQ((Error{Code::Usage, "no command"}.text()), "error[E101] no command");
}

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Code::Usage, "odd"};
  return value / 2;
}

Result<int> quarter(int value) {
  AGLOW_TRY(const int once, half(value));
  AGLOW_OK(half(once));
  return half(once);
}

TEST(Error, ResultsPassOn) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(3).error().message, "odd");
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_THROW(*half(1), InternalError);
  EXPECT_TRUE(Status().ok());
}

TEST(Error, ChecksNameTheirPlace) {
  try {
    AGLOW_CHECK(1 + 1 == 3, "arithmetic");
    FAIL() << "the check passed";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("arithmetic [1 + 1 == 3]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("support_error_test.cpp:"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace aglow
