// Initializers: their bounds and variances, that a seed decides, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "grad/initializers.h"

namespace aglow {
namespace {

using ::testing::HasSubstr;

const Type kFilter(ElemKind::Float32, Shape{32, 16, 3, 3});

std::vector<double> drawn(const Type& type, const Initializer& how, std::string_view name = "w", uint64_t seed = 1) {
  const Result<Tensor> tensor = initialTensor(type, how, name, seed);
  EXPECT_TRUE(tensor.ok()) << tensor.error().text();
  return tensor->doubles();
}

double variance(const std::vector<double>& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return squares / static_cast<double>(values.size());
}

TEST(Initializers, HaveTheVariancesThatTheirNamesPromise) {
  const std::vector<double> even = drawn(kFilter, {.name = "xavier"});
  const double bound = std::sqrt(6. / (9 * (32 + 16)));
  for (const double v : even) EXPECT_LT(std::abs(v), bound);
  EXPECT_NEAR(variance(even), bound * bound / 3, 0.05 * bound * bound / 3);
  EXPECT_NEAR(variance(drawn(kFilter, {.name = "he", .settings = {{"gain", 2}}})), 4 * 2. / (16 * 9), 0.005);
  EXPECT_NEAR(variance(drawn(kFilter, {.name = "normal", .settings = {{"deviation", 3}}})), 9, 0.5);
  for (const double v : drawn(kFilter, {.name = "constant", .settings = {{"value", 0.5}}})) EXPECT_EQ(v, 0.5);
  for (const double v : drawn(kFilter, {.name = "zero"})) EXPECT_EQ(v, 0);
}

TEST(Initializers, OrthogonalRowsOrColumns) {
  for (const Shape& shape : {Shape{6, 20}, Shape{20, 6}, Shape{4, 2, 3}}) {
    const int64_t rows = shape[0], columns = shape.elements() / rows, count = std::min(rows, columns);
    const std::vector<double> w = drawn(Type(ElemKind::Float64, shape), {.name = "orthogonal"});
    const auto at = [&](int64_t vector, int64_t i) {
      return w[static_cast<size_t>(rows <= columns ? vector * columns + i : i * columns + vector)];
    };
    for (int64_t a = 0; a < count; ++a)
      for (int64_t b = 0; b < count; ++b) {
        double product = 0;
        for (int64_t i = 0; i < std::max(rows, columns); ++i) product += at(a, i) * at(b, i);
        EXPECT_NEAR(product, a == b ? 1 : 0, 1e-12);
      }
  }
}

TEST(Initializers, SeedAndNameDecide) {
  EXPECT_EQ(drawn(kFilter, {.name = "he"}), drawn(kFilter, {.name = "he"}));
  EXPECT_NE(drawn(kFilter, {.name = "he"}), drawn(kFilter, {.name = "he"}, "w", 2));
  EXPECT_NE(drawn(kFilter, {.name = "he"}), drawn(kFilter, {.name = "he"}, "v", 1));
}

TEST(Initializers, KnowWhereInputsAre) {
  const Type matrix(ElemKind::Float64, Shape{400, 25});
  EXPECT_NEAR(variance(drawn(matrix, {.name = "he"})), 2. / 25, 0.005);
  EXPECT_NEAR(variance(drawn(matrix, {.name = "he", .inputsFirst = true})), 2. / 400, 0.0005);
}

TEST(Initializers, AreWrittenAsTexts) {
  const auto parsed = [](const std::string& text) { return *parseInitializer(text); };
  EXPECT_EQ(parsed("orthogonal").name, "orthogonal");
  EXPECT_EQ(parsed("he:gain=0.5").settings, (GivenSettings{{"gain", 0.5}}));
  EXPECT_EQ(parsed("folder/w.npy").name, "file");
  EXPECT_EQ(parsed("folder/w.npy").path, "folder/w.npy");
  const auto fault = [](const std::string& text) {
    const auto how = parseInitializer(text);
    return how.ok() ? std::string() : how.error().text();
  };
  EXPECT_THAT(fault("xavir"), HasSubstr("did you mean 'xavier'?"));
  EXPECT_THAT(fault("he:gian=1"), HasSubstr("did you mean 'gain'?"));
  for (const char* text : {"he:", "he:gain", "he:gain=", "he:gain=x", "he:gain=1e999", "he:gain=1,", "he:gain=nan"})
    EXPECT_THAT(fault(text), HasSubstr("expected SETTING=NUMBER")) << text;
  EXPECT_NE(fault(""), "");
}

TEST(Initializers, SayWhatDoesNotFit) {
  const auto fault = [](const Type& type, const Initializer& how) {
    const Result<Tensor> tensor = initialTensor(type, how, "w", 1);
    return tensor.ok() ? std::string() : tensor.error().text();
  };
  EXPECT_THAT(fault(kFilter, {.name = "xavir"}), HasSubstr("xavier"));
  EXPECT_THAT(fault(kFilter, {.name = "he", .settings = {{"gian", 1}}}), HasSubstr("gain"));
  EXPECT_THAT(fault(Type(ElemKind::Float32, Shape{3}), {.name = "he"}), HasSubstr("[outputs, inputs, ...]"));
  EXPECT_THAT(fault(Type(ElemKind::Int32, Shape{3}), {.name = "zero"}), HasSubstr("floats"));
  EXPECT_NE(fault(kFilter, {.name = "file", .path = "/does/not/exist.npy"}), "");
}

}  // namespace
}  // namespace aglow
