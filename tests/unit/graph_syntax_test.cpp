// Names, types, attributes and constants: what both text forms share.
#include "graph/syntax.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "ops/op.h"

namespace aglow {
namespace {

std::string parsedName(const std::string& text) {
  Lexer lexer(text);
  const Token token = lexer.next();
  EXPECT_EQ(token.kind, Token::Kind::Global) << text;
  EXPECT_EQ(lexer.peek().kind, Token::Kind::End) << text;
  return token.value;
}

TEST(GraphSyntax, NamesOfAnyBytesRoundTrip) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string names[] = {
      "x",     "0", "/layer.1/Conv_output-0", "a$b", "a:1", "", "a b", "\"", "\\x41", "ä", "\xff",
      "\xe4x", all, std::string(1 << 20, 'n')};
  for (const std::string& name : names) EXPECT_EQ(parsedName(printName("@", name)), name);
  EXPECT_EQ(printName("%", "/a/b-1.w"), "%/a/b-1.w");
  EXPECT_EQ(printName("%", "a:1"), "%\"a:1\"");
  EXPECT_EQ(printName("%", "\xc3\xa4"), "%\"\xc3\xa4\"");
  EXPECT_EQ(printName("%", "\xc3"), "%\"\\xc3\"");
}

TEST(GraphSyntax, ResultsAreNumberedAtTheName) {
  Lexer lexer("%top:2 %\"a:1\":3 %p : f32");
  EXPECT_EQ(lexer.peek().index, 2);
  EXPECT_EQ(lexer.next().value, "top");
  EXPECT_EQ(lexer.peek().index, 3);
  EXPECT_EQ(lexer.next().value, "a:1");
  EXPECT_EQ(lexer.next().value, "p");
  EXPECT_TRUE(lexer.accept(":"));
}

TEST(GraphSyntax, TokensKnowTheirPlace) {
  Lexer lexer("a # comment \" {\n  @b");
  lexer.next();
  const Token b = lexer.next();
  EXPECT_EQ(b.value, "b");
  EXPECT_EQ(b.line, 2);
  EXPECT_EQ(b.column, 3);
  EXPECT_EQ(lexer.unexpected("more").text(), "error[E206] 2:5: expected more, found the end of the text");
}

Type quantized(ElemKind kind, Shape shape, QuantParams params) {
  return *Type::quantized(kind, std::move(shape), std::move(params));
}

TEST(GraphSyntax, TypesRoundTrip) {
  std::vector<Type> types = {Type(ElemKind::Float32, {1, 3, 8, 8}),
                             Type(ElemKind::Bool, {}),
                             Type(ElemKind::Float64, {0, 5}),
                             quantized(ElemKind::QInt8, {4}, {-1, {0.1f}, {-128}}),
                             quantized(ElemKind::QInt32, {2, 3}, {0, {1e-30f, 3.4e38f}, {INT32_MIN, INT32_MAX}}),
                             quantized(ElemKind::QUInt8, {2, 0}, {1, {}, {}})};
  for (int k = 0; k < kElemKinds; ++k) types.emplace_back(static_cast<ElemKind>(k), Shape{2});
  for (const Type& type : types) {
    const std::string text = type.text();
    Lexer lexer(text);
    const Result<Type> again = parseType(lexer);
    ASSERT_TRUE(again.ok()) << text << ": " << again.error().text();
    EXPECT_EQ(*again, type) << text << " became " << again->text();
    EXPECT_EQ(lexer.peek().kind, Token::Kind::End) << text;
  }
}

TEST(GraphSyntax, WrongTypesAreExplained) {
  const std::pair<const char*, const char*> table[] = {
      {"f31[2]", "1:1: expected an element kind such as f32, found 'f31'\n  hint: did you mean 'f32'?"},
      {"f32", "1:4: expected '[', found the end of the text"},
      {"f32[2", "1:6: expected ',' or ']', found the end of the text"},
      {"f32[-2]", "1:1: shape [-2] has a negative extent"},
      {"f32[99999999999999999999]", "1:5: expected an extent, found '99999999999999999999'"},
      {"f32[4611686018427387904,4]", "1:1: shape [4611686018427387904,4] has more elements than can be addressed"},
      {"qi8[2]<0:1>", "1:1: expected a positive and finite scale, got 0"},
      {"qi8[2]<0.5:300>", "1:1: offset 300 does not fit into qi8"},
      {"qi8[2]<0.5:3000000000>", "1:12: offset 3000000000 does not fit into 32 bits"},
      {"qi8[2]<axis 7: 0.5:3>", "1:1: quantization axis 7 lies outside of shape [2]"},
      {"f32[2]<0.5:3>", "1:1: f32 is not a quantized kind"},
  };
  for (const auto& [text, message] : table) {
    Lexer lexer(text);
    const Result<Type> type = parseType(lexer);
    ASSERT_FALSE(type.ok()) << text;
    EXPECT_EQ(type.error().text(), "error[E206] " + std::string(message)) << text;
  }
}

TEST(GraphSyntax, AttributesPrintOnlyWhatDiffersFromDefaults) {
  EXPECT_EQ(printAttrs(Attrs(opDef(Op::Conv))), "");
  EXPECT_EQ(printAttrs(Attrs(opDef(Op::Conv)).set("group", int64_t{2}).set("pads", std::vector<int64_t>{1, -1})),
            "{pads = [1, -1], group = 2}");
  EXPECT_EQ(printAttrs(Attrs(opDef(Op::Reduce)).set("kind", std::string("max")).set("keepdims", int64_t{0})),
            "{kind = max, keepdims = false}");
  EXPECT_EQ(printAttrs(Attrs(opDef(Op::Splat)).set("value", -0.0)), "{value = -0}");
  EXPECT_EQ(printAttrs(Attrs(opDef(Op::Cast)).set("to", ElemKind::BFloat16)), "{to = bf16}");
}

TEST(GraphSyntax, RealsRoundTripBitForBit) {
  using Limits = std::numeric_limits<double>;
  const double values[] = {0.0,
                           -0.0,
                           0.1,
                           1e300,
                           Limits::denorm_min(),
                           Limits::max(),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           -Limits::quiet_NaN(),
                           Limits::signaling_NaN(),
                           std::bit_cast<double>(uint64_t{0x7ff8000000000001})};
  for (const double value : values) {
    const std::string text = printAttrs(Attrs(opDef(Op::Elu)).set("alpha", value));
    Lexer lexer(text);
    const Result<Attrs> again = parseAttrs(lexer, opDef(Op::Elu));
    ASSERT_TRUE(again.ok()) << text;
    EXPECT_EQ(std::bit_cast<uint64_t>(again->real("alpha")), std::bit_cast<uint64_t>(value)) << text;
  }
}

TEST(GraphSyntax, WrongAttributesAreExplained) {
  const std::pair<const char*, const char*> table[] = {
      {"{stride = [1]}", "1:2: expected an attribute of Conv, found 'stride'\n  hint: did you mean 'strides'?"},
      {"{strides [1]}", "1:10: expected '=', found '['"},
      {"{strides = 1}", "1:12: expected '[', found '1'"},
      {"{strides = [1.5]}", "1:13: expected an integer, found '1.5'"},
      {"{group = 1, group = 2}", "1:13: attribute 'group' is given twice"},
      {"{group = 1", "1:11: expected ',' or '}', found the end of the text"},
  };
  for (const auto& [text, message] : table) {
    Lexer lexer(text);
    const Result<Attrs> attrs = parseAttrs(lexer, opDef(Op::Conv));
    ASSERT_FALSE(attrs.ok()) << text;
    EXPECT_EQ(attrs.error().text(), "error[E206] " + std::string(message)) << text;
  }
}

// Every pattern of bits, where there are few enough; others at every position of one bit, at the ends, and mixed.
std::vector<uint64_t> patterns(ElemKind kind) {
  std::vector<uint64_t> all;
  const int bits = 8 * elemBytes(kind);
  if (bits == 8) {
    for (uint64_t i = 0; i < 256; ++i) all.push_back(i);
    return all;
  }
  for (int i = 0; i < bits; ++i)
    for (const uint64_t base : {uint64_t{0}, ~uint64_t{0}, uint64_t{0x7ff0000000000000}, uint64_t{0x7f800000}})
      all.push_back(base ^ (uint64_t{1} << i));
  uint64_t random = 1;
  for (int i = 0; i < 300; ++i) all.push_back(random = random * 6364136223846793005u + 1442695040888963407u);
  return all;
}

TEST(GraphSyntax, ElementsRoundTripBitForBit) {
  for (int k = 0; k < kElemKinds; ++k) {
    const auto kind = static_cast<ElemKind>(k);
    const auto size = static_cast<size_t>(elemBytes(kind));
    for (const uint64_t bits : patterns(kind)) {
      std::byte element[8], again[8];
      std::memcpy(element, &bits, 8);
      const std::string text = printElement(kind, element);
      Lexer lexer(text);
      ASSERT_TRUE(parseElement(lexer, kind, again).ok()) << elemName(kind) << " " << text;
      ASSERT_EQ(std::memcmp(element, again, size), 0) << elemName(kind) << " " << text;
    }
  }
}

std::string printed(const Tensor& tensor) { return ConstantText(static_cast<BlobStore*>(nullptr)).print(tensor); }

TEST(GraphSyntax, ConstantsAreReadable) {
  EXPECT_EQ(printed(Tensor::of(Type(ElemKind::Float32, {2}), std::vector{0.5, -1.0})), "[0.5, -1]");
  EXPECT_EQ(printed(Tensor::of(Type(ElemKind::Float16, {2}), std::vector{0.1, 100.0})), "[0.1, 100]");
  EXPECT_EQ(printed(Tensor::of(Type(ElemKind::Bool, {2}), std::vector{1, 0})), "[true, false]");
  EXPECT_EQ(printed(Tensor::scalar(ElemKind::Int8, -128)), "[-128]");
  EXPECT_EQ(printed(Tensor(Type(ElemKind::Float32, {0}))), "[]");
  EXPECT_EQ(printed(Tensor(Type(ElemKind::Float32, {64}))), "splat 0");
  EXPECT_EQ(printed(Tensor::scalar(ElemKind::Float32, std::numeric_limits<double>::infinity())), "[inf]");
}

TEST(GraphSyntax, BlobsKeepLargeConstants) {
  std::vector<int64_t> numbers(100);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const Tensor tensor = Tensor::ints(numbers);
  BlobStore blobs;
  const std::string text = ConstantText(&blobs).print(tensor);
  EXPECT_EQ(text.substr(0, 7), "blob 0x");
  EXPECT_EQ(ConstantText(&blobs).print(tensor), text);
  EXPECT_EQ(blobs.tensors().size(), 1u);

  const BlobStore& given = blobs;
  Lexer lexer(text);
  const Result<Tensor> again = ConstantText(&given).parse(lexer, tensor.type());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, tensor);
  EXPECT_EQ(again->data(), tensor.data()) << "bytes are shared";

