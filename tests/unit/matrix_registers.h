// Registers of matrices in software, for kernels that are compiled into a test after this: what they do with rows,
// strides and sums shows on every processor.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace aglow::cpu {

class MatrixRegisters {
public:
  static MatrixRegisters& ofThread() {
    static thread_local MatrixRegisters registers;
    return registers;
  }

  // As the processor reads it: how many bytes a row of each register has, and how many rows.
  void configure(const void* config) {
    constexpr size_t kBytesAt = 16, kRowsAt = 48;
    const auto* from = static_cast<const uint8_t*>(config);
    for (size_t i = 0; i < kCount; ++i) {
      std::memcpy(&bytes_[i], from + kBytesAt + 2 * i, sizeof(uint16_t));
      rows_[i] = from[kRowsAt + i];
      zero(static_cast<int>(i));
    }
  }
  void zero(int r) { std::memset(data_[r], 0, sizeof data_[r]); }
  void load(int r, const void* from, int64_t stride) {
    zero(r);
    for (int row = 0; row < rows_[r]; ++row)
      std::memcpy(data_[r][row], static_cast<const uint8_t*>(from) + row * stride, bytes_[r]);
  }
  void store(int r, void* to, int64_t stride) const {
    for (int row = 0; row < rows_[r]; ++row)
      std::memcpy(static_cast<uint8_t*>(to) + row * stride, data_[r][row], bytes_[r]);
  }
  void addBytes(int sum, int a, int b) {
    each<int32_t>(sum, a, b, [](int32_t total, const uint8_t* x, const uint8_t* w) {
      for (int i = 0; i < kGroup; ++i) total += x[i] * static_cast<int8_t>(w[i]);
      return total;
    });
  }
  void addHalves(int sum, int a, int b) {
    each<float>(sum, a, b, [](float total, const uint8_t* x, const uint8_t* w) {
      for (int i = 0; i < kGroup; i += 2) total += half(x + i) * half(w + i);
      return total;
    });
  }

private:
  static constexpr int kCount = 8, kRows = 16, kBytes = 64, kGroup = 4;

  static float half(const uint8_t* from) {
    constexpr int kUpper = 16;
    uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << kUpper);
  }

  template <class T, class Add>
  void each(int sum, int a, int b, Add add) {
    for (int row = 0; row < rows_[sum]; ++row)
      for (int group = 0; group < bytes_[a] / kGroup; ++group)
        for (int column = 0; column < bytes_[sum] / kGroup; ++column) {
          T total;
          std::memcpy(&total, data_[sum][row] + column * kGroup, sizeof(T));
          total = add(total, data_[a][row] + group * kGroup, data_[b][group] + column * kGroup);
          std::memcpy(data_[sum][row] + column * kGroup, &total, sizeof(T));
        }
  }

  uint8_t data_[kCount][kRows][kBytes] = {};
  uint16_t bytes_[kCount] = {};
  uint8_t rows_[kCount] = {};
};

}  // namespace aglow::cpu

#define __builtin_ia32_tile_loadconfig(config) ::aglow::cpu::MatrixRegisters::ofThread().configure(config)
#define __builtin_ia32_tilerelease() static_cast<void>(0)
#define __builtin_ia32_tilezero(r) ::aglow::cpu::MatrixRegisters::ofThread().zero(r)
#define __builtin_ia32_tileloadd64(r, from, stride) ::aglow::cpu::MatrixRegisters::ofThread().load(r, from, stride)
#define __builtin_ia32_tilestored64(r, to, stride) ::aglow::cpu::MatrixRegisters::ofThread().store(r, to, stride)
#define __builtin_ia32_tdpbusd(sum, a, b) ::aglow::cpu::MatrixRegisters::ofThread().addBytes(sum, a, b)
#define __builtin_ia32_tdpbf16ps(sum, a, b) ::aglow::cpu::MatrixRegisters::ofThread().addHalves(sum, a, b)
