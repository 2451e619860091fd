// Products of bf16 and of bytes on matrix registers (AMX): 32 rows by a panel of 32 columns at a time, 64 bytes of the
// depth in each step.
#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

#define AGLOW_MATRIX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

namespace aglow::cpu {

constexpr int kTileRows = 16, kTileBytes = 64, kLanes = 16;

// How many rows and bytes a row of each register has, as the instruction reads it.
struct alignas(64) TileConfig {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
};

// What comes next from memory: in each step so many lines from `next` on are asked for.
struct Ahead {
  const uint8_t* next;
  int64_t lines;
};

template <bool Halves>
AGLOW_MATRIX AGLOW_INLINE void addProducts(const uint8_t* a0, const uint8_t* a1, int64_t aRow, const uint8_t* b,
                                           int64_t steps, const Ahead& ahead) {
  constexpr int64_t kPanelBytes = 2 * kTileBytes;
  __builtin_ia32_tilezero(0);
  __builtin_ia32_tilezero(1);
  __builtin_ia32_tilezero(2);
  __builtin_ia32_tilezero(3);
  AGLOW_ROLLED for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < ahead.lines; ++i)
      __builtin_prefetch(ahead.next + (step * ahead.lines + i) * kTileBytes, 0, 2);
    __builtin_ia32_tileloadd64(4, a0 + step * kTileBytes, aRow);
    __builtin_ia32_tileloadd64(6, b + step * kTileRows * kPanelBytes, kPanelBytes);
    __builtin_ia32_tileloadd64(7, b + step * kTileRows * kPanelBytes + kTileBytes, kPanelBytes);
    __builtin_ia32_tileloadd64(5, a1 + step * kTileBytes, aRow);
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
}

template <bool Halves, class Sum>
AGLOW_MATRIX AGLOW_INLINE int32_t matrixTiles(const MatrixDesc& d, void* const* p, int64_t begin, int64_t end,
                                              Epilogue<kLanes, Sum>* epilogue) {
  using V = Lanes<Sum, kLanes>;
  const uint8_t* a = static_cast<const uint8_t*>(p[1]);
  const uint8_t* b = static_cast<const uint8_t*>(p[2]);
  const int64_t pairs = roundedUp(d.rows, 2 * kTileRows), panelBytes = d.steps * kTileRows * 2 * kTileBytes;
  alignas(64) Sum results[2][2][kTileRows][kLanes];
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t rowGroup = unit / d.panelGroups, panelGroup = unit % d.panelGroups;
    const int64_t pair0 = rowGroup * pairs / d.rowGroups, pair1 = (rowGroup + 1) * pairs / d.rowGroups;
    const int64_t panel0 = panelGroup * d.panels / d.panelGroups, panel1 = (panelGroup + 1) * d.panels / d.panelGroups;
    int64_t configured = 0;
    for (int64_t panel = panel0; panel < panel1; ++panel)
      for (int64_t pair = pair0; pair < pair1; ++pair) {
        const int64_t row = pair * 2 * kTileRows, count = smaller(2 * kTileRows, d.rows - row);
        if (count != configured) {
          // A second register without rows does as if it had one.
          const auto upper = static_cast<uint8_t>(smaller(count, kTileRows));
          const auto lower = static_cast<uint8_t>(larger(count - kTileRows, 1));
          TileConfig config = {.palette = 1, .start = 0, .reserved = {}, .bytes = {}, .rows = {}};
          AGLOW_UNROLL for (int i = 0; i < 8; ++i) config.bytes[i] = kTileBytes;
          config.rows[0] = config.rows[1] = config.rows[4] = upper;
          config.rows[2] = config.rows[3] = config.rows[5] = lower;
          config.rows[6] = config.rows[7] = kTileRows;
          __builtin_ia32_tile_loadconfig(&config);
          configured = count;
        }
        const uint8_t* a0 = a + row * d.rowBytes;
        const uint8_t* a1 = count > kTileRows ? a0 + kTileRows * d.rowBytes : a0;
        // All pairs of rows together ask for the next panel.
        const int64_t lines = panel + 1 < panel1 ? roundedUp(2 * kTileRows, pair1 - pair0) : 0;
        const uint8_t* own = b + panel * panelBytes;
        const Ahead ahead{own + panelBytes + (pair - pair0) * d.steps * lines * kTileBytes, lines};
        addProducts<Halves>(a0, a1, d.rowBytes, own, d.steps, ahead);
        constexpr int64_t kRow = kLanes * sizeof(Sum);
        __builtin_ia32_tilestored64(0, results[0][0], kRow);
        __builtin_ia32_tilestored64(1, results[0][1], kRow);
        __builtin_ia32_tilestored64(2, results[1][0], kRow);
        __builtin_ia32_tilestored64(3, results[1][1], kRow);
        AGLOW_ROLLED for (int64_t r = 0; r < count; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c) {
          const int64_t vector = panel * 2 + c;
          if (vector < d.vectors)
            epilogue(loadLanes<V>(results[r / kTileRows][c][r % kTileRows]), p, 0, 0, row + r, vector * kLanes,
                     smaller(kLanes, d.columns - vector * kLanes));
        }
      }
    __builtin_ia32_tilerelease();
  }
  return kDone;
}

}  // namespace aglow::cpu

// Processes ask Linux before their first use of the registers; asking again changes nothing.
extern "C" int32_t aglow_matrix_permission(const aglow::cpu::MatrixDesc*, void* const*, int64_t, int64_t) {
  constexpr int64_t kArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18;
  int64_t result = kArchPrctl;
  asm volatile("syscall" : "+a"(result) : "D"(kRequestPermission), "S"(kTileData) : "rcx", "r11", "memory");
  return result == 0 ? aglow::cpu::kDone : aglow::cpu::kNoMatrix;
}

extern "C" AGLOW_MATRIX int32_t aglow_matrix_halves_w16(const aglow::cpu::MatrixDesc* d, void* const* p, int64_t begin,
                                                        int64_t end, aglow::cpu::Epilogue<16>* epilogue) {
  return aglow::cpu::matrixTiles<true, float>(*d, p, begin, end, epilogue);
}
extern "C" AGLOW_MATRIX int32_t aglow_matrix_bytes_w16(const aglow::cpu::MatrixDesc* d, void* const* p, int64_t begin,
                                                       int64_t end, aglow::cpu::Epilogue<16, int32_t>* epilogue) {
  return aglow::cpu::matrixTiles<false, int32_t>(*d, p, begin, end, epilogue);
}
