#include "import/onnx/nchwc.h"

#include <algorithm>
#include <unordered_map>

#include "import/onnx/tensor_data.h"

namespace aglow::onnx {

namespace {

constexpr int64_t kNarrow = 8, kWide = 16;

// Where the processor has vectors of 16 numbers, onnxruntime uses them.
int64_t blockHere() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? kWide : kNarrow;
#else
  return kWide;
#endif
}

const Attribute* attributeOf(const Node& node, std::string_view name) {
  const auto it = std::find_if(node.attributes.begin(), node.attributes.end(),
                               [&](const Attribute& attribute) { return attribute.name == name; });
  return it == node.attributes.end() ? nullptr : &*it;
}

class Evidence {
public:
  explicit Evidence(const Model& model) : model_(model) {
    for (const TensorProto& tensor : model.graph.initializers) initializers_[tensor.name] = &tensor;
    for (const Node& node : model.graph.nodes) {
      look(node);
      note(node);
    }
  }

  int64_t block() const { return narrow_ ? kNarrow : wide_ ? kWide : blockHere(); }

private:
  const TensorProto* initializer(const Node& node, size_t input) const {
    if (input >= node.inputs.size()) return nullptr;
    const auto it = initializers_.find(node.inputs[input]);
    return it == initializers_.end() ? nullptr : it->second;
  }

  // The channels of a value in blocks, 0 where they are not known; null where it is plain.
  const int64_t* blocked(const std::string& name) const {
    const auto it = blocked_.find(name);
    return it == blocked_.end() ? nullptr : &it->second;
  }

  void look(const Node& node) {
    if (node.domain != kNchwc || node.inputs.empty()) return;
    const int64_t* channels = blocked(node.inputs.front());
    if (node.opType == "ReorderOutput" && channels != nullptr) {
      const Attribute* kept = attributeOf(node, "channels");
      wide_ = wide_ || (kept != nullptr && *channels - kept->i >= kNarrow);
    }
    const TensorProto* filter = node.opType == "Conv" ? initializer(node, 1) : nullptr;
    if (filter == nullptr || filter->dims.size() != 4) return;
    narrow_ = narrow_ || filter->dims[0] % kWide != 0;
    // Fewer channels than a block has are read from a plain tensor.
    if (filter->dims[1] >= kNarrow && filter->dims[1] < kWide) (channels != nullptr ? narrow_ : wide_) = true;
    if (const TensorProto* bias = initializer(node, 2)) wide_ = wide_ || isFilledUp(*bias);
  }

  // Whether the last channels, as many as a narrow block has, were never any.
  bool isFilledUp(const TensorProto& bias) const {
    const Result<Tensor> tensor = toTensor(bias, model_);
    if (!tensor.ok() || !isFloat(tensor->type().kind()) || tensor->type().elements() < kWide) return false;
    const std::vector<double> values = tensor->doubles();
    const auto isZero = [](double value) { return value == 0; };
    return std::all_of(values.end() - kNarrow, values.end(), isZero) &&
           !std::all_of(values.begin(), values.end() - kNarrow, isZero);
  }

  // What the node makes of its operand's blocks.
  void note(const Node& node) {
    if (node.outputs.empty() || (node.domain == kNchwc && node.opType == "ReorderOutput")) return;
    int64_t channels = 0;
    bool isBlocked = node.domain == kNchwc;
    for (const std::string& name : node.inputs)
      if (const int64_t* found = blocked(name)) {
        isBlocked = true;
        channels = node.inputs.size() == 1 ? *found : 0;
      }
    if (const TensorProto* filter = isBlocked && node.opType == "Conv" ? initializer(node, 1) : nullptr)
      channels = filter->dims.empty() ? 0 : filter->dims[0];
    if (isBlocked) blocked_[node.outputs.front()] = channels;
  }

  const Model& model_;
  std::unordered_map<std::string, const TensorProto*> initializers_;
  std::unordered_map<std::string, int64_t> blocked_;
  bool narrow_ = false, wide_ = false;
};

}  // namespace

int64_t channelBlock(const Model& model) { return Evidence(model).block(); }

}  // namespace aglow::onnx
