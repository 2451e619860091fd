// From wire fields to structs, one function a message; field numbers are those of onnx.proto. A singular message that
// comes twice is merged and a scalar's last value wins, as protobuf has it.
#include "import/onnx/proto.h"

#include "import/onnx/external_data.h"
#include "import/onnx/file_kind.h"
#include "import/onnx/value_proto.h"
#include "import/wire/wire.h"
#include "support/file.h"
#include "support/quote.h"

namespace aglow::onnx {

namespace {

using wire::Reader;
using wire::Wire;

std::string domainName(std::string domain) { return domain == "ai.onnx" ? std::string() : std::move(domain); }

// The message that a pointer holds, made on its first mention.
template <class T>
T& made(std::shared_ptr<T>& pointer) {
  if (!pointer) pointer = std::make_shared<T>();
  return *pointer;
}

void read(Reader r, StringPairs& out) {
  auto& [key, value] = out.emplace_back();
  while (r.next()) {
    if (r.field() == 1) key = r.text();
    if (r.field() == 2) value = r.text();
  }
}

void read(Reader r, Opsets& out) {
  std::string domain;
  int64_t version = 0;
  while (r.next()) {
    if (r.field() == 1) domain = domainName(r.text());
    if (r.field() == 2) version = r.integer();
  }
  out[domain] = version;
}

void read(Reader r, TensorProto& t) {
  // An empty packed field holds no value, an empty string is one.
  const auto chunk = [&](DataField field, Bytes bytes) {
    if (!bytes.empty() || field == DataField::String) t.data.push_back({field, bytes});
  };
  while (r.next()) {
    switch (r.field()) {
      case 1:
        r.appendTo(t.dims);
        break;
      case 2:
        t.dataType = r.integer32();
        break;
      case 3:
        t.isSegment = true;
        break;
      case 4:
        chunk(DataField::Float, r.elements(Wire::Fixed32));
        break;
      case 5:
        chunk(DataField::Int32, r.elements(Wire::Varint));
        break;
      case 6:
        chunk(DataField::String, r.bytes());
        break;
      case 7:
        chunk(DataField::Int64, r.elements(Wire::Varint));
        break;
      case 8:
        t.name = r.text();
        break;
      case 9:
        t.raw = r.unread();
        break;
      case 10:
        chunk(DataField::Double, r.elements(Wire::Fixed64));
        break;
      case 11:
        chunk(DataField::UInt64, r.elements(Wire::Varint));
        break;
      case 13:
        read(r.message("StringStringEntryProto"), t.externalData);
        break;
      case 14:
        t.isExternal = r.integer() == 1;
        break;
      default:
        break;
    }
  }
}

void read(Reader r, SparseTensorProto& s) {
  while (r.next()) {
    if (r.field() == 1) read(r.message("TensorProto"), s.values);
    if (r.field() == 2) read(r.message("TensorProto"), s.indices);
    if (r.field() == 3) r.appendTo(s.dims);
  }
}

void read(Reader r, Dim& dim) {
  while (r.next()) {
    if (r.field() == 1) dim = {Dim::Kind::Value, r.integer(), {}};
    if (r.field() == 2) dim = {Dim::Kind::Symbol, 0, r.text()};
  }
  if (dim.kind == Dim::Kind::Symbol && dim.symbol.empty()) dim.kind = Dim::Kind::Unknown;
}

void readShape(Reader r, TypeProto& type) {
  type.hasShape = true;
  while (r.next())
    if (r.field() == 1) read(r.message("Dimension"), type.dims.emplace_back());
}

void readTensorType(Reader r, TypeProto& type) {
  while (r.next()) {
    if (r.field() == 1) type.elemType = r.integer32();
    if (r.field() == 2) readShape(r.message("TensorShapeProto"), type);
  }
}

void read(Reader r, TypeProto& type);

// Sequences and optionals keep their element's type in field 1, maps a key in field 1 and the element's type in 2.
void readContainer(Reader r, TypeProto& type) {
  const bool map = type.kind == TypeProto::Kind::Map;
  made(type.elem);
  while (r.next()) {
    if (map && r.field() == 1) type.elemType = r.integer32();
    if (r.field() == (map ? 2 : 1)) read(r.message("TypeProto"), *type.elem);
  }
}

void read(Reader r, TypeProto& type) {
  // The kinds exclude each other: the last one in the file wins.
  const auto become = [&](TypeProto::Kind kind) {
    if (type.kind != kind) type = TypeProto{kind};
  };
  while (r.next()) {
    switch (r.field()) {
      case 1:
        become(TypeProto::Kind::Tensor);
        readTensorType(r.message("TypeProto.Tensor"), type);
        break;
      case 4:
        become(TypeProto::Kind::Sequence);
        readContainer(r.message("TypeProto.Sequence"), type);
        break;
      case 5:
        become(TypeProto::Kind::Map);
        readContainer(r.message("TypeProto.Map"), type);
        break;
      case 7:
        become(TypeProto::Kind::Opaque);
        break;
      case 8:
        become(TypeProto::Kind::SparseTensor);
        readTensorType(r.message("TypeProto.SparseTensor"), type);
        break;
      case 9:
        become(TypeProto::Kind::Optional);
        readContainer(r.message("TypeProto.Optional"), type);
        break;
      default:
        break;
    }
  }
}

void read(Reader r, ValueInfo& value) {
  while (r.next()) {
    if (r.field() == 1) value.name = r.text();
    if (r.field() == 2) read(r.message("TypeProto"), value.type);
  }
}

void read(Reader r, Graph& graph);

// Which type a value field stands for; Undefined for fields that hold no value.
AttributeType typeOfField(uint32_t field) {
  if (field >= 2 && field <= 11) return static_cast<AttributeType>(field - 1);
  switch (field) {
    case 14:
      return AttributeType::Type;
    case 15:
      return AttributeType::Types;
    case 22:
      return AttributeType::SparseTensor;
    case 23:
      return AttributeType::SparseTensors;
    default:
      return AttributeType::Undefined;
  }
}

bool lacksValue(const Attribute& a) {
  return (a.type == AttributeType::Tensor && !a.t) || (a.type == AttributeType::Graph && !a.g) ||
         (a.type == AttributeType::SparseTensor && !a.sparse) || (a.type == AttributeType::Type && !a.tp);
}

void readAttributeField(const Reader& r, Attribute& a) {
  switch (r.field()) {
    case 1:
      a.name = r.text();
      break;
    case 2:
      a.f = r.real();
      break;
    case 3:
      a.i = r.integer();
      break;
    case 4:
      a.s = r.text();
      break;
    case 5:
      read(r.message("TensorProto"), made(a.t));
      break;
    case 6:
      read(r.message("GraphProto"), made(a.g));
      break;
    case 7:
      r.appendTo(a.floats);
      break;
    case 8:
      r.appendTo(a.ints);
      break;
    case 9:
      a.strings.push_back(r.text());
      break;
    case 10:
      read(r.message("TensorProto"), a.tensors.emplace_back());
      break;
    case 11:
      read(r.message("GraphProto"), a.graphs.emplace_back());
      break;
    case 14:
      read(r.message("TypeProto"), made(a.tp));
      break;
    case 15:
      read(r.message("TypeProto"), a.types.emplace_back());
      break;
    case 20:
      a.type = static_cast<AttributeType>(r.integer32());
      break;
    case 21:
      a.refAttrName = r.text();
      break;
    case 22:
      read(r.message("SparseTensorProto"), made(a.sparse));
      break;
    case 23:
      read(r.message("SparseTensorProto"), a.sparses.emplace_back());
      break;
    default:
      break;
  }
}

void read(Reader r, Attribute& a) {
  AttributeType filled = AttributeType::Undefined;
  while (r.next()) {
    readAttributeField(r, a);
    if (const auto type = typeOfField(r.field()); type != AttributeType::Undefined) filled = type;
  }
  if (a.type == AttributeType::Undefined) a.type = filled;
  if (a.refAttrName.empty() && lacksValue(a)) r.fail("attribute " + quoted(a.name) + " lacks the value its type names");
}

void read(Reader r, Node& node) {
  while (r.next()) {
    switch (r.field()) {
      case 1:
        node.inputs.push_back(r.text());
        break;
      case 2:
        node.outputs.push_back(r.text());
        break;
      case 3:
        node.name = r.text();
        break;
      case 4:
        node.opType = r.text();
        break;
      case 5:
        read(r.message("AttributeProto"), node.attributes.emplace_back());
        break;
      case 7:
        node.domain = domainName(r.text());
        break;
      case 8:
        node.overload = r.text();
        break;
      default:
        break;
    }
  }
}

void read(Reader r, Graph& graph) {
  while (r.next()) {
    switch (r.field()) {
      case 1:
        read(r.message("NodeProto"), graph.nodes.emplace_back());
        break;
      case 2:
        graph.name = r.text();
        break;
      case 5:
        read(r.message("TensorProto"), graph.initializers.emplace_back());
        break;
      case 11:
        read(r.message("ValueInfoProto"), graph.inputs.emplace_back());
        break;
      case 12:
        read(r.message("ValueInfoProto"), graph.outputs.emplace_back());
        break;
      case 13:
        read(r.message("ValueInfoProto"), graph.valueInfo.emplace_back());
        break;
      case 15:
        read(r.message("SparseTensorProto"), graph.sparseInitializers.emplace_back());
        break;
      default:
        break;
    }
  }
}

void read(Reader r, Function& f) {
  while (r.next()) {
    switch (r.field()) {
      case 1:
        f.name = r.text();
        break;
      case 4:
        f.inputs.push_back(r.text());
        break;
      case 5:
        f.outputs.push_back(r.text());
        break;
      case 6:
        f.attributes.push_back(r.text());
        break;
      case 7:
        read(r.message("NodeProto"), f.nodes.emplace_back());
        break;
      case 9:
        read(r.message("OperatorSetIdProto"), f.opsets);
        break;
      case 10:
        f.domain = domainName(r.text());
        break;
      case 11:
        read(r.message("AttributeProto"), f.attributeProtos.emplace_back());
        break;
      case 13:
        f.overload = r.text();
        break;
      default:
        break;
    }
  }
}

void read(Reader r, Model& model, bool& hasGraph) {
  while (r.next()) {
    switch (r.field()) {
      case 1:
        model.irVersion = r.integer();
        break;
      case 2:
        model.producer = r.text();
        break;
      case 3:
        model.producerVersion = r.text();
        break;
      case 7:
        read(r.message("GraphProto"), model.graph);
        hasGraph = true;
        break;
      case 8:
        read(r.message("OperatorSetIdProto"), model.opsets);
        break;
      case 14:
        read(r.message("StringStringEntryProto"), model.metadata);
        break;
      case 25:
        read(r.message("FunctionProto"), model.functions.emplace_back());
        break;
      default:
        break;
    }
  }
}

// The values of a map are a sequence of tensors.
void read(Reader r, MapProto& map) {
  while (r.next()) {
    if (r.field() == 3) r.appendTo(map.keys);
    if (r.field() == 4) map.stringKeys.push_back(r.text());
    if (r.field() != 5) continue;
    for (Reader values = r.message("SequenceProto"); values.next();)
      if (values.field() == 3) read(values.message("TensorProto"), map.values.emplace_back());
  }
}

// Sequences and optionals keep their values in fields by kind: 3 tensors, 5 sequences, 6 maps, 7 optionals.
void read(Reader r, ValueProto& value, const TypeProto& type) {
  if (type.kind == TypeProto::Kind::Map) return read(r, value.maps.emplace_back());
  if (type.kind == TypeProto::Kind::Tensor || type.kind == TypeProto::Kind::None) {
    read(r, value.tensors.emplace_back());
    if (value.name.empty()) value.name = value.tensors.back().name;
    return;
  }
  const bool optional = type.kind == TypeProto::Kind::Optional;
  value.isSequence = !optional;
  value.none = optional;
  while (r.next()) {
    const bool holds = r.field() >= 3 && r.field() <= 7;
    if (r.field() == 1) value.name = r.text();
    const bool item = r.field() == (type.elem != nullptr && type.elem->kind == TypeProto::Kind::Map ? 6U : 3U);
    if (holds && type.elem != nullptr && (optional || item)) {
      value.none = false;
      read(r.message("value"), value, *type.elem);
    } else if (holds) {
      r.fail("sequences of anything but tensors and maps are not supported");
    }
  }
}

}  // namespace

Result<ValueProto> parseValue(Bytes file, const TypeProto& type) {
  ValueProto value;
  const Status status = wire::parse(file, "value", [&](Reader r) { read(r, value, type); });
  if (!status.ok()) return status.error();
  if (!value.isSequence && !value.none && value.tensors.size() + value.maps.size() != 1)
    return Error{Code::BadFile, "the optional holds several values"};
  return value;
}

Result<Model> parseModel(const SharedBytes& file, const std::string& folder) {
  Model model;
  bool hasGraph = false;
  Status status = wire::parse(file, "ModelProto", [&](Reader r) { read(r, model, hasGraph); });
  if (status.ok() && !hasGraph) status = Error{Code::BadFile, "the model has no graph"};
  if (!status.ok()) return explained(std::move(status).error(), file);
  model.owner = file.owner;
  model.file = file.file;
  if (!folder.empty()) model.external = std::make_shared<ExternalFiles>(folder);
  return model;
}

Result<Model> readModel(const std::string& path) {
  const size_t slash = path.rfind('/');
  AGLOW_TRY(const SharedBytes file, openFile(path));
  auto model = parseModel(file, slash == std::string::npos ? "." : path.substr(0, slash + 1));
  if (!model.ok()) return std::move(model).error().at(path);
  return model;
}

}  // namespace aglow::onnx
