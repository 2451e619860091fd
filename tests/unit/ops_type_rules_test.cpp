// Type rules: what each gives, and every way in which a use can break one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <ostream>

#include "ops/all_ops.h"
#include "ops/op.h"

namespace aglow {
namespace {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;
using enum ElemKind;

struct Given {
  std::string_view name;
  AttrValue value;
};

// A use of an operator. `expect` holds the results' types in text form, or a part of the error's message.
struct Use {
  std::string_view op;
  std::vector<Type> in;
  std::vector<Given> attrs;
  std::string expect;
  Code code = Code::BadNode;
};

std::ostream& operator<<(std::ostream& out, const Use& use) { return out << use.op << " -> " << use.expect; }

Type f32(Shape shape) { return {Float32, std::move(shape)}; }
Type i64(Shape shape) { return {Int64, std::move(shape)}; }
Type bools(Shape shape) { return {Bool, std::move(shape)}; }
Type q8(Shape shape) { return *Type::quantized(QInt8, std::move(shape), {-1, {0.5F}, {3}}); }
// Scales 1, 2, 3, ... along an axis.
Type q8(Shape shape, int axis) {
  QuantParams params{.axis = axis};
  for (int64_t i = 0; i < shape[axis]; ++i) {
    params.scales.push_back(static_cast<float>(i + 1));
    params.offsets.push_back(static_cast<int32_t>(i));
  }
  return *Type::quantized(QInt8, std::move(shape), std::move(params));
}

Result<std::vector<Type>> infer(const Use& use) {
  Attrs attrs(opDef(*findOp(use.op)));
  for (const Given& given : use.attrs) attrs.set(given.name, given.value);
  std::vector<const Type*> in;
  for (const Type& type : use.in) in.push_back(&type);
  return inferTypes(attrs, in);
}

class Accepted : public testing::TestWithParam<Use> {};
class Refused : public testing::TestWithParam<Use> {};

TEST_P(Accepted, GivesTypes) {
  const auto types = infer(GetParam());
  ASSERT_TRUE(types.ok()) << types.error().text();
  std::string text;
  for (const Type& type : *types) text += (text.empty() ? "" : " ") + type.text();
  EXPECT_EQ(text, GetParam().expect);
}

TEST_P(Refused, SaysWhy) {
  const auto types = infer(GetParam());
  ASSERT_FALSE(types.ok());
  EXPECT_EQ(types.error().code, GetParam().code) << types.error().text();
  EXPECT_THAT(types.error().message, testing::HasSubstr(GetParam().expect));
}

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

INSTANTIATE_TEST_SUITE_P(Elementwise, Accepted,
                         testing::Values(Use{"Add", {f32({2, 1}), f32({3})}, {}, "f32[2,3]"},
                                         Use{"Add", {f32({}), f32({})}, {}, "f32[]"},
                                         Use{"Clip", {f32({4, 1, 1}), f32({3, 1}), f32({2})}, {}, "f32[4,3,2]"},
                                         Use{"Pow", {f32({2}), i64({2})}, {}, "f32[2]"},
                                         Use{"Less", {i64({0}), i64({1})}, {}, "bool[0]"},
                                         Use{"Where", {bools({2, 1}), i64({3}), i64({})}, {}, "i64[2,3]"},
                                         Use{"Expand", {f32({1, 3})}, {{"shape", Ints{2, 4, 3}}}, "f32[2,4,3]"}));
INSTANTIATE_TEST_SUITE_P(
    Elementwise, Refused,
    testing::Values(Use{"Add", {f32({2}), f32({3})}, {}, "cannot be broadcast"},
                    Use{"Add", {f32({2}), i64({2})}, {}, "one element kind"},
                    Use{"Add", {f32({2})}, {}, "needs its operand 'b'"},
                    Use{"Add", {f32({2}), f32({2}), f32({2})}, {}, "at most 2 operands"},
                    Use{"Exp", {i64({2})}, {}, "cannot be i64[2]"},
                    Use{"Add", {f32({int64_t{1} << 40, 1}), f32({1, int64_t{1} << 40})}, {}, "more elements"},
                    Use{"Less", {f32({2}), f32({3})}, {}, "cannot be broadcast"},
                    Use{"Expand", {f32({2})}, {{"shape", Ints{3}}}, "cannot be broadcast"},
                    Use{"Expand", {f32({2, 3})}, {{"shape", Ints{3}}}, "to which f32[2,3] broadcasts, got [3]"},
                    Use{"Expand", {f32({1})}, {{"shape", Ints{-1}}}, "negative extent"}));

INSTANTIATE_TEST_SUITE_P(
    Packed, Accepted,
    testing::Values(
        Use{"PackedMatMul", {f32({2, 5, 3}), f32({2, 3, 8})}, {{"n", 9}}, "f32[2,5,9]"},
        Use{"PackedMatMul", {f32({0, 3}), f32({1, 3, 8})}, {{"n", 8}}, "f32[0,8]"},
        Use{"BlockedConv",
            {f32({2, 2, 5, 6, 4}), f32({2, 3, 2, 7, 8})},
            {{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 0}}, {"outputs", 10}, {"lanes", 4}},
            "f32[2,3,3,5,4]"},
        Use{"BlockedConv", {f32({1, 3, 5, 5}), f32({1, 3, 3, 3, 8})}, {{"outputs", 8}, {"lanes", 4}}, "f32[1,2,3,3,4]"},
        Use{"BlockedConv",
            {f32({1, 4, 1, 1, 4}), f32({2, 1, 1, 8, 8})},
            {{"outputs", 16}, {"lanes", 4}, {"group", 2}},
            "f32[1,4,1,1,4]"},
        Use{"ChannelsLastConv",
            {f32({2, 1, 5, 6, 7}), f32({10, 3, 2, 7})},
            {{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 0}}},
            "f32[2,1,3,5,10]"},
        Use{"ChannelsLastConv", {f32({1, 3, 5, 5}), f32({8, 3, 3, 3})}, {}, "f32[1,1,3,3,8]"},
        Use{"ByteConv",
            {Type(ElemKind::UInt8, Shape{1, 6, 5, 5}), Type(ElemKind::Int8, Shape{8, 3, 3, 3})},
            {{"group", 2}, {"x_offset", 128}},
            "i32[1,8,3,3]"},
        Use{"WinogradConv",
            {f32({1, 2, 5, 7, 4}), f32({36, 1, 6, 8})},
            {{"pads", Ints{1, 1, 1, 1}}, {"outputs", 3}, {"lanes", 4}},
            "f32[1,1,5,7,4]"},
        Use{"DepthwiseConv",
            {f32({1, 2, 5, 5, 4}), f32({2, 3, 3, 1, 4})},
            {{"dilations", Ints{2, 1}}},
            "f32[1,2,1,3,4]"},
        Use{"DepthwiseConv", {f32({1, 2, 5, 5, 4}), f32({2, 3, 3, 2, 4})}, {}, "f32[1,2,3,3,4]"}));
