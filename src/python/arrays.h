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

// An array (row by row without gaps, its elements as wide as the kind's) or None or a list of arrays. TypeError for
// anything else: the Python part of the module has made them fit.
ModelValue valueOf(nanobind::handle object, ElemKind kind);
// (shape, list of bytes) or None or a list of such pairs.
ModelValue stringsOf(nanobind::handle object);
// The reverse: (name of the kind, array), ("string", (shape, list of bytes)), a list of such pairs, or None. Bytes that
// others see as well are copied.
nanobind::object objectOf(ModelValue value);

}  // namespace aglow::python
