#include "import/onnx/tensor_proto.h"

namespace aglow::onnx {

namespace {

// Several elements of kinds narrower than a byte share one, the first in the lowest bits.
std::shared_ptr<std::vector<std::byte>> packedBytes(const Tensor& t) {
  const int bits = elemInfo(t.type().kind()).bits, perByte = 8 / bits;
  const unsigned mask = (1U << bits) - 1;
  auto packed =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>((t.type().elements() + perByte - 1) / perByte));
  for (int64_t i = 0; i < t.type().elements(); ++i)
    (*packed)[static_cast<size_t>(i / perByte)] |=
        static_cast<std::byte>((static_cast<unsigned>(t.data()[i]) & mask) << (i % perByte * bits));
  return packed;
}

bool isPacked(ElemKind kind) { return kind != ElemKind::Bool && elemInfo(kind).bits < 8; }

int32_t onnxKind(ElemKind kind) { return elemInfo(storageKind(kind)).onnx; }

}  // namespace

TensorProto protoOf(const std::string& name, const Tensor& tensor, std::vector<std::shared_ptr<const void>>& keep) {
  TensorProto proto;
  proto.name = name;
  proto.dims = tensor.type().shape().dims();
  proto.dataType = onnxKind(tensor.type().kind());
  if (isPacked(tensor.type().kind())) {
    const auto packed = packedBytes(tensor);
    proto.raw = *packed;
    keep.push_back(packed);
  } else {
    auto shared = std::make_shared<Tensor>(tensor);
    proto.raw = {shared->data(), static_cast<size_t>(shared->bytes())};
    keep.push_back(std::move(shared));
  }
  return proto;
}

ValueInfo infoOf(const std::string& name, const Type& type) {
  ValueInfo info{.name = name, .type = {.kind = TypeProto::Kind::Tensor, .hasShape = true}};
  info.type.elemType = onnxKind(type.kind());
  for (const int64_t extent : type.shape().dims())
    info.type.dims.push_back({.kind = Dim::Kind::Value, .value = extent, .symbol = {}});
  return info;
}

}  // namespace aglow::onnx
