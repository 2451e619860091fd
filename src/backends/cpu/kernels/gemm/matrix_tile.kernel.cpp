// Products of bf16 and of bytes on matrix registers, and the permission to use them.
#include "backends/cpu/kernels/gemm/matrix_tile.h"

namespace aglow::cpu {

template <bool Halves, class Sum>
AGLOW_MATRIX AGLOW_INLINE int32_t matrixProducts(const MatrixDesc& d, void* const* p, int64_t begin, int64_t end,
                                                 Epilogue<kMatrixLanes, Sum>* epilogue) {
  const MatrixRows rows{.at = static_cast<const uint8_t*>(p[1]), .first = 0, .count = d.rows};
  for (int64_t unit = begin; unit < end; ++unit) multiplyRows<Halves, Sum>(d, p, rows, unit, epilogue);
  return kDone;
}

}  // namespace aglow::cpu

// Processes ask Linux before their first use of the registers; asking again changes nothing.
extern "C" int32_t aglow_matrix_permission(const void*, void* const*, int64_t, int64_t) {
  constexpr int64_t kArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18;
  int64_t result = kArchPrctl;
  asm volatile("syscall" : "+a"(result) : "D"(kRequestPermission), "S"(kTileData) : "rcx", "r11", "memory");
  return result == 0 ? aglow::cpu::kDone : aglow::cpu::kNoMatrix;
}

extern "C" AGLOW_MATRIX int32_t aglow_matrix_halves_w16(const aglow::cpu::MatrixDesc* d, void* const* p, int64_t begin,
                                                        int64_t end, aglow::cpu::Epilogue<16>* epilogue) {
  return aglow::cpu::matrixProducts<true, float>(*d, p, begin, end, epilogue);
}
extern "C" AGLOW_MATRIX int32_t aglow_matrix_bytes_w16(const aglow::cpu::MatrixDesc* d, void* const* p, int64_t begin,
                                                       int64_t end, aglow::cpu::Epilogue<16, int32_t>* epilogue) {
  return aglow::cpu::matrixProducts<false, int32_t>(*d, p, begin, end, epilogue);
}
