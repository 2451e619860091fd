#include "runtime/key.h"

namespace aglow {

namespace {

// Constants up to this size count by their bytes, larger ones by their address.
constexpr int64_t kMostConstantBytes = 4096;

}  // namespace

void Key::add(std::string_view text) {
  add(text.size());
  append(text.data(), text.size());
}

void Key::add(const Type& type) {
  add(type.kind());
  add(type.rank());
  append(type.shape().dims().data(), type.shape().dims().size() * sizeof(int64_t));
  const QuantParams& quant = type.quant();
  add(quant.scales.size());
  if (quant.scales.empty()) return;
  add(quant.axis);
  append(quant.scales.data(), quant.scales.size() * sizeof quant.scales.front());
  append(quant.offsets.data(), quant.offsets.size() * sizeof quant.offsets.front());
}

void Key::add(const ModelValue& value, Of what) {
  add(value.none);
  add(value.isSequence);
  add(value.onHost());
  add(value.tensors.size());
  add(what);
  for (const Tensor& tensor : value.tensors) {
    add(tensor.type());
    if (what == Of::Type) continue;
    if (what == Of::Bytes || tensor.bytes() <= kMostConstantBytes)
      append(tensor.data(), static_cast<size_t>(tensor.bytes()));
    else
      add(reinterpret_cast<uintptr_t>(tensor.data()));
  }
}

}  // namespace aglow
