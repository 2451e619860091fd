// Reading only what is a regular file, and writing all or nothing.
#include "support/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace aglow {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aglow-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }
  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

// Pages of a mapping come back from the file; other memory is never touched.
TEST_F(FileTest, PartsOfMappingsReadTheSameAfterTheirPagesWereGivenBack) {
  const std::string text(200'000, 'x');
  ASSERT_TRUE(writeFileAtomically(path("big"), bytes(text)).ok());
  auto file = mapFile(path("big"));
  ASSERT_TRUE(file.ok());
  std::shared_ptr<const void> part = partOwner(file->owner, file->bytes.subspan(5, 150'000));
  EXPECT_NE(part, file->owner);
  part.reset();
  EXPECT_TRUE(std::equal(file->bytes.begin(), file->bytes.end(), bytes(text).begin()));
  EXPECT_EQ(partOwner(file->owner, file->bytes.first(100)), file->owner);

  const auto memory = std::make_shared<std::vector<std::byte>>(200'000, std::byte{7});
  partOwner(memory, *memory).reset();
  EXPECT_EQ(memory->at(100'000), std::byte{7});
}

TEST_F(FileTest, WritesThePiecesAndMapsThem) {
  const std::span<const std::byte> pieces[] = {bytes("one "), bytes(""), bytes("two")};
  ASSERT_TRUE(writeFileAtomically(path("a"), pieces).ok());
  const auto file = mapFile(path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()), "one two");
  EXPECT_EQ(files(), 1);
}

TEST_F(FileTest, ReplacesAFileUnderItsReaders) {
  ASSERT_TRUE(writeFileAtomically(path("a"), bytes("old")).ok());
  const auto old = mapFile(path("a"));
  ASSERT_TRUE(writeFileAtomically(path("a"), bytes("new")).ok());
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_EQ(static_cast<char>(old->bytes[0]), 'o');
}

TEST_F(FileTest, MapsEmptyFiles) {
  ASSERT_TRUE(writeFileAtomically(path("a"), bytes("")).ok());
  const auto file = mapFile(path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes.empty());
}

TEST_F(FileTest, ReadsOnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& name : {path("missing"), path("pipe"), folder_.string(), std::string("/dev/null")}) {
    const auto file = mapFile(name);
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.error().code, Code::FileRead);
    EXPECT_EQ(file.error().where, name);
  }
}

TEST_F(FileTest, ReplacesOnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& name : {path("pipe"), folder_.string(), path("no/such/folder"), std::string()}) {
    const Status status = writeFileAtomically(name, bytes("x"));
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, Code::FileWrite);
  }
  EXPECT_EQ(files(), 1);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(FileTest, AFailedWriteLeavesWhatWasThere) {
  ASSERT_TRUE(writeFileAtomically(path("a"), bytes("old")).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{16, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = writeFileAtomically(path("a"), bytes(std::string(100, 'x')));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::FileWrite);
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace aglow
