// Import makes of every form what it came from, or what computes the same; a form returns false if ONNX cannot express
// the node.
#include "import/onnx/export_forms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "ops/onnx_kinds.h"
#include "ops/recurrent.h"
#include "ops/window.h"
#include "support/sizes.h"

namespace aglow::onnx {

bool Form::attributes(const Renamed& renamed) {
  for (int i = 0; i < attrs().op().attrs.size(); ++i) {
    if (attrs().isDefault(i) || attrs().op().attrs[i].hint) continue;
    std::string_view name = attrs().op().attrs[i].name;
    for (const auto& [from, to] : renamed)
      if (from == name) name = to;
    const AttrValue& value = attrs().at(i);
    if (const auto* integer = std::get_if<int64_t>(&value))
      set(name, *integer);
    else if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
      set(name, *list);
    else if (const auto* word = std::get_if<std::string>(&value))
      set(name, *word);
    else if (const auto* number = std::get_if<double>(&value); number == nullptr || !real(name, *number))
      return false;
  }
  return true;
}

namespace forms {

using namespace onnx_kinds;  // NOLINT: the words of this file

bool plain(Form& f) {
  f.inputs();
  f.results();
  return f.attributes();
}

// ---------------------------------------------------------------- elementwise

static bool isScalar(Value v) { return v.rank() == 0; }

bool clip(Form& f) { return isScalar(f.node.input(1)) && isScalar(f.node.input(2)) && plain(f); }
bool remainder(Form& f) {
  f.set("fmod", 1);
  return plain(f);
}
bool shiftLeft(Form& f) {
  f.set("direction", std::string("LEFT"));
  return plain(f);
}
bool shiftRight(Form& f) {
  f.set("direction", std::string("RIGHT"));
  return plain(f);
}
bool geluTanh(Form& f) {
  f.set("approximate", std::string("tanh"));
  return plain(f);
}
bool pRelu(Form& f) { return f.node.type().shape() == f.in(0).shape() && plain(f); }

// Only narrow floats have a choice in what is too large, and only powers of two in how they round.
bool cast(Form& f) {
  const ElemKind to = f.attrs().elem("to");
  if (!contains(moved, to)) return false;
  f.inputs();
  f.results();
  f.set("to", elemInfo(to).onnx);
  if (!f.attrs().flag("saturate") && contains(float8s | kindSet(Float8E8M0), to)) f.set("saturate", 0);
  if (to == Float8E8M0) f.set("round_mode", f.attrs().word("rounding"));
  return true;
}

// ---------------------------------------------------------------- shapes

// The shape that an attribute names as an operand.
bool withShape(Form& f) {
  f.input(f.node.input(0));
  f.ints("shape", f.node.type().shape().dims());
  f.results();
  return true;
}

bool splat(Form& f) {
  const ElemKind kind = f.attrs().elem("elem");
  if (!contains(elements, kind)) return false;
  f.tensor("value", Tensor::scalar(kind, f.attrs().real("value")));
  f.ints("shape", f.node.type().shape().dims());
  f.results();
  return true;
}

bool reshape(Form& f) {
  const std::vector<int64_t>& dims = f.node.type().shape().dims();
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) f.set("allowzero", 1);
  return withShape(f);
}

// All axes are named, since ONNX reads none as "reversed".
bool transpose(Form& f) {
  f.inputs();
  f.results();
  f.set("perm", f.attrs().ints("perm"));
  return true;
}

bool slice(Form& f) {
  const std::vector<int64_t>&starts = f.attrs().ints("starts"), &sizes = f.attrs().ints("sizes");
  const std::vector<int64_t>& given = f.attrs().ints("steps");
  std::vector<int64_t> from, to, axes, steps;
  for (size_t a = 0; a < starts.size(); ++a) {
    const int64_t step = given.empty() ? 1 : given[a], extent = f.in(0).dim(static_cast<int>(a));
    if (sizes[a] == extent && starts[a] == 0 && step == 1) continue;
    const int64_t last = sizes[a] == 0 ? 0 : starts[a] + (sizes[a] - 1) * step;
    axes.push_back(static_cast<int64_t>(a));
    steps.push_back(sizes[a] <= 1 ? 1 : step);
    from.push_back(sizes[a] == 0 ? 0 : starts[a]);
    // Past the last element; before the first one there is no other number than the lowest.
    const int64_t end = steps.back() > 0 ? last + 1 : last - 1;
    to.push_back(sizes[a] == 0 ? 0 : end < 0 ? std::numeric_limits<int64_t>::min() : end);
  }
  f.input(f.node.input(0));
  f.ints("starts", from);
  f.ints("ends", to);
  f.ints("axes", axes);
  f.ints("steps", steps);
  f.results();
  return true;
}

bool concat(Form& f) {
  f.inputs();
  f.results();
  f.set("axis", f.attrs().integer("axis"));
  return true;
}

bool pad(Form& f) {
  if (!isScalar(f.node.input(1))) return false;
  std::vector<int64_t> pads = f.attrs().ints("before");
  const std::vector<int64_t>& after = f.attrs().ints("after");
  pads.insert(pads.end(), after.begin(), after.end());
  f.input(f.node.input(0));
  f.ints("pads", pads);
  f.input(f.node.input(1));
  f.results();
  return true;
}

// Tuples of indices are i64.
bool byTuples(Form& f) { return f.in(1).kind() == Int64 && plain(f); }

// ---------------------------------------------------------------- along axes

bool reduce(Form& f) {
  static const Form::Renamed kNames = {
      {"sum", "ReduceSum"}, {"mean", "ReduceMean"}, {"prod", "ReduceProd"}, {"max", "ReduceMax"}, {"min", "ReduceMin"}};
  const std::string& kind = f.attrs().word("kind");
  for (const auto& [from, to] : kNames)
    if (from == kind) f.out.opType = to;
  const bool picks = kind == "max" || kind == "min";
  if (!contains(picks ? floats | words | bytes | kindSet(Bool) : floats | words, f.in(0).kind())) return false;
  const std::vector<int64_t>& axes = f.attrs().ints("axes");
  f.input(f.node.input(0));
  f.ints("axes", axes);
  if (!f.attrs().flag("keepdims")) f.set("keepdims", 0);
  if (axes.empty()) f.set("noop_with_empty_axes", 1);
  f.results();
  return true;
}

bool argReduce(Form& f) {
  f.out.opType = f.attrs().word("kind") == "max" ? "ArgMax" : "ArgMin";
  f.inputs();
  f.set("axis", f.attrs().integer("axis"));
  f.set("keepdims", f.attrs().integer("keepdims"));
  if (f.attrs().flag("last")) f.set("select_last_index", 1);
  f.results();
  return true;
}

bool scan(Form& f) {
  if (f.attrs().word("kind") != "sum") return false;
  f.inputs();
  f.tensor("axis", Tensor::fromInts(Type(Int64, Shape{}), {f.attrs().integer("axis")}));
  if (f.attrs().flag("exclusive")) f.set("exclusive", 1);
  if (f.attrs().flag("reverse")) f.set("reverse", 1);
  f.results();
  return true;
}

bool topK(Form& f) {
  f.inputs();
  f.ints("k", {f.attrs().integer("k")});
  f.set("axis", f.attrs().integer("axis"));
  if (!f.attrs().flag("largest")) f.set("largest", 0);
  f.results();
  return true;
}

// ---------------------------------------------------------------- windows

static bool isImage(const Type& type) { return type.rank() >= 3; }

bool conv(Form& f) {
  f.inputs();
  f.results();
  return isImage(f.in(0)) && f.attributes();
}

// Result extents that neither whole windows nor those that reach past the end give have no form.
bool col2Im(Form& f) {
  f.inputs();
  f.ints("image_shape", f.attrs().ints("sizes"));
  f.ints("block_shape", f.attrs().ints("kernel"));
  f.results();
  for (const char* list : {"strides", "pads", "dilations"})
    if (!f.attrs().ints(list).empty()) f.set(list, f.attrs().ints(list));
  return true;
}

bool pool(Form& f) {
  if (!isImage(f.in(0))) return false;
  const Result<Window> window = windowOf(f.attrs(), f.attrs().ints("kernel"));
  if (!window.ok()) return false;
  bool whole = true, ceiled = true;
  for (int a = 0; a < window->axes(); ++a) {
    const auto i = static_cast<size_t>(a);
    const int64_t begin = f.in(0).dim(a + 2) + window->before[i], padded = begin + window->after[i];
    const int64_t room = padded - window->reach(a), got = f.node.type().dim(a + 2);
    int64_t most = ceilDiv(room, window->strides[i]) + 1;
    if ((most - 1) * window->strides[i] >= begin) --most;
    whole = whole && room >= 0 && got == room / window->strides[i] + 1;
    ceiled = ceiled && got == most;
  }
  if (!whole && !ceiled) return false;
  f.inputs();
  f.results();
  f.set("kernel_shape", f.attrs().ints("kernel"));
  for (const char* list : {"strides", "pads"})
    if (!f.attrs().ints(list).empty()) f.set(list, f.attrs().ints(list));
  // Where other engines replace a pool by one of their own, it may lack this attribute.
  const std::vector<int64_t>& dilations = f.attrs().ints("dilations");
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; })) f.set("dilations", dilations);
  if (!whole) f.set("ceil_mode", 1);
  if (f.attrs().indexOf("count_include_pad") >= 0 && f.attrs().flag("count_include_pad")) f.set("count_include_pad", 1);
  return true;
}

