// Profiles: bins, sums of several runs, files; ranges and parameters that are chosen from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "quant/profile_file.h"
#include "quant/schema.h"
#include "support/rng.h"
#include "unit/quant_observed.h"

namespace aglow::quant {

namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

std::vector<float> normal(uint64_t seed, size_t count, double scale = 1) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += rng.real(0, 1);
    value = static_cast<float>((sum - 6) * scale);
  }
  return values;
}

Tensor tensorOf(const std::vector<float>& values, Shape shape) {
  return Tensor::of(Type(ElemKind::Float32, std::move(shape)), values);
}

ValueProfile profileOf(const std::vector<float>& values) {
  return observedIn({tensorOf(values, {std::ssize(values)})}, -1).value;
}

Calibration calibration(std::string_view text) {
  auto parsed = Calibration::parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.error().text();
  return *parsed;
}

const Schema& schema(std::string_view name) { return **findSchema(name); }

}  // namespace

TEST(QuantBins, HoldTheirValues) {
  Rng rng(7);
  for (int i = 0; i < 10000; ++i) {
    const auto value = static_cast<float>((rng.real(0, 1) < 0.5 ? -1 : 1) * std::exp2(rng.real(-39, 23)));
    const int bin = Bins::of(value);
    ASSERT_LE(Bins::low(bin), value);
    ASSERT_GE(Bins::high(bin), value);
    ASSERT_LE(Bins::high(bin) - Bins::low(bin), std::abs(value) / 31);
  }
  EXPECT_EQ(Bins::of(0.0f), Bins::kZero);
  EXPECT_EQ(Bins::of(-0.0f), Bins::kZero);
  EXPECT_EQ(Bins::of(1e-30f), Bins::kZero + 1);
  EXPECT_EQ(Bins::of(-1e-30f), Bins::kZero - 1);
  EXPECT_EQ(Bins::of(-3e38f), 0);
  EXPECT_EQ(Bins::of(3e38f), Bins::kCount - 1);
  EXPECT_EQ(Bins::of(std::nanf("")), Bins::kCount);
  EXPECT_EQ(Bins::of(-HUGE_VALF), Bins::kCount);
}

TEST(QuantProfile, RunsAddUpInAnyOrder) {
  const std::vector<float> some = normal(1, 1003), others = normal(2, 517, 3);
  std::vector<float> all = others;
  all.insert(all.end(), some.begin(), some.end());
  ValueProfile first = profileOf(some), second = profileOf(others);
  ValueProfile sum = first, reversed = second;
  sum.add(second);
  reversed.add(first);
  EXPECT_EQ(sum, reversed);
  EXPECT_EQ(sum, profileOf(all));
  EXPECT_EQ(sum.elements, 1520);
}

TEST(QuantProfile, ChannelsAddUpInAnyOrder) {
  const std::vector<float> some = normal(1, 2 * 3 * 40), others = normal(2, 2 * 3 * 40, 3);
  for (const int64_t inner : {1, 40}) {
    const Shape shape{80 / inner, 3, inner};
    const Observed one = observedIn({tensorOf(some, shape), tensorOf(others, shape)}, 1);
    const Observed other = observedIn({tensorOf(others, shape), tensorOf(some, shape)}, 1);
    EXPECT_EQ(one.channels, other.channels);
    EXPECT_EQ(one.value, other.value);
    ASSERT_EQ(one.channels.size(), 3u);
    double sum = 0, squares = 0;
    float least = 0;
    for (const auto* values : {&some, &others})
      for (size_t i = 0; i < values->size(); ++i) {
        if (static_cast<int64_t>(i) / inner % 3 != 1) continue;
        const float x = (*values)[i];
        sum += static_cast<double>(x);
        squares += static_cast<double>(x) * static_cast<double>(x);
        least = std::min(least, x);
      }
    EXPECT_EQ(one.channels.min[1], least);
    EXPECT_NEAR(one.channels.meanOf(1), sum / 160, 1e-8);
    EXPECT_NEAR(one.channels.squareOf(1), squares / 160, 1e-8);
    // Runs that are read back apart add up to the same.
    Observed apart = observedIn({tensorOf(some, shape)}, 1);
    const Observed more = observedIn({tensorOf(others, shape)}, 1);
    apart.value.add(more.value);
    apart.channels.add(more.channels);
    EXPECT_EQ(apart.value, one.value);
    EXPECT_EQ(apart.channels, one.channels);
    ValueProfile alone = profileOf(some);
    alone.add(profileOf(others));
    EXPECT_EQ(one.value, alone);
  }
  const Observed odd = observedIn({tensorOf({1, std::nanf(""), 2, HUGE_VALF, -4, -HUGE_VALF}, {3, 2})}, 1);
  EXPECT_THAT(odd.channels.min, ElementsAre(-4, 0));
  EXPECT_THAT(odd.channels.max, ElementsAre(2, 0));
  EXPECT_NEAR(odd.channels.mean[0], -1.0 / 3, 1e-9);
  EXPECT_EQ(odd.channels.mean[1], 0);
  EXPECT_EQ(odd.value.notFinite, 3);
  EXPECT_EQ(odd.value.min, -4);
}

