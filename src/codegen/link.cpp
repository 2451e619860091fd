#include "codegen/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "support/file.h"

extern char** environ;

namespace aglow::codegen {

namespace {

namespace fs = std::filesystem;

// Exists as long as the object that names it.
class TemporaryFolder {
public:
  static Result<TemporaryFolder> create() {
    std::error_code fault;
    std::string name = (fs::temp_directory_path(fault) / "aglow-XXXXXX").string();
    if (fault || ::mkdtemp(name.data()) == nullptr)
      return Error{.code = Code::FileWrite, .message = "cannot create a temporary folder", .where = name};
    return TemporaryFolder(name);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The exit code, or 127 where there is no such program; what it says goes to a file.
int runProgram(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  constexpr int kNoProgram = 127;
  if (failed != 0) return kNoProgram;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kNoProgram;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string readAll(const std::string& path) {
  const auto file = mapFile(path);
  if (!file.ok()) return {};
  return {reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()};
}

// Debian's prefix of cross compilers: no vendor.
std::string compilerFor(const std::string& triple, bool host) {
  if (host) return "cc";
  const size_t arch = triple.find('-');
  const size_t vendor = triple.find('-', arch + 1);
  if (vendor == std::string::npos) return triple + "-gcc";
  return triple.substr(0, arch) + triple.substr(vendor) + "-gcc";
}

}  // namespace

Result<std::string> linkSharedObject(const std::string& object, const std::string& name, const std::string& triple,
                                     bool host) {
  AGLOW_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string from = folder.file(name + ".o"), to = folder.file(name + ".so"), log = folder.file("log");
  AGLOW_OK(writeFileAtomically(from, std::as_bytes(std::span(object))));
  const std::string soname = name + ".so", alias = "--defsym=aglow_bundle_info=" + name + "_info";
  const std::string compiler = compilerFor(triple, host);
  const std::vector<std::vector<std::string>> ways = {
      {compiler, "-shared", "-o", to, from, "-Wl,--build-id=none", "-Wl,-soname," + soname, "-Wl," + alias, "-lm"},
      {"ld.lld", "-shared", "-o", to, from, "-soname", soname, alias},
      {"ld.lld-19", "-shared", "-o", to, from, "-soname", soname, alias},
  };
  std::string said;
  for (const auto& way : ways) {
    if (runProgram(way, log) == 0) return readAll(to);
    if (said.empty()) said = readAll(log);
  }
  return Error{.code = Code::Device,
               .message = fmt::format("the shared object cannot be linked{}{}", said.empty() ? "" : ": ", said),
               .where = {},
               .hint = fmt::format("install {} or lld, or link the object of `--emit bundle` yourself", compiler)};
}

}  // namespace aglow::codegen
