// The pass that packs constant right sides of matrix products, each once for all products by it.
#include <optional>

#include "backends/cpu/kernels/gemm/matrix_desc.h"
#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/pack.h"
#include "backends/cpu/layout/bytes.h"
#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// One matrix of f32, or of bytes as i32, with columns enough that panels are not mostly empty.
bool isPackable(const Tensor& tensor, int64_t panel) {
  constexpr int64_t kMostlyEmpty = 4;
  const Type& type = tensor.type();
  if (type.rank() < 2) return false;
  const int64_t k = type.dim(type.rank() - 2), n = type.dim(type.rank() - 1);
  if (type.elements() != k * n || k == 0 || kMostlyEmpty * n < panel) return false;
  return type.kind() == ElemKind::Float32 || (type.kind() == ElemKind::Int32 && fitsSignedBytes(tensor));
}

// The products that a value is the right side of.
std::vector<Node*> productsBy(const Node& b, const Function& function) {
  std::vector<Node*> products;
  for (const Use& use : b.uses())
    if (use.user->op() == Op::MatMul && use.user->function() == &function && use.slot == 1 && !use.user->predicate() &&
        use.user->type().elements() > 0 &&
        (b.type().kind() == ElemKind::Float32 || shiftedBytes(unmoved(use.user->input(0)))))
      products.push_back(use.user);
  return products;
}

// The sums of the columns of a matrix [k, n] of i32, times a number.
Value columnSums(Builder& b, const Tensor& matrix, int64_t factor = 1) {
  const int64_t k = matrix.type().dim(0), n = matrix.type().dim(1);
  const auto* from = matrix.ref().as<const int32_t>();
  std::vector<int64_t> sums(static_cast<size_t>(n));
  for (int64_t i = 0; i < k * n; ++i) sums[static_cast<size_t>(i % n)] += from[i];
  for (int64_t& sum : sums) sum = static_cast<int32_t>(sum * factor);  // wraps, as i32 does
  return b.constant(Tensor::fromInts(Type(ElemKind::Int32, Shape{n}), sums));
}

// (a + shift) * b is a * b + shift * b.
Value byteProduct(Builder& b, Value left, const Tensor& matrix, Value panels) {
  const ShiftedBytes a = *shiftedBytes(unmoved(left));
  const Value y = b.narrowMatMul(movedAs(b, left, unsignedBytes(b, a.bytes)), panels, {.n = matrix.type().dim(1)});
  const int64_t more = a.bytes.kind() == ElemKind::Int8 ? -kSignedShift : 0;
  const std::optional<int64_t> known = a.known();
  if (known) return *known + more == 0 ? y : b.add(y, columnSums(b, matrix, *known + more));
  Value shift = b.reshaped(a.shift, {});
  if (a.negative) shift = b.neg(shift);
  if (more != 0) shift = b.add(shift, b.scalar(ElemKind::Int32, static_cast<double>(more)));
  return b.add(y, b.mul(columnSums(b, matrix), shift));
}

// The matrix in panels, in the forms that products want.
class Panels {
public:
  Panels(Module& module, const Constant& constant, Tensor matrix, const VectorLayout& layout)
      : module_(module), name_(constant.name()), matrix_(std::move(matrix)), layout_(layout), panel_(2 * layout.lanes) {
    halves_ = layout.halves && matrix_.type().kind() == ElemKind::Float32 && fitsHalves(matrix_);
  }

  Value product(Builder& b, Value left) {
    const int64_t n = matrix_.type().dim(1);
    if (matrix_.type().kind() == ElemKind::Int32) return byteProduct(b, left, matrix_, narrow());
    if (halves_ && isNarrowFloats(left) && areWorthIt(left.type()))
      return b.narrowMatMul(narrowFloats(b, left), narrow(), {.n = n});
    return b.packedMatMul(left, floats(), {.n = n});
  }

private:
  // Few rows wait for memory, of which bf16 need half.
  bool areWorthIt(const Type& left) const {
    constexpr int64_t kHalf = 2;  // bytes
    const int64_t k = matrix_.type().dim(0), rows = left.elements() / std::max<int64_t>(k, 1);
    return layout_.fastHalves || rows <= cpu::kMatVecRows ||
           (layout_.matrix && rows >= cpu::kMatrixRows && kHalf * k % cpu::kMatrixStep == 0);
  }

