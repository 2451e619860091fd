// Files that appear together: all of them, or nothing new at all.
#include "support/file_set.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace aglow {
namespace {

namespace fs = std::filesystem;

class FileSetTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aglow-set-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.insert(entry.path().filename().string());
    return found;
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }
  // Runs the body in a process of its own, and gives how it ended.
  template <class Body>
  static int inChild(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(99);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  fs::path folder_;
};

using Names = std::set<std::string>;

TEST_F(FileSetTest, WritesThePiecesOfOneFile) {
  const std::span<const std::byte> pieces[] = {bytes("one "), bytes(""), bytes("two")};
  ASSERT_TRUE(writeFileAtomically(path("a"), pieces).ok());
  EXPECT_EQ(content(path("a")), "one two");
  EXPECT_EQ(names(), Names({"a"}));
}

TEST_F(FileSetTest, FilesAppearWithTheCommit) {
  std::ofstream(path("b")) << "old";
  FileSet files;
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(files.add(path(name), std::string_view("new")).ok());
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_EQ(content(path("b")), "old");
  ASSERT_TRUE(files.commit().ok());
  EXPECT_EQ(names(), Names({"a", "b", "c"}));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(content(path(name)), "new");
}

TEST_F(FileSetTest, NothingAppearsWithoutACommit) {
  {
    FileSet files;
    ASSERT_TRUE(files.addFolder(path("x/y/z")).ok());
    ASSERT_TRUE(files.add(path("x/y/z/a"), std::string_view("new")).ok());
    ASSERT_TRUE(files.add(path("b"), std::string_view("new")).ok());
    EXPECT_TRUE(fs::is_directory(path("x/y/z")));
  }
  EXPECT_EQ(names(), Names());
}

TEST_F(FileSetTest, LeavesFoldersThatOthersUse) {
  {
    FileSet files;
    ASSERT_TRUE(files.addFolder(path("x/y")).ok());
    std::ofstream(path("x/theirs")) << "text";
  }
  EXPECT_EQ(names(), Names({"x"}));
  EXPECT_FALSE(fs::exists(path("x/y")));
}

// The last file cannot get its name: its folder is gone, or a folder has taken the name.
TEST_F(FileSetTest, AFaultHalfWayLeavesWhatWasThere) {
  std::ofstream(path("a")) << "old";
  fs::create_symlink("a", path("link"));
  {
    FileSet files;
    fs::create_directory(path("gone"));
    for (const char* name : {"a", "b", "link", "gone/c"})
      ASSERT_TRUE(files.add(path(name), std::string_view("new")).ok());
    fs::remove_all(path("gone"));
    const Status status = files.commit();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::FileWrite);
    EXPECT_EQ(status.error().where, path("gone/c"));
    EXPECT_EQ(names(), Names({"a", "link"}));
    EXPECT_EQ(content(path("a")), "old");
    EXPECT_TRUE(fs::is_symlink(path("link")));
  }
  {
    FileSet files;
    for (const char* name : {"a", "b", "link", "taken"})
      ASSERT_TRUE(files.add(path(name), std::string_view("new")).ok());
    fs::create_directories(path("taken/full"));
    const Status status = files.commit();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::FileWrite);
    EXPECT_EQ(status.error().where, path("taken"));
  }
  EXPECT_EQ(names(), Names({"a", "link", "taken"}));
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

TEST_F(FileSetTest, TakesManyFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit tight{50, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  FileSet files;
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(files.add(path(std::to_string(i)), std::string_view("x")).ok());
  EXPECT_TRUE(files.commit().ok());
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(names().size(), 60u);
}

TEST_F(FileSetTest, GivesTheModeThatIsAskedFor) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(writeFileAtomically(path("mine"), std::span<const std::span<const std::byte>>(), 0600).ok());
  ASSERT_TRUE(writeFileAtomically(path("all"), bytes("x")).ok());
  ::umask(before);
  struct stat info{};
  ASSERT_EQ(::stat(path("mine").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(path("all").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0666U);
}

TEST_F(FileSetTest, ReplacesOnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& name : {path("pipe"), folder_.string(), path("no/such/folder"), std::string()}) {
    const Status status = writeFileAtomically(name, bytes("x"));
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, Code::FileWrite);
  }
  EXPECT_EQ(names(), Names({"pipe"}));
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

// With the signal as it is by default, which would end this program.
TEST_F(FileSetTest, AFileThatIsTooLargeIsAFault) {
  std::ofstream(path("a")) << "old";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{16, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = writeFileAtomically(path("a"), bytes(std::string(100, 'x')));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::FileWrite);
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(names(), Names({"a"}));
}

TEST_F(FileSetTest, AKilledWriterLeavesNothing) {
  const int status = inChild([&] {
    FileSet files;
    if (files.add(path("a"), std::string_view("new")).ok()) ::raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  // Where the file system has files without names.
  const int nameless = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0) GTEST_SKIP() << "the file system has no files without names";
  ::close(nameless);
  EXPECT_EQ(names(), Names());
}

// The process that gives the names goes on without it.
TEST_F(FileSetTest, AWriterThatIsKilledAmongTheNamesLeavesAllOrNothing) {
  const int nameless = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0) GTEST_SKIP() << "the file system has no files without names";
  ::close(nameless);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  constexpr int kFiles = 8;
  for (int round = 0; round < 6; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      FileSet files;
      for (int i = 0; i < kFiles; ++i)
        if (!files.add(path(std::to_string(i)), std::string_view("new")).ok()) ::_exit(1);
      ::write(ready[1], "x", 1) == 1 && files.commit().ok() ? ::_exit(0) : ::_exit(1);
    }
    char word = 0;
    ASSERT_EQ(::read(ready[0], &word, 1), 1);
    ::usleep(static_cast<useconds_t>(round * 40));
    ::kill(child, SIGKILL);
    // Then the process that gives the names, which became a child of this one.
    while (::waitpid(-1, nullptr, __WALL) > 0) continue;
    for (const int end : ready) ::close(end);
    for (const std::string& name : names()) EXPECT_EQ(content(path(name)), "new");
    EXPECT_TRUE(names().empty() || (names().size() == kFiles && names().contains("7"))) << names().size();
    for (const std::string& name : names()) fs::remove(path(name));
  }
}

TEST_F(FileSetTest, TheEndOfTheProgramLeavesNothing) {
  const int status = inChild([&] {
    FileSet files;
    if (!files.addFolder(path("x/y")).ok()) return;
    // More than may be without names.
    for (int i = 0; i < 40; ++i)
      if (!files.add(path("x/y/" + std::to_string(i)), std::string_view("new")).ok()) return;
    removeTemporaries();
    ::_exit(130);
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(names(), Names());
}

}  // namespace
}  // namespace aglow
