// Builds ONNX files in memory for tests, right ones and wrong ones:
//
//   const std::string file = Model()
//       .graph(Graph("g")
//                  .input("x", kFloat, {1, "batch", unknownDim})
//                  .initializer(Tensor("w", kFloat, {2}).floats({1, 2}))
//                  .node(Node("Concat", {"x", "w"}, {"y"}).attribute("axis", 0))
//                  .output("y", kFloat, {4}))
//       .bytes();
//
// Fields are written in the order of the calls, so calling twice writes a field twice; field() writes any other one.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace aglow::onnx_writer {

// TensorProto.DataType
inline constexpr int32_t kFloat = 1, kUInt8 = 2, kInt8 = 3, kUInt16 = 4, kInt16 = 5, kInt32 = 6, kInt64 = 7,
                         kString = 8, kBool = 9, kFloat16 = 10, kDouble = 11, kUInt32 = 12, kUInt64 = 13,
                         kComplex64 = 14, kBFloat16 = 16, kFloat8E4M3FN = 17, kUInt4 = 21, kInt4 = 22, kFloat4E2M1 = 23,
                         kUInt2 = 25, kInt2 = 26;

// The bytes of plain values, as raw_data holds them.
template <class T>
std::string rawBytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

// What all messages share; Self is the derived builder, so that calls chain.
template <class Self>
class Message {
public:
  const std::string& bytes() const { return bytes_; }

  // Any field: a length and bytes, or a varint.
  Self& field(uint32_t number, std::string_view payload) {
    writer().add_bytes(number, payload.data(), payload.size());
    return self();
  }
  Self& field(uint32_t number, std::integral auto value) {
    writer().add_int64(number, static_cast<int64_t>(value));
    return self();
  }
  // Bytes that need not be a field at all.
  Self& append(std::string_view bytes) {
    bytes_ += bytes;
    return self();
  }

protected:
  protozero::pbf_writer writer() { return protozero::pbf_writer(bytes_); }
  Self& self() { return static_cast<Self&>(*this); }

private:
  std::string bytes_;
};

// Any message of fields alone.
class Fields : public Message<Fields> {};

inline Fields stringPair(std::string_view key, std::string_view value) {
  return Fields().field(1, key).field(2, value);
}

class Tensor : public Message<Tensor> {
public:
  Tensor(std::string_view name, int32_t dataType, const std::vector<int64_t>& dims) {
    field(8, name).field(2, dataType);
    if (!dims.empty()) writer().add_packed_int64(1, dims.begin(), dims.end());
  }
  Tensor& raw(std::string_view data) { return field(9, data); }
  Tensor& floats(const std::vector<float>& v) { return writer().add_packed_float(4, v.begin(), v.end()), *this; }
  Tensor& int32s(const std::vector<int32_t>& v) { return writer().add_packed_int32(5, v.begin(), v.end()), *this; }
  Tensor& int64s(const std::vector<int64_t>& v) { return writer().add_packed_int64(7, v.begin(), v.end()), *this; }
  Tensor& doubles(const std::vector<double>& v) { return writer().add_packed_double(10, v.begin(), v.end()), *this; }
  Tensor& uint64s(const std::vector<uint64_t>& v) { return writer().add_packed_uint64(11, v.begin(), v.end()), *this; }
  Tensor& strings(const std::vector<std::string>& values) {
    for (const std::string& s : values) field(6, s);
    return *this;
  }
  Tensor& unpackedFloat(float v) { return writer().add_float(4, v), *this; }
  Tensor& external(const std::vector<std::pair<std::string, std::string>>& entries) {
    field(14, 1);
    for (const auto& [key, value] : entries) field(13, stringPair(key, value).bytes());
    return *this;
  }
};

class SparseTensor : public Message<SparseTensor> {
public:
  SparseTensor(const Tensor& values, const Tensor& indices, const std::vector<int64_t>& dims) {
    field(1, values.bytes()).field(2, indices.bytes());
    writer().add_packed_int64(3, dims.begin(), dims.end());
  }
};

// A size, a symbol, or nothing known.
using Dim = std::variant<std::monostate, int64_t, std::string>;
inline const Dim unknownDim = std::monostate();

class Dims : public std::vector<Dim> {
public:
  Dims() = default;
  struct Item : Dim {
    Item(std::integral auto size) : Dim(static_cast<int64_t>(size)) {}
    Item(const char* symbol) : Dim(std::string(symbol)) {}
    Item(const Dim& dim) : Dim(dim) {}
  };
  Dims(std::initializer_list<Item> items) : std::vector<Dim>(items.begin(), items.end()) {}
};

class Type : public Message<Type> {
public:
  static Type tensor(int32_t elemType, const Dims& dims) {
    Fields shape;
    for (const Dim& dim : dims) {
      Fields item;
      if (const auto* size = std::get_if<int64_t>(&dim)) item.field(1, *size);
      if (const auto* symbol = std::get_if<std::string>(&dim)) item.field(2, *symbol);
      shape.field(1, item.bytes());
    }
    return Type().field(1, Fields().field(1, elemType).field(2, shape.bytes()).bytes());
  }
  static Type unranked(int32_t elemType) { return Type().field(1, Fields().field(1, elemType).bytes()); }
  static Type sequence(const Type& elem) { return Type().field(4, Fields().field(1, elem.bytes()).bytes()); }
  static Type optional(const Type& elem) { return Type().field(9, Fields().field(1, elem.bytes()).bytes()); }
  static Type map(int32_t keyType, const Type& value) {
    return Type().field(5, Fields().field(1, keyType).field(2, value.bytes()).bytes());
  }
};

