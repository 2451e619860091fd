// How the register-tile product goes about a shape: the height of tiles, units of work, passes and prefetches.
#pragma once

#include "backends/cpu/kernels/gemm/tile_desc.h"
#include "backends/cpu/kernels/plan.h"

namespace aglow::cpu {

// The shape of a product of matrices: the channels of a position side by side, one tap, one image. The rest of the
// fields that say where operands lie and how large they are is for the caller to change.
TileDesc matrixTiles(int64_t rows, int64_t depth, int64_t columns, const Machine& machine);

enum class TileElement : uint8_t { Float, FourBytes, TwoHalves };

// Of an operand of narrow elements: how they are multiplied, and how many of them together.
TileElement tileElementOf(ElemKind kind);
int64_t elementsTogether(ElemKind kind);
// Whether there are kernels for them.
Decision multipliesPairs(ElemKind kind, const Machine& machine);

// Parts that units should fall into: of the positions (rows of a matrix), or of the panels (its columns).
struct TileCut {
  enum class Along : uint8_t { Positions, Panels };
  Along along = Along::Positions;
  int64_t parts = 1;
};

// Fills in all that follows from the shape, and gives the step; its kernel has an epilogue. The descriptor's partial
// sums start at desc.partial and take partialElements(desc). A cut that cannot be, or would not keep what the parts
// share in the cache, is taken back.
KernelStep planTiles(TileDesc& desc, const Machine& machine, std::optional<TileCut>& cut,
                     TileElement element = TileElement::Float);
KernelStep planTiles(TileDesc& desc, const Machine& machine, TileElement element = TileElement::Float);
int64_t partialElements(const TileDesc& desc);

// Columns of a tile at most: two vectors for each, their weights and one operand must fit into the registers.
int64_t highestTile(const Machine& machine);

// How much of a sum over `depth` products is taken in f32: even parts, each short enough to lose little.
int64_t spanDepth(int64_t depth);

double tileFlops(const TileDesc& desc, const Machine& machine);

}  // namespace aglow::cpu
