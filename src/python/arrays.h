// Arrays of Python as tensors and back, without a copy: bytes stay where they are, and each side keeps what it uses.
#pragma once

#include <nanobind/nanobind.h>

#include "graph/model_value.h"
#include "tensor/tensor.h"

namespace aglow::python {

// Keeps a Python object alive; may be dropped by any thread, with or without the GIL.
std::shared_ptr<const void> keep(nanobind::object object);

// The same values in memory of its own.
Tensor copyOf(const Tensor& tensor);

// A tensor is a pair: (name of the kind, array) or ("string", (shape, list of bytes)). A sequence is a list of pairs,
// an empty optional None. Arrays lie row by row without gaps, their elements as wide as the kind's. TypeError for
// anything else: the Python part of the module has made them fit.
ModelValue valueOf(nanobind::handle object);
// The same form. Bytes that others see as well are copied.
nanobind::object objectOf(ModelValue value);

// An array of another library, of a kind that numpy lacks: (name of the kind, its bits as an array of numpy), which
// look at the same memory. TypeError where DLPack tells of no such array on the host.
nanobind::object bitsOf(nanobind::handle foreign);
// The way back: bits that are elements of a kind, as an object with __dlpack__.
nanobind::object exported(const std::string& kind, nanobind::handle bits);

}  // namespace aglow::python