bool resize(Form& f) {
  const std::vector<int64_t>& sizes = f.attrs().ints("sizes");
  const std::vector<double>&scales = f.attrs().reals("scales"), &roi = f.attrs().reals("roi");
  const Shape& shape = f.in(0).shape();
  // Import computes sizes from scales in single precision, and scales from sizes in double.
  bool byScales = shape.rank() > 0, bySizes = shape.rank() > 0;
  for (int a = 0; a < shape.rank(); ++a) {
    const auto i = static_cast<size_t>(a);
    const auto extent = static_cast<double>(shape[a]);
    byScales = byScales && exactFloat(scales[i]) &&
               static_cast<double>(sizes[i]) ==
                   std::floor(static_cast<double>(static_cast<float>(scales[i]) * static_cast<float>(shape[a])));
    bySizes = bySizes && shape[a] > 0 && sizes[i] > 0 && scales[i] == static_cast<double>(sizes[i]) / extent;
  }
  const bool region = f.attrs().word("coordinates") == "tf_crop_and_resize";
  if (!(byScales || bySizes) ||
      (region && !std::all_of(roi.begin(), roi.end(), [](double r) { return exactFloat(r).has_value(); })))
    return false;
  if ((f.attrs().word("mode") == "nearest" && f.attrs().flag("antialias")) ||
      !f.real("cubic_coeff_a", f.attrs().real("cubic_coeff_a")) ||
      !f.real("extrapolation_value", f.attrs().real("extrapolation_value")))
    return false;
  f.input(f.node.input(0));
  if (region)
    f.tensor("roi", Tensor::fromDoubles(Type(Float32, Shape{static_cast<int64_t>(roi.size())}), roi));
  else
    f.input({});
  if (byScales) {
    f.tensor("scales", Tensor::fromDoubles(Type(Float32, Shape{shape.rank()}), scales));
  } else {
    f.input({});
    f.ints("sizes", sizes);
  }
  f.results();
  for (const auto& [own, name] : Form::Renamed{
           {"mode", "mode"}, {"coordinates", "coordinate_transformation_mode"}, {"nearest_mode", "nearest_mode"}})
    f.set(name, f.attrs().word(own));
  if (f.attrs().flag("exclude_outside")) f.set("exclude_outside", 1);
  if (f.attrs().flag("antialias")) f.set("antialias", 1);
  return true;
}