INSTANTIATE_TEST_SUITE_P(
    Packed, Refused,
    testing::Values(
        Use{"PackedMatMul", {f32({3}), f32({1, 3, 8})}, {{"n", 8}}, "'a'"},
        Use{"PackedMatMul", {f32({2, 3}), f32({3, 8})}, {{"n", 8}}, "expected 'b' to have 3 axes, got f32[3,8]"},
        Use{"PackedMatMul", {f32({2, 3}), f32({1, 3, 8})}, {{"n", 9}}, "expected shape [2,3,8] of 'b'"},
        Use{"PackedMatMul", {f32({2, 3}), f32({1, 3, 8})}, {{"n", 0}}, "expected 'n' from 1"},
        Use{"PackedMatMul", {f32({2, 3}), f32({1, 3, 0})}, {{"n", 1}}, "expected panels with columns"},
        Use{"PackedMatMul", {i64({2, 3}), f32({1, 3, 8})}, {{"n", 8}}, "cannot be i64[2,3]"},
        Use{"BlockedConv", {f32({1, 1, 5}), f32({1, 1, 1, 1, 2})}, {{"outputs", 1}, {"lanes", 1}}, "to have 5 axes"},
        Use{"BlockedConv", {f32({1, 1, 5, 5, 4}), f32({1, 1, 1, 4})}, {{"outputs", 1}, {"lanes", 4}}, "'filter'"},
        Use{"BlockedConv",
            {f32({1, 1, 5, 5, 4}), f32({1, 1, 1, 4, 8})},
            {{"outputs", 1}, {"lanes", 8}},
            "expected 4 for 'lanes'"},
        Use{"BlockedConv",
            {f32({1, 1, 5, 5, 4}), f32({1, 1, 1, 4, 4})},
            {{"outputs", 1}, {"lanes", 4}},
            "expected shape [1,1,1,4,8] of 'filter'"},
        Use{"BlockedConv",
            {f32({1, 1, 5, 5, 4}), f32({1, 1, 1, 5, 8})},
            {{"outputs", 1}, {"lanes", 4}},
            "expected 2 blocks of 5 channels in 'x'"},
        Use{"BlockedConv", {f32({1, 3, 5, 5}), f32({1, 1, 1, 4, 8})}, {{"outputs", 1}, {"lanes", 4}}, "planar 'x'"},
        Use{"BlockedConv",
            {f32({1, 2, 5, 5, 4}), f32({1, 1, 1, 4, 8})},
            {{"outputs", 8}, {"lanes", 4}, {"group", 2}},
            "whole panels of 8"},
        Use{"BlockedConv",
            {f32({1, 1, 5, 5, 4}), f32({1, 6, 1, 4, 8})},
            {{"outputs", 1}, {"lanes", 4}},
            "expected a window that fits"},
        Use{"BlockedConv", {f32({1, 1, 5, 5}), f32({1, 1, 1, 1, 8})}, {{"outputs", kHuge}, {"lanes", 4}}, "'outputs'"},
        Use{"BlockedConv", {f32({1, 1, 5, 5}), f32({1, 1, 1, 1, 8})}, {{"outputs", 1}, {"lanes", kHuge}}, "'lanes'"},
        Use{"ChannelsLastConv", {f32({1, 1, 5}), f32({1, 1, 1, 1})}, {}, "to have 5 axes"},
        Use{"ChannelsLastConv", {f32({1, 1, 5, 5, 4}), f32({1, 1, 4})}, {}, "'filter'"},
        Use{"ChannelsLastConv", {f32({1, 1, 5, 5, 4}), f32({0, 1, 1, 4})}, {}, "a filter with outputs"},
        Use{"ChannelsLastConv", {f32({1, 2, 5, 5, 4}), f32({1, 1, 1, 8})}, {}, "8 channels in one block"},
        Use{"ChannelsLastConv", {f32({1, 1, 5, 5, 4}), f32({1, 6, 1, 4})}, {}, "expected a window that fits"},
        Use{"WinogradConv",
            {f32({1, 1, 5, 5, 4}), f32({25, 1, 4, 8})},
            {{"tile", 3}, {"outputs", 1}, {"lanes", 4}},
            "expected 'tile' to be 2 or 4, got 3"},
        Use{"WinogradConv",
            {f32({1, 1, 5, 5, 4}), f32({16, 1, 4, 8})},
            {{"outputs", 1}, {"lanes", 4}},
            "expected shape [36,1,4,8] of 'filter'"},
        Use{"WinogradConv",
            {f32({1, 2, 5, 5, 4}), f32({36, 1, 4, 8})},
            {{"outputs", 1}, {"lanes", 4}},
            "expected 1 blocks of 4 channels"},
        Use{"DepthwiseConv",
            {f32({1, 2, 5, 5, 4}), f32({1, 3, 3, 1, 4})},
            {},
            "expected shape [2,3,3,1,4] of 'filter'"},
        Use{"DepthwiseConv",
            {f32({1, 2, 5, 5, 4}), f32({2, 3, 3, 3, 4})},
            {},
            "expected groups that fill blocks of 4 channels, got groups of 3"},
        Use{"DepthwiseConv", {f32({1, 2, 5, 5, 4}), f32({2, 3, 3, 0, 4})}, {}, "got groups of 0"},
        Use{"DepthwiseConv", {f32({1, 2, 5, 5, 0}), f32({2, 3, 3, 1, 0})}, {}, "expected blocks with channels"}));

