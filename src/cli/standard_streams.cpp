#include "cli/standard_streams.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/cli.h"
#include "cli/progress_line.h"
#include "media/image.h"
#include "support/file_set.h"
#include "support/temporary.h"

namespace aglow::cli {

namespace {

Result<std::string> allOfStdin() {
  constexpr size_t kBlock = size_t{1} << 20;
  std::string bytes;
  while (true) {
    const size_t before = bytes.size();
    bytes.resize(before + kBlock);
    const ssize_t got = ::read(STDIN_FILENO, bytes.data() + before, kBlock);
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return bytes;
    if (got < 0 && errno != EINTR) return Error{.code = Code::FileRead, .message = "stdin cannot be read"};
  }
}

// How the name of a file with these bytes ends. Text forms begin with a word of their grammar.
std::string_view endingOf(std::string_view bytes) {
  struct Kind {
    std::string_view begin, ending;
  };
  constexpr Kind kKinds[] = {{"\x93NUMPY", ".npy"}, {"PK\x03\x04", ".npz"}, {"aglowpkg", ".aglow"}, {"RIFF", ".wav"}};
  // Which of the formats of images it is, its bytes say again when they are decoded.
  if (!media::imageFormat(std::as_bytes(std::span(bytes))).empty()) return ".png";
  for (const Kind& kind : kKinds)
    if (bytes.starts_with(kind.begin)) return kind.ending;
  const std::string_view head = bytes.substr(0, 4096);
  if (head.find('\0') != head.npos) return ".onnx";
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != head.npos && (head[first] == '{' || head[first] == '[')) return ".json";
  const auto has = [&](std::string_view word) { return head.find(word) != head.npos; };
  return has("declare {") || has("program @") ? ".ir" : has("module {") ? ".graph" : ".onnx";
}

std::optional<TemporaryFolder> folder;  // of the file with what stdin holds
std::string stdinFile;

}  // namespace

Result<std::string> inputPath(const std::string& path) {
  if (path != kStandardStream) return path;
  if (folder) return Error{.code = Code::Usage, .message = "- stands for stdin, which can be read only once"};
  AGLOW_TRY(const std::string bytes, allOfStdin());
  AGLOW_TRY(TemporaryFolder made, TemporaryFolder::create());
  folder.emplace(std::move(made));
  stdinFile = folder->file("stdin" + std::string(endingOf(bytes)));
  AGLOW_OK(writeFileAtomically(stdinFile, std::as_bytes(std::span(bytes))));
  return stdinFile;
}

std::string withStdinNamed(std::string text) {
  if (stdinFile.empty()) return text;
  for (size_t at = text.find(stdinFile); at != text.npos; at = text.find(stdinFile, at))
    text.replace(at, stdinFile.size(), "<stdin>");
  return text;
}

void say(std::string_view text) {
  clearProgressLine();
  std::cerr << withStdinNamed(std::string(text));
}

Status printOut(std::string_view text) {
  clearProgressLine();
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      removeTemporaries();
      std::signal(SIGPIPE, SIG_DFL);
      std::raise(SIGPIPE);
    } else if (errno != EINTR && errno != EAGAIN) {
      return Error{.code = Code::FileWrite, .message = "stdout cannot be written"};
    }
  }
  return {};
}

Status writeOut(const std::string& path, const std::string& text) {
  return path == kStandardStream ? printOut(text) : writeFileAtomically(path, std::as_bytes(std::span(text)));
}

Status printJson(const nlohmann::ordered_json& document) {
  return printOut(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace aglow::cli