  Value narrow() {
    if (!packedNarrow_) packedNarrow_ = module_.addConstant(name_, cpu::packNarrowMatrix(matrix_, panel_))->result();
    return packedNarrow_;
  }
  Value floats() {
    if (!packedFloats_) packedFloats_ = module_.addConstant(name_, cpu::packMatrix(matrix_, panel_))->result();
    return packedFloats_;
  }

  Module& module_;
  std::string name_;
  Tensor matrix_;
  VectorLayout layout_;
  int64_t panel_;
  bool halves_ = false;  // all weights are bf16
  Value packedNarrow_, packedFloats_;
};

// The same for bf16 that are not known when compiling, as nodes: [k, n] to [P, ceil(k / 2), panel, 2].
Value packHalvesAtRunTime(Builder& b, Value matrix, int64_t panel) {
  const int64_t k = matrix.dim(0), n = matrix.dim(1), pairs = ceilDiv(k, 2), panels = ceilDiv(n, panel);
  if (pairs * 2 > k || panels * panel > n)
    matrix = b.pad(matrix, b.scalarLike(matrix, 0), {.before = {0, 0}, .after = {pairs * 2 - k, panels * panel - n}});
  return b.transposed(b.reshaped(matrix, {pairs, 2, panels, panel}), {2, 0, 3, 1});
}

// Products of bf16 by one computed matrix, of enough rows that it pays to pack that first.
bool multipliesHalves(const Node& node, const VectorLayout& layout) {
  constexpr int64_t kRows = 16;
  if (node.op() != Op::MatMul || node.predicate() || !layout.fastHalves) return false;
  const Value left = node.input(0), right = node.input(1);
  return right.rank() == 2 && left.rank() >= 2 && !isConstant(right) && isNarrowFloats(left) && isNarrowFloats(right) &&
         right.dim(0) > 0 && right.dim(1) >= 2 * layout.lanes && left.type().elements() >= kRows * right.dim(0);
}

Result<int64_t> packHalves(Function& function, const VectorLayout& layout) {
  std::vector<Node*> products;
  for (const auto& node : function.nodes())
    if (multipliesHalves(*node, layout)) products.push_back(node.get());
  for (Node* product : products) {
    Builder b(function);
    b.before(product).named(product->name());
    AGLOW_OK(building([&] {
      const Value panels = packHalvesAtRunTime(b, narrowFloats(b, product->input(1)), 2 * layout.lanes);
      const Value y = b.narrowMatMul(narrowFloats(b, product->input(0)), panels, {.n = product->input(1).dim(1)});
      replaceAllUses(product->result(), y);
      return true;
    }));
    function.erase(product);
  }
  return std::ssize(products);
}

Result<bool> packWeights(Function& function, PassContext& context, const VectorLayout& layout) {
  AGLOW_TRY(int64_t packed, packHalves(function, layout));
  for (Constant* constant : function.module().constants()) {
    const Type& type = constant->type();
    if (!isPackable(constant->tensor(), 2 * layout.lanes)) continue;
    const std::vector<Node*> products = productsBy(*constant, function);
    if (products.empty()) continue;
    const int64_t k = type.dim(type.rank() - 2), n = type.dim(type.rank() - 1);
    Panels panels(function.module(), *constant, constant->tensor().retyped(type.withShape(Shape{k, n})), layout);
    for (Node* product : products) {
      Builder b(function);
      b.before(product).named(product->name());
      AGLOW_OK(building([&] {
        const Value y = panels.product(b, product->input(0));
        replaceAllUses(product->result(), b.reshaped(y, product->type().shape().dims()));
        return true;
      }));
      function.erase(product);
      ++packed;
    }
    // Large weights do not wait for the end to be freed.
    if (constant->uses().empty()) function.module().eraseStorage(constant);
  }
  context.count("pack-weights", packed);
  return packed > 0;
}

}  // namespace

Pass packWeightsPass(const VectorLayout& layout) {
  return {.name = "pack-weights",
          .doc = "Packs constant right sides of matrix products in panels.",
          .run = [layout](Function& function, PassContext& context) { return packWeights(function, context, layout); }};
}

}  // namespace aglow
