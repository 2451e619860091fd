// ONNX tensors become Aglow's: every place and form values may be stored in, and what is refused.
#include "import/onnx/tensor_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "unit/onnx_writer.h"

namespace aglow {
namespace {

namespace w = onnx_writer;
using testing::ElementsAre;
using testing::HasSubstr;

onnx::Model modelWith(const w::Graph& graph) {
  auto kept = std::make_shared<const std::string>(w::Model().graph(graph).bytes());
  auto model = onnx::parseModel(std::as_bytes(std::span(*kept)), kept);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return model.ok() ? *std::move(model) : onnx::Model{};
}

Result<Tensor> converted(const w::Tensor& tensor) {
  const onnx::Model model = modelWith(w::Graph().initializer(tensor));
  return onnx::toTensor(model.graph.initializers.at(0), model);
}

Result<Tensor> converted(const w::SparseTensor& tensor) {
  const onnx::Model model = modelWith(w::Graph().sparseInitializer(tensor));
  return onnx::toTensor(model.graph.sparseInitializers.at(0), model);
}

template <class Written>
std::vector<double> values(const Written& tensor, ElemKind kind) {
  const auto result = converted(tensor);
  if (!result.ok()) {
    ADD_FAILURE() << result.error().text();
    return {};
  }
  EXPECT_EQ(result->type().kind(), kind);
  return result->doubles();
}

template <class Written>
std::string refused(const Written& tensor, Code code = Code::BadTensor) {
  const auto result = converted(tensor);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.error().code, code) << result.error().text();
  return result.error().text();
}

TEST(OnnxTensor, ReadsRawData) {
  EXPECT_THAT(values(w::Tensor("t", w::kFloat, {2}).raw(w::rawBytes<float>({1.5f, -2})), ElemKind::Float32),
              ElementsAre(1.5, -2));
  EXPECT_THAT(values(w::Tensor("t", w::kInt64, {1, 2}).raw(w::rawBytes<int64_t>({-7, 9})), ElemKind::Int64),
              ElementsAre(-7, 9));
  EXPECT_THAT(values(w::Tensor("t", w::kUInt16, {}).raw(w::rawBytes<uint16_t>({65535})), ElemKind::UInt16),
              ElementsAre(65535));
  EXPECT_THAT(values(w::Tensor("t", w::kFloat16, {1}).raw(w::rawBytes<uint16_t>({0x3c00})), ElemKind::Float16),
              ElementsAre(1));
  EXPECT_THAT(values(w::Tensor("t", w::kFloat, {0, 3}), ElemKind::Float32), ElementsAre());
}

TEST(OnnxTensor, ReadsTypedFields) {
  EXPECT_THAT(values(w::Tensor("t", w::kFloat, {2}).floats({3, 4}), ElemKind::Float32), ElementsAre(3, 4));
  EXPECT_THAT(values(w::Tensor("t", w::kDouble, {2}).doubles({3, 4}), ElemKind::Float64), ElementsAre(3, 4));
  EXPECT_THAT(values(w::Tensor("t", w::kInt64, {2}).int64s({-3, 4}), ElemKind::Int64), ElementsAre(-3, 4));
  EXPECT_THAT(values(w::Tensor("t", w::kUInt64, {1}).uint64s({uint64_t{1} << 63}), ElemKind::UInt64),
              ElementsAre(9223372036854775808.0));
  EXPECT_THAT(values(w::Tensor("t", w::kUInt32, {1}).uint64s({4294967295}), ElemKind::UInt32),
              ElementsAre(4294967295.0));
  EXPECT_THAT(values(w::Tensor("t", w::kInt32, {2}).int32s({-5, 6}), ElemKind::Int32), ElementsAre(-5, 6));
  EXPECT_THAT(values(w::Tensor("t", w::kInt16, {2}).int32s({-32768, 32767}), ElemKind::Int16),
              ElementsAre(-32768, 32767));
  EXPECT_THAT(values(w::Tensor("t", w::kInt8, {2}).int32s({-128, 127}), ElemKind::Int8), ElementsAre(-128, 127));
  EXPECT_THAT(values(w::Tensor("t", w::kUInt8, {2}).int32s({0, 255}), ElemKind::UInt8), ElementsAre(0, 255));
  EXPECT_THAT(values(w::Tensor("t", w::kBool, {3}).int32s({0, 1, -1}), ElemKind::Bool), ElementsAre(0, 1, 1));
  EXPECT_THAT(values(w::Tensor("t", w::kFloat16, {1}).int32s({0xc000}), ElemKind::Float16), ElementsAre(-2));
  EXPECT_THAT(values(w::Tensor("t", w::kBFloat16, {1}).int32s({0xbf80}), ElemKind::BFloat16), ElementsAre(-1));
  EXPECT_THAT(values(w::Tensor("t", w::kFloat8E4M3FN, {1}).int32s({0xb8}), ElemKind::Float8E4M3FN), ElementsAre(-1));
}

TEST(OnnxTensor, ReadsUnpackedAndScatteredFields) {
  EXPECT_THAT(
      values(w::Tensor("t", w::kFloat, {4}).unpackedFloat(1).floats({2, 3}).unpackedFloat(4), ElemKind::Float32),
      ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(w::Tensor("t", w::kInt64, {3}).field(7, -1).int64s({2}).field(7, 300), ElemKind::Int64),
              ElementsAre(-1, 2, 300));
}

TEST(OnnxTensor, UnpacksNarrowKinds) {
  const std::string bytes = "\x8f\x05";
  EXPECT_THAT(values(w::Tensor("t", w::kInt4, {3}).raw(bytes), ElemKind::Int4), ElementsAre(-1, -8, 5));
  EXPECT_THAT(values(w::Tensor("t", w::kUInt4, {3}).raw(bytes), ElemKind::UInt4), ElementsAre(15, 8, 5));
  EXPECT_THAT(values(w::Tensor("t", w::kUInt4, {3}).int32s({0x8f, 5}), ElemKind::UInt4), ElementsAre(15, 8, 5));
  EXPECT_THAT(values(w::Tensor("t", w::kFloat4E2M1, {2}).raw("\xf2"), ElemKind::Float4E2M1), ElementsAre(1, -6));
  EXPECT_THAT(values(w::Tensor("t", w::kInt2, {5}).raw("\xe4\x03"), ElemKind::Int2), ElementsAre(0, 1, -2, -1, -1));
  EXPECT_THAT(values(w::Tensor("t", w::kUInt2, {5}).int32s({0xe4, 3}), ElemKind::UInt2), ElementsAre(0, 1, 2, 3, 3));
}

TEST(OnnxTensor, NormalisesBools) {
  const auto tensor = converted(w::Tensor("t", w::kBool, {3}).raw(std::string("\x00\x01\x02", 3)));
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->data()[2], std::byte{1});
}

