// Between real values and quantized ones, with one scale and offset, or one of each for each index of an axis.
#include <algorithm>

#include "reference/arithmetic.h"
#include "reference/axis_lines.h"
#include "reference/reference.h"

namespace aglow::reference {

namespace {

// Calls f(first, count, scale, offset) for each run of elements that share their parameters.
template <class F>
void forEachScale(const Type& quantized, F&& f) {
  const QuantParams& quant = quantized.quant();
  if (quant.axis < 0) {
    f(int64_t{0}, quantized.elements(), quant.scales.front(), quant.offsets.front());
    return;
  }
  const AxisLines lines(quantized.shape(), quant.axis);
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t i = 0; i < lines.extent; ++i)
      f((o * lines.extent + i) * lines.stride, lines.stride, quant.scales[static_cast<size_t>(i)],
        quant.offsets[static_cast<size_t>(i)]);
}

}  // namespace

// The quotient is rounded to f32 (f64 for f64) as it is in ONNX, so that halves round alike everywhere. NaN becomes
// real zero.
Status quantize(const KernelCall& call) {
  const ElemKind from = call.inType(0).kind();
  const ElemKind to = call.outType().kind();
  const auto low = static_cast<double>(lowestOf<int64_t>(to));
  const auto high = static_cast<double>(highestOf<int64_t>(to));
  std::vector<double> values;
  forEachScale(call.outType(), [&](int64_t first, int64_t count, float scale, int32_t offset) {
    values.resize(static_cast<size_t>(count));
    widen(from, call.inData(0), first, count, 1, values.data());
    for (double& value : values) {
      const double quotient = value / static_cast<double>(scale);
      const double real = from == ElemKind::Float64 ? quotient : static_cast<double>(static_cast<float>(quotient));
      value = isNan(real) ? offset : std::clamp(roundHalfEven(real) + offset, low, high);
    }
    narrow(to, values.data(), count, call.outData(), first);
  });
  return {};
}

Status dequantize(const KernelCall& call) {
  std::vector<double> values;
  forEachScale(call.inType(0), [&](int64_t first, int64_t count, float scale, int32_t offset) {
    values.resize(static_cast<size_t>(count));
    widen(call.inType(0).kind(), call.inData(0), first, count, 1, values.data());
    for (double& value : values) value = (value - offset) * static_cast<double>(scale);
    narrow(call.outType().kind(), values.data(), count, call.outData(), first);
  });
  return {};
}

Status lookup(const KernelCall& call) {
  const std::vector<int64_t>& table = call.attrs.ints("table");
  const bool isSigned = call.inType(0).kind() == ElemKind::Int8;
  const auto* from = call.in[0].as<uint8_t>();
  auto* to = call.out[0].as<uint8_t>();
  for (int64_t i = 0; i < call.outType().elements(); ++i) {
    const int entry = isSigned ? static_cast<int8_t>(from[i]) - INT8_MIN : from[i];
    to[i] = static_cast<uint8_t>(table[static_cast<size_t>(entry)]);
  }
  return {};
}

}  // namespace aglow::reference
