// Names come first, because values refer to each other by them; then storage, then nodes in the function's order.
#include "import/onnx/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx/export_ops.h"
#include "import/onnx/own_domain.h"
#include "import/onnx/tensor_proto.h"
#include "support/quote.h"
#include "support/utf8.h"

namespace aglow::onnx {

namespace {

constexpr int64_t kIrVersion = 12, kIrVersionOfTwoBits = 13;

std::string asUtf8(std::string_view name) {
  std::string valid;
  for (size_t at = 0; at < name.size();) {
    const size_t length = utf8Length(name, at);
    if (length > 0 && name[at] != '\0')
      valid += name.substr(at, length);
    else
      valid += fmt::format("\\x{:02x}", static_cast<uint8_t>(name[at]));
    at += std::max<size_t>(length, 1);
  }
  return valid;
}

class Exporter : public ExportScope {
public:
  explicit Exporter(const aglow::Function& function) : function_(function) {}

  Result<Model> run() {
    model_.producer = "aglow";
    model_.producerVersion = AGLOW_VERSION;
    model_.irVersion = kIrVersion;
    model_.opsets = {{"", kExportOpset}};
    model_.graph.name = asUtf8(function_.name());
    AGLOW_OK(addPlaceholders());
    for (const aglow::Constant* constant : function_.module().constants())
      if (isUsed(*constant)) addConstant(*constant);
    nameResults();
    for (const auto& node : function_.nodes()) addNode(*node);
    if (usesTwoBits_) model_.irVersion = kIrVersionOfTwoBits;
    model_.owner = std::make_shared<std::vector<std::shared_ptr<const void>>>(std::move(keep_));
    return std::move(model_);
  }

  std::string nameOf(Value v) const override {
    return v ? names_.at(v.node)[static_cast<size_t>(v.index)] : std::string();
  }

  std::string initializer(std::string_view hint, const Tensor& tensor) override {
    const std::string name = unique(std::string(hint));
    addInitializer(name, tensor);
    return name;
  }

private:
  bool isUsed(const aglow::Node& storage) const {
    return std::any_of(storage.uses().begin(), storage.uses().end(),
                       [&](const Use& use) { return use.user->function() == &function_; });
  }

  std::string unique(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  Status addPlaceholders() {
    const std::vector<Placeholder*> outputs = outputsOf(function_);
    const auto isOutput = [&](const aglow::Node* p) {
      return std::find(outputs.begin(), outputs.end(), p) != outputs.end();
    };
    for (const Placeholder* read : inputsOf(function_))
      if (isOutput(read))
        return Error{.code = Code::UnsupportedFeature,
                     .message = fmt::format("placeholder {} is read and written, which an ONNX model cannot express",
                                            quoted(read->name()))};
    if (const std::vector<Placeholder*> states = statesOf(function_); !states.empty())
      return Error{
          .code = Code::UnsupportedFeature,
          .message = fmt::format("{} is state, which an ONNX model cannot express", quoted(states[0]->name()))};
    for (const Placeholder* place : function_.module().placeholders()) {
      if (place->isState() || (!place->uses().empty() && !isUsed(*place))) continue;
      const std::string name = unique(asUtf8(place->name()));
      names_[place] = {name};
      noteType(name, place->type());
      (isOutput(place) ? model_.graph.outputs : model_.graph.inputs).push_back(valueInfo(name, place->type()));
    }
    return {};
  }

  // Parameters of quantized types have no place in ONNX's types.
  void noteType(const std::string& name, const Type& type) {
    if (isQuantized(type.kind())) model_.metadata.emplace_back(quantizedTypeKey(name), type.text());
  }

  ValueInfo valueInfo(const std::string& name, const Type& type) {
    usesTwoBits_ = usesTwoBits_ || type.kind() == ElemKind::Int2 || type.kind() == ElemKind::UInt2;
    return infoOf(name, type);
  }

  void addConstant(const aglow::Constant& constant) {
    const std::string name = unique(asUtf8(constant.name()));
    names_[&constant] = {name};
    noteType(name, constant.type());
    addInitializer(name, constant.tensor());
  }

  void addInitializer(const std::string& name, const Tensor& tensor) {
    usesTwoBits_ = usesTwoBits_ || tensor.type().kind() == ElemKind::Int2 || tensor.type().kind() == ElemKind::UInt2;
    model_.graph.initializers.push_back(protoOf(name, tensor, keep_));
  }

  // A result that is saved has the output's name, unless it has another one already.
  void nameResults() {
    for (const auto& node : function_.nodes()) names_[node.get()].resize(static_cast<size_t>(node->resultCount()));
    for (const aglow::Node* save : function_.saves()) {
      const Value v = save->input(0);
      std::string& name = names_.at(v.node)[static_cast<size_t>(v.index)];
      if (!name.empty()) continue;
      name = nameOf(save->input(1));
      direct_.insert(save);
    }
    for (const auto& node : function_.nodes())
      for (int i = 0; i < node->resultCount(); ++i) {
        std::string& name = names_.at(node.get())[static_cast<size_t>(i)];
        if (!name.empty()) continue;
        const std::string own = asUtf8(node->name());
        name = unique(i == 0 ? own : fmt::format("{}:{}", own, i));
        model_.graph.valueInfo.push_back(valueInfo(name, node->type(i)));
      }
  }

  void addNode(const aglow::Node& node) {
    if (direct_.contains(&node)) return;
    Node out;
    out.name = asUtf8(node.name());
    if (node.op() == Op::Save) {
      out.opType = "Identity";
      out.inputs = {nameOf(node.input(0))};
      out.outputs = {nameOf(node.input(1))};
    } else {
      if (node.predicate() || !writeStandard(node, *this, out)) writeOwn(node, out);
    }
    model_.graph.nodes.push_back(std::move(out));
  }

  void writeOwn(const aglow::Node& node, Node& out) {
    out.opType = node.def().name;
    out.domain = kOwnDomain;
    model_.opsets[std::string(kOwnDomain)] = kOwnVersion;
    for (const Value v : node.inputs()) out.inputs.push_back(nameOf(v));
    out.outputs = names_.at(&node);
    out.attributes = ownAttributes(node.attrs(), keep_);
    if (!node.predicate()) return;
    out.inputs.push_back(nameOf(node.predicate()));
    Attribute flag;
    flag.name = kPredicateAttribute;
    flag.type = AttributeType::Int;
    flag.i = 1;
    out.attributes.push_back(std::move(flag));
  }

  const aglow::Function& function_;
  Model model_;
  std::unordered_map<const aglow::Node*, std::vector<std::string>> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<const aglow::Node*> direct_;  // saves whose value has the output's name
  std::vector<std::shared_ptr<const void>> keep_;
  bool usesTwoBits_ = false;
};

}  // namespace

Result<Model> exportModel(const aglow::Function& function) { return Exporter(function).run(); }

}  // namespace aglow::onnx
