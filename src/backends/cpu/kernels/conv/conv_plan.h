// Convolutions on maps with blocked channels, [N, ceil(C / lanes), H, W, lanes], as plans of CPU kernels.
#pragma once

#include "backends/cpu/kernels/plan.h"

namespace aglow::cpu {

struct ConvShape {
  int64_t images = 1;
  int64_t channels = 1, height = 1, width = 1;  // of the input
  int64_t outputs = 1, outHeight = 1, outWidth = 1;
  int64_t kh = 1, kw = 1, sy = 1, sx = 1, py = 0, px = 0, dy = 1, dx = 1;
  int64_t bottom = 0, right = 0;  // padding at the ends
  int64_t group = 1;
  int64_t members = 1;  // of a group, where blocks hold several
  bool planar = false;  // the input is [N, C, H, W]
};

// The filter is packed as packFilter does.
KernelPlan planBlockedConv(const ConvShape& shape, const Machine& machine, const CutWish& wish = {});
// Of narrow elements in blocks of `lanes` channels, of which a group has as many as are multiplied together.
KernelPlan planNarrowConv(const ConvShape& shape, ElemKind kind, int64_t lanes, int64_t outside, const Machine& machine,
                          const CutWish& wish = {});

// The same on matrix registers: one group, in blocks of as many channels as a vector has lanes.
KernelPlan planWindowRows(const ConvShape& shape, ElemKind kind, int64_t outside, const Machine& machine);

// 3x3 windows in steps of 1; the filter is transformed as winogradFilter does, for tiles of tile x tile results.
KernelPlan planWinogradConv(const ConvShape& shape, int64_t tile, const Machine& machine);

struct PlaneOptions {
  bool countPadding = false;  // means
  bool bytes = false;         // products of bytes
  int64_t outside = 0;        // what bytes outside of the input are
};

// As many output channels as input channels, by a kernel of plane.kernel.cpp: depthwise, byte_depthwise, grouped,
// max_planes or mean_planes.
KernelPlan planPlanes(std::string_view kernel, const ConvShape& shape, const PlaneOptions& options,
                      const Machine& machine, const CutWish& wish = {});

}  // namespace aglow::cpu