INSTANTIATE_TEST_SUITE_P(
    Shape, Accepted,
    testing::Values(Use{"Cast", {f32({2})}, {{"to", Int8}}, "i8[2]"},
                    Use{"Splat", {}, {{"elem", Int64}, {"shape", Ints{2, 0}}}, "i64[2,0]"},
                    Use{"Reshape", {f32({2, 3})}, {{"shape", Ints{3, 1, 2}}}, "f32[3,1,2]"},
                    Use{"Reshape", {q8({2, 3, 4}, 2)}, {{"shape", Ints{6, 4}}}, "qi8[6,4]<axis 1: 1:0, 2:1, 3:2, 4:3>"},
                    Use{"Transpose", {q8({2, 1, 3}, 0)}, {{"perm", Ints{2, 0, 1}}}, "qi8[3,2,1]<axis 1: 1:0, 2:1>"},
                    Use{"Slice",
                        {f32({5, 4})},
                        {{"starts", Ints{4, 0}}, {"sizes", Ints{3, 2}}, {"steps", Ints{-2, 3}}},
                        "f32[3,2]"},
                    Use{"Slice",
                        {q8({5}, 0)},
                        {{"starts", Ints{4}}, {"sizes", Ints{2}}, {"steps", Ints{-3}}},
                        "qi8[2]<axis 0: 5:4, 2:1>"},
                    Use{"Slice", {f32({5})}, {{"starts", Ints{9}}, {"sizes", Ints{0}}}, "f32[0]"},
                    Use{"Concat", {f32({2, 3}), f32({2, 0}), f32({2, 1})}, {{"axis", 1}}, "f32[2,4]"},
                    Use{"Concat", {q8({2}, 0), q8({1}, 0)}, {{"axis", 0}}, "qi8[3]<axis 0: 1:0, 2:1, 1:0>"},
                    Use{"Concat", {q8({2}), q8({1})}, {{"axis", 0}}, "qi8[3]<0.5:3>"},
                    Use{"Pad", {f32({2, 3}), f32({})}, {{"before", Ints{1, 0}}, {"after", Ints{0, 4}}}, "f32[3,7]"}));
INSTANTIATE_TEST_SUITE_P(
    Shape, Refused,
    testing::Values(
        Use{"Cast", {f32({2})}, {{"to", QInt8}}, "not to be a quantized kind, got qi8"},
        Use{"Splat", {}, {{"elem", QInt8}}, "not to be a quantized kind"},
        Use{"Splat", {}, {{"shape", Ints{kHuge}}}, "more elements"},
        Use{"Reshape", {f32({2, 3})}, {{"shape", Ints{4}}}, "with 6 elements as in f32[2,3], got [4] with 4"},
        Use{"Reshape", {f32({2})}, {{"shape", Ints{-2}}}, "negative extent"},
        Use{"Reshape", {q8({2, 3}, 1)}, {{"shape", Ints{3, 2}}}, "keeps axis 1", Code::BadQuantization},
        Use{"Transpose", {f32({2, 3})}, {}, "expected 2 entries in 'perm', got []"},
        Use{"Transpose", {f32({2, 3})}, {{"perm", Ints{0, 2}}}, "an axis of [2,3], got 2"},
        Use{"Transpose", {f32({2, 3})}, {{"perm", Ints{1, 1}}}, "every axis once, got [1,1]"},
        Use{"Slice", {f32({5})}, {{"starts", Ints{0, 0}}, {"sizes", Ints{1}}}, "1 entries in 'starts'"},
        Use{"Slice", {f32({5})}, {{"starts", Ints{0}}}, "1 entries in 'sizes'"},
        Use{"Slice",
            {f32({5})},
            {{"starts", Ints{0}}, {"sizes", Ints{1}}, {"steps", Ints{1, 1}}},
            "1 entries in 'steps'"},
        Use{"Slice", {f32({5})}, {{"starts", Ints{0}}, {"sizes", Ints{-1}}}, "'sizes' to be at least 0, got -1"},
        Use{"Slice", {f32({5})}, {{"starts", Ints{0}}, {"sizes", Ints{2}}, {"steps", Ints{0}}}, "other than 0"},
        Use{"Slice",
            {f32({5})},
            {{"starts", Ints{-1}}, {"sizes", Ints{1}}},
            "inside of axis 0 of f32[5], got 1 from -1"},
        Use{"Slice", {f32({5})}, {{"starts", Ints{3}}, {"sizes", Ints{3}}}, "inside of axis 0"},
        Use{"Slice", {f32({5})}, {{"starts", Ints{1}}, {"sizes", Ints{3}}, {"steps", Ints{-1}}}, "inside of axis 0"},
        Use{"Slice",
            {f32({5})},
            {{"starts", Ints{0}}, {"sizes", Ints{kHuge}}, {"steps", Ints{kHuge}}},
            "inside of axis 0"},
        Use{"Concat", {}, {}, "needs its operand 'x'"},
        Use{"Concat", {f32({2})}, {{"axis", -1}}, "to be an axis of [2], got -1"},
        Use{"Concat", {f32({}), f32({})}, {}, "to be an axis of []"},
        Use{"Concat", {f32({2, 3}), f32({2, 4})}, {}, "agree but for axis 0"},
        Use{"Concat", {f32({2, 3}), f32({2})}, {}, "agree but for axis 0"},
        Use{"Concat", {q8({2}), q8({2}, 0)}, {}, "same parameters", Code::BadQuantization},
        Use{"Pad", {f32({2}), f32({1})}, {{"before", Ints{0}}, {"after", Ints{0}}}, "expected shape [] of 'value'"},
        Use{"Pad", {f32({2}), f32({})}, {{"after", Ints{0}}}, "1 entries in 'before'"},
        Use{"Pad", {f32({2}), f32({})}, {{"before", Ints{0}}}, "1 entries in 'after'"},
        Use{"Pad", {f32({2}), f32({})}, {{"before", Ints{-1}}, {"after", Ints{0}}}, "at least 0, got -1"},
        Use{"Pad", {f32({2}), f32({})}, {{"before", Ints{0}}, {"after", Ints{-1}}}, "at least 0, got -1"},
        Use{"Pad", {f32({2}), f32({})}, {{"before", Ints{kHuge}}, {"after", Ints{0}}}, "too large"},
        Use{"Pad", {f32({2}), f32({})}, {{"before", Ints{kHuge / 2}}, {"after", Ints{0}}}, "more elements"}));

