// Batch norm with the batch's own statistics, as it trains.
#pragma once

#include "graph/wide.h"

namespace aglow {

struct TrainedBatchNorm {
  Value y;
  Value mean, variance;  // of each channel (axis 1), [channel], in f32 or wider
};

// (x - mean) / sqrt(variance + epsilon) * scale + bias, with what x has over all axes but the channels'. Everything
// keeps x's rank, so that gradients find one difference from the mean and not several shapes of it.
inline TrainedBatchNorm trainedBatchNorm(Builder& b, Value x, Value scale, Value bias, double epsilon) {
  std::vector<int64_t> axes, along(static_cast<size_t>(x.rank()), 1);
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis != 1) axes.push_back(axis);
  along[1] = x.dim(1);
  const Value wide = widened(b, x);
  const auto channelwise = [&](Value v) { return b.reshaped(b.casted(v, wide.kind()), along); };
  const Value mean = b.reduced(wide, "mean", axes), difference = b.sub(wide, mean);
  const Value variance = b.reduced(b.mul(difference, difference), "mean", axes);
  const Value deviation = b.sqrt(b.add(variance, b.scalarLike(variance, epsilon)));
  const Value factor = b.mul(channelwise(scale), b.reciprocal(deviation));
  const Value y = b.add(b.mul(difference, factor), channelwise(bias));
  return {b.casted(y, x.kind()), b.reshaped(mean, {x.dim(1)}), b.reshaped(variance, {x.dim(1)})};
}

// The old statistic moved towards the batch's by 1 - momentum.
inline Value runningStatistic(Builder& b, Value old, Value now, double momentum) {
  const Value kept = b.mul(b.casted(old, now.kind()), b.scalarLike(now, momentum));
  return b.casted(b.add(kept, b.mul(now, b.scalarLike(now, 1 - momentum))), old.kind());
}

}  // namespace aglow
