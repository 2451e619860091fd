#include "backends/cpu/code/link.h"

#include <fmt/format.h>

#include <vector>

#include "backends/bundle_types.h"
#include "support/file_set.h"
#include "support/process.h"

namespace aglow::codegen {

namespace {

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
  const std::string from = folder.file(name + ".o"), to = folder.file(name + ".so");
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
    AGLOW_TRY(const int code, runProgram(way, folder.path()));
    if (code == 0) {
      AGLOW_TRY(const SharedBytes linked, readFile(to));
      return std::string(reinterpret_cast<const char*>(linked.bytes.data()), linked.bytes.size());
    }
    if (said.empty()) said = readAll(folder.file("log"));
  }
  return Error{.code = Code::Device,
               .message = fmt::format("the shared object cannot be linked{}{}", said.empty() ? "" : ": ", said),
               .where = {},
               .hint = fmt::format("install {} or lld, or link the object of `--emit bundle` yourself", compiler)};
}

Result<std::string> linkProgram(const std::string& object, const std::string& name,
                                std::span<const std::span<const std::byte>> weights, const std::string& triple,
                                bool host) {
  AGLOW_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  const auto write = [&](const char* file, std::string_view text) {
    return writeFileAtomically(folder.file(file), std::as_bytes(std::span(text)));
  };
  AGLOW_OK(write("bundle.o", object));
  AGLOW_OK(write("main.c", fmt::format("#define _POSIX_C_SOURCE 200809L\n#include <stdint.h>\n{}{}", bundleTypes(),
                                       programSource())));
  AGLOW_OK(writeFileAtomically(folder.file("weights.bin"), weights));
  AGLOW_OK(write("weights.s",
                 fmt::format(".section .rodata\n.globl aglow_weights\n.balign 64\naglow_weights:\n.incbin \"{}\"\n"
                             ".section .note.GNU-stack,\"\",%progbits\n",
                             folder.file("weights.bin"))));
  const std::string compiler = compilerFor(triple, host), to = folder.file("program");
  AGLOW_TRY(const int code,
            runProgram({compiler, "-std=c99", "-O1", "-DNAME_info=" + name + "_info", "-o", to, folder.file("main.c"),
                        folder.file("bundle.o"), folder.file("weights.s"), "-Wl,--build-id=none", "-lm"},
                       folder.path()));
  if (code == 0) {
    AGLOW_TRY(const SharedBytes linked, readFile(to));
    return std::string(reinterpret_cast<const char*>(linked.bytes.data()), linked.bytes.size());
  }
  const std::string said = readAll(folder.file("log"));
  return Error{.code = Code::Device,
               .message = fmt::format("the program cannot be linked{}{}", said.empty() ? "" : ": ", said),
               .where = {},
               .hint = fmt::format("install {}, or write a program of your own around `--emit bundle`", compiler)};
}

}  // namespace aglow::codegen
