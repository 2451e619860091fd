// Large constants in files beside the text.
#include "graph/blobs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "graph/equality.h"
#include "graph/text.h"
#include "random_graph.h"
#include "support/file.h"

namespace aglow {
namespace {

namespace fs = std::filesystem;

struct Folder : ::testing::Test {
  fs::path folder = fs::path(::testing::TempDir()) /
                    ("aglow_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(const std::string& name) const { return (folder / name).string(); }
  static std::string bytesOf(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
};
using GraphBlobs = Folder;

BlobStore sample() {
  Random random(1);
  BlobStore blobs;
  for (const Shape& shape : {Shape{5, 5}, Shape{100}, Shape{1, 17}}) {
    blobs.add(randomTensor(random, Type(ElemKind::Float32, shape)));
    blobs.add(randomTensor(random, Type(ElemKind::Int8, shape)));
  }
  blobs.add(Tensor(Type(ElemKind::Float64, {0})));
  return blobs;
}

TEST_F(GraphBlobs, RoundTripThroughAFile) {
  const BlobStore blobs = sample();
  ASSERT_TRUE(writeBlobs(path("b"), blobs).ok());
  const Result<BlobStore> read = readBlobs(path("b"));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->tensors(), blobs.tensors());
  for (const auto& [key, tensor] : read->tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % Tensor::kAlignment, 0u);
  EXPECT_EQ(fs::directory_iterator(folder)->path().filename(), "b") << "no temporary file stays";
}

TEST_F(GraphBlobs, AnEmptyStoreIsAFileToo) {
  ASSERT_TRUE(writeBlobs(path("b"), {}).ok());
  const Result<BlobStore> read = readBlobs(path("b"));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_TRUE(read->tensors().empty());
}

Result<BlobStore> parsed(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return parseBlobs({std::as_bytes(std::span(*owner)), owner});
}

TEST_F(GraphBlobs, EveryTruncationIsRefused) {
  ASSERT_TRUE(writeBlobs(path("b"), sample()).ok());
  const std::string whole = bytesOf(path("b"));
  ASSERT_TRUE(parsed(whole).ok());
  for (size_t length = 0; length < whole.size(); ++length) {
    const Result<BlobStore> read = parsed(whole.substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    ASSERT_EQ(read.error().code, Code::BadFile) << length;
  }
  EXPECT_FALSE(parsed(whole + '\0').ok());
}

TEST_F(GraphBlobs, EveryFlippedBitIsRefused) {
  const BlobStore blobs = sample();
  ASSERT_TRUE(writeBlobs(path("b"), blobs).ok());
  std::string whole = bytesOf(path("b"));
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      whole[i] = static_cast<char>(whole[i] ^ (1 << bit));
      // The case of a hexadecimal digit, and which blank stands between words, carry no meaning.
      if (const Result<BlobStore> read = parsed(whole); read.ok()) {
        EXPECT_EQ(read->tensors(), blobs.tensors()) << "byte " << i;
      }
      whole[i] = static_cast<char>(whole[i] ^ (1 << bit));
    }
  }
}

TEST_F(GraphBlobs, FaultsNameFileAndCause) {
  write(path("b"), "not blobs, but something else");
  const Result<BlobStore> read = readBlobs(path("b"));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().text(),
            "error[E201] " + path("b") + ": expected a file of blobs, which starts with 'aglowblb'");
  EXPECT_EQ(readBlobs(path("missing")).error().code, Code::FileRead);
}

TEST_F(GraphBlobs, KeysOfDifferentTensorsDiffer) {
  BlobStore blobs;
  const uint64_t a = blobs.add(Tensor::ints({1, 2}));
  EXPECT_NE(blobs.add(Tensor::ints({1, 3})), a);
  EXPECT_EQ(blobs.add(Tensor::ints({1, 2})), a);
  EXPECT_EQ(*blobs.find(a), Tensor::ints({1, 2}));
  EXPECT_EQ(blobs.find(a + 1), nullptr);
}

TEST_F(GraphBlobs, ModulesAreAPairOfFiles) {
  Module module;
  RandomGraph graph(module, 9);
  graph.addFunction("main", 20);
  module.addConstant("large", randomTensor(graph.random(), Type(ElemKind::Float32, {100})));
  ASSERT_TRUE(writeModule(path("m.graph"), module).ok());
  EXPECT_TRUE(fs::exists(path("m.blobs")));
  const auto read = readModule(path("m.graph"));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(difference(module, **read), "");

  fs::remove(path("m.blobs"));
  const auto lost = readModule(path("m.graph"));
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Code::BadText);
  EXPECT_EQ(lost.error().where.substr(0, path("m.graph").size()), path("m.graph"));
  EXPECT_NE(lost.error().message.find("there is no blob 0x"), std::string::npos);
}

TEST_F(GraphBlobs, SmallModulesAreOneFile) {
  Module module;
  module.addConstant("c", Tensor::ints({1, 2, 3}));
  ASSERT_TRUE(writeModule(path("m.graph"), module).ok());
  EXPECT_FALSE(fs::exists(path("m.blobs")));
  const auto read = readModule(path("m.graph"));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(difference(module, **read), "");
}

}  // namespace
}  // namespace aglow
