// An ONNX file as plain structs: what the file says, with no judgement on operators or types. Tensors and other large
// data are addresses of bytes in memory or in the file, which the Model keeps open; names are copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/file.h"

namespace aglow::onnx {

using Bytes = std::span<const std::byte>;
using StringPairs = std::vector<std::pair<std::string, std::string>>;
class ExternalFiles;

// The repeated fields a tensor may keep its values in, each element encoded as protobuf packs it.
enum class DataField : uint8_t { Float, Int32, Int64, Double, UInt64, String };

struct DataChunk {
  DataField field;
  Bytes bytes;
};

struct TensorProto {
  std::string name;
  std::vector<int64_t> dims;
  int32_t dataType = 0;         // TensorProto.DataType
  Bytes raw;                    // raw_data
  std::vector<DataChunk> data;  // typed fields in file order; an unpacked element, and every string, is its own chunk
  bool isExternal = false;      // the values lie where externalData says
  bool isSegment = false;
  StringPairs externalData;  // location, offset, length
};

// Values other than zero, by position.
struct SparseTensorProto {
  TensorProto values;
  TensorProto indices;
  std::vector<int64_t> dims;
};

struct Dim {
  enum class Kind : uint8_t { Unknown, Value, Symbol };
  Kind kind = Kind::Unknown;
  int64_t value = 0;  // as the file has it, maybe negative
  std::string symbol;
};

struct TypeProto {
  enum class Kind : uint8_t { None, Tensor, SparseTensor, Sequence, Optional, Map, Opaque };
  Kind kind = Kind::None;
  bool hasShape = false;
  int32_t elemType = 0;             // of tensors; of maps the key's
  std::vector<Dim> dims;            // of tensors
  bool open = false;                // of inputs: kind and shape are what to take when nobody gives others
  std::shared_ptr<TypeProto> elem;  // of sequences, optionals and maps; never null there
};

struct ValueInfo {
  std::string name;
  TypeProto type;
  std::string hint = {};  // of an input that lacks its shape: where else it may come from
};

struct Graph;

// The numbers are AttributeProto.AttributeType's.
enum class AttributeType : int32_t {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  Type = 13,
  Types = 14,
};

// A pointer that its type calls for is never null, unless refAttrName says that the value comes from a function's
// caller.
struct Attribute {
  std::string name;
  AttributeType type = AttributeType::Undefined;  // files that leave it out get it from the field they fill
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::shared_ptr<TensorProto> t;
  std::shared_ptr<Graph> g;
  std::shared_ptr<SparseTensorProto> sparse;
  std::shared_ptr<TypeProto> tp;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<TensorProto> tensors;
  std::vector<Graph> graphs;
  std::vector<SparseTensorProto> sparses;
  std::vector<TypeProto> types;
  std::string refAttrName;
};

// Domains: the standard one is always "", also where the file spells it "ai.onnx".
struct Node {
  std::string name;
  std::string opType;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;  // "" for one left out
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparseInitializers;  // named by their values
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> valueInfo;
};

using Opsets = std::map<std::string, int64_t>;  // domain to version

struct Function {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;     // without a default
  std::vector<Attribute> attributeProtos;  // with their default
  Opsets opsets;
  std::vector<Node> nodes;
};

// Where a file departs from the standard, and still has one meaning.
struct Departure {
  Error fault;          // what the standard forbids
  std::string meaning;  // what it is taken for
  bool silent = false;  // nothing depends on it: reported only where everything is asked for

  // "warning[E204] model.onnx: what is wrong; what it is taken for"
  std::string text(std::string_view file) const;
};

struct Model {
  std::string format = "ONNX";  // of the file that these structs were read from
  int64_t irVersion = 0;
  std::string producer;
  std::string producerVersion;
  Opsets opsets;
  Graph graph;
  std::vector<Function> functions;
  StringPairs metadata;

  std::vector<Departure> departures;  // from the standard, which are mended in the above

  std::shared_ptr<const void> owner;        // keeps the bytes that tensors view
  std::shared_ptr<const FileBytes> file;    // has the bytes where tensors view a file
  std::shared_ptr<ExternalFiles> external;  // null when the model has no folder
};

Result<Model> readModel(const std::string& path);
// External data is looked for below the folder, and refused when it is empty.
Result<Model> parseModel(const SharedBytes& file, const std::string& folder = {});
inline Result<Model> parseModel(Bytes file, std::shared_ptr<const void> owner, const std::string& folder = {}) {
  return parseModel(SharedBytes{.bytes = file, .owner = std::move(owner)}, folder);
}

// "f32", "string", "type 99"
std::string describeElem(int32_t dataType);
// "f32[1,3,?,width]", "f32[...]" of unknown rank, "sequence(i64[])"
std::string describe(const TypeProto& type);

}  // namespace aglow::onnx