INSTANTIATE_TEST_SUITE_P(
    Reduce, Accepted,
    testing::Values(Use{"Reduce", {f32({2, 3, 4})}, {{"axes", Ints{0, 2}}}, "f32[1,3,1]"},
                    Use{"Reduce", {f32({2, 3, 4})}, {{"axes", Ints{1}}, {"keepdims", 0}}, "f32[2,4]"},
                    Use{"Reduce", {f32({2, 3})}, {}, "f32[2,3]"},
                    Use{"Reduce", {bools({2})}, {{"kind", "max"}, {"axes", Ints{0}}}, "bool[1]"},
                    Use{"ArgReduce", {f32({2, 3})}, {{"axis", 1}}, "i64[2,1]"},
                    Use{"ArgReduce", {f32({2, 3})}, {{"keepdims", 0}}, "i64[3]"},
                    Use{"Scan", {i64({2, 3})}, {{"axis", 1}}, "i64[2,3]"},
                    Use{"TopK", {f32({2, 5})}, {{"axis", 1}, {"k", 3}}, "f32[2,3] i64[2,3]"},
                    Use{"TopK", {f32({2})}, {{"k", 0}}, "f32[0] i64[0]"}));
INSTANTIATE_TEST_SUITE_P(
    Reduce, Refused,
    testing::Values(Use{"Reduce", {f32({2})}, {{"kind", "median"}}, "expected one of sum|mean"},
                    Use{"Reduce", {f32({2})}, {{"axes", Ints{1}}}, "to be an axis of [2], got 1"},
                    Use{"Reduce", {f32({2})}, {{"axes", Ints{-1}}}, "to be an axis of [2], got -1"},
                    Use{"Reduce", {f32({2, 2})}, {{"axes", Ints{1, 0}}}, "ascending order, got [1,0]"},
                    Use{"Reduce", {f32({2, 2})}, {{"axes", Ints{1, 1}}}, "ascending order"},
                    Use{"Reduce", {bools({2})}, {{"kind", "sum"}}, "max (any) or min (all) for bool[2], got sum"},
                    Use{"ArgReduce", {f32({2})}, {{"axis", 1}}, "to be an axis"},
                    Use{"ArgReduce", {f32({2, 0})}, {{"axis", 1}}, "expected elements along axis 1, got f32[2,0]"},
                    Use{"Scan", {f32({})}, {}, "to be an axis of []"},
                    Use{"TopK", {f32({2})}, {{"axis", 2}}, "to be an axis"},
                    Use{"TopK", {f32({2})}, {{"k", 3}}, "from 0 to the extent of axis 0 of f32[2], got 3"},
                    Use{"TopK", {f32({2})}, {{"k", -1}}, "from 0 to the extent"}));

const Ints kTwo{2, 2};

