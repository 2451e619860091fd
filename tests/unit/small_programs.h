// Programs of a few instructions over three tensors, for tests of instructions that run together.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "inst/text.h"
#include "inst/verifier.h"

namespace aglow::testing_support {

inline Program parsedProgram(std::string_view type, std::string_view body) {
  std::string text = "declare {\n";
  for (const char* name : {"x", "y", "z"})
    text += "  %" + std::string(name) + " = placeholder " + std::string(type) + "\n";
  auto program = parseProgram(text + "  %p = placeholder bool[]\n}\nprogram @f(@in %x, @out %y, @out %z, @in %p) {\n" +
                              std::string(body) + "}\n");
  EXPECT_TRUE(program.ok()) << program.error().text();
  return *std::move(program);
}

inline std::string bodyText(const Program& program) {
  const std::string text = print(program);
  const size_t start = text.find("{\n", text.find("program")) + 2;
  return text.substr(start, text.size() - start - 2);
}

inline std::string faultOf(const Program& program) {
  const Status status = verify(program);
  return status.ok() ? "none" : status.error().text();
}

}  // namespace aglow::testing_support
