#include "serve/json_codec.h"

#include <gmock/gmock.h>

#include "serve/datatype.h"
#include "serve/trace.h"

namespace aglow::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A body as a server has it: with bytes behind it that may be read.
Result<InferRequest> decode(const std::string& json, const std::string& binary = {}, Limits limits = {}) {
  const auto kept = std::make_shared<std::string>(json + binary + std::string(kBytesBehind, '!'));
  const auto bytes = std::as_bytes(std::span(*kept)).first(json.size() + binary.size());
  return decodeRequest(bytes, json.size(), kept, limits);
}

std::string faultOf(const Result<InferRequest>& request) { return request.ok() ? "none" : faultText(request.error()); }

std::string input(const std::string& datatype, const std::string& shape, const std::string& rest) {
  return fmt::format(R"({{"inputs":[{{"name":"x","datatype":"{}","shape":{},{}}}]}})", datatype, shape, rest);
}

TEST(ServeJson, TensorsOfEveryKindOfNumber) {
  for (int k = 0; k < kElemKinds; ++k) {
    const auto kind = static_cast<ElemKind>(k);
    const auto datatype = datatypeOf(kind);
    if (!datatype || isQuantized(kind)) continue;
    EXPECT_EQ(kindOf(*datatype), kind);
    const auto request = decode(input(std::string(*datatype), "[2,1]", R"("data":[1,0])"));
    ASSERT_TRUE(request.ok()) << faultOf(request);
    const Tensor& tensor = request->inputs.at("x").tensor();
    EXPECT_EQ(tensor.type(), Type(kind, Shape{2, 1}));
    EXPECT_THAT(tensor.doubles(), ElementsAre(1, 0));
  }
}

TEST(ServeJson, BytesBehindTheJsonAreReadWhereTheyLie) {
  const std::string json = R"({"inputs":[
    {"name":"a","datatype":"UINT8","shape":[3],"parameters":{"binary_data_size":3}},
    {"name":"s","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":11}},
    {"name":"b","datatype":"INT8","shape":[1],"data":[-7]}]})";
  const std::string strings("\3\0\0\0ab\0\0\0\0\0", 11);
  const auto kept = std::make_shared<std::string>(json + "\1\2\3" + strings + std::string(kBytesBehind, ' '));
  const auto bytes = std::as_bytes(std::span(*kept)).first(json.size() + 14);
  const auto request = decodeRequest(bytes, json.size(), kept, {});
  ASSERT_TRUE(request.ok()) << faultOf(request);
  EXPECT_EQ(request->inputs.at("a").tensor().data(), bytes.data() + json.size());
  EXPECT_THAT(request->inputs.at("s").strings.front().strings(), ElementsAre(std::string("ab\0", 3), ""));
  EXPECT_THAT(request->inputs.at("b").tensor().toInts(), ElementsAre(-7));
}

TEST(ServeJson, WhatDoesNotFitIsRefusedInWords) {
  const std::pair<std::string, std::string> kBad[] = {
      {"", "no JSON"},
      {"[1]", "has to be an object, not a list"},
      {R"({"inputs":{}})", "inputs has to be a list"},
      {R"({"inputs":[1]})", "an input has to be an object"},
      {R"({"inputs":[],"id":7})", "id has to be a string"},
      {R"({"inputs":[],"outputs":[{"name":"y","parameters":{"classification":3}}]})", "not supported"},
      {R"({"inputs":[],"parameters":{"sequence_id":3}})", "not supported"},
      {R"({"inputs":[],"parameters":{"priority":-3}})", "from 0 on"},
      {input("FP32", "[2]", R"("data":[1])"), "1 elements, the shape 2"},
      {input("FP32", "[2]", R"("data":[1,2,3])"), "more elements"},
      {input("FP32", "[2,2]", R"("data":[[1,2],[3]])"), "another length"},
      {input("FP32", "[2,2]", R"("data":[[1,2],3])"), "has to be a list"},
      {input("FP32", "[1]", R"("data":[null])"), "null, not a number"},
      {input("FP16", "[1]", R"("data":[70000])"), "range"},
      {input("UINT64", "[1]", R"("data":[-1])"), "range"},
      {input("INT64", "[1]", R"("data":[9223372036854775808])"), "range"},
      {input("BOOL", "[1]", R"("data":[2])"), "true or false"},
      {input("BYTES", "[1]", R"("data":[2])"), "has to be a string"},
      {input("FP8", "[1]", R"("data":[2])"), "no datatype 'FP8'"},
      {input("FP32", "[-1]", R"("data":[2])"), "shape"},
      {input("FP32", "[1.5]", R"("data":[2])"), "whole number"},
      {input("FP32", "[1]", R"("parameters":{"binary_data_size":4})"), "4 bytes behind the JSON, and 0 are left"},
      {input("FP32", "[100000000000]", R"("data":[2])"), "at most"},
      {input("FP32", "[1000000]", R"("data":[2])"), "fewer elements"},
  };
  for (const auto& [json, words] : kBad) EXPECT_THAT(faultOf(decode(json)), HasSubstr(words)) << json;
  EXPECT_THAT(faultOf(decode(input("FP32", "[1]", R"("data":[1])"), "more")), HasSubstr("4 bytes follow"));
  const std::string strings = input("BYTES", "[2]", R"("parameters":{"binary_data_size":9})");
  EXPECT_THAT(faultOf(decode(strings, std::string("\xff\0\0\0abcde", 9))), HasSubstr("255 bytes"));
  EXPECT_THAT(faultOf(decode(strings, std::string("\1\0\0\0a\1\0\0\0", 9))), HasSubstr("1 bytes, and 0 are left"));
}