INSTANTIATE_TEST_SUITE_P(
    Linear, Accepted,
    testing::Values(
        Use{"MatMul", {f32({2, 3}), f32({3, 4})}, {}, "f32[2,4]"},
        Use{"MatMul", {f32({5, 1, 2, 3}), f32({6, 3, 4})}, {}, "f32[5,6,2,4]"},
        Use{"MatMul", {f32({2, 0}), f32({0, 4})}, {}, "f32[2,4]"},
        Use{"Conv", {f32({1, 3, 8, 8}), f32({4, 3, 3, 3})}, {}, "f32[1,4,6,6]"},
        Use{"Conv",
            {f32({1, 4, 9}), f32({6, 2, 3}), f32({6})},
            {{"group", 2}, {"strides", Ints{2}}, {"pads", Ints{1, 2}}, {"dilations", Ints{2}}},
            "f32[1,6,4]"},
        Use{"Conv", {f32({0, 1, 2, 2, 2}), f32({1, 1, 2, 1, 2})}, {}, "f32[0,1,1,2,1]"},
        Use{"ConvTranspose", {f32({1, 2, 3, 3}), f32({2, 4, 3, 3}), f32({4})}, {{"strides", kTwo}}, "f32[1,4,7,7]"},
        Use{"ConvTranspose",
            {f32({1, 2, 3}), f32({2, 4, 3})},
            {{"group", 2}, {"strides", Ints{2}}, {"pads", Ints{1, 0}}, {"output_padding", Ints{1}}},
            "f32[1,8,7]"},
        Use{"Col2Im", {f32({2, 12, 20})}, {{"sizes", Ints{5, 6}}, {"kernel", kTwo}}, "f32[2,3,5,6]"},
        Use{"Col2Im",
            {f32({1, 3, 4})},
            {{"sizes", Ints{7}}, {"kernel", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{2, 0}}},
            "f32[1,1,7]"},
        Use{"MaxPool", {f32({1, 2, 5, 5})}, {{"kernel", kTwo}, {"strides", kTwo}}, "f32[1,2,2,2]"},
        Use{"MaxPool",
            {f32({1, 2, 5, 5})},
            {{"kernel", kTwo}, {"strides", kTwo}, {"sizes", Ints{3, 3}}},
            "f32[1,2,3,3]"},
        Use{"MaxPoolWithIndices",
            {f32({1, 2, 5})},
            {{"kernel", Ints{3}}, {"dilations", Ints{2}}},
            "f32[1,2,1] i64[1,2,1]"},
        Use{"AvgPool", {f32({1, 2, 5})}, {{"kernel", Ints{3}}, {"pads", Ints{1, 1}}}, "f32[1,2,5]"}));
INSTANTIATE_TEST_SUITE_P(
    Linear, Refused,
    testing::Values(
        Use{"MatMul", {f32({3}), f32({3, 4})}, {}, "at least 2 axes in 'a', got f32[3]"},
        Use{"MatMul", {f32({2, 3}), f32({3})}, {}, "at least 2 axes in 'b'"},
        Use{"MatMul", {f32({2, 3}), f32({2, 3})}, {}, "expected [..., m, k] and [..., k, n]"},
        Use{"MatMul", {f32({2, 2, 3}), f32({3, 3, 4})}, {}, "cannot be broadcast"},
        Use{"MatMul", {f32({1 << 30, 1}), f32({1, 1 << 30})}, {}, "more elements"},
        Use{"Conv", {f32({1, 3}), f32({4, 3})}, {}, "at least 3 axes in 'x'"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3, 3})}, {}, "as many axes in 'filter'"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"group", 0}}, "'group' to be at least 1, got 0"},
        Use{"Conv", {f32({1, 4, 8}), f32({3, 2, 3})}, {{"group", 2}}, "divide into 2 groups"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 2, 3})}, {}, "expected 2 channels in 'x'"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3}), f32({3})}, {}, "expected shape [4] of 'bias', got f32[3]"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 0})}, {}, "'kernel' to be at least 1"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 9})}, {}, "fits into the padded input, got a reach of 9 against 8"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"strides", Ints{0}}}, "'strides' to be at least 1"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"strides", kTwo}}, "1 entries in 'strides'"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"dilations", Ints{0}}}, "'dilations' to be at least 1"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"dilations", kTwo}}, "1 entries in 'dilations'"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"dilations", Ints{4}}}, "a reach of 9 against 8"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"pads", Ints{1}}}, "2 entries in 'pads'"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"pads", Ints{0, -1}}}, "'pads' to be at least 0"},
        Use{"Conv", {f32({1, 3, 8}), f32({4, 3, 3})}, {{"pads", Ints{kHuge, 0}}}, "a window with parts of at most"},
        Use{"Conv",
            {f32({1, 3, 8, 8, 8}), f32({4, 3, 3, 3, 3})},
            {{"pads", Ints(6, int64_t{1} << 31)}},
            "more elements"},
        Use{"ConvTranspose", {f32({1, 2, 3}), f32({3, 4, 3})}, {}, "expected 3 channels in 'x'"},
        Use{"ConvTranspose", {f32({1, 2, 3}), f32({2, 4, 3}), f32({2})}, {}, "expected shape [4] of 'bias'"},
        Use{"ConvTranspose", {f32({1, 2, 3}), f32({2, 4, 3})}, {{"group", 4}}, "divide into 4 groups"},
        Use{"ConvTranspose",
            {f32({1, 2, 3}), f32({2, 4, 3})},
            {{"output_padding", Ints{0, 0}}},
            "1 entries in 'output_padding'"},
        Use{"ConvTranspose", {f32({1, 2, 3}), f32({2, 4, 3})}, {{"output_padding", Ints{-1}}}, "at least 0, got -1"},
        Use{"ConvTranspose", {f32({1, 2, 3}), f32({2, 4, 3})}, {{"pads", Ints{4, 4}}}, "got an extent of -3"},
        Use{"ConvTranspose", {f32({1, 2, 3}), f32({2, 4, 3})}, {{"output_padding", Ints{kHuge}}}, "more than fits"},
        Use{"Col2Im",
            {f32({1, 4})},
            {{"sizes", kTwo}, {"kernel", kTwo}},
            "expected [batch, channel * kernel..., window]"},
        Use{"Col2Im", {f32({1, 4, 1})}, {}, "got f32[1,4,1] and 0"},
        Use{"Col2Im", {f32({1, 4, 1})}, {{"sizes", kTwo}, {"kernel", Ints{2}}}, "2 entries in 'kernel'"},
        Use{"Col2Im", {f32({1, 4, 1})}, {{"sizes", Ints{2, -1}}, {"kernel", kTwo}}, "negative"},
        Use{"Col2Im", {f32({1, 4, 1})}, {{"sizes", Ints{2, 1}}, {"kernel", kTwo}}, "fits into the padded input"},
        Use{"Col2Im", {f32({1, 4, 2})}, {{"sizes", kTwo}, {"kernel", kTwo}}, "expected 1 windows, and channels that"},
        Use{"Col2Im", {f32({1, 6, 1})}, {{"sizes", kTwo}, {"kernel", kTwo}}, "a multiple of 4, got f32[1,6,1]"},
        Use{"MaxPool", {f32({1, 2})}, {}, "at least 3 axes in 'x'"},
        Use{"MaxPool", {f32({1, 2, 5})}, {{"kernel", kTwo}}, "1 entries in 'kernel'"},
        Use{"MaxPool", {f32({1, 2, 5})}, {{"kernel", Ints{0}}}, "'kernel' to be at least 1"},
        Use{"MaxPool", {f32({1, 2, 5})}, {{"kernel", Ints{6}}}, "fits into the padded input"},
        Use{"MaxPool", {f32({1, 2, 5})}, {{"kernel", Ints{2}}, {"sizes", kTwo}}, "1 entries in 'sizes'"},
        Use{"MaxPool", {f32({1, 2, 5})}, {{"kernel", Ints{2}}, {"sizes", Ints{0}}}, "'sizes' to be at least 1"},
        Use{"MaxPool",
            {f32({1, 2, 4})},
            {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"sizes", Ints{3}}},
            "to start before 4"},
        Use{"MaxPoolWithIndices",
            {f32({1, 2, 4})},
            {{"kernel", Ints{2}}, {"sizes", Ints{kHuge}}, {"strides", Ints{2}}},
            "to start before 4"},
        Use{"AvgPool", {i64({1, 2, 5})}, {{"kernel", Ints{2}}}, "cannot be i64"},
        Use{"AvgPool", {f32({1, 2, 5})}, {{"kernel", Ints{2}}, {"strides", Ints{-1}}}, "'strides' to be at least 1"}));