TEST(OnnxTensor, UsesAlignedBytesInPlace) {
  // Eight bytes of one value, so that some shift of the whole file aligns them.
  const std::string body = w::rawBytes<double>({2.5});
  const std::string file = w::Model().graph(w::Graph().initializer(w::Tensor("t", w::kDouble, {1}).raw(body))).bytes();
  const size_t at = file.find(body);
  for (size_t shift = 0; shift < 8; ++shift) {
    auto memory = std::make_shared<std::vector<double>>(file.size() / 8 + 2);
    auto* start = reinterpret_cast<std::byte*>(memory->data()) + shift;
    std::copy(file.begin(), file.end(), reinterpret_cast<char*>(start));
    std::weak_ptr<std::vector<double>> alive = memory;
    Tensor tensor;
    {
      const auto model = onnx::parseModel({start, file.size()}, std::move(memory));
      ASSERT_TRUE(model.ok());
      tensor = *onnx::toTensor(model->graph.initializers.at(0), *model);
    }
    EXPECT_THAT(tensor.doubles(), ElementsAre(2.5));
    const bool aligned = (shift + at) % 8 == 0;
    EXPECT_EQ(tensor.data() == start + at, aligned);
    EXPECT_EQ(!alive.expired(), aligned) << "the bytes live as long as a tensor views them";
  }
}

TEST(OnnxTensor, RefusesOtherNumbersOfValues) {
  EXPECT_THAT(refused(w::Tensor("weight", w::kFloat, {2}).raw("1234567")),
              HasSubstr("tensor 'weight': expected 8 bytes for f32[2], got 7"));
  EXPECT_THAT(refused(w::Tensor("t", w::kFloat, {2}).raw("123456789")), HasSubstr("got 9"));
  EXPECT_THAT(refused(w::Tensor("t", w::kFloat, {2})), HasSubstr("got 0"));
  EXPECT_THAT(refused(w::Tensor("t", w::kFloat, {2}).floats({1})), HasSubstr("expected 2 values"));
  EXPECT_THAT(refused(w::Tensor("t", w::kFloat, {0}).floats({1})), HasSubstr("expected 0 values"));
  EXPECT_THAT(refused(w::Tensor("t", w::kInt64, {1}).int64s({1, 2})), HasSubstr("expected 1 values"));
  EXPECT_THAT(refused(w::Tensor("t", w::kInt4, {3}).raw("1")), HasSubstr("expected 2 bytes"));
  EXPECT_THAT(refused(w::Tensor("t", w::kInt4, {3}).int32s({1, 2, 3})), HasSubstr("expected 2 values"));
}

