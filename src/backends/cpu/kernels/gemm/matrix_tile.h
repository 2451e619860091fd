// Rows by panels of 32 columns on matrix registers (AMX): 32 rows by a panel at a time, 64 bytes of the depth in each
// step. For kernels only.
#pragma once

#include "backends/cpu/kernels/gemm/matrix_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

#define AGLOW_MATRIX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

namespace aglow::cpu {

inline constexpr int kTileRows = 16, kTileBytes = 64, kMatrixLanes = 16;
inline constexpr int64_t kGroupBytes = 4, kPanelRow = 2 * kTileBytes;  // what is multiplied together; all of a panel

// How many rows and bytes a row of each register has, as the instruction reads it.
struct alignas(64) TileConfig {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
};

// A second register without rows does as if it had one.
AGLOW_MATRIX AGLOW_INLINE void configureTiles(int64_t rows) {
  const auto upper = static_cast<uint8_t>(smaller(rows, kTileRows));
  const auto lower = static_cast<uint8_t>(larger(rows - kTileRows, 1));
  TileConfig config = {.palette = 1, .start = 0, .reserved = {}, .bytes = {}, .rows = {}};
  AGLOW_UNROLL for (int i = 0; i < 8; ++i) config.bytes[i] = kTileBytes;
  config.rows[0] = config.rows[1] = config.rows[4] = upper;
  config.rows[2] = config.rows[3] = config.rows[5] = lower;
  config.rows[6] = config.rows[7] = kTileRows;
  __builtin_ia32_tile_loadconfig(&config);
}

template <bool Halves>
AGLOW_MATRIX AGLOW_INLINE void addProducts(const uint8_t* a0, const uint8_t* a1, int64_t aRow, const uint8_t* b) {
  __builtin_ia32_tileloadd64(4, a0, aRow);
  __builtin_ia32_tileloadd64(6, b, kPanelRow);
  __builtin_ia32_tileloadd64(7, b + kTileBytes, kPanelRow);
  __builtin_ia32_tileloadd64(5, a1, aRow);
  if constexpr (Halves) {
    __builtin_ia32_tdpbf16ps(0, 4, 6);
    __builtin_ia32_tdpbf16ps(1, 4, 7);
    __builtin_ia32_tdpbf16ps(2, 5, 6);
    __builtin_ia32_tdpbf16ps(3, 5, 7);
  } else {
    __builtin_ia32_tdpbusd(0, 4, 6);
    __builtin_ia32_tdpbusd(1, 4, 7);
    __builtin_ia32_tdpbusd(2, 5, 6);
    __builtin_ia32_tdpbusd(3, 5, 7);
  }
}

// Rows of a product that lie at `at`, `first` being the first of them.
struct MatrixRows {
  const uint8_t* at;
  int64_t first, count;
};

struct ImagePosition {
  int64_t image, position;
};

AGLOW_INLINE ImagePosition positionOf(const MatrixDesc& d, int64_t row) {
  if (d.rows == d.positions) return {.image = 0, .position = row};
  return {.image = row / d.positions, .position = row % d.positions};
}

// A unit out of rowGroups * panelGroups.
template <bool Halves, class Sum>
AGLOW_MATRIX AGLOW_INLINE void multiplyRows(const MatrixDesc& d, void* const* p, const MatrixRows& rows, int64_t unit,
                                            Epilogue<kMatrixLanes, Sum>* epilogue) {
  using V = Lanes<Sum, kMatrixLanes>;
  const auto* b = static_cast<const uint8_t*>(p[2]);
  const int64_t pairs = roundedUp(rows.count, 2 * kTileRows), panelBytes = d.groups * kPanelRow;
  constexpr int64_t kStepBytes = kTileRows * kPanelRow;
  const int64_t steps = d.groups / kTileRows, rest = d.groups % kTileRows;
  alignas(64) Sum results[2][2][kTileRows][kMatrixLanes];
  alignas(64) uint8_t last[kStepBytes];  // what a panel has after its last whole step, and zeros
  if (rest != 0)
    for (int64_t i = 0; i < kStepBytes; ++i) last[i] = 0;
  const int64_t rowGroup = unit / d.panelGroups, panelGroup = unit % d.panelGroups;
  const int64_t pair0 = rowGroup * pairs / d.rowGroups, pair1 = (rowGroup + 1) * pairs / d.rowGroups;
  const int64_t panel0 = panelGroup * d.panels / d.panelGroups, panel1 = (panelGroup + 1) * d.panels / d.panelGroups;
  int64_t configured = 0;
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    const uint8_t* own = b + panel * panelBytes;
    if (rest != 0)
      for (int64_t i = 0; i < rest * kPanelRow; ++i) last[i] = own[steps * kStepBytes + i];
    for (int64_t pair = pair0; pair < pair1; ++pair) {
      const int64_t row = pair * 2 * kTileRows, count = smaller(2 * kTileRows, rows.count - row);
      if (count != configured) configureTiles(count);
      configured = count;
      const uint8_t* a0 = rows.at + row * d.rowBytes;
      const uint8_t* a1 = count > kTileRows ? a0 + kTileRows * d.rowBytes : a0;
      // All pairs of rows together ask for the next panel.
      const int64_t lines = d.ahead && panel + 1 < panel1 ? roundedUp(2 * kTileRows, pair1 - pair0) : 0;
      const uint8_t* next = own + panelBytes + (pair - pair0) * steps * lines * kTileBytes;
      __builtin_ia32_tilezero(0);
      __builtin_ia32_tilezero(1);
      __builtin_ia32_tilezero(2);
      __builtin_ia32_tilezero(3);
      AGLOW_ROLLED for (int64_t step = 0; step < steps; ++step) {
        for (int64_t i = 0; i < lines; ++i) __builtin_prefetch(next + (step * lines + i) * kTileBytes, 0, 2);
        addProducts<Halves>(a0 + step * kTileBytes, a1 + step * kTileBytes, d.rowBytes, own + step * kStepBytes);
      }
      if (rest != 0) addProducts<Halves>(a0 + steps * kTileBytes, a1 + steps * kTileBytes, d.rowBytes, last);
      constexpr int64_t kRow = kMatrixLanes * sizeof(Sum);
      __builtin_ia32_tilestored64(0, results[0][0], kRow);
      __builtin_ia32_tilestored64(1, results[0][1], kRow);
      __builtin_ia32_tilestored64(2, results[1][0], kRow);
      __builtin_ia32_tilestored64(3, results[1][1], kRow);
      AGLOW_UNROLL for (int c = 0; c < 2; ++c) {
        const int64_t vector = panel * 2 + c;
        if (vector >= d.vectors) continue;
        AGLOW_ROLLED for (int64_t r = 0; r < count; ++r) {
          const V sums = loadLanes<V>(results[r / kTileRows][c][r % kTileRows]);
          if (d.positions == 0) {
            epilogue(sums, p, 0, 0, rows.first + row + r, vector * kMatrixLanes,
                     smaller(kMatrixLanes, d.columns - vector * kMatrixLanes));
          } else {
            const ImagePosition at = positionOf(d, rows.first + row + r);
            epilogue(sums, p, at.image, vector, at.position, 0, kMatrixLanes);
          }
        }
      }
    }
  }
  __builtin_ia32_tilerelease();
}

}  // namespace aglow::cpu