TEST(ServeJson, Limits) {
  EXPECT_EQ(statusOf(decode(input("FP32", "[8]", R"("data":[2])"), "", {.tensor = 31}).error().code).http, 413);
  EXPECT_THAT(faultOf(decode(R"({"inputs":[{"name":"a"},{"name":"b"}]})", "", {.tensors = 0})), HasSubstr("too many"));
}

InferAnswer answerOf(ModelValue value, bool binary) {
  return {.model = "m\"", .version = "1", .id = "i", .outputs = {{"y", std::move(value), binary}}};
}

TEST(ServeJson, AnswersReadBack) {
  const auto json = encodeAnswer(
      answerOf(ModelValue::of(Tensor::of(Type(ElemKind::Float32, {3}), std::vector<double>{0.1, -2, 1e30})), false));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->json, R"({"model_name":"m\"","model_version":"1","id":"i","outputs":[{"name":"y","datatype":"FP32",)"
                        R"("shape":[3],"data":[0.1,-2,1e+30]}]})");
  const auto bools =
      encodeAnswer(answerOf(ModelValue::of(Tensor::of(Type(ElemKind::Bool, {2}), std::vector<int>{1, 0})), false));
  EXPECT_THAT(bools->json, HasSubstr("[true,false]"));
  const auto binary = encodeAnswer(answerOf(ModelValue::of(StringTensor({2}, {"a", ""})), true));
  ASSERT_EQ(binary->blobs.size(), 1U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(binary->blobs[0].bytes.data()), 9),
            std::string("\1\0\0\0a\0\0\0\0", 9));
  EXPECT_THAT(binary->json, HasSubstr(R"("parameters":{"binary_data_size":9})"));
}

TEST(ServeJson, WhatJsonHasNoWordForGoesAsBytesOnly) {
  const auto nan = ModelValue::of(Tensor::of(Type(ElemKind::Float32, {1}), std::vector<double>{std::nan("")}));
  EXPECT_THAT(faultText(encodeAnswer(answerOf(nan, false)).error()), HasSubstr("binary_data"));
  EXPECT_TRUE(encodeAnswer(answerOf(nan, true)).ok());
  EXPECT_FALSE(encodeAnswer(answerOf(ModelValue::of(StringTensor({1}, {"\xff"})), false)).ok());
  EXPECT_FALSE(encodeAnswer(answerOf(ModelValue::sequence({}), true)).ok());
}

TEST(ServeJson, NamesOfAnyBytesAreStrings) {
  EXPECT_EQ(jsonString("a\"\\\n\xff\xc3\xa4"), "\"a\\\"\\\\\\u000a\xef\xbf\xbd\xc3\xa4\"");
}

TEST(ServeTrace, GoesOnOrBegins) {
  const Trace trace = traceOf("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(trace.id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(trace.flags, "01");
  EXPECT_NE(trace.span, "b7ad6b7169203331");
  for (const char* bad : {"", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                          "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x"})
    EXPECT_THAT(traceOf(bad).header(), Not(HasSubstr("0af7651916cd43dd"))) << bad;
  EXPECT_EQ(traceOf("").header().size(), 55U);
}

TEST(ServeInference, LowerPrioritiesGoFirstAndBeforeNone) {
  EXPECT_GT(hostPriority(1), hostPriority(2));
  EXPECT_GT(hostPriority(UINT64_MAX), hostPriority(0));
}

}  // namespace
}  // namespace aglow::serve