TEST(OnnxTensor, RefusesShapesBeforeAllocating) {
  EXPECT_THAT(refused(w::Tensor("big", w::kFloat, {int64_t{1} << 31}).raw("x")), HasSubstr("tensor 'big'"));
  EXPECT_THAT(refused(w::Tensor("big", w::kFloat, {int64_t{1} << 40, int64_t{1} << 40})), HasSubstr("tensor 'big'"));
  EXPECT_THAT(refused(w::Tensor("big", w::kInt2, {int64_t{1} << 50}).int32s({1})), HasSubstr("tensor 'big'"));
  EXPECT_THAT(refused(w::Tensor("neg", w::kFloat, {-1}).raw("1234")), HasSubstr("tensor 'neg'"));
}

TEST(OnnxTensor, RefusesValuesInTheWrongPlace) {
  EXPECT_THAT(refused(w::Tensor("t", w::kFloat, {1}).int64s({1})), HasSubstr("in float_data, got int64_data"));
  EXPECT_THAT(refused(w::Tensor("t", w::kFloat, {1}).floats({1}).raw("1234")), HasSubstr("more than one place"));
}

TEST(OnnxTensor, RefusesValuesThatDoNotFit) {
  EXPECT_THAT(refused(w::Tensor("t", w::kUInt8, {2}).int32s({1, 256})), HasSubstr("value 256 at position 1"));
  EXPECT_THAT(refused(w::Tensor("t", w::kUInt8, {1}).int32s({-1})), HasSubstr("does not fit"));
  EXPECT_THAT(refused(w::Tensor("t", w::kInt8, {1}).int32s({128})), HasSubstr("does not fit"));
  EXPECT_THAT(refused(w::Tensor("t", w::kInt8, {1}).int32s({-129})), HasSubstr("does not fit"));
  EXPECT_THAT(refused(w::Tensor("t", w::kUInt32, {1}).uint64s({uint64_t{1} << 32})), HasSubstr("does not fit"));
  EXPECT_THAT(refused(w::Tensor("t", w::kUInt4, {2}).int32s({256})), HasSubstr("does not fit"));
}

TEST(OnnxTensor, RefusesMalformedVarints) {
  const std::string endless(11, '\xff');
  EXPECT_THAT(refused(w::Tensor("t", w::kInt64, {1}).field(7, endless + '\x01')), HasSubstr("malformed"));
  EXPECT_THAT(refused(w::Tensor("t", w::kInt64, {1}).field(7, "\x01\x80")), HasSubstr("malformed"));
}

TEST(OnnxTensor, SaysWhatIsNotSupported) {
  EXPECT_THAT(refused(w::Tensor("names", w::kString, {1}).strings({"a"}), Code::UnsupportedFeature),
              HasSubstr("tensor 'names': elements of type string"));
  EXPECT_THAT(refused(w::Tensor("t", w::kComplex64, {1}).floats({1, 2}), Code::UnsupportedFeature),
              HasSubstr("complex64"));
  EXPECT_THAT(refused(w::Tensor("t", w::kFloat, {1}).field(3, ""), Code::UnsupportedFeature), HasSubstr("segments"));
  EXPECT_THAT(refused(w::Tensor("t", 99, {1}).raw("1")), HasSubstr("unknown element type 99"));
  EXPECT_THAT(refused(w::Tensor("t", 0, {1}).raw("1")), HasSubstr("unknown element type 0"));
}

w::SparseTensor sparse(const std::vector<float>& v, const std::vector<int64_t>& indexDims,
                       const std::vector<int64_t>& indices, const std::vector<int64_t>& dims) {
  return {w::Tensor("s", w::kFloat, {static_cast<int64_t>(v.size())}).floats(v),
          w::Tensor("", w::kInt64, indexDims).int64s(indices), dims};
}

TEST(OnnxTensor, FillsSparseTensors) {
  EXPECT_THAT(values(sparse({5, 6}, {2}, {1, 3}, {2, 2}), ElemKind::Float32), ElementsAre(0, 5, 0, 6));
  EXPECT_THAT(values(sparse({5, 6}, {2, 2}, {0, 1, 1, 1}, {2, 2}), ElemKind::Float32), ElementsAre(0, 5, 0, 6));
}

TEST(OnnxTensor, RefusesWrongSparseTensors) {
  EXPECT_THAT(refused(sparse({5}, {1}, {4}, {2, 2})), HasSubstr("tensor 's': index 4"));
  EXPECT_THAT(refused(sparse({5}, {1, 2}, {0, -1}, {2, 2})), HasSubstr("index -1"));
  EXPECT_THAT(refused(sparse({5, 6}, {2}, {1, 1}, {4})), HasSubstr("ascend"));
  EXPECT_THAT(refused(sparse({5, 6}, {1}, {1}, {4})), HasSubstr("do not fit 2 values"));
  EXPECT_THAT(refused(sparse({5}, {1}, {0}, {int64_t{1} << 40}), Code::TooLarge), HasSubstr("would fill"));
}

}  // namespace
}  // namespace aglow