// ---------------------------------------------------------------- normalisation, quantization

static bool allFloats(const Form& f) {
  for (const Value v : f.node.inputs())
    if (v && !contains(floats, v.kind())) return false;
  return true;
}

bool batchNorm(Form& f) {
  const bool paired = f.in(1).kind() == f.in(2).kind() && f.in(3).kind() == f.in(4).kind();
  return allFloats(f) && paired && f.in(0).rank() >= 2 && plain(f);
}
bool lrn(Form& f) {
  if (f.attrs().isDefault(f.attrs().indexOf("size"))) f.set("size", f.attrs().integer("size"));
  return plain(f);
}
bool instanceNorm(Form& f) { return isImage(f.in(0)) && plain(f); }
bool groupNorm(Form& f) {
  f.inputs();
  f.results();
  return isImage(f.in(0)) && f.attributes({{"groups", "num_groups"}});
}
// Statistics come in single precision.
bool layerNorm(Form& f) { return (!f.isUsed(1) && !f.isUsed(2) ? true : f.node.type(1).kind() == Float32) && plain(f); }
bool rmsNorm(Form& f) { return f.in(0).kind() == f.in(1).kind() && plain(f); }

// Whether a run decides on the value; import computes all others, and judges scales that it knows.
static bool dependsOnInputs(Value v, std::unordered_set<const aglow::Node*>& seen) {
  if (!v || !seen.insert(v.node).second) return false;
  if (v.node->op() == Op::Placeholder) return true;
  const std::vector<Value> operands = v.node->inputs();
  return std::any_of(operands.begin(), operands.end(), [&](Value o) { return dependsOnInputs(o, seen); });
}

static bool hasGoodScale(const Form& f) {
  const Constant* scale = asConstant(f.node.input(1));
  if (scale == nullptr) {
    std::unordered_set<const aglow::Node*> seen;
    return dependsOnInputs(f.node.input(1), seen);
  }
  const std::vector<double> values = scale->tensor().doubles();
  return std::all_of(values.begin(), values.end(), [](double v) { return v > 0 && std::isfinite(v); });
}