INSTANTIATE_TEST_SUITE_P(
    Index, Accepted,
    testing::Values(Use{"Gather", {f32({2, 5, 3}), i64({4, 1})}, {{"axis", 1}}, "f32[2,4,1,3]"},
                    Use{"Gather", {f32({5}), i64({})}, {}, "f32[]"},
                    Use{"Gather", {q8({5, 2}, 1), i64({3, 1})}, {}, "qi8[3,1,2]<axis 2: 1:0, 2:1>"},
                    Use{"GatherElements", {f32({3, 2}), i64({5, 1})}, {}, "f32[5,1]"},
                    Use{"GatherND", {f32({2, 3, 4}), i64({5, 2})}, {}, "f32[5,4]"},
                    Use{"GatherND", {f32({2, 3, 4}), i64({2, 1})}, {{"batch_dims", 1}}, "f32[2,4]"},
                    Use{"Scatter", {f32({5, 2}), i64({3}), f32({3, 2})}, {{"reduction", "add"}}, "f32[5,2]"},
                    Use{"ScatterElements", {f32({3, 2}), i64({5, 1}), f32({5, 1})}, {}, "f32[3,2]"},
                    Use{"ScatterND", {f32({2, 3, 4}), i64({5, 2}), f32({5, 4})}, {}, "f32[2,3,4]"}));
INSTANTIATE_TEST_SUITE_P(
    Index, Refused,
    testing::Values(
        Use{"Gather", {f32({2}), i64({1})}, {{"axis", -1}}, "to be an axis of [2], got -1"},
        Use{"Gather", {f32({}), i64({1})}, {}, "to be an axis of []"},
        Use{"Gather", {f32({2}), f32({1})}, {}, "operand 'indices' of Gather cannot be"},
        Use{"Gather", {f32({1 << 30, 1 << 20}), i64({1 << 30, 1 << 20})}, {}, "more elements"},
        Use{"Gather", {q8({5, 2}, 0), i64({3})}, {}, "without scales of its own", Code::BadQuantization},
        Use{"GatherElements", {f32({3, 2}), i64({3, 2})}, {{"axis", 2}}, "to be an axis"},
        Use{"GatherElements", {f32({3, 2}), i64({3})}, {}, "with the axes of f32[3,2]"},
        Use{"GatherElements", {f32({3, 2}), i64({3, 3})}, {}, "inside of it but for axis 0"},
        Use{"GatherND", {f32({}), i64({1})}, {}, "at least 1 axes in 'data'"},
        Use{"GatherND", {f32({2}), i64({})}, {}, "at least 1 axes in 'indices'"},
        Use{"GatherND", {f32({2, 3}), i64({4, 3})}, {}, "1 to 2 entries along the last axis"},
        Use{"GatherND", {f32({2, 3}), i64({4, 0})}, {}, "1 to 2 entries"},
        Use{"GatherND", {f32({2, 3}), i64({4, 1})}, {{"batch_dims", 2}}, "'batch_dims' from 0 to below"},
        Use{"GatherND", {f32({2, 3}), i64({4, 1})}, {{"batch_dims", -1}}, "'batch_dims' from 0"},
        Use{"GatherND", {f32({2, 3}), i64({4, 1})}, {{"batch_dims", 1}}, "equal extents along the first 1 axes"},
        Use{"Scatter", {f32({}), i64({1}), f32({1})}, {}, "at least 1 axes in 'data'"},
        Use{"Scatter", {f32({5}), i64({1, 1}), f32({1})}, {}, "a vector of 'indices'"},
        Use{"Scatter", {f32({5, 2}), i64({3}), f32({3})}, {}, "expected shape [3,2] of 'updates', got f32[3]"},
        Use{"Scatter",
            {bools({5}), i64({1}), bools({1})},
            {{"reduction", "add"}},
            "none, max or min for bool[5], got add"},
        Use{"ScatterElements", {f32({3, 2}), i64({3, 3}), f32({3, 3})}, {}, "inside of it but for axis 0"},
        Use{"ScatterElements", {f32({3, 2}), i64({3, 2}), f32({3})}, {}, "expected shape [3,2] of 'updates'"},
        Use{"ScatterElements", {bools({3}), i64({3}), bools({3})}, {{"reduction", "mul"}}, "none, max or min"},
        Use{"ScatterND", {f32({2}), i64({1, 2}), f32({1})}, {}, "1 to 1 entries"},
        Use{"ScatterND", {f32({2, 3}), i64({1, 1}), f32({1})}, {}, "expected shape [1,3] of 'updates'"},
        Use{"ScatterND", {f32({}), i64({1}), f32({})}, {}, "at least 1 axes in 'data'"},
        Use{"ScatterND", {bools({3}), i64({1, 1}), bools({1})}, {{"reduction", "add"}}, "none, max or min"}));

