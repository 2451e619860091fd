#include "import/caffe2/convert.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <unordered_map>

#include "import/caffe2/operand_kinds.h"
#include "support/quote.h"

namespace aglow::caffe2 {

namespace {

using onnx::Attribute;
using onnx::AttributeType;
using onnx::Node;

// Gives every write of a blob a name of its own.
class Renaming {
public:
  // All operators that will be seen, in order.
  explicit Renaming(const std::vector<const std::vector<Node>*>& nets) {
    for (const std::vector<Node>* ops : nets)
      for (const Node& op : *ops) {
        for (const std::string& blob : op.inputs) note(blob);
        for (const std::string& blob : op.outputs) ++note(blob).writes;
      }
  }

  // Blobs that are read before they are written keep their name: it is the one that users know.
  void read(Node& op) {
    for (std::string& blob : op.inputs) {
      if (blob.empty()) continue;
      Blob& b = blobs_[blob];
      if (b.name.empty()) b.name = blob;
      blob = b.name;
    }
  }

  void write(Node& op) {
    for (std::string& blob : op.outputs) {
      if (blob.empty()) continue;
      Blob& b = blobs_[blob];
      const bool last = --b.writes == 0 && !names_.contains(blob);
      b.name = last || firsts_.erase(blob) > 0 ? blob : fresh(blob);
      names_.insert(b.name);
      blob = b.name;
    }
  }

  void claim(const std::string& blob) {
    names_.insert(blob);
    blobs_[blob].name = blob;
  }

  // The first write of the blob keeps its name, not the last.
  void keepFirst(const std::string& blob) { firsts_.insert(blob); }

  // What the blob is called by now.
  const std::string& nameOf(const std::string& blob) const {
    const auto it = blobs_.find(blob);
    return it == blobs_.end() || it->second.name.empty() ? blob : it->second.name;
  }

private:
  struct Blob {
    size_t writes = 0;  // to come
    std::string name;
  };

  Blob& note(const std::string& blob) { return blobs_[blob]; }

  std::string fresh(const std::string& blob) {
    size_t& number = numbers_[blob];
    std::string name;
    do name = fmt::format("{}.{}", blob, ++number);
    while (names_.contains(name) || blobs_.contains(name));
    return name;
  }

  std::unordered_map<std::string, Blob> blobs_;
  std::unordered_map<std::string, size_t> numbers_;
  std::set<std::string> names_, firsts_;
};

// Which blobs of a sequence of operators are read before they are written, in the order of their first use, and which
// are never read.
struct Uses {
  std::vector<std::string> inputs;
  std::set<std::string> isInput, written, read;

  void add(const std::vector<Node>& ops) {
    for (const Node& op : ops) {
      for (const std::string& blob : op.inputs) {
        if (blob.empty()) continue;
        read.insert(blob);
        if (!written.contains(blob) && isInput.insert(blob).second) inputs.push_back(blob);
      }
      written.insert(op.outputs.begin(), op.outputs.end());
    }
  }
};

onnx::ValueInfo openValue(const std::string& name, ElemKind kind) {
  onnx::ValueInfo info{.name = name, .type = {}};
  info.type.kind = onnx::TypeProto::Kind::Tensor;
  info.type.elemType = elemInfo(kind).onnx;
  info.type.open = true;
  return info;
}

// Shapes of the net's inputs that its arguments have: tensors named after them.
std::map<std::string, const onnx::TensorProto*> shapesInArguments(const Net& net) {
  std::map<std::string, const onnx::TensorProto*> shapes;
  for (const Attribute& arg : net.args) {
    for (const onnx::TensorProto& t : arg.tensors) shapes[t.name] = &t;
    if (arg.t != nullptr) shapes[arg.t->name] = arg.t.get();
  }
  return shapes;
}

void tell(onnx::ValueInfo& info, const onnx::TensorProto& t) {
  if (t.dataType != 0) info.type.elemType = t.dataType;
  info.type.hasShape = true;
  for (const int64_t dim : t.dims) info.type.dims.push_back({onnx::Dim::Kind::Value, dim, {}});
}

void keepNames(Node& op) {
  const auto keep = [&](const char* name, const std::vector<std::string>& blobs) {
    Attribute& a = op.attributes.emplace_back();
    a.name = name;
    a.type = AttributeType::Strings;
    a.strings = blobs;
  };
  if (op.opType != "RecurrentNetwork") return;
  keep(kOperandNames, op.inputs);
  keep(kResultNames, op.outputs);
}

// What a small ConstantFill makes; larger ones are better left to the graph.
std::optional<Tensor> constantOf(const Node& op) {
  constexpr int64_t kMost = 4096;
  if (op.opType != "ConstantFill") return std::nullopt;
  std::vector<int64_t> dims;
  double value = 0;
  for (const Attribute& a : op.attributes) {
    if (a.name == "shape" && a.type == AttributeType::Ints)
      dims = a.ints;
    else if (a.name == "value" && a.type == AttributeType::Float)
      value = static_cast<double>(a.f);
    else if (!(a.name == "dtype" && a.type == AttributeType::Int && a.i == 1))
      return std::nullopt;
  }
  const Result<Shape> shape = Shape::create(std::move(dims));
  if (!shape.ok() || shape->elements() > kMost) return std::nullopt;
  return Tensor::fromDoubles(Type(ElemKind::Float32, *shape),
                             std::vector<double>(static_cast<size_t>(shape->elements()), value));
}

class Conversion {
public:
  Conversion(Net& predict, Net* init) : predict_(predict), init_(init), renaming_(operators()) {}

