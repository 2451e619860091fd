// The cache of generated code: its limit, and what it does with files that are not its own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "backends/cpu/code/code_cache.h"

namespace aglow::codegen {
namespace {

namespace fs = std::filesystem;

class CodeCacheTest : public testing::Test {
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

TEST_F(CodeCacheTest, KeepsCodeInSeveralObjects) {
  const CodeCache cache(folder_.string());
  const std::vector<std::string> objects = {"first", "", std::string("with\0zero", 9)};
  EXPECT_FALSE(cache.findObjects("source"));
  cache.keepObjects("source", objects);
  EXPECT_EQ(cache.findObjects("source"), objects);
  // What was not written so is not taken apart.
  cache.keep("other source", "code");
  EXPECT_FALSE(cache.findObjects("other source"));
  cache.keep("other source", std::string("\x09\0\0\0\0\0\0\0short", 13));
  EXPECT_FALSE(cache.findObjects("other source"));
}

TEST_F(CodeCacheTest, ListsAndClears) {
  const CodeCache cache(folder_.string());
  ASSERT_TRUE(cache.entries().ok());
  EXPECT_TRUE(cache.entries()->empty());  // without a folder
  cache.keep("source", "code");
  cache.keep("other source", "longer code");
  std::ofstream(folder_ / "note.txt") << "not the cache's";
  ASSERT_TRUE(cache.entries().ok());
  EXPECT_EQ(cache.entries()->size(), 2u);
  const auto cleared = cache.clear();
  ASSERT_TRUE(cleared.ok());
  EXPECT_EQ(cleared->size(), 2u);
  EXPECT_TRUE(cache.entries()->empty());
  EXPECT_FALSE(cache.find("source"));
  EXPECT_TRUE(fs::exists(folder_ / "note.txt"));
  fs::permissions(folder_, fs::perms::all);
  EXPECT_EQ(cache.entries().error().code, Code::FileRead);
  EXPECT_EQ(cache.clear().error().code, Code::FileRead);
}

TEST_F(CodeCacheTest, FindsWhatWasKept) {
  const CodeCache cache(folder_.string());
  EXPECT_FALSE(cache.find("source"));
  cache.keep("source", "code");
  EXPECT_EQ(cache.find("source"), "code");
  EXPECT_FALSE(cache.find("other source"));
  cache.keep("source", "newer");
  EXPECT_EQ(cache.find("source"), "newer");
}

TEST_F(CodeCacheTest, WithoutAFolderKeepsNothing) {
  const CodeCache cache("");
  cache.keep("source", "code");
  EXPECT_FALSE(cache.find("source"));
}

TEST_F(CodeCacheTest, DropsWhatWasNotUsedForLongest) {
  const CodeCache cache(folder_.string(), 1000);
  cache.keep("a", std::string(300, 'a'));
  age();
  cache.keep("b", std::string(300, 'b'));
  age();
  EXPECT_TRUE(cache.find("a"));  // used: younger than b now
  cache.keep("c", std::string(300, 'c'));
  cache.keep("d", std::string(10, 'd'));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("c"));
  cache.keep("huge", std::string(2000, 'x'));
  EXPECT_FALSE(cache.find("huge"));
}

TEST_F(CodeCacheTest, RemovesWhatKilledWritersLeft) {
  const CodeCache cache(folder_.string());
  for (const char* name : {".aglow-1-0.tmp", ".aglow-2-0.tmp", "other"}) std::ofstream(folder_ / name) << "x";
  fs::last_write_time(folder_ / ".aglow-1-0.tmp", fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.keep("source", "code");
  EXPECT_FALSE(fs::exists(folder_ / ".aglow-1-0.tmp"));
  EXPECT_EQ(files(), 3u);
}

// A user who could have written the file may have put any code into it.
TEST_F(CodeCacheTest, TrustsOnlyWhatNobodyElseCanWrite) {
  const CodeCache cache((folder_ / "cache").string());
  const mode_t before = ::umask(0);
  cache.keep("source", "code");
  ::umask(before);
  const fs::path file = fs::directory_iterator(folder_ / "cache")->path();
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "cache").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(cache.find("source"), "code");
  for (const fs::path& path : {file, folder_ / "cache"}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    for (const mode_t more : {S_IWGRP, S_IWOTH}) {
      ::chmod(path.c_str(), info.st_mode | more);
      EXPECT_FALSE(cache.find("source")) << path;
      ::chmod(path.c_str(), info.st_mode);
      EXPECT_EQ(cache.find("source"), "code") << path;
    }
    if (::geteuid() != 0) continue;
    ASSERT_EQ(::chown(path.c_str(), 12345, info.st_gid), 0);
    EXPECT_FALSE(cache.find("source")) << path;
    ASSERT_EQ(::chown(path.c_str(), 0, info.st_gid), 0);
  }
}

TEST_F(CodeCacheTest, WritesOnlyWhereNobodyElseCan) {
  ::chmod(folder_.c_str(), 0770);
  EXPECT_TRUE(whyRefused(folder_.string()));
  CodeCache(folder_.string()).keep("source", "code");
  EXPECT_EQ(files(), 0u);
  ::chmod(folder_.c_str(), 0750);
  EXPECT_FALSE(whyRefused(folder_.string()));
  CodeCache(folder_.string() + "/").keep("source", "code");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace aglow::codegen
