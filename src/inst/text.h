// The text form of programs. What one prints the other parses back to an equal program; the grammar is in
// docs/text-form.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/blobs.h"
#include "inst/program.h"

namespace aglow {

// Large constants go into the store; without one they are only named. `lines` gets the line of each instruction,
// from 1.
std::string print(const Program& program, BlobStore* blobs = nullptr, std::vector<int>* lines = nullptr);
// One instruction, without its origin and body: "Conv @out %a, @in %x, @in %w {strides = [2, 2]}".
std::string print(const Program& program, const Instr& instr);

// BadText with line and column for what breaks the grammar; whether the program makes sense is the verifier's matter.
Result<Program> parseProgram(std::string_view text, const BlobStore& blobs = {});

}  // namespace aglow
