// What bundles are made of: names for C, and the block of constants.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cpu/bundle/bundle.h"
#include "backends/cpu/bundle/c_names.h"
#include "inst/text.h"
#include "support/block_hash.h"

namespace aglow::codegen {
namespace {

TEST(CodegenNames, BecomeIdentifiers) {
  EXPECT_EQ(cIdentifier("resnet50"), "resnet50");
  EXPECT_EQ(cIdentifier("a/b:0"), "a_b_0");
  EXPECT_EQ(cIdentifier("3d-net"), "m_3d_net");
  EXPECT_EQ(cIdentifier("_x"), "m_x");
  EXPECT_EQ(cIdentifier(""), "m_");
  EXPECT_EQ(cIdentifier("\xff\n"), "m__");
  for (const char* word : {"while", "abs", "xor", "exp", "main", "namespace", "new", "remainder", "requires"})
    EXPECT_EQ(cIdentifier(word), std::string(word) + "_");
}

TEST(CodegenNames, OfBundlesAreNobodyElses) {
  for (const char* word : {"resnet50", "clip", "run", "load", "entries", "model_f32", "kernel_x", "aglowing"})
    EXPECT_EQ(bundleName(word), word);
  for (const char* word : {"main", "malloc", "tolower", "vsnprintf", "sinf", "size_t", "linux", "NULL", "add_i32",
                           "i64_of", "widen", "HALVES", "load_f64", "kernel_0", "MULADD_f32"}) {
    EXPECT_EQ(bundleName(word), std::string(word) + "_");
    EXPECT_FALSE(isFreeName(word));
  }
  // Their macros begin as WIDE_MIN, F64_ENTRY and BIG_ENDIAN do.
  for (const char* word : {"wide", "Wide", "big", "f64", "step"}) EXPECT_EQ(bundleName(word), std::string(word) + "_");
  for (const char* word : {"aglow", "Aglow_x", "aglow_run", "AGLOW_STATE", "cl", "CL_TRUE", "cl_mem", "clFinish"})
    EXPECT_EQ(bundleName(word), std::string("m_") + word);
  EXPECT_EQ(bundleName("aglow_" + std::string(90, 'a')).size(), 64u);
  for (const std::string& name :
       {bundleName("main"), bundleName("wide"), bundleName("cl_mem"), bundleName(std::string(90, 'a'))})
    EXPECT_EQ(bundleName(name), name);
  EXPECT_EQ(bundleFunctionNames("add", {"i32", "u8"}), (std::vector<std::string>{"add_i32_2", "add_u8"}));
}

TEST(CodegenNames, LongOnesStayApart) {
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(cIdentifier(text).size(), 64u);
  EXPECT_NE(cIdentifier(text), cIdentifier(text + "b"));
}

TEST(CodegenNames, AreNumberedWhereTaken) {
  std::set<std::string> taken;
  for (const char* name : {"x", "x_2", "x_3"}) EXPECT_EQ(uniqueName("x", taken, kTensorMacros), name);
}

TEST(CodegenNames, StayClearOfTheMacrosOfOthers) {
  std::set<std::string> taken = {"STATUS"};
  EXPECT_EQ(uniqueName("MASK", taken, kTensorMacros), "MASK");
  EXPECT_EQ(uniqueName("MASK_OFFSET", taken, kTensorMacros), "MASK_OFFSET_2");
  EXPECT_EQ(uniqueName("X_BYTES", taken, kTensorMacros), "X_BYTES");
  EXPECT_EQ(uniqueName("X", taken, kTensorMacros), "X_2");
  EXPECT_EQ(uniqueName("STATUS", taken, kTensorMacros), "STATUS_2");
}

TEST(CodegenNames, CannotEndAComment) {
  for (const char* name : {"*/", "a*/b", "/*", "?\?/", "\xff*/\n"}) {
    const std::string text = commentText(name);
    EXPECT_EQ(text.find("*/"), std::string::npos) << text;
    EXPECT_EQ(text.find("/*"), std::string::npos) << text;
    EXPECT_EQ(text.find("?\?/"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_EQ(commentText("image"), "image");
}

Tensor floats(const std::vector<double>& values) {
  return Tensor::of(Type(ElemKind::Float32, Shape{static_cast<int64_t>(values.size())}), values);
}

TEST(CodegenConstants, EqualBytesStandOnce) {
  ConstantPool pool;
  EXPECT_EQ(pool.bytes(), 64);
  const int64_t one = pool.place(floats({1, 2, 3}));
  const int64_t two = pool.place(floats({1, 2, 4}));
  EXPECT_EQ(one, 0);
  EXPECT_EQ(two, 64);
  EXPECT_EQ(pool.place(floats({1, 2, 3})), one);
  EXPECT_EQ(pool.bytes(), 128);
}

TEST(CodegenConstants, HashIsThatOfTheBlock) {
  ConstantPool pool;
  pool.place(floats({1, 2, 3}));
  pool.place(floats(std::vector<double>(33, 7)));
  std::vector<std::byte> block;
  for (const auto piece : pool.pieces()) block.insert(block.end(), piece.begin(), piece.end());
  ASSERT_EQ(static_cast<int64_t>(block.size()), pool.bytes());
  const auto hash = [&] {
    LineHash lines;
    lines.add(block.data(), pool.bytes() / LineHash::kLine);
    return lines.value();
  };
  EXPECT_EQ(pool.hash(), hash());
  for (const size_t at : {size_t{0}, size_t{70}, block.size() - 1}) {
    block[at] ^= std::byte{1};
    EXPECT_NE(pool.hash(), hash());
    block[at] ^= std::byte{1};
  }
}

TEST(CodegenBundle, HeaderNamesInputsThatHaveNoSay) {
  const auto program = parseProgram(R"(declare {
  %x = placeholder f32[4]
  %y = placeholder f32[4]
}
program @main(@in %x, @out %y) arena 0 {
  copy @out %y, @in %x
}
)");
  ASSERT_TRUE(program.ok()) << program.error().text();
  const Type type(ElemKind::Float32, Shape{4});
  const auto port = [&](const char* name) {
    return Port{.kind = Port::Kind::Tensor, .name = name, .placeholder = name, .type = type, .items = {}};
  };
  Bundle bundle;
  bundle.name = "m";
  ASSERT_TRUE(bundle.add("m", *program, {.inputs = {port("gone"), port("x")}, .outputs = {port("y")}}).ok());
  ASSERT_EQ(bundle.entries.front().inputs.size(), 1u);
  EXPECT_EQ(bundle.entries.front().unused, std::vector<std::string>{"gone"});
  EXPECT_EQ(bundle.entries.front().outputs.front().offset, 64);
  EXPECT_NE(bundleHeader(bundle).find("gone"), std::string::npos);
}

TEST(CodegenBundle, EntriesShareOneState) {
  auto programs = parsePrograms(R"(declare {
  %x = placeholder f32[4]
  %count = state f32[4] = [1, 2, 3, 4]
  %steps = splat i64[1] = 0
  %y = placeholder f32[4]
}
program @add(@in %x, @out %y) arena 0 {
  Add @inout %count, @in %count, @in %x
  copy @out %y, @in %count
}
program @reset() arena 0 {
  Sub @inout %count, @in %count, @in %count
  Sub @inout %steps, @in %steps, @in %steps
}
)");
  ASSERT_TRUE(programs.ok()) << programs.error().text();
  Bundle bundle;
  bundle.name = "m";
  EXPECT_EQ(bundleFunctionNames("m", {"add", "reset"}), (std::vector<std::string>{"m_add", "m_reset"}));
  ASSERT_TRUE(bundle.add("m_add", (*programs)[0], {}).ok());
  ASSERT_TRUE(bundle.add("m_reset", (*programs)[1], {}).ok());
  ASSERT_EQ(bundle.states.size(), 2u);
  EXPECT_EQ(bundle.stateBytes, 128);
  EXPECT_EQ(bundle.entries[0].stateOffsets, std::vector<int64_t>{0});
  EXPECT_EQ(bundle.entries[1].stateOffsets, (std::vector<int64_t>{0, 64}));
  // Zeros need no bytes among the weights.
  EXPECT_EQ(bundle.states[0].initial, 0);
  EXPECT_EQ(bundle.states[1].initial, BundleState::kZeros);
  const std::string header = bundleHeader(bundle);
  for (const char* line :
       {"#define M_STATE_BYTES 128", "#define M_STATE_STEPS_OFFSET 64",
        "int m_state_init(const uint8_t *constants, uint8_t *state);",
        "int m_reset(const uint8_t *constants, uint8_t *mutableMem, uint8_t *activations, uint8_t *state);"})
    EXPECT_NE(header.find(line), std::string::npos) << line << "\n" << header;
  // The same name for another type, as another batch size might make it.
  Program other = (*programs)[1];
  for (Region& region : other.regions)
    if (region.name == "count") region.type = Type(ElemKind::Float32, Shape{2, 2});
  for (Region& region : other.regions)
    if (auto* state = region.as<StateInit>()) state->initial = Tensor(region.type);
  const Status added = bundle.add("m_other", other, {});
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().code, Code::UnsupportedFeature);
}

TEST(CodegenBundle, NamesOfFunctionsClashWithNothing) {
  EXPECT_EQ(bundleFunctionNames("m", {"only"}), std::vector<std::string>{"m"});
  EXPECT_EQ(bundleFunctionNames("m", {"check", "state", "add", "Add", "add_parallel"}),
            (std::vector<std::string>{"m_check_2", "m_state_2", "m_add", "m_Add_2", "m_add_parallel_2"}));
}

}  // namespace
}  // namespace aglow::codegen
