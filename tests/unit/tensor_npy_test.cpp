// .npy files: what numpy writes is read, what is malformed is refused, what is written comes back.
#include "tensor/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/file.h"

namespace aglow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class NpyTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aglow-npy-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = (folder_ / "t.npy").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  // A file of the version with a header and data, as another writer might make it.
  void write(const std::string& header, const std::string& data, char version = 1) {
    std::string bytes = std::string("\x93NUMPY") + version + '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i));
    write(bytes + header + data);
  }
  void writeDict(const std::string& descr, const std::string& order, const std::string& shape,
                 const std::string& data) {
    write("{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n", data);
  }
  Error readFault(ElemKind kind = ElemKind::UInt8) const {
    const auto tensor = readNpy(path_, kind);
    EXPECT_FALSE(tensor.ok());
    return tensor.ok() ? Error{Code::Internal, "read without a fault"} : tensor.error();
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(NpyTest, EveryKindAndShapeComesBackWithItsBits) {
  std::vector<Type> types;
  types.reserve(kElemKinds + 4);
  for (int i = 0; i < kElemKinds; ++i) types.emplace_back(static_cast<ElemKind>(i), Shape{2, 3});
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 0, 3}, Shape{1, 1, 2, 1}})
    types.emplace_back(ElemKind::Float32, shape);
  for (const Type& type : types) {
    std::vector<int64_t> values(static_cast<size_t>(type.elements()));
    for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<int64_t>(k) - 2;
    const Tensor t = Tensor::fromInts(type, values);
    ASSERT_TRUE(writeNpy(path_, t).ok());
    const auto back = readNpy(path_, type.kind());
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(*back, t) << type.text();
    const auto header = readNpyHeader(path_);
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->descr, elemInfo(type.kind()).npy);
    EXPECT_EQ(header->shape, type.shape());
  }
}

TEST_F(NpyTest, WritesNumpysOwnBytes) {
  ASSERT_TRUE(writeNpy(path_, Tensor::of<int>(Type(ElemKind::UInt8, {2}), {7, 9})).ok());
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
  expected += std::string(127 - expected.size(), ' ') + "\n\x07\x09";
  const auto file = readFile(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()), expected);
}

TEST_F(NpyTest, ReadsAllVersionsAndAnyOrderOfKeys) {
  for (const char version : {'\1', '\2', '\3'}) {
    write("{\"shape\": (2, 1), 'fortran_order': False, 'descr': '<i2'}", std::string("\x01\x00\xFF\xFF", 4), version);
    const auto t = readNpy(path_, ElemKind::Int16);
    ASSERT_TRUE(t.ok()) << t.error().text();
    EXPECT_THAT(t->toInts(), ElementsAre(1, -1));
    EXPECT_EQ(t->type().shape(), (Shape{2, 1}));
  }
}

TEST_F(NpyTest, ConvertsFortranOrderAndBigEndian) {
  writeDict("|u1", "True", "(2, 3)", "\x01\x04\x02\x05\x03\x06");
  EXPECT_THAT(readNpy(path_, ElemKind::UInt8)->toInts(), ElementsAre(1, 2, 3, 4, 5, 6));
  writeDict("|u1", "True", "(2, 2, 2)", "\x01\x05\x03\x07\x02\x06\x04\x08");
  EXPECT_THAT(readNpy(path_, ElemKind::UInt8)->toInts(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  writeDict(">i4", "False", "(2,)", std::string("\x00\x00\x01\x02\xFF\xFF\xFF\xFE", 8));
  EXPECT_THAT(readNpy(path_, ElemKind::Int32)->toInts(), ElementsAre(258, -2));
  writeDict(">u2", "True", "(1, 2)", std::string("\x3F\x80\xC0\x00", 4));
  EXPECT_THAT(readNpy(path_, ElemKind::BFloat16)->doubles(), ElementsAre(1, -2));
}

TEST_F(NpyTest, AnotherTypeIsAFaultOfTheBinding) {
  writeDict("<i8", "False", "()", std::string(8, '\0'));
  const Error error = readFault(ElemKind::Float32);
  EXPECT_EQ(error.code, Code::BadBinding);
  EXPECT_THAT(error.message, HasSubstr("f32"));
  EXPECT_THAT(error.message, HasSubstr("'<f4'"));
  EXPECT_THAT(error.message, HasSubstr("'<i8'"));
  EXPECT_EQ(error.where, path_);
}

TEST_F(NpyTest, RefusesMalformedHeaders) {
  const char* headers[] = {
      "",
      "{}",
      "{'descr': '|u1', 'fortran_order': False}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}",
      "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (1)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (1 1)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (1,",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x",
      "{'descr': '|u1, 'fortran_order': False, 'shape': (1,)}",
      "{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '|S5', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '|i8', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': 'u1', 'fortran_order': False, 'shape': (1,)}",
  };
  for (const char* header : headers) {
    write(header, "\x01");
    EXPECT_EQ(readFault().code, Code::BadNpy) << header;
    EXPECT_EQ(readNpyHeader(path_).error().code, Code::BadNpy) << header;
  }
  std::string deep = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; ++i) deep += "1, ";
  write(deep + ")}", "\x01");
  EXPECT_EQ(readFault().code, Code::BadNpy);
}

TEST_F(NpyTest, RefusesEveryTruncation) {
  ASSERT_TRUE(writeNpy(path_, Tensor::of<int>(Type(ElemKind::UInt8, {2}), {7, 9})).ok());
  const auto file = readFile(path_);
  ASSERT_TRUE(file.ok());
  const std::string whole(reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size());
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    EXPECT_EQ(readFault().code, Code::BadNpy) << size;
  }
  write(whole + "x");
  EXPECT_THAT(readFault().message, HasSubstr("expected 2 bytes of data"));
  std::string future = whole;
  future[6] = 4;
  write(future);
  EXPECT_THAT(readFault().message, HasSubstr("4.0"));
}