TEST(QuantProfile, CountsWhatIsNotFiniteApart) {
  const ValueProfile profile = profileOf({1, std::nanf(""), -2, HUGE_VALF, -HUGE_VALF, 0});
  EXPECT_EQ(profile.notFinite, 3);
  EXPECT_EQ(profile.elements, 3);
  EXPECT_EQ(profile.min, -2);
  EXPECT_EQ(profile.max, 1);
}

TEST(QuantProfile, OfAnotherModelIsNotAdded) {
  Profile one{.model = 1, .samples = 1, .values = {}}, other{.model = 2, .samples = 1, .values = {}};
  const Status added = one.add(other);
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.error().message, HasSubstr("of different models"));
  Profile none;
  ASSERT_TRUE(none.add(other).ok());
  EXPECT_EQ(none, other);
}

TEST(QuantProfile, ReadsBackAsWritten) {
  Profile profile{.model = 0x0123456789abcdef, .samples = 2, .values = {}};
  profile.values["%conv"] = profileOf(normal(3, 100));
  profile.values["%never \"seen\""] = {};
  profile.values["@x"] = profileOf({0, 0.1f, std::nanf("")});
  const auto again = parseProfile(profileText(profile));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(*again, profile);
}

TEST(QuantProfile, RefusesOtherFiles) {
  Profile profile{.model = 1, .samples = 1, .values = {}};
  profile.values["%conv"] = profileOf({1, 2});
  const std::string text = profileText(profile);
  const auto fault = [](const std::string& bad) {
    const auto parsed = parseProfile(bad);
    return parsed.ok() ? std::string("none") : parsed.error().text();
  };
  const auto with = [&](std::string_view old, std::string_view other) {
    std::string changed = text;
    changed.replace(changed.find(old), old.size(), other);
    return fault(changed);
  };
  for (size_t length = 0; length + 2 < text.size(); length += 7)
    EXPECT_THAT(fault(text.substr(0, length)), HasSubstr("it is not JSON, or ends too early")) << length;
  EXPECT_THAT(fault("[]"), HasSubstr("expected '\"format\": \"aglow profile\"'"));
  EXPECT_THAT(with("\"version\": 2", "\"version\": 3"), HasSubstr("has version 3; expected version 2"));
  EXPECT_THAT(with("0000000000000001", "1"), HasSubstr("16 hexadecimal digits"));
  EXPECT_THAT(with("\"min\": 1", "\"min\": 3"), HasSubstr("value '%conv': this is no profile: min 3 is above max 2"));
  EXPECT_THAT(with("\"min\": 1", "\"least\": 1"), HasSubstr("expected a number 'min'"));
  EXPECT_THAT(with("\"counts\": {\"", "\"counts\": {\"9"), HasSubstr("expected counts of bins from 0 to 4096"));
  EXPECT_THAT(with(": [1]", ": [-1]"), HasSubstr("integers from 0 on"));
}

TEST(QuantCalibration, ChoosesRanges) {
  std::vector<float> values = normal(5, 100000);
  values.push_back(100);  // alone
  const ValueProfile profile = profileOf(values);
  const Range all = calibration("min-max").choose(profile, 256);
  EXPECT_EQ(all.high, 100);
  EXPECT_EQ(all.low, profile.min);
  const Range most = calibration("percentile").choose(profile, 256);
  EXPECT_GT(most.high, 3);
  EXPECT_LT(most.high, 5.5);
  const Range fewer = calibration("percentile=99").choose(profile, 256);
  EXPECT_NEAR(fewer.high, 2.576, 0.1);  // of the normal distribution
  EXPECT_NEAR(fewer.low, -2.576, 0.1);
  const Range squares = calibration("mse").choose(profile, 256);
  EXPECT_LT(squares.high, 100);
  EXPECT_GT(squares.high, 3);
  const Range distribution = calibration("kl").choose(profile, 256);
  EXPECT_LT(distribution.high, 30);
  EXPECT_GT(distribution.high, 3);
}

