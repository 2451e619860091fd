// Many points combined into each of a number of results: by an item, by items of a group that share a result, or in
// parts, which a second kernel combines. Which items combine what follows from the sizes alone, so that every run gives
// the same bits.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
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

// Local memory in which items of a group hand their sums on: as many sums at once as half of it has room for, since
// rows may be kept in the other half. The rest follow in the same places.
class LocalSums {
public:
  // Sums of these kinds, of which at most so many meet; each has so many places in all arrays together.
  LocalSums(std::span<const ElemKind> kinds, int64_t meet, int64_t places, const DeviceShape& shape);

  int64_t atOnce() const { return atOnce_; }
  // An array with so many places for each sum.
  std::string array(std::string_view name, int64_t places) const;
  // A pointer to the places of the sum that is the `slot`th at once.
  std::string pointer(ElemKind kind, std::string_view name, std::string_view array, int64_t slot, int64_t places) const;

private:
  ElemKind kind_;  // of all sums, or the unsigned integer that has the bytes of the widest
  int64_t atOnce_;
};

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
