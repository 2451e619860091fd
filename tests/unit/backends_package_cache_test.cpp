// The cache of packages: its limit, and what it does with files that are not its own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

#include "backends/package_cache.h"

namespace aglow {
namespace {

namespace fs = std::filesystem;

// What tests keep is text, under names of packages.
void keep(const PackageCache& cache, const std::string& name, const std::string& text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  cache.keep(name + PackageCache::kPackage, std::span(&piece, 1));
  cache.evict();
}

std::optional<std::string> find(const PackageCache& cache, const std::string& name) {
  const FileDescriptor file = cache.open(name + PackageCache::kPackage);
  if (!file.valid()) return std::nullopt;
  std::string text(100, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  return text.substr(0, static_cast<size_t>(got));
}

class PackageCacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "aglow-cache-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Marks what was written so far as older than what comes next.
  void age() const {
    for (const auto& entry : fs::directory_iterator(folder_))
      fs::last_write_time(entry.path(), entry.last_write_time() - std::chrono::minutes(1));
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(PackageCacheTest, ListsAndClears) {
  const PackageCache cache(folder_.string());
  ASSERT_TRUE(cache.entries().ok());
  EXPECT_TRUE(cache.entries()->empty());  // without a folder
  keep(cache, "source", "package");
  keep(cache, "other", "longer package");
  std::ofstream(folder_ / "note.txt") << "not the cache's";
  std::ofstream(folder_ / "0123.weights") << "constants of both";
  ASSERT_TRUE(cache.entries().ok());
  EXPECT_EQ(cache.entries()->size(), 3u);
  const auto cleared = cache.clear();
  ASSERT_TRUE(cleared.ok());
  EXPECT_EQ(cleared->size(), 3u);
  EXPECT_TRUE(cache.entries()->empty());
  EXPECT_FALSE(find(cache, "source"));
  EXPECT_TRUE(fs::exists(folder_ / "note.txt"));
  fs::permissions(folder_, fs::perms::all);
  EXPECT_EQ(cache.entries().error().code, Code::FileRead);
  EXPECT_EQ(cache.clear().error().code, Code::FileRead);
}

TEST_F(PackageCacheTest, FindsWhatWasKept) {
  const PackageCache cache(folder_.string());
  EXPECT_FALSE(find(cache, "source"));
  keep(cache, "source", "package");
  EXPECT_EQ(find(cache, "source"), "package");
  EXPECT_FALSE(find(cache, "other"));
  keep(cache, "source", "newer");
  EXPECT_EQ(find(cache, "source"), "newer");
  cache.remove("source.aglow");
  EXPECT_FALSE(find(cache, "source"));
}

TEST_F(PackageCacheTest, WithoutAFolderKeepsNothing) {
  const PackageCache cache("");
  EXPECT_FALSE(cache.prepare());
  keep(cache, "source", "package");
  EXPECT_FALSE(find(cache, "source"));
}

TEST_F(PackageCacheTest, DropsWhatWasNotUsedForLongest) {
  const PackageCache cache(folder_.string(), 900);
  keep(cache, "a", std::string(300, 'a'));
  age();
  keep(cache, "b", std::string(300, 'b'));
  age();
  EXPECT_TRUE(find(cache, "a"));  // used: younger than b now
  keep(cache, "c", std::string(300, 'c'));
  keep(cache, "d", std::string(10, 'd'));
  EXPECT_TRUE(find(cache, "a"));
  EXPECT_FALSE(find(cache, "b"));
  EXPECT_TRUE(find(cache, "c"));
  keep(cache, "huge", std::string(2000, 'x'));
  EXPECT_FALSE(find(cache, "huge"));
}

TEST_F(PackageCacheTest, RemovesWhatKilledWritersLeft) {
  const PackageCache cache(folder_.string());
  for (const char* name : {".aglow-1-0.tmp", ".aglow-2-0.tmp", "other"}) std::ofstream(folder_ / name) << "x";
  fs::last_write_time(folder_ / ".aglow-1-0.tmp", fs::file_time_type::clock::now() - std::chrono::hours(2));
  keep(cache, "source", "package");
  EXPECT_FALSE(fs::exists(folder_ / ".aglow-1-0.tmp"));
  EXPECT_EQ(files(), 3u);
}

// A user who could have written the file may have put any code into it.
TEST_F(PackageCacheTest, TrustsOnlyWhatNobodyElseCanWrite) {
  const PackageCache cache((folder_ / "cache").string());
  const mode_t before = ::umask(0);
  keep(cache, "source", "package");
  ::umask(before);
  const fs::path file = fs::directory_iterator(folder_ / "cache")->path();
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "cache").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(find(cache, "source"), "package");
  for (const fs::path& path : {file, folder_ / "cache"}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    for (const mode_t more : {S_IWGRP, S_IWOTH}) {
      ::chmod(path.c_str(), info.st_mode | more);
      EXPECT_FALSE(find(cache, "source")) << path;
      ::chmod(path.c_str(), info.st_mode);
      EXPECT_EQ(find(cache, "source"), "package") << path;
    }
    if (::geteuid() != 0) continue;
    ASSERT_EQ(::chown(path.c_str(), 12345, info.st_gid), 0);
    EXPECT_FALSE(find(cache, "source")) << path;
    ASSERT_EQ(::chown(path.c_str(), 0, info.st_gid), 0);
  }
}

TEST_F(PackageCacheTest, WritesOnlyWhereNobodyElseCan) {
  ::chmod(folder_.c_str(), 0770);
  EXPECT_TRUE(whyRefused(folder_.string()));
  keep(PackageCache(folder_.string()), "source", "package");
  EXPECT_EQ(files(), 0u);
  ::chmod(folder_.c_str(), 0750);
  EXPECT_FALSE(whyRefused(folder_.string()));
  keep(PackageCache(folder_.string() + "/"), "source", "package");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace aglow
