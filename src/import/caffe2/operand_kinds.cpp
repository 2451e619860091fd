#include "import/caffe2/operand_kinds.h"

#include <string_view>

namespace aglow::caffe2 {

namespace {

struct Expected {
  std::string_view prefix;  // of the operator's type
  size_t operand;
  ElemKind kind;
};

// The first row whose prefix and operand fit counts.
constexpr Expected kExpected[] = {
    {"SparseLengthsWeighted", 2, ElemKind::Int64},
    {"SparseLengthsWeighted", 3, ElemKind::Int32},
    {"SparseLengthsWeighted", 1, ElemKind::Float32},
    {"SparseLengths", 1, ElemKind::Int64},
    {"SparseLengths", 2, ElemKind::Int32},
    {"LengthsWeightedSum", 1, ElemKind::Float32},
    {"LengthsWeightedSum", 2, ElemKind::Int32},
    {"LengthsToRanges", 0, ElemKind::Int32},
    {"LengthsToSegmentIds", 0, ElemKind::Int32},
    {"LengthsToWeights", 0, ElemKind::Int32},
    {"LengthsRangeFill", 0, ElemKind::Int32},
    {"LengthsTile", 1, ElemKind::Int32},
    {"LengthsPad", 1, ElemKind::Int32},
    {"LengthsTopK", 1, ElemKind::Int32},
    {"Lengths", 1, ElemKind::Int32},
    {"ReversePackedSegs", 1, ElemKind::Int32},
    {"PackSegments", 0, ElemKind::Int32},
    {"UnpackSegments", 0, ElemKind::Int32},
    {"SegmentIdsToLengths", 0, ElemKind::Int32},
    {"SortedSegment", 1, ElemKind::Int32},
    {"UnsortedSegment", 1, ElemKind::Int32},
    {"SparseToDenseMask", 0, ElemKind::Int64},
    {"SparseToDenseMask", 3, ElemKind::Int32},
    {"SparseToDense", 0, ElemKind::Int64},
    {"BatchSparseToDense", 0, ElemKind::Int64},
    {"BatchSparseToDense", 1, ElemKind::Int64},
    {"GatherRanges", 1, ElemKind::Int32},
    {"Gather", 1, ElemKind::Int64},
    {"BatchGather", 1, ElemKind::Int64},
    {"ScatterAssign", 1, ElemKind::Int64},
    {"OneHot", 0, ElemKind::Int64},
    {"BatchOneHot", 1, ElemKind::Int32},
    {"FillExamplesWithIndicator", 1, ElemKind::Bool},
    {"And", 0, ElemKind::Bool},
    {"And", 1, ElemKind::Bool},
    {"Or", 0, ElemKind::Bool},
    {"Or", 1, ElemKind::Bool},
    {"Xor", 0, ElemKind::Bool},
    {"Xor", 1, ElemKind::Bool},
    {"Not", 0, ElemKind::Bool},
    {"Where", 0, ElemKind::Bool},
    {"Conditional", 0, ElemKind::Bool},
    {"HalfToFloat", 0, ElemKind::Float16},
};

}  // namespace

void OperandKinds::add(const onnx::Node& op) {
  for (size_t i = 0; i < op.inputs.size(); ++i)
    for (const Expected& expected : kExpected)
      if (expected.operand == i && op.opType.starts_with(expected.prefix)) {
        kinds_.try_emplace(op.inputs[i], expected.kind);
        break;
      }
}

ElemKind OperandKinds::of(const std::string& blob) const {
  const auto it = kinds_.find(blob);
  return it == kinds_.end() ? ElemKind::Float32 : it->second;
}

}  // namespace aglow::caffe2
