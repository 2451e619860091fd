// Many points combined into each of a number of results: by an item, by items of a group that share a result, or in
// parts, which a second kernel combines. Which items combine what follows from the sizes alone, so that every run gives
// the same bits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/clike/kernel_writer.h"
#include "codegen/nest/combination.h"

namespace aglow::codegen {

struct ReductionSizes {
  int64_t results = 1, points = 1;  // of each result
  int64_t beside = 1;               // results whose elements lie side by side; 1: points of one result do
  int64_t sums = 1;                 // that each result has
  bool inStep = false;  // neighbours, of results or of points, are combined alike and lie at equal distances
};

// How the work is cut. Where items do not share local memory, what items of a group would do is done by one.
struct ReductionCut {
  int64_t across = 1;  // results of a group
  int64_t deep = 1;    // items of a group for each of them
  int64_t parts = 1;   // of the points, each by groups of its own
  int64_t part = 1;    // points of one

  int64_t items() const { return across * deep; }
};
ReductionCut reductionCut(const ReductionSizes& sizes, const DeviceShape& shape);
// Bytes of working memory for sums of parts.
int64_t reductionScratch(const ReductionSizes& sizes, const DeviceShape& shape);

struct Reduction {
  ReductionSizes sizes;
  // Indices of a result are i0, i1, ... and those of a point follow them; or there are none, but the numbers `row` and
  // `at` of both.
  std::vector<int64_t> results = {}, points = {};
  std::vector<nest::Combination> sums;  // r0, r1, ...
  // Statements that take the sums of other points in, under these names; none: each sum is combined by itself.
  std::function<std::string(const std::vector<std::string>& others)> join = {};
  // Declares operands, once for each kernel.
  std::function<void(KernelWriter&)> operands;
  std::string row = {};  // statements on a result, before its points and before `finish`
  std::string each;      // on a point: what it does to the sums
  // On a result with its sums.
  std::function<std::string(KernelWriter&)> finish;
};

std::vector<Launch> reductionLaunches(const KernelWriter& writer, const Reduction& reduction);

}  // namespace aglow::codegen
