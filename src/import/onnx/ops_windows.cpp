// Col2Im: windows put back together to the image that they were cut from.
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

void col2Im(OpImport& c) {
  c.out(c.b.col2Im(c.in(0), {.sizes = c.constantInts(1),
                             .kernel = c.constantInts(2),
                             .strides = c.ints("strides"),
                             .pads = c.ints("pads"),
                             .dilations = c.ints("dilations")}));
}

}  // namespace

std::span<const OpRow> windowRows() {
  static constexpr OpRow rows[] = {{"Col2Im", col2Im, 18}};
  return rows;
}

}  // namespace aglow::onnx
