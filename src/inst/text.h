// The text form of programs. What one prints the other parses back to an equal program; the grammar is in
// docs/text-form.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/blobs.h"
#include "inst/program.h"

namespace aglow {

// Programs of one module, with what they share declared once. Large constants go into the store; without one they are
// only named. `lines` gets the line of each instruction, from 1.
std::string print(std::span<const Program> programs, BlobStore* blobs = nullptr, std::vector<int>* lines = nullptr);
std::string print(const Program& program, BlobStore* blobs = nullptr, std::vector<int>* lines = nullptr);
// One instruction, without its origin, plan and body: "Conv @out %a, @in %x, @in %w {strides = [2, 2]}".
std::string print(const Program& program, const Instr& instr);

// BadText with line and column for what breaks the grammar; whether the programs make sense is the verifier's matter.
// There is at least one.
Result<std::vector<Program>> parsePrograms(std::string_view text, const BlobStore& blobs = {});
// The same for a text with a single program.
Result<Program> parseProgram(std::string_view text, const BlobStore& blobs = {});

}  // namespace aglow
