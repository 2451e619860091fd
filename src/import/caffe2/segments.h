// Segments of rows: neighbouring rows that belong together, given by their lengths. The lengths are values of a run, so
// they are computed with, never looked at.
#pragma once

#include "import/caffe2/args.h"

namespace aglow::caffe2 {

class Segments {
public:
  // For `rows` rows. Rows after the last segment belong to none.
  Segments(Builder& b, Value lengths, int64_t rows);

  int64_t count() const { return count_; }
  // Of each row, as i64: its segment (count() for none).
  Value ids() const { return ids_; }
  // Of each row, as i64: its place in its segment.
  Value places() const;
  // Of each segment, as i64.
  Value lengths() const { return lengths_; }
  Value starts() const;

  // Rows of each segment combined into one ("add" or "max"); segments without rows are 0.
  Value combined(Value rows, const std::string& reduction) const;
  // The sum divided by the number of rows.
  Value mean(Value rows) const;

private:
  Builder& b_;
  int64_t count_;
  Value lengths_, ends_, ids_;
};

// Rows summed or otherwise combined by explicit ids into `count` results; the empty ones are 0.
Value combinedById(Builder& b, Value rows, Value ids, int64_t count, const std::string& reduction);
// How many of the ids name each of `count` results, as i64.
Value countedById(Builder& b, Value ids, int64_t count);
// A value a row, so that it broadcasts against rows of that rank.
Value perRow(Builder& b, Value vector, Value rows);

}  // namespace aglow::caffe2