INSTANTIATE_TEST_SUITE_P(
    Normalize, Accepted,
    testing::Values(
        Use{"Softmax", {f32({2, 3})}, {}, "f32[2,3]"}, Use{"LogSoftmax", {f32({2, 3})}, {{"axis", -2}}, "f32[2,3]"},
        Use{"BatchNorm", {f32({2, 3, 4}), f32({3}), f32({3}), f32({3}), f32({3})}, {}, "f32[2,3,4]"},
        Use{"LayerNorm", {f32({2, 3, 4}), f32({3, 4})}, {{"axis", 1}}, "f32[2,3,4] f32[2,1,1] f32[2,1,1]"},
        Use{"LayerNorm", {Type(Float64, {2}), Type(Float64, {2}), Type(Float64, {})}, {}, "f64[2] f64[1] f64[1]"},
        Use{"LayerNorm", {Type(Float16, {2}), Type(Float16, {2})}, {}, "f16[2] f32[1] f32[1]"},
        Use{"RMSNorm", {f32({2, 3}), f32({3})}, {}, "f32[2,3]"},
        Use{"InstanceNorm", {f32({2, 3, 4}), f32({3}), f32({3})}, {}, "f32[2,3,4]"},
        Use{"GroupNorm", {f32({2, 6, 4}), f32({6}), f32({6})}, {{"groups", 3}}, "f32[2,6,4]"},
        Use{"LRN", {f32({2, 6, 4})}, {{"size", 3}}, "f32[2,6,4]"}));
INSTANTIATE_TEST_SUITE_P(
    Normalize, Refused,
    testing::Values(
        Use{"Softmax", {f32({})}, {}, "to be an axis of [], got -1"},
        Use{"Softmax", {f32({2})}, {{"axis", -2}}, "to be an axis of [2], got -2"},
        Use{"LogSoftmax", {f32({2})}, {{"axis", 1}}, "to be an axis of [2], got 1"},
        Use{"BatchNorm", {f32({2}), f32({2}), f32({2}), f32({2}), f32({2})}, {}, "at least 2 axes in 'x'"},
        Use{"BatchNorm", {f32({2, 3}), f32({3}), f32({3}), f32({2}), f32({3})}, {}, "expected shape [3] of 'mean'"},
        Use{"LayerNorm", {f32({2, 3}), f32({2})}, {}, "'scale' that broadcasts to [2,3], got f32[2]"},
        Use{"LayerNorm", {f32({2, 3}), f32({3}), f32({4, 2, 3})}, {}, "'bias' that broadcasts to [2,3]"},
        Use{"LayerNorm", {f32({2, 3}), f32({3})}, {{"axis", -3}}, "to be an axis"},
        Use{"RMSNorm", {f32({2, 3}), f32({2})}, {}, "'scale' that broadcasts"},
        Use{"RMSNorm", {f32({2, 3}), f32({3})}, {{"axis", 2}}, "to be an axis"},
        Use{"InstanceNorm", {f32({2, 3, 4}), f32({3}), f32({4})}, {}, "expected shape [3] of 'bias'"},
        Use{"GroupNorm", {f32({2, 6, 4}), f32({3}), f32({6})}, {{"groups", 3}}, "expected shape [6] of 'scale'"},
        Use{"GroupNorm", {f32({2, 6, 4}), f32({6}), f32({6})}, {{"groups", 4}}, "that divide the channels"},
        Use{"GroupNorm", {f32({2, 6, 4}), f32({6}), f32({6})}, {}, "that divide the channels of f32[2,6,4], got 0"},
        Use{"LRN", {f32({2})}, {}, "at least 2 axes"},
        Use{"LRN", {f32({2, 6})}, {{"size", 0}}, "'size' to be at least 1"}));

INSTANTIATE_TEST_SUITE_P(Training, Accepted,
                         testing::Values(Use{"Regression", {f32({2, 3}), f32({2, 3})}, {}, "f32[2,3]"},
                                         Use{"Gradient", {f32({2, 3}), f32({4})}, {}, "f32[4]"},
                                         Use{"SGD", {f32({2}), f32({2}), f32({})}, {}, "f32[2]"},
                                         Use{"Adam",
                                             {f32({2}), f32({2}), f32({2}), f32({2}), f32({}), f32({})},
                                             {},
                                             "f32[2] f32[2] f32[2]"}));
INSTANTIATE_TEST_SUITE_P(
    Training, Refused,
    testing::Values(
        Use{"Regression", {f32({2, 3}), f32({3})}, {}, "expected shape [2,3] of 'expected'"},
        Use{"SGD", {f32({2}), f32({3}), f32({})}, {}, "expected shape [2] of 'gradient'"},
        Use{"SGD", {f32({2}), f32({2}), f32({1})}, {}, "expected shape [] of 'rate'"},
        Use{"Momentum", {f32({2}), f32({2}), f32({}), f32({}), f32({})}, {}, "expected shape [2] of 'velocity'"}));

constexpr Code kQuant = Code::BadQuantization;
const std::vector<Given> kScale{{"scales", Reals{0.5}}, {"offsets", Ints{3}}};