  Result<onnx::Model> run() {
    if (predict_.ops.empty()) return Error{Code::BadGraph, "the net has no operators"};
    model_.format = "Caffe2";
    model_.opsets[kDomain] = kVersion;
    model_.graph.name = predict_.name;
    addInputs();
    if (init_ != nullptr)
      for (Node& op : init_->ops) AGLOW_OK(addOperator(op));
    for (Node& op : predict_.ops) AGLOW_OK(addOperator(op));
    addOutputs();
    model_.owner = storage_;
    return std::move(model_);
  }

private:
  std::vector<const std::vector<Node>*> operators() const {
    std::vector<const std::vector<Node>*> nets;
    if (init_ != nullptr) nets.push_back(&init_->ops);
    nets.push_back(&predict_.ops);
    return nets;
  }

  void addInputs() {
    for (const std::vector<Node>* ops : operators()) uses_.add(*ops);
    OperandKinds kinds;
    for (const std::vector<Node>* ops : operators())
      for (const Node& op : *ops) kinds.add(op);
    const auto shapes = shapesInArguments(predict_);
    std::set<std::string> added;
    const auto add = [&](const std::string& blob, bool used) {
      if (!added.insert(blob).second) return;
      onnx::ValueInfo info = openValue(blob, kinds.of(blob));
      if (const auto it = shapes.find(blob); it != shapes.end()) tell(info, *it->second);
      if (init_ == nullptr) info.hint = "values of weights lie in the net's init file: --init init_net.pb";
      model_.graph.inputs.push_back(std::move(info));
      renaming_.claim(blob);
      if (!used) addInitializer(blob, Tensor::scalar(ElemKind::Float32, 0));  // any value: it is never read
    };
    // First as the net lists them, then those it forgets.
    for (const std::string& blob : predict_.inputs)
      if (uses_.isInput.contains(blob) || (!uses_.written.contains(blob) && !uses_.read.contains(blob)))
        add(blob, uses_.isInput.contains(blob));
    for (const std::string& blob : uses_.inputs) add(blob, true);
    // What the init net gives may be given by users instead: some init nets hold a placeholder for the data.
    if (init_ == nullptr) return;
    std::map<std::string, size_t> writes;
    for (const Node& op : init_->ops)
      for (const std::string& blob : op.outputs) ++writes[blob];
    std::set<std::string> filled;
    for (const Node& op : init_->ops)
      if (isPlainFill(op) && writes[op.outputs.front()] == 1) filled.insert(op.outputs.front());
    for (const std::string& blob : predict_.inputs)
      if (filled.contains(blob) && added.insert(blob).second) {
        model_.graph.inputs.push_back(openValue(blob, kinds.of(blob)));
        renaming_.keepFirst(blob);
      }
  }

  // Whether the operator becomes an initializer. Int8 fills carry a scale, which an initializer has no place for.
  static bool isPlainFill(const Node& op) {
    return op.inputs.empty() && op.outputs.size() == 1 && !op.opType.starts_with("Int8") &&
           (givenKind(op).has_value() || constantOf(op).has_value());
  }

  Status addOperator(Node& op) {
    keepNames(op);
    renaming_.read(op);
    renaming_.write(op);
    const auto place = [&](Error error) {
      return std::move(error).at(
          fmt::format("operator {} ({})", quoted(op.outputs.empty() ? op.name : op.outputs.front()), op.opType));
    };
    if (op.opType.empty()) return place(Error{Code::BadNode, "the operator has no type"});
    if (!isPlainFill(op)) {
      model_.graph.nodes.push_back(std::move(op));
      return {};
    }
    if (std::optional<Tensor> constant = constantOf(op)) {
      std::vector<int64_t> shape = constant->type().shape().dims();
      addInitializer(op.outputs.front(), *std::move(constant)).dims = std::move(shape);
      return {};
    }
    const std::optional<ElemKind> kind = givenKind(op);
    Attribute values;
    std::vector<int64_t> dims;
    for (Attribute& a : op.attributes) {
      if (a.name == "values") values = std::move(a);
      if (a.name == "shape" && a.type == AttributeType::Ints) dims = std::move(a.ints);
    }
    auto tensor = givenValues(std::move(values), *kind);
    if (!tensor.ok()) return place(std::move(tensor).error());
    addInitializer(op.outputs.front(), *std::move(tensor)).dims = std::move(dims);
    return {};
  }

