// aglow serve: the server is a program of its own, so that this one needs none of its libraries.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/cli.h"

namespace aglow::cli {

ExitCode becomeServer(char** argv) {
  std::error_code fault;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", fault);
  const std::string program = (self.parent_path() / "aglow-serve").string();
  ::execv(program.c_str(), argv);
  const int why = errno;
  return report(Error{.code = Code::UnsupportedFeature,
                      .message = fmt::format("there is no server beside this program: {}", std::strerror(why)),
                      .where = program,
                      .hint = "it is built where gRPC, Boost, OpenSSL and simdjson are installed"});
}

// For the list of commands; its options are the server's.
Command serveCommand() {
  return {.name = "serve",
          .doc = "Serve models over HTTP and gRPC (Open Inference Protocol)",
          .options = {},
          .footer = "Examples:\n  aglow serve models/ --http-port 8000 --grpc-port 8001",
          .action = [] { return report(Error{.code = Code::Usage, .message = "serve is the first word"}); }};
}

}  // namespace aglow::cli