// A claim is never believed: neither of the header's length nor of the shape.
TEST_F(NpyTest, RefusesLargeClaims) {
  write(std::string("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF", 12) + "{}");
  EXPECT_EQ(readFault().code, Code::BadNpy);
  writeDict("|u1", "False", "(1099511627776,)", "\x01");
  EXPECT_EQ(readFault().code, Code::BadNpy);
}

TEST_F(NpyTest, RefusesBitsThatNarrowKindsDoNotHave) {
  const std::tuple<ElemKind, const char*, char, char> cases[] = {
      {ElemKind::Bool, "|b1", '\x01', '\x02'},  {ElemKind::UInt4, "|u1", '\x0F', '\x10'},
      {ElemKind::UInt2, "|u1", '\x03', '\x04'}, {ElemKind::Float4E2M1, "|u1", '\x0F', '\x10'},
      {ElemKind::Int4, "|i1", '\xF8', '\xF7'},  {ElemKind::Int4, "|i1", '\x07', '\x08'},
      {ElemKind::Int2, "|i1", '\xFE', '\x02'},
  };
  for (const auto& [kind, descr, good, bad] : cases) {
    writeDict(descr, "False", "(1,)", std::string(1, good));
    EXPECT_TRUE(readNpy(path_, kind).ok()) << elemName(kind);
    writeDict(descr, "False", "(2,)", std::string{good, bad});
    EXPECT_THAT(readFault(kind).message, HasSubstr("element 1")) << elemName(kind);
  }
}

TEST_F(NpyTest, FaultsOfFilesAreThoseOfFiles) {
  EXPECT_EQ(readFault().code, Code::FileRead);
  EXPECT_EQ(readNpyHeader(path_).error().code, Code::FileRead);
  EXPECT_EQ(writeNpy((folder_ / "no" / "t.npy").string(), Tensor::ints({1})).error().code, Code::FileWrite);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(NpyTest, StringsComeBackWithoutZerosAtTheirEnds) {
  const StringTensor strings(Shape{2, 2}, {"", "\xff\xfe", "a", std::string("b\0c", 3)});
  ASSERT_TRUE(writeNpy(path_, strings).ok());
  const auto header = readNpyHeader(path_);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->descr, "|S3");
  const auto read = readNpyStrings(path_);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, strings);
  for (const Shape& shape : {Shape{0}, Shape{3, 0}}) {
    ASSERT_TRUE(writeNpy(path_, StringTensor(shape, {})).ok());
    EXPECT_EQ(*readNpyStrings(path_), StringTensor(shape, {}));
  }
}

TEST_F(NpyTest, CodePointsBecomeUtf8) {
  using namespace std::string_literals;
  writeDict("<U2", "False", "(2,)", "a\0\0\0\xe4\0\0\0\xac\x20\0\0\0\xf6\x01\0"s);
  EXPECT_THAT(readNpyStrings(path_)->strings(), ElementsAre("a\xc3\xa4", "\xe2\x82\xac\xf0\x9f\x98\x80"));
  writeDict(">U1", "False", "(2,)", "\0\0\0a\0\0\0\xe4"s);
  EXPECT_THAT(readNpyStrings(path_)->strings(), ElementsAre("a", "\xc3\xa4"));
  writeDict("|S2", "True", "(2, 2)", "a\0b\0c\0d\0"s);
  EXPECT_THAT(readNpyStrings(path_)->strings(), ElementsAre("a", "c", "b", "d"));
}

TEST_F(NpyTest, StringsThatCannotBeAreRefused) {
  using namespace std::string_literals;
  const auto fault = [&] { return readNpyStrings(path_).error().code; };
  writeDict("<U1", "False", "(1,)", "\0\xd8\0\0"s);  // half a pair
  EXPECT_EQ(fault(), Code::BadNpy);
  writeDict("<U1", "False", "(1,)", "\0\0\x11\0"s);
  EXPECT_EQ(fault(), Code::BadNpy);
  writeDict("|S0", "False", "(1152921504606846976,)", "");
  EXPECT_EQ(fault(), Code::BadNpy);
  writeDict("|S2147483647", "False", "(1152921504606846976,)", "");
  EXPECT_EQ(fault(), Code::BadNpy);
  writeDict("|S-1", "False", "(1,)", "a");
  EXPECT_EQ(fault(), Code::BadNpy);
  writeDict("<f4", "False", "(1,)", "\0\0\0\0"s);
  EXPECT_EQ(fault(), Code::BadBinding);
  writeDict("|S1", "False", "(1,)", "a");
  EXPECT_EQ(readFault().code, Code::BadBinding);
}

}  // namespace
}  // namespace aglow
