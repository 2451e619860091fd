// Tuning without a device: what is asked, measured and kept.
#include "backends/device/tuner.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "codegen/clike/tile_plan.h"
#include "graph/builder.h"
#include "inst/irgen.h"
#include "support/stop.h"

namespace aglow {

namespace {

using device::Tuner;

constexpr codegen::DeviceShape kLarge{
    .sharesLocal = true, .groupItems = 1024, .localBytes = 48 << 10, .computeUnits = 132};

class Tuning : public ::testing::Test {
protected:
  Tuning() {
    Builder b(*module_.addFunction("f"));
    const Value x = b.input("x", Type(ElemKind::Float32, Shape{200, 300}));
    b.output("y", b.relu(b.matMul(x, b.input("w", Type(ElemKind::Float32, Shape{300, 100})))));
    program_ = *generate(b.function());
    std::filesystem::remove_all(folder_);
  }
  ~Tuning() override { std::filesystem::remove_all(folder_); }

  // The way that the kernels are written in is the number `quickest` of those that are asked for; all else takes
  // longer, and what is among `refused` does not run.
  Tuner tuner(size_t quickest, std::string identity = "device", double seconds = 60) {
    const device::TuneOptions options{.seconds = seconds, .tell = [this](const std::string& line) { told_ = line; }};
    return {kLarge, folder_, std::move(identity), options, [=, this](Program program, const codegen::Ways& ways) {
              EXPECT_EQ(program.instrs.size(), 1u);
              ++measured_;
              const size_t way = ways.choose(question_, kNames);
              if (refused_.contains(way)) return Result<double>(Error{.code = fault_, .message = "no"});
              return Result<double>(way == quickest ? 1.0 : 2.0 + static_cast<double>(way));
            }};
  }
  Status tune(Tuner& tuner) const {
    for (const Instr& instr : program_.instrs)
      if (instr.computes()) AGLOW_OK(tuner.tune(program_, instr));
    return {};
  }
  // What tiles are taken.
  codegen::GroupTile tile(const codegen::Ways* ways) const {
    codegen::DeviceShape shape = kLarge;
    shape.ways = ways;
    return chooseTile(sizes_, shape, true);
  }

  const codegen::ProductSizes sizes_{.m = 200, .n = 100, .k = 300};
  const std::string question_ = question(sizes_, "shared tiles in parts");
  const std::vector<std::string> kNames = std::vector<std::string>(20);
  const std::string folder_ = testing::TempDir() + "tuning";
  Module module_;
  Program program_;
  int measured_ = 0;
  std::string told_;
  std::set<size_t> refused_;
  Code fault_ = Code::TooLarge;
};

TEST_F(Tuning, TakesTheQuickestAndKeepsIt) {
  Tuner first = tuner(3);
  EXPECT_EQ(tile(&first).items(), tile(nullptr).items());
  ASSERT_TRUE(tune(first).ok());
  EXPECT_EQ(measured_, 8);  // until four in a row gain nothing
  EXPECT_THAT(told_, testing::AllOf(testing::StartsWith(question_), testing::HasSubstr("measured 8 of ")));
  const codegen::GroupTile quickest = tile(&first);
  const auto same = [](const codegen::GroupTile& a, const codegen::GroupTile& b) {
    return a.rows == b.rows && a.columns == b.columns && a.depth == b.depth && a.ownRows == b.ownRows &&
           a.parts == b.parts;
  };
  EXPECT_FALSE(same(quickest, tile(nullptr)));
  // Known in this process, and in the next one; another device has its own.
  ASSERT_TRUE(tune(first).ok());
  Tuner second = tuner(0);
  ASSERT_TRUE(tune(second).ok());
  EXPECT_EQ(measured_, 8);
  EXPECT_TRUE(same(tile(&second), quickest));
  Tuner other = tuner(0, "another device");
  ASSERT_TRUE(tune(other).ok());
  EXPECT_EQ(measured_, 8 + 5);
  EXPECT_TRUE(same(tile(&other), tile(nullptr)));
}

// Without time the model decides; the next one who has some measures.
TEST_F(Tuning, EndsWhenTimeIsUp) {
  Tuner hasty = tuner(3, "device", 1e-12);
  ASSERT_TRUE(tune(hasty).ok());
  EXPECT_EQ(measured_, 0);
  EXPECT_EQ(tile(&hasty).items(), tile(nullptr).items());
  EXPECT_THAT(told_, testing::HasSubstr("no time for more"));
  Tuner patient = tuner(3);
  ASSERT_TRUE(tune(patient).ok());
  EXPECT_EQ(measured_, 8);
}

TEST(Ways, AreAskedForWhatIsNearlyAsGood) {
  class Last final : public codegen::Ways {
    size_t choose(const std::string&, std::span<const std::string> ways) const override { return ways.size() - 1; }
  };
  const std::vector<std::pair<double, int>> found{{5, 50}, {1, 10}, {1.9, 19}, {2.1, 21}};
  const auto name = [](int way) { return std::to_string(way); };
  EXPECT_EQ(codegen::cheapestOr(nullptr, "which", found, name), 10);
  const Last last;
  EXPECT_EQ(codegen::cheapestOr(&last, "which", found, name), 19);
}

TEST_F(Tuning, LeavesOutWhatDoesNotRun) {
  refused_ = {0, 1};
  Tuner some = tuner(0);
  ASSERT_TRUE(tune(some).ok());
  EXPECT_EQ(some.choose(question_, std::vector<std::string>{"a", "b"}), 0u);  // none of the ways that are known
  fault_ = Code::Device;
  Tuner lost = tuner(0, "lost");
  const Status failed = tune(lost);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Code::Device);
}

// Who comes next measures it.
TEST_F(Tuning, EndsWhereItIsAskedToStop) {
  Tuner stopped = tuner(3);
  {
    const StopScope scope([] { return true; });
    const Status ended = tune(stopped);
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().code, Code::Cancelled);
    EXPECT_EQ(measured_, 1);
  }
  ASSERT_TRUE(tune(stopped).ok());
  EXPECT_EQ(measured_, 1 + 8);
}

}  // namespace

}  // namespace aglow
