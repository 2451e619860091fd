// The sizes of a model's inputs: what the file declares, what the user gives, and whether both agree.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "import/onnx/host_values.h"
#include "import/onnx/inputs.h"
#include "import/onnx/tensor_data.h"

namespace aglow::onnx {

namespace {

constexpr const char* kGiven = "the value given for input";

// Sizes of symbolic dimensions and who settled them.
class Symbols {
public:
  explicit Symbols(const std::map<std::string, int64_t>& dims) {
    for (const auto& [name, size] : dims) sizes_[name] = {size, fmt::format("--dim {}={}", name, size)};
  }

  std::optional<int64_t> find(const std::string& name) const {
    const auto it = sizes_.find(name);
    return it == sizes_.end() ? std::nullopt : std::optional(it->second.size);
  }

  // Nothing, or why the size cannot be.
  std::optional<Error> bind(const std::string& name, int64_t size, const std::string& source) {
    const auto [it, fresh] = sizes_.try_emplace(name, Binding{size, source});
    if (fresh || it->second.size == size) return std::nullopt;
    return Error{.code = Code::DimConflict,
                 .message = fmt::format("dimension '{}' is {} by {}, but {} by {}", name, it->second.size,
                                        it->second.source, size, source)};
  }

  std::map<std::string, int64_t> sizes() const {
    std::map<std::string, int64_t> sizes;
    for (const auto& [name, binding] : sizes_) sizes[name] = binding.size;
    return sizes;
  }

private:
  struct Binding {
    int64_t size;
    std::string source;
  };
  std::map<std::string, Binding> sizes_;
};

// Whether maps are what a type asks for, and only where it does.
bool mapsFit(const TypeProto& type, const ModelValue& given) {
  const bool wanted = type.kind == TypeProto::Kind::Map;
  if (given.maps.empty()) return !wanted || given.isSequence;
  return wanted && std::all_of(given.maps.begin(), given.maps.end(), [&](const MapValue& map) {
           const int32_t values = map.hasStrings() ? kStringType : elemInfo(map.numbers().type().kind()).onnx;
           return areStrings(map.keys()) == (type.elemType == kStringType) && values == type.elem->elemType;
         });
}

class Resolver {
public:
  Resolver(const Graph& graph, const ImportOptions& options)
      : graph_(graph), options_(options), symbols_(options.dims) {}

  InputTypes run() {
    for (const TensorProto& t : graph_.initializers) initialized_.insert(t.name);
    for (const SparseTensorProto& t : graph_.sparseInitializers) initialized_.insert(t.values.name);
    checkNames();
    for (const ValueInfo& info : graph_.inputs) {
      if (!names_.insert(info.name).second)
        report({.code = Code::BadGraph, .message = fmt::format("input '{}' is declared twice", info.name)});
      if (const auto it = options_.given.find(info.name); it != options_.given.end())
        fromGiven(info, it->second);
      else if (const auto shape = options_.shapes.find(info.name); shape != options_.shapes.end())
        fromShape(info, shape->second);
    }
    // What is given settles symbols first; the rest follows from them.
    for (const ValueInfo& info : graph_.inputs)
      if (!options_.given.contains(info.name) && !options_.shapes.contains(info.name) &&
          !initialized_.contains(info.name))
        fromDeclaration(info);
    result_.sizes = symbols_.sizes();
    return std::move(result_);
  }

private:
  void report(Error error) { result_.diagnostics.add(std::move(error)); }

  void checkNames() {
    std::string known;
    for (const ValueInfo& info : graph_.inputs) known += (known.empty() ? "'" : ", '") + info.name + "'";
    const auto check = [&](const std::string& name) {
      const bool found = std::any_of(graph_.inputs.begin(), graph_.inputs.end(),
                                     [&](const ValueInfo& info) { return info.name == name; });
      if (!found)
        report({.code = Code::BadBinding,
                .message = fmt::format("the model has no input '{}'", name),
                .where = {},
                .hint = known.empty() ? "it has no inputs" : "its inputs are " + known});
    };
    for (const auto& [name, given] : options_.given) check(name);
    for (const auto& [name, shape] : options_.shapes) check(name);
  }

  std::optional<ElemKind> kindOf(const ValueInfo& info) {
    const TypeProto& type =
        info.type.kind == TypeProto::Kind::Optional && info.type.elem != nullptr ? *info.type.elem : info.type;
    if (holdsMaps(type)) {
      report(needsRuntime().at(fmt::format("input '{}' ({})", info.name, describe(info.type))));
      return std::nullopt;
    }
    if (type.kind != TypeProto::Kind::Tensor) {
      const bool none = type.kind == TypeProto::Kind::None;
      report({.code = none ? Code::BadGraph : Code::UnsupportedFeature,
              .message = none ? fmt::format("input '{}' declares no type", info.name)
                              : fmt::format("input '{}' is a {}; its value must be given", info.name, describe(type))});
      return std::nullopt;
    }
    if (type.elemType == kStringType) {
      report(needsRuntime().at(fmt::format("input '{}' ({})", info.name, describe(info.type))));
      return std::nullopt;
    }
    Result<ElemKind> kind = elemKindOf(type.elemType, Code::BadGraph);
    if (kind.ok()) return *kind;
    report(std::move(kind).error().at(fmt::format("input '{}' ({})", info.name, describe(info.type))));
    return std::nullopt;
  }

