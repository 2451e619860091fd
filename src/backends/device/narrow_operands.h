// Products and convolutions of integers that are bytes and offsets.
#pragma once

#include "rewrite/pipeline.h"

namespace aglow::device {

// Makes of them ByteMatMul and ByteConv, whose kernels widen what they load.
Pass narrowOperandsPass();

}  // namespace aglow::device