  onnx::TensorProto& addInitializer(const std::string& name, Tensor tensor) {
    onnx::TensorProto& proto = model_.graph.initializers.emplace_back();
    proto.name = name;
    proto.dataType = elemInfo(tensor.type().kind()).onnx;
    proto.raw = {tensor.data(), static_cast<size_t>(tensor.bytes())};
    storage_->push_back(std::move(tensor));
    return proto;
  }

  // As the net lists them; else what no operator reads.
  void addOutputs() {
    std::vector<std::string> blobs = predict_.outputs;
    if (blobs.empty())
      for (const std::string& blob : uses_.written)
        if (!uses_.read.contains(blob)) blobs.push_back(blob);
    std::set<std::string> added;
    for (const std::string& blob : blobs) {
      if (!added.insert(blob).second) continue;
      onnx::ValueInfo info = openValue(renaming_.nameOf(blob), ElemKind::Float32);
      info.type.elemType = 0;
      model_.graph.outputs.push_back(std::move(info));
    }
  }

  Net& predict_;
  Net* init_;
  Renaming renaming_;
  Uses uses_;
  onnx::Model model_;
  std::shared_ptr<std::vector<Tensor>> storage_ = std::make_shared<std::vector<Tensor>>();
};

struct Given {
  std::string_view type;
  ElemKind kind;
};
constexpr Given kGiven[] = {
    {"GivenTensorFill", ElemKind::Float32},     {"GivenTensorDoubleFill", ElemKind::Float64},
    {"GivenTensorFp16Fill", ElemKind::Float16}, {"GivenTensorIntFill", ElemKind::Int32},
    {"GivenTensorInt64Fill", ElemKind::Int64},  {"GivenTensorInt16Fill", ElemKind::Int16},
    {"GivenTensorBoolFill", ElemKind::Bool},    {"GivenTensorByteStringToUInt8Fill", ElemKind::UInt8},
    {"Int8GivenTensorFill", ElemKind::UInt8},   {"Int8GivenIntTensorFill", ElemKind::Int32},
};

// A tensor over values that it takes over.
template <class Container>
Tensor owning(Container values, ElemKind kind) {
  const auto owner = std::make_shared<Container>(std::move(values));
  const auto count = static_cast<int64_t>(owner->size());
  return Tensor(Type(kind, Shape{count}), reinterpret_cast<const std::byte*>(owner->data()), owner);
}

}  // namespace

Result<onnx::Model> toModel(Net predict, std::optional<Net> init) {
  return Conversion(predict, init ? &*init : nullptr).run();
}

onnx::Graph nestedGraph(Net net) {
  onnx::Graph graph;
  graph.name = net.name;
  Uses uses;
  uses.add(net.ops);
  Renaming renaming({&net.ops});
  for (const std::string& blob : uses.inputs) {
    renaming.claim(blob);
    graph.inputs.push_back({.name = blob, .type = {}});
  }
  for (Node& op : net.ops) {
    renaming.read(op);
    renaming.write(op);
  }
  for (const std::string& blob : net.outputs) graph.outputs.push_back({.name = renaming.nameOf(blob), .type = {}});
  graph.nodes = std::move(net.ops);
  return graph;
}

std::optional<ElemKind> givenKind(const Node& op) {
  for (const Given& given : kGiven) {
    if (given.type != op.opType) continue;
    if (given.type != "GivenTensorFill") return given.kind;
    for (const Attribute& a : op.attributes)
      if (a.name == "dtype" && a.type == AttributeType::Int) return elemKindByOnnx(onnxType(a.i));
    return given.kind;
  }
  return std::nullopt;
}

Result<Tensor> givenValues(Attribute values, ElemKind kind) {
  switch (values.type) {
    case AttributeType::Floats:
      if (kind == ElemKind::Float32) return owning(std::move(values.floats), kind);
      return Tensor::of(Type(kind, Shape{static_cast<int64_t>(values.floats.size())}), values.floats);
    case AttributeType::Ints:
      if (kind == ElemKind::Int64) return owning(std::move(values.ints), kind);
      return Tensor::of(Type(kind, Shape{static_cast<int64_t>(values.ints.size())}), values.ints);
    case AttributeType::String:
      if (kind == ElemKind::UInt8) return owning(std::move(values.s), kind);
      break;
    case AttributeType::Strings:
      if (kind == ElemKind::UInt8 && values.strings.size() == 1) return owning(std::move(values.strings.front()), kind);
      break;
    case AttributeType::Undefined:
      return Error{Code::BadNode, "argument 'values' is required but missing"};
    default:
      break;
  }
  return Error{Code::BadNode, fmt::format("argument 'values' does not hold elements of kind {}", elemName(kind))};
}

}  // namespace aglow::caffe2