static bool linearQuantization(Form& f, ElemKind to) {
  if (!hasGoodScale(f) || !contains(floats & ~kindSet(Float64), f.in(1).kind()) || elemInfo(to).onnx == 0) return false;
  f.inputs();
  f.results();
  f.set("axis", f.attrs().integer("axis"));
  if (f.attrs().integer("block_size") != 0) f.set("block_size", f.attrs().integer("block_size"));
  return true;
}

bool quantizeLinear(Form& f) {
  const ElemKind to = f.attrs().elem("to");
  const bool hasOffset = static_cast<bool>(f.node.input(2));
  if (f.in(0).kind() != f.in(1).kind() || (hasOffset && f.in(2).kind() != to)) return false;
  if (!contains(float8s | kindSet(Int8, UInt8, Int16, UInt16, Int4, UInt4, Float4E2M1), to)) return false;
  if (!hasOffset) f.set("output_dtype", elemInfo(to).onnx);
  if (!f.attrs().flag("saturate")) f.set("saturate", 0);
  return linearQuantization(f, to);
}

bool dequantizeLinear(Form& f) {
  if (f.attrs().elem("to") != f.in(1).kind()) return false;
  if (f.node.input(2) && f.in(2).kind() != f.in(0).kind()) return false;
  return linearQuantization(f, f.in(1).kind());
}

// ---------------------------------------------------------------- attention, recurrent layers

bool attention(Form& f) {
  const Attrs& a = f.attrs();
  const bool causal = a.integer("right") == 0 && a.integer("offset") == 0;
  if (a.integer("left") != -1 || (a.integer("right") != -1 && !causal)) return false;
  if (const Value mask = f.node.input(3); mask && mask.kind() != Bool && mask.kind() != f.in(0).kind()) return false;
  const ElemKind precision = a.elem("precision");
  if (!contains(floats, precision) || !f.real("scale", a.real("scale")) || !f.real("softcap", a.real("softcap")))
    return false;
  if (causal) f.set("is_causal", 1);
  f.set("softmax_precision", elemInfo(precision).onnx);
  f.inputs();
  f.out.outputs = {f.result(0)};
  if (!f.isUsed(1)) return true;
  static constexpr std::string_view kModes[] = {"scores", "capped", "masked", "softmax"};
  f.set("qk_matmul_output_mode", std::find(std::begin(kModes), std::end(kModes), a.word("weights")) - kModes);
  f.out.outputs.insert(f.out.outputs.end(), {"", "", f.result(1)});
  return true;
}

bool recurrent(Form& f) {
  const Attrs& a = f.attrs();
  const std::string& names = a.word("activations");
  const std::vector<double>&alpha = a.reals("alpha"), &beta = a.reals("beta");
  if (names.empty() && !(alpha.empty() && beta.empty())) return false;
  if (f.node.input(4) && f.in(4).kind() != Int32) return false;
  std::vector<std::string> list;
  for (size_t from = 0; from < names.size();) {
    const size_t to = std::min(names.find(',', from), names.size());
    list.push_back(names.substr(from, to - from));
    from = to + 1;
  }
  // ONNX lists parameters only of functions that have them.
  std::vector<float> alphas, betas;
  for (size_t i = 0; i < list.size(); ++i) {
    const ActivationInfo* info = findActivation(list[i]);
    if (info == nullptr) return false;
    const std::optional<float> first = exactFloat(alpha.empty() ? info->alpha : alpha[i]),
                               second = exactFloat(beta.empty() ? info->beta : beta[i]);
    if ((info->parameters > 0 && !first) || (info->parameters > 1 && !second)) return false;
    if (info->parameters > 0) alphas.push_back(*first);
    if (info->parameters > 1) betas.push_back(*second);
  }
  f.inputs();
  f.results();
  f.set("hidden_size", f.in(2).dim(2));
  f.set("direction", a.word("direction"));
  if (!list.empty()) f.attribute("activations", AttributeType::Strings).strings = list;
  if (!alphas.empty()) f.attribute("activation_alpha", AttributeType::Floats).floats = alphas;
  if (!betas.empty()) f.attribute("activation_beta", AttributeType::Floats).floats = betas;
  for (const char* flag : {"linear_before_reset", "input_forget"})
    if (a.indexOf(flag) >= 0 && a.flag(flag)) f.set(flag, 1);
  return a.real("clip") == 0 || f.real("clip", a.real("clip"));
}

}  // namespace forms

}  // namespace aglow::onnx
