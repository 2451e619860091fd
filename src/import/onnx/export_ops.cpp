// The table of standard forms. A row holds for the element kinds that the ONNX operator takes; what no row holds for,
// or what its form refuses, keeps its own domain.
#include "import/onnx/export_ops.h"

#include <algorithm>

#include "import/onnx/export_forms.h"
#include "ops/kind_sets.h"

namespace aglow::onnx {

namespace {

using namespace export_kinds;  // NOLINT: the words of the table
using namespace forms;         // NOLINT

struct StandardRow {
  Op op;
  std::string_view name;  // of the ONNX operator; some forms choose it themselves
  KindSet kinds;          // of operands with a type letter (of the first, where there is none)
  bool (*write)(Form&) = plain;
};

constexpr StandardRow kRows[] = {
    {Op::Add, "Add", kNumbers},
    {Op::Sub, "Sub", kNumbers},
    {Op::Mul, "Mul", kNumbers},
    {Op::Div, "Div", kNumbers},
    {Op::Mod, "Mod", kSigned | kUnsigned},
    {Op::Rem, "Mod", kNumbers, remainder},
    {Op::Pow, "Pow", kFloats | kindSet(Int32, Int64)},
    {Op::Min, "Min", kNumbers},
    {Op::Max, "Max", kNumbers},
    {Op::Neg, "Neg", kFloats | kSigned},
    {Op::Abs, "Abs", kNumbers},
    {Op::Sign, "Sign", kNumbers},
    {Op::Floor, "Floor", kFloats},
    {Op::Ceil, "Ceil", kFloats},
    {Op::Round, "Round", kFloats},
    {Op::Reciprocal, "Reciprocal", kFloats},
    {Op::Sqrt, "Sqrt", kFloats},
    {Op::Exp, "Exp", kFloats},
    {Op::Log, "Log", kFloats},
    {Op::Sin, "Sin", kFloats},
    {Op::Cos, "Cos", kFloats},
    {Op::Tan, "Tan", kFloats},
    {Op::Asin, "Asin", kFloats},
    {Op::Acos, "Acos", kFloats},
    {Op::Atan, "Atan", kFloats},
    {Op::Sinh, "Sinh", kFloats},
    {Op::Cosh, "Cosh", kFloats},
    {Op::Tanh, "Tanh", kFloats},
    {Op::Asinh, "Asinh", kFloats},
    {Op::Acosh, "Acosh", kFloats},
    {Op::Atanh, "Atanh", kFloats},
    {Op::Erf, "Erf", kFloats},
    {Op::Equal, "Equal", kElements},
    {Op::Less, "Less", kNumbers},
    {Op::LessOrEqual, "LessOrEqual", kNumbers},
    {Op::IsNan, "IsNaN", kFloats | kEights},
    {Op::IsInf, "IsInf", kFloats | kEights},
    {Op::And, "And", kBool},
    {Op::Or, "Or", kBool},
    {Op::Xor, "Xor", kBool},
    {Op::Not, "Not", kBool},
    {Op::BitAnd, "BitwiseAnd", kSigned | kUnsigned},
    {Op::BitOr, "BitwiseOr", kSigned | kUnsigned},
    {Op::BitXor, "BitwiseXor", kSigned | kUnsigned},
    {Op::BitNot, "BitwiseNot", kSigned | kUnsigned},
    {Op::ShiftLeft, "BitShift", kUnsigned, shiftLeft},
    {Op::ShiftRight, "BitShift", kUnsigned, shiftRight},
    {Op::Where, "Where", kElements},
    {Op::Clip, "Clip", kNumbers, clip},
    {Op::Expand, "Expand", kElements, withShape},
    {Op::Relu, "Relu", kFloats | kSigned},
    {Op::LeakyRelu, "LeakyRelu", kFloats},
    {Op::PRelu, "PRelu", kFloats | kWords, pRelu},
    {Op::ThresholdedRelu, "ThresholdedRelu", kFloats},
    {Op::Elu, "Elu", kFloats},
    {Op::Celu, "Celu", kindSet(Float32)},
    {Op::Selu, "Selu", kFloats},
    {Op::Sigmoid, "Sigmoid", kFloats},
    {Op::HardSigmoid, "HardSigmoid", kFloats},
    {Op::HardSwish, "HardSwish", kFloats},
    {Op::Swish, "Swish", kFloats},
    {Op::Softplus, "Softplus", kFloats},
    {Op::Softsign, "Softsign", kFloats},
    {Op::Mish, "Mish", kFloats},
    {Op::Shrink, "Shrink", kFloats & ~kindSet(BFloat16)},
    {Op::Gelu, "Gelu", kFloats},
    {Op::GeluTanh, "Gelu", kFloats, geluTanh},
    {Op::Cast, "Cast", kMoved, cast},
    {Op::Splat, "Expand", kElements, splat},
    {Op::Reshape, "Reshape", kMoved, reshape},
    {Op::Transpose, "Transpose", kMoved, transpose},
    {Op::Slice, "Slice", kElements, slice},
    {Op::Concat, "Concat", kElements, concat},
    {Op::Pad, "Pad", kMoved, pad},
    {Op::Reduce, "", kElements, reduce},
    {Op::ArgReduce, "", kNumbers, argReduce},
    {Op::Scan, "CumSum", kFloats | kWords, scan},
    {Op::TopK, "TopK", kNumbers, topK},
    {Op::MatMul, "MatMul", kFloats | kWords},
    {Op::Conv, "Conv", kFloats, conv},
    {Op::ConvTranspose, "ConvTranspose", kFloats, conv},
    {Op::MaxPool, "MaxPool", kFloats | kindSet(Int8, UInt8), pool},
    {Op::MaxPoolWithIndices, "MaxPool", kFloats | kindSet(Int8, UInt8), pool},
    {Op::AvgPool, "AveragePool", kFloats, pool},
    {Op::Gather, "Gather", kElements},
    {Op::GatherElements, "GatherElements", kElements},
    {Op::GatherND, "GatherND", kElements, byTuples},
    {Op::ScatterElements, "ScatterElements", kElements},
    {Op::ScatterND, "ScatterND", kElements, byTuples},
    {Op::Softmax, "Softmax", kFloats},
    {Op::LogSoftmax, "LogSoftmax", kFloats},
    {Op::BatchNorm, "BatchNormalization", kFloats, batchNorm},
    {Op::LayerNorm, "LayerNormalization", kFloats, layerNorm},
    {Op::RMSNorm, "RMSNormalization", kFloats, rmsNorm},
    {Op::InstanceNorm, "InstanceNormalization", kFloats, instanceNorm},
    {Op::GroupNorm, "GroupNormalization", kFloats, groupNorm},
    {Op::LRN, "LRN", kFloats, lrn},
    {Op::QuantizeLinear, "QuantizeLinear", kFloats & ~kindSet(Float64), quantizeLinear},
    {Op::DequantizeLinear, "DequantizeLinear",
     kEights | kindSet(Int8, UInt8, Int16, UInt16, Int32, Int4, UInt4, Float4E2M1), dequantizeLinear},
    {Op::Attention, "Attention", kFloats, attention},
    {Op::RNN, "RNN", kFloats, recurrent},
    {Op::GRU, "GRU", kFloats, recurrent},
    {Op::LSTM, "LSTM", kFloats, recurrent},
    {Op::Resize, "Resize", kElements, resize},
};

bool takesKinds(const StandardRow& row, const aglow::Node& node) {
  const OpDef& def = node.def();
  for (int i = 0; i < node.inputCount(); ++i) {
    const OperandDef& operand = def.in[std::min(i, def.in.size() - 1)];
    if (node.input(i) && (operand.typeVar != 0 || i == 0) && operand.kinds != kinds::bools &&
        !contains(row.kinds, node.input(i).kind()))
      return false;
  }
  return true;
}

}  // namespace

bool writeStandard(const aglow::Node& node, ExportScope& scope, Node& out) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const StandardRow& r) { return r.op == node.op(); });
  if (row == std::end(kRows) || !takesKinds(*row, node)) return false;
  Node standard;
  standard.name = out.name;
  standard.opType = row->name;
  Form form(node, scope, standard);
  if (!row->write(form)) return false;
  out = std::move(standard);
  return true;
}

}  // namespace aglow::onnx
