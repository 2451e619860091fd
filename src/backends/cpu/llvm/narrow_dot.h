// Products of several narrow elements in each lane, as a target does them best.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/llvm/target.h"

namespace aglow::codegen {

// sum + bytes[0] * weights[0] + ... + bytes[3] * weights[3] in each lane of i32, where `bytes` holds four unsigned
// bytes a lane and `weights` four signed ones. Exact, but for sums that i32 cannot hold, which wrap.
llvm::Value* byteDot(llvm::IRBuilder<>& b, const Target& target, llvm::Value* sum, llvm::Value* bytes,
                     llvm::Value* weights);

// sum + pairs[0] * weights[0] + pairs[1] * weights[1] in each lane of f32, where the others hold two bf16 a lane.
llvm::Value* pairDot(llvm::IRBuilder<>& b, const Target& target, llvm::Value* sum, llvm::Value* pairs,
                     llvm::Value* weights);

// Two rows by two columns of eight bytes each, in four lanes, where the target has an instruction for it: unsigned by
// signed bytes with sums of i32, or four bf16 by four with sums of f32.
llvm::Value* blockDot(llvm::IRBuilder<>& b, const Target& target, llvm::Value* sum, llvm::Value* rows,
                      llvm::Value* columns);

}  // namespace aglow::codegen