  Lexer other(text);
  const Result<Tensor> wrong = ConstantText(&given).parse(other, Type(ElemKind::Int64, {50, 2}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("is i64[100], expected i64[50,2]"), std::string::npos) << wrong.error().text();
}

TEST(GraphSyntax, WrongConstantsAreExplained) {
  const std::pair<const char*, const char*> table[] = {
      {"[1]", "1:1: expected 2 elements for i8[2], found 1"},
      {"[1, 2, 3]", "1:1: expected 2 elements for i8[2], found 3"},
      {"[1, 200]", "1:5: expected a value of i8, found '200'"},
      {"[1, 0x100]", "1:5: expected a value of i8, found '0x100'"},
      {"[1, 1.5]", "1:5: expected a value of i8, found '1.5'"},
      {"[1, 2", "1:6: expected ',' or ']', found the end of the text"},
      {"7", "1:1: expected '[', 'splat' or 'blob', found '7'"},
      {"blob x", "1:6: expected the key of a blob, such as 0x0123456789abcdef, found 'x'"},
      {"blob 0x12",
       "1:1: there is no blob 0x0000000000000012\n  hint: the blobs of a text stand in a file of their own beside it"},
  };
  for (const auto& [text, message] : table) {
    Lexer lexer(text);
    const Result<Tensor> tensor =
        ConstantText(static_cast<const BlobStore*>(nullptr)).parse(lexer, Type(ElemKind::Int8, {2}));
    ASSERT_FALSE(tensor.ok()) << text;
    EXPECT_EQ(tensor.error().text(), "error[E206] " + std::string(message)) << text;
  }
}

TEST(GraphSyntax, AShortTextCannotAskForMuchMemory) {
  const std::string text = "splat 0";
  Lexer lexer(text);
  const Result<Tensor> tensor =
      ConstantText(static_cast<const BlobStore*>(nullptr)).parse(lexer, Type(ElemKind::Float32, {int64_t{1} << 50}));
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.error().code, Code::BadText);
}

TEST(GraphSyntax, BadTokensAreNamed) {
  const std::pair<const char*, const char*> table[] = {
      {"\x01", "1:1: no word starts with the byte 0x01"},
      {"%", "1:1: expected a name after '%'"},
      {"@ x", "1:1: expected a name after '@'"},
      {"@\"abc", "1:1: a string has no closing quote in its line"},
      {"\"a\\q\"", "1:1: unknown escape in a string; expected \\n, \\t, \\\", \\\\ or \\xNN"},
      {"\"\\x4", "1:1: unknown escape in a string; expected \\n, \\t, \\\", \\\\ or \\xNN"},
      {"%a:99999999999999999999", "1:1: the number of a result is too large"},
  };
  for (const auto& [text, message] : table) {
    Lexer lexer(text);
    EXPECT_EQ(lexer.peek().kind, Token::Kind::Bad) << text;
    EXPECT_EQ(lexer.unexpected("anything").text(), "error[E206] " + std::string(message)) << text;
  }
}

}  // namespace
}  // namespace aglow
