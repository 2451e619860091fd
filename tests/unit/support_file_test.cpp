// Reading only what is a regular file, and only as long as it stays what it was.
#include "support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

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
  // Over what is there, as a writer does who knows no better.
  void write(const std::string& name, std::string_view text, std::optional<fs::file_time_type> time = {}) const {
    const int file = ::open(path(name).c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::pwrite(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    ::close(file);
    if (time) fs::last_write_time(path(name), *time);
  }
  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }

  fs::path folder_;
};

TEST_F(FileTest, ReadsWhatIsAskedFor) {
  std::string text(200'000, 'x');
  for (size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>(i);
  write("big", text);
  const auto file = openFile(path("big"));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->bytes.size(), text.size());
  // Across blocks, in front of what is there, and all of it.
  for (const auto& [offset, size] : {std::pair<size_t, size_t>{100'000, 5}, {16'383, 2}, {0, 0}, {50'000, 60'000}}) {
    const auto part = file->bytes.subspan(offset, size);
    ASSERT_TRUE(file->load(part).ok());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes(text).begin() + static_cast<ptrdiff_t>(offset)));
    std::string copy(size, ' ');
    ASSERT_TRUE(file->copy(part, std::as_writable_bytes(std::span(copy)).data()).ok());
    EXPECT_EQ(copy, text.substr(offset, size));
  }
  ASSERT_TRUE(file->load(file->bytes).ok());
  EXPECT_TRUE(std::equal(file->bytes.begin(), file->bytes.end(), bytes(text).begin()));
}

TEST_F(FileTest, KeepsTheFileThatWasReplaced) {
  write("a", std::string(100'000, 'o'));
  const auto old = openFile(path("a"));
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(old->load(old->bytes.first(10)).ok());
  write("b", std::string(100'000, 'n'));
  fs::rename(path("b"), path("a"));
  ASSERT_TRUE(old->load(old->bytes).ok());
  EXPECT_EQ(static_cast<char>(old->bytes[99'999]), 'o');
}

// In place: by other bytes, by fewer, and by other bytes under the old time.
TEST_F(FileTest, RefusesTheFileThatWasChanged) {
  const std::string text(100'000, 'o');
  const auto refused = [&](const Status& status) {
    EXPECT_FALSE(status.ok());
    if (status.ok()) return;
    EXPECT_EQ(status.error().code, Code::FileRead);
    EXPECT_EQ(status.error().message, "the file has changed since it was opened");
  };
  std::string room(50'000, ' ');
  for (const bool shorter : {false, true}) {
    write("a", text);
    const auto file = openFile(path("a"));
    ASSERT_TRUE(file.ok());
    if (shorter)
      fs::resize_file(path("a"), 1000);
    else
      write("a", std::string(100'000, 'n'), fs::file_time_type::clock::now() + std::chrono::seconds(1));
    refused(file->load(file->bytes.subspan(50'000)));
    refused(file->copy(file->bytes.first(room.size()), std::as_writable_bytes(std::span(room)).data()));
  }
  write("a", text);
  const auto time = fs::last_write_time(path("a"));
  const auto file = InputFile::open(path("a"));
  ASSERT_TRUE(file.ok());
  const std::span<std::byte> to = std::as_writable_bytes(std::span(room));
  ASSERT_TRUE((*file)->read(10, to).ok());
  ASSERT_TRUE((*file)->read(10, to).ok());
  write("a", text.substr(1) + "n", time);
  EXPECT_TRUE((*file)->read(10, to).ok()) << "these bytes are what they were";
  write("a", "no" + text.substr(2, 100) + "n" + text.substr(103), time);
  refused((*file)->read(10, to));
}

TEST_F(FileTest, ReadsEmptyFiles) {
  write("a", "");
  const auto file = readFile(path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes.empty());
}

TEST_F(FileTest, ReadsOnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& name : {path("missing"), path("pipe"), folder_.string(), std::string("/dev/null")}) {
    const auto file = readFile(name);
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.error().code, Code::FileRead);
    EXPECT_EQ(file.error().where, name);
  }
}

}  // namespace
}  // namespace aglow
