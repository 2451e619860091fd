#include "backends/cpu/llvm/narrow_dot.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Target/TargetMachine.h>

namespace aglow::codegen {

namespace {

using Id = llvm::Intrinsic::ID;

// By the number of lanes: 4, 8, 16.
Id ofWidth(unsigned lanes, Id four, Id eight, Id sixteen) { return lanes == 4 ? four : lanes == 8 ? eight : sixteen; }

llvm::Value* call(llvm::IRBuilder<>& b, Id id, llvm::ArrayRef<llvm::Value*> arguments) {
  return b.CreateIntrinsic(id, {}, arguments);
}

// Products of neighbouring pairs of i16, added. Bytes of even and of odd places are widened apart from each other, so
// that no product or sum of two is cut off.
llvm::Value* byPairs(llvm::IRBuilder<>& b, unsigned lanes, llvm::Value* sum, llvm::Value* bytes, llvm::Value* weights) {
  constexpr int kByte = 8;
  llvm::Type* words = llvm::FixedVectorType::get(b.getInt16Ty(), 2 * lanes);
  llvm::Value *x = b.CreateBitCast(bytes, words), *w = b.CreateBitCast(weights, words);
  llvm::Value* evenX = b.CreateAnd(x, llvm::ConstantInt::get(words, 0xFF));
  llvm::Value* oddX = b.CreateLShr(x, kByte);
  llvm::Value* evenW = b.CreateAShr(b.CreateShl(w, kByte), kByte);
  llvm::Value* oddW = b.CreateAShr(w, kByte);
  const Id pairs = ofWidth(lanes, llvm::Intrinsic::x86_sse2_pmadd_wd, llvm::Intrinsic::x86_avx2_pmadd_wd,
                           llvm::Intrinsic::x86_avx512_pmaddw_d_512);
  llvm::Value* both = b.CreateAdd(call(b, pairs, {evenX, evenW}), call(b, pairs, {oddX, oddW}));
  return b.CreateAdd(sum, both);
}

// One place after the other, in i32.
llvm::Value* byPlaces(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* bytes, llvm::Value* weights) {
  constexpr uint64_t kByte = 8, kTop = 24;
  for (uint64_t place = 0; place < 4; ++place) {
    llvm::Value* x = b.CreateLShr(b.CreateShl(bytes, kTop - place * kByte), kTop);
    llvm::Value* w = b.CreateAShr(b.CreateShl(weights, kTop - place * kByte), kTop);
    sum = b.CreateAdd(sum, b.CreateMul(x, w));
  }
  return sum;
}

// Signed by signed bytes: unsigned ones less 128, and 128 times the weights.
llvm::Value* bySignedDots(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* bytes, llvm::Value* weights) {
  constexpr uint64_t kLow = 0x80808080, kOnes = 0x01010101, kShift = 7;
  llvm::Type* four = llvm::FixedVectorType::get(b.getInt8Ty(), 16);
  const auto dot = [&](llvm::Value* start, llvm::Value* x, llvm::Value* y) {
    return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_sdot, {sum->getType(), four},
                             {start, b.CreateBitCast(x, four), b.CreateBitCast(y, four)});
  };
  llvm::Type* lanes = sum->getType();
  llvm::Value* less = b.CreateXor(bytes, llvm::ConstantInt::get(lanes, kLow));
  llvm::Value* all = dot(llvm::Constant::getNullValue(lanes), weights, llvm::ConstantInt::get(lanes, kOnes));
  return dot(b.CreateAdd(sum, b.CreateShl(all, kShift)), less, weights);
}

}  // namespace

llvm::Value* byteDot(llvm::IRBuilder<>& b, const Target& target, llvm::Value* sum, llvm::Value* bytes,
                     llvm::Value* weights) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  const bool x86 = target.machine().getTargetTriple().isX86();
  const bool narrow = lanes < 16;
  if (x86 && ((target.has("avx512vnni") && (!narrow || target.has("avx512vl"))) || (narrow && target.has("avxvnni"))))
    return call(b,
                ofWidth(lanes, llvm::Intrinsic::x86_avx512_vpdpbusd_128, llvm::Intrinsic::x86_avx512_vpdpbusd_256,
                        llvm::Intrinsic::x86_avx512_vpdpbusd_512),
                {sum, bytes, weights});
  if (x86 && (lanes == 4 || target.has(narrow ? "avx2" : "avx512bw"))) return byPairs(b, lanes, sum, bytes, weights);
  const bool arm = lanes == 4 && target.machine().getTargetTriple().isAArch64();
  if (arm && target.has("i8mm")) {
    llvm::Type* four = llvm::FixedVectorType::get(b.getInt8Ty(), 16);
    return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_usdot, {sum->getType(), four},
                             {sum, b.CreateBitCast(bytes, four), b.CreateBitCast(weights, four)});
  }
  if (arm && target.has("dotprod")) return bySignedDots(b, sum, bytes, weights);
  return byPlaces(b, sum, bytes, weights);
}

llvm::Value* pairDot(llvm::IRBuilder<>& b, const Target& target, llvm::Value* sum, llvm::Value* pairs,
                     llvm::Value* weights) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  llvm::Type* halves = llvm::FixedVectorType::get(b.getBFloatTy(), 2 * lanes);
  if (target.shape().halves) {
    llvm::Value *x = b.CreateBitCast(pairs, halves), *w = b.CreateBitCast(weights, halves);
    if (target.machine().getTargetTriple().isX86())
      return call(b,
                  ofWidth(lanes, llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128,
                          llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256, llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512),
                  {sum, x, w});
    return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_bfdot, {sum->getType(), halves}, {sum, x, w});
  }
  // A bf16 is the upper half of an f32.
  constexpr uint64_t kHalf = 16, kUpper = 0xFFFF0000;
  const auto product = [&](llvm::Value* x, llvm::Value* w, llvm::Value* to) {
    return b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {to->getType()},
                             {b.CreateBitCast(x, to->getType()), b.CreateBitCast(w, to->getType()), to});
  };
  llvm::Value* upper = llvm::ConstantInt::get(pairs->getType(), kUpper);
  sum = product(b.CreateShl(pairs, kHalf), b.CreateShl(weights, kHalf), sum);
  return product(b.CreateAnd(pairs, upper), b.CreateAnd(weights, upper), sum);
}

llvm::Value* blockDot(llvm::IRBuilder<>& b, const Target&, llvm::Value* sum, llvm::Value* rows, llvm::Value* columns) {
  if (sum->getType()->getScalarType()->isFloatTy()) {
    llvm::Type* halves = llvm::FixedVectorType::get(b.getBFloatTy(), 8);
    return call(b, llvm::Intrinsic::aarch64_neon_bfmmla,
                {sum, b.CreateBitCast(rows, halves), b.CreateBitCast(columns, halves)});
  }
  llvm::Type* bytes = llvm::FixedVectorType::get(b.getInt8Ty(), 16);
  return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_usmmla, {sum->getType(), bytes},
                           {sum, b.CreateBitCast(rows, bytes), b.CreateBitCast(columns, bytes)});
}

}  // namespace aglow::codegen