class Graph;

class Attribute : public Message<Attribute> {
public:
  explicit Attribute(std::string_view name) { field(1, name); }
  Attribute(std::string_view name, float v) : Attribute(name) { type(1).writer().add_float(2, v); }
  Attribute(std::string_view name, std::integral auto v) : Attribute(name) { type(2).field(3, v); }
  Attribute(std::string_view name, const char* v) : Attribute(name) { type(3).field(4, v); }
  Attribute(std::string_view name, const std::string& v) : Attribute(name) { type(3).field(4, v); }
  Attribute(std::string_view name, const Tensor& v) : Attribute(name) { type(4).field(5, v.bytes()); }
  Attribute(std::string_view name, const Graph& v);
  Attribute(std::string_view name, const std::vector<float>& v) : Attribute(name) {
    type(6).writer().add_packed_float(7, v.begin(), v.end());
  }
  Attribute(std::string_view name, const std::vector<int64_t>& v) : Attribute(name) {
    for (const int64_t i : v) field(8, i);
    type(7);
  }
  Attribute(std::string_view name, const std::vector<std::string>& v) : Attribute(name) {
    for (const std::string& s : v) field(9, s);
    type(8);
  }
  Attribute(std::string_view name, const SparseTensor& v) : Attribute(name) { type(11).field(22, v.bytes()); }
  Attribute(std::string_view name, const Type& v) : Attribute(name) { type(13).field(14, v.bytes()); }
  // A value that a function takes from its caller.
  static Attribute reference(std::string_view name, int32_t attributeType, std::string_view outer) {
    return Attribute(name).type(attributeType).field(21, outer);
  }
  Attribute& type(int32_t attributeType) { return field(20, attributeType); }
};

class Node : public Message<Node> {
public:
  Node(std::string_view opType, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    for (const std::string& in : inputs) field(1, in);
    for (const std::string& out : outputs) field(2, out);
    field(4, opType);
  }
  Node& name(std::string_view n) { return field(3, n); }
  Node& domain(std::string_view d) { return field(7, d); }
  Node& overload(std::string_view o) { return field(8, o); }
  Node& attribute(const Attribute& a) { return field(5, a.bytes()); }
  Node& attribute(std::string_view n, const auto& value) { return attribute(Attribute(n, value)); }
};

class Graph : public Message<Graph> {
public:
  explicit Graph(std::string_view name = "graph") { field(2, name); }
  Graph& node(const Node& n) { return field(1, n.bytes()); }
  Graph& initializer(const Tensor& t) { return field(5, t.bytes()); }
  Graph& sparseInitializer(const SparseTensor& t) { return field(15, t.bytes()); }
  Graph& input(std::string_view name, const Type& type) { return value(11, name, type); }
  Graph& input(std::string_view name, int32_t elem, const Dims& dims) { return input(name, Type::tensor(elem, dims)); }
  Graph& output(std::string_view name, const Type& type) { return value(12, name, type); }
  Graph& output(std::string_view name, int32_t elem, const Dims& dims) {
    return output(name, Type::tensor(elem, dims));
  }
  Graph& valueInfo(std::string_view name, const Type& type) { return value(13, name, type); }

private:
  Graph& value(uint32_t number, std::string_view name, const Type& type) {
    return field(number, Fields().field(1, name).field(2, type.bytes()).bytes());
  }
};

inline Attribute::Attribute(std::string_view name, const Graph& v) : Attribute(name) { type(5).field(6, v.bytes()); }

inline Fields opsetId(std::string_view domain, int64_t version) { return Fields().field(1, domain).field(2, version); }

class Function : public Message<Function> {
public:
  Function(std::string_view domain, std::string_view name, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs) {
    field(1, name).field(10, domain);
    for (const std::string& in : inputs) field(4, in);
    for (const std::string& out : outputs) field(5, out);
  }
  Function& attribute(std::string_view name) { return field(6, name); }
  Function& attribute(const Attribute& withDefault) { return field(11, withDefault.bytes()); }
  Function& opset(std::string_view domain, int64_t version) { return field(9, opsetId(domain, version).bytes()); }
  Function& node(const Node& n) { return field(7, n.bytes()); }
};

class Model : public Message<Model> {
public:
  explicit Model(int64_t opset = 21) { field(1, 10).opsetImport("", opset); }
  Model& opsetImport(std::string_view domain, int64_t version) { return field(8, opsetId(domain, version).bytes()); }
  Model& producer(std::string_view name) { return field(2, name); }
  Model& graph(const Graph& g) { return field(7, g.bytes()); }
  Model& function(const Function& f) { return field(25, f.bytes()); }
  Model& metadata(std::string_view key, std::string_view value) { return field(14, stringPair(key, value).bytes()); }
};

}  // namespace aglow::onnx_writer