INSTANTIATE_TEST_SUITE_P(
    Quant, Accepted,
    testing::Values(
        Use{"Quantize", {f32({2})}, kScale, "qi8[2]<0.5:3>"},
        Use{"Quantize",
            {f32({1, 2})},
            {{"scales", Reals{1, 2}}, {"offsets", Ints{3, 4}}, {"axis", 1}},
            "qi8[1,2]<axis 1: 1:3, 2:4>"},
        Use{"Dequantize", {q8({2})}, {{"to", Float16}}, "f16[2]"},
        Use{"Rescale", {q8({2}, 0)}, kScale, "qi8[2]<0.5:3>"},
        Use{"QuantizeLinear", {f32({2, 3}), f32({})}, {}, "u8[2,3]"},
        Use{"QuantizeLinear", {f32({2, 3}), f32({1})}, {{"axis", 9}}, "u8[2,3]"},
        Use{"QuantizeLinear", {f32({2, 3}), f32({3}), Type(Int4, {3})}, {}, "i4[2,3]"},
        Use{"QuantizeLinear", {f32({2, 5}), f32({2, 3})}, {{"block_size", 2}, {"to", Float8E4M3FN}}, "f8e4m3fn[2,5]"},
        Use{"DequantizeLinear", {Type(Int8, {2, 3}), f32({2})}, {{"axis", 0}, {"to", Float32}}, "f32[2,3]"}));
INSTANTIATE_TEST_SUITE_P(
    Quant, Refused,
    testing::Values(
        Use{"Quantize", {f32({2})}, {}, "expected 1 scales", kQuant},
        Use{"Quantize", {f32({2})}, {{"scales", Reals{0}}, {"offsets", Ints{0}}}, "positive and finite", kQuant},
        Use{"Quantize", {f32({2})}, {{"scales", Reals{1e-60}}, {"offsets", Ints{0}}}, "positive and finite", kQuant},
        Use{"Quantize", {f32({2})}, {{"scales", Reals{1}}, {"offsets", Ints{200}}}, "200 does not fit", kQuant},
        Use{"Quantize", {f32({2})}, {{"scales", Reals{1}}, {"offsets", Ints{int64_t{1} << 32}}}, "of 32 bits", kQuant},
        Use{"Quantize",
            {f32({2})},
            {{"scales", Reals{1}}, {"offsets", Ints{0}}, {"axis", 0}},
            "expected 2 scales",
            kQuant},
        Use{"Quantize",
            {f32({2})},
            {{"scales", Reals{1}}, {"offsets", Ints{0}}, {"axis", 1}},
            "to be an axis of [2], got 1"},
        Use{"Quantize", {f32({2})}, {{"scales", Reals{1}}, {"offsets", Ints{0}}, {"axis", -2}}, "to be an axis"},
        Use{"Quantize",
            {f32({2})},
            {{"scales", Reals{1}}, {"offsets", Ints{0}}, {"to", Int8}},
            "is not a quantized kind",
            kQuant},
        Use{"Dequantize", {q8({2})}, {{"to", Int8}}, "'to' to be a float kind, got i8"},
        Use{"Dequantize", {Type(QInt8, {2})}, {}, "expected scales in the type of 'x'", kQuant},
        Use{"Rescale", {Type(QInt8, {2})}, kScale, "expected scales in the type of 'x'", kQuant},
        Use{"Rescale", {q8({2})}, {}, "expected 1 scales", kQuant},
        Use{"QuantizeLinear", {f32({2, 3}), f32({2})}, {}, "expected shape [3] of 'scale'", kQuant},
        Use{"QuantizeLinear", {f32({2, 3}), f32({2})}, {{"axis", 2}}, "to be an axis of [2,3], got 2"},
        Use{"QuantizeLinear", {f32({2, 3}), f32({2, 3})}, {}, "expected shape [3] of 'scale'", kQuant},
        Use{"QuantizeLinear",
            {f32({2, 5}), f32({2, 2})},
            {{"block_size", 2}},
            "expected shape [2,3] of 'scale'",
            kQuant},
        Use{"QuantizeLinear", {f32({2, 5}), f32({})}, {{"block_size", -2}}, "'block_size' to be 0 or more", kQuant},
        Use{"QuantizeLinear", {f32({2, 5}), f32({})}, {{"block_size", 2}, {"axis", -1}}, "to be an axis"},
        Use{"QuantizeLinear", {f32({2}), f32({}), Type(Int8, {1})}, {}, "expected shape [] of 'offset'", kQuant},
        Use{"QuantizeLinear", {f32({2}), f32({})}, {{"to", Bool}}, "a float or integer kind to quantize to, got bool"},
        Use{"DequantizeLinear", {Type(Int8, {2}), f32({})}, {{"to", Int8}}, "'to' to be a float kind"},
        Use{"DequantizeLinear", {Type(Int8, {2}), f32({}), Type(UInt8, {})}, {}, "of the kind of 'x'", kQuant},
        Use{"DequantizeLinear", {Type(Int8, {2, 3}), f32({2})}, {}, "expected shape [3] of 'scale'", kQuant}));

// An absent optional operand is a null type in the middle, or nothing at the end.
TEST(TypeRules, TakeAbsentOperands) {
  const Type x = f32({2, 3}), scale = f32({3});
  const std::vector<const Type*> in{&x, &scale, nullptr};
  EXPECT_TRUE(inferTypes(Attrs(opDef(Op::LayerNorm)), in).ok());
  const std::vector<const Type*> absent{&x, nullptr};
  EXPECT_EQ(inferTypes(Attrs(opDef(Op::Add)), absent).error().message, "Add needs its operand 'b'");
}

}  // namespace
}  // namespace aglow