  static const TypeProto& tensorType(const ValueInfo& info) {
    return info.type.kind == TypeProto::Kind::Optional ? *info.type.elem : info.type;
  }

  void fromGiven(const ValueInfo& info, const ModelValue& given) {
    if (given.none) return;
    const auto mismatch = [&] {
      report({.code = Code::BadBinding,
              .message = fmt::format("input '{}' is {}; expected {}", info.name, given.text(), describe(info.type))});
    };
    const TypeProto& declared = tensorType(info);
    if (!mapsFit(declared.kind == TypeProto::Kind::Sequence ? *declared.elem : declared, given)) return mismatch();
    if (given.isSequence || given.isMap()) return;
    const bool ofStrings = tensorType(info).kind == TypeProto::Kind::Tensor && tensorType(info).elemType == kStringType;
    if (ofStrings != given.isStrings()) return mismatch();
    if (ofStrings) return settle(info, std::nullopt, given.strings.front().shape().dims(), kGiven);
    if (given.tensors.size() != 1) return;
    const Type& type = given.tensors.front().type();
    const std::optional<ElemKind> kind = kindOf(info);
    if (!kind) return;
    if (info.type.open) return settle(info, type.kind(), type.shape().dims(), "the value given for input");
    if (*kind != type.kind()) {
      report({.code = Code::BadBinding,
              .message = fmt::format("input '{}' is of kind {}; expected {}", info.name, elemName(type.kind()),
                                     describe(info.type))});
      return;
    }
    settle(info, *kind, type.shape().dims(), kGiven);
  }

  void fromShape(const ValueInfo& info, const std::vector<int64_t>& dims) {
    if (const std::optional<ElemKind> kind = kindOf(info)) settle(info, *kind, dims, "--shape");
  }

  // Checks sizes against the declaration, binds its symbols, and keeps the type; strings have none.
  void settle(const ValueInfo& info, std::optional<ElemKind> kind, const std::vector<int64_t>& dims,
              const std::string& source) {
    const TypeProto& declared = tensorType(info);
    Result<Shape> shape = Shape::create(dims);
    if (!shape.ok()) return report(Error(shape.error()).at(fmt::format("input '{}'", info.name)));
    const auto mismatch = [&] {
      report({.code = Code::BadBinding,
              .message =
                  fmt::format("input '{}' has shape {}; expected {}", info.name, shape->text(), describe(declared))});
    };
    const bool scalar = declared.hasShape && declared.dims.empty();
    if (!declared.open && scalar && !dims.empty()) {
      // Exporters write no dimensions where they know none.
      const Departure departure{.fault = {.code = Code::BadBinding,
                                          .message = fmt::format("input '{}' has shape {}; expected {}, a scalar",
                                                                 info.name, shape->text(), describe(declared))},
                                .meaning = "its rank is taken as open"};
      if (auto fault = options_.tolerance.judge(departure)) return report(*std::move(fault));
    } else if (!declared.open && declared.hasShape && declared.dims.size() != dims.size()) {
      return mismatch();
    }
    for (size_t i = 0; !declared.open && i < declared.dims.size(); ++i) {
      const Dim& dim = declared.dims[i];
      if (dim.kind == Dim::Kind::Value && dim.value != dims[i]) return mismatch();
      if (dim.kind == Dim::Kind::Symbol)
        if (auto error = symbols_.bind(dim.symbol, dims[i], fmt::format("{} '{}'", source, info.name)))
          return report(*std::move(error));
    }
    if (kind) result_.types[info.name] = Type(*kind, *std::move(shape));
  }

  void fromDeclaration(const ValueInfo& info) {
    const std::optional<ElemKind> kind = kindOf(info);
    if (!kind) return;
    const TypeProto& declared = tensorType(info);
    const auto open = [&](const std::string& what) {
      report({.code = Code::NeedShape,
              .message = fmt::format("input '{}' is declared as {}: {}", info.name, describe(declared), what),
              .where = {},
              .hint = fmt::format("give sizes with --shape '{}=1x...' or --dim NAME=N{}{}", info.name,
                                  info.hint.empty() ? "" : "; ", info.hint)});
    };
    if (!declared.hasShape) return open("its rank is not known");
    std::vector<int64_t> dims;
    for (const Dim& dim : declared.dims) {
      const std::optional<int64_t> size = dim.kind == Dim::Kind::Value    ? std::optional(dim.value)
                                          : dim.kind == Dim::Kind::Symbol ? symbols_.find(dim.symbol)
                                                                          : std::nullopt;
      if (!size)
        return open(dim.kind == Dim::Kind::Symbol ? fmt::format("'{}' has no size", dim.symbol)
                                                  : "a dimension has no size");
      dims.push_back(*size);
    }
    Result<Shape> shape = Shape::create(dims);
    if (!shape.ok()) return report(Error(shape.error()).at(fmt::format("input '{}'", info.name)));
    result_.types[info.name] = Type(*kind, *std::move(shape));
  }

  const Graph& graph_;
  const ImportOptions& options_;
  Symbols symbols_;
  std::set<std::string> initialized_, names_;
  InputTypes result_;
};

}  // namespace

InputTypes resolveInputs(const Graph& graph, const ImportOptions& options) { return Resolver(graph, options).run(); }

}  // namespace aglow::onnx