TEST(QuantCalibration, IsSafeForLittle) {
  for (const CalibrationRow& row : calibrations())
    for (const std::vector<float>& values :
         std::vector<std::vector<float>>{{}, {0, 0, 0}, {5}, {-3, -3}, {1e-38f}, {3e38f, -3e38f}, {0, 1}}) {
      const Range range = calibration(row.name).choose(profileOf(values), 256);
      for (const Schema& one : schemas()) {
        const Parameters chosen = parametersFor(range, one);
        EXPECT_TRUE(std::isnormal(chosen.scale)) << row.name << " " << one.name;
        if (one.symmetric) EXPECT_EQ(chosen.offset, 0);
      }
    }
}

TEST(QuantCalibration, RefusesOtherWords) {
  const auto fault = [](std::string_view text) { return Calibration::parse(text).error().text(); };
  EXPECT_THAT(fault("persentile"), HasSubstr("did you mean 'percentile'?"));
  EXPECT_THAT(fault("x"), HasSubstr("there are: min-max, percentile, mse, kl"));
  EXPECT_THAT(fault("mse=3"), HasSubstr("takes no parameter"));
  EXPECT_THAT(fault("percentile=101"), HasSubstr("above 50 and up to 100, got '101'"));
  EXPECT_THAT(fault("percentile=9x"), HasSubstr("got '9x'"));
  EXPECT_THAT(findSchema("symetric").error().text(), HasSubstr("did you mean 'symmetric'?"));
}

TEST(QuantSchema, CoversTheRangeAndZero) {
  const Parameters asymmetric = parametersFor({-1, 3}, schema("asymmetric"));
  EXPECT_EQ(asymmetric, (Parameters{ElemKind::UInt8, 4.0f / 255, 64}));
  // Zero is covered although the range begins above it.
  EXPECT_EQ(parametersFor({1, 2.55}, schema("asymmetric")), (Parameters{ElemKind::UInt8, 0.01f, 0}));
  EXPECT_EQ(parametersFor({-2.54, 1}, schema("symmetric")), (Parameters{ElemKind::Int8, 0.02f, 0}));
  EXPECT_EQ(parametersFor({0, 2.55}, schema("symmetric-uint8")), (Parameters{ElemKind::UInt8, 0.01f, 0}));
  EXPECT_EQ(parametersFor({-1.27, 1}, schema("symmetric-uint8")), (Parameters{ElemKind::Int8, 0.01f, 0}));
  EXPECT_EQ(parametersFor({-1, 1}, schema("power-of-two")), (Parameters{ElemKind::Int8, 1.0f / 64, 0}));
  EXPECT_EQ(parametersFor({0, 0}, schema("asymmetric")), (Parameters{ElemKind::UInt8, 1, 0}));
}

TEST(QuantSchema, WeightsHaveAScaleForEachChannel) {
  const Tensor weights = Tensor::of(Type(ElemKind::Float32, {3, 2}), std::vector<float>{1.27f, -0.5f, 0, 0, -254, 2});
  const Weights rows = quantizeWeights(weights, 0, schema("asymmetric"));
  EXPECT_THAT(rows.scales, ElementsAre(FloatEq(0.01f), 1, 2));
  EXPECT_THAT(rows.integers.toInts(), ElementsAre(127, -50, 0, 0, -127, 1));
  EXPECT_EQ(rows.integers.type().text(), "i8[3,2]");
  const Weights columns = quantizeWeights(weights, 1, schema("power-of-two"));
  EXPECT_THAT(columns.scales, ElementsAre(2, 1.0f / 32));
  const std::vector<double> least = {0.1, 0.5, 1};
  EXPECT_THAT(quantizeWeights(weights, 0, schema("symmetric"), least).scales, ElementsAre(FloatEq(0.1f), 0.5f, 2));
  const Tensor bias = Tensor::of(Type(ElemKind::Float32, {3}), std::vector<float>{1, -2.6f, 1e20f});
  EXPECT_THAT(quantizeBias(bias, std::vector<float>{0.5f, 1, 1}).toInts(), ElementsAre(2, -3, INT32_MAX));
}

}  // namespace aglow::quant
