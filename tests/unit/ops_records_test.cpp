// What every record must be, whatever its operator.
#include <gtest/gtest.h>

#include <set>

#include "ops/all_ops.h"
#include "ops/kind_sets.h"
#include "ops/op.h"
#include "reference/reference.h"

namespace aglow {
namespace {

TEST(Records, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names, onnx;
  for (const OpDef* op : allOps()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    if (!op->onnx.empty()) {
      EXPECT_TRUE(onnx.insert(op->onnx).second) << op->onnx;
    }
    EXPECT_EQ(findOp(op->name), opOf(*op));
    EXPECT_EQ(&opDef(opOf(*op)), op);
  }
  EXPECT_EQ(findOp("conv"), std::nullopt);
}

TEST(Records, SayWhatTheyMean) {
  for (const OpDef* op : allOps()) {
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_EQ(op->doc.back(), '.') << op->name;
    EXPECT_EQ(op->infer == nullptr, op->kind == OpKind::Storage) << op->name;
    EXPECT_LT(op->probe.low, op->probe.high) << op->name;
  }
}

TEST(Records, NameEachPartOnce) {
  for (const OpDef* op : allOps()) {
    std::set<std::string_view> names;
    for (const OperandDef& operand : op->in) EXPECT_TRUE(names.insert(operand.name).second) << op->name;
    for (const AttrDef& attr : op->attrs) EXPECT_TRUE(names.insert(attr.name).second) << op->name << "." << attr.name;
    std::set<std::string_view> results;
    for (const ResultDef& result : op->out) EXPECT_TRUE(results.insert(result.name).second) << op->name;
  }
}

TEST(Records, TakeOperandsThatExist) {
  for (const OpDef* op : allOps()) {
    bool optional = false;
    for (int i = 0; i < op->in.size(); ++i) {
      const OperandDef& operand = op->in[i];
      EXPECT_NE(operand.kinds, KindSet{0}) << op->name << "." << operand.name;
      EXPECT_EQ(operand.kinds & ~kinds::any, KindSet{0}) << op->name << "." << operand.name;
      // What is repeated stands last, and what may be absent stands after what may not.
      if (operand.arity == Arity::Variadic) {
        EXPECT_EQ(i, op->in.size() - 1) << op->name;
      }
      if (operand.arity == Arity::One) {
        EXPECT_FALSE(optional) << op->name << "." << operand.name;
      }
      optional = optional || operand.arity == Arity::Optional;
    }
  }
}

TEST(Records, HaveDefaultsOfTheRightKind) {
  for (const OpDef* op : allOps()) {
    const Attrs attrs(*op);
    for (int i = 0; i < op->attrs.size(); ++i) {
      const AttrDef& def = op->attrs[i];
      EXPECT_TRUE(attrs.isDefault(i));
      EXPECT_EQ(attrs.indexOf(def.name), i);
      if (def.kind == AttrKind::Enum) {
        EXPECT_NE(def.choices.find('|'), std::string_view::npos) << op->name;
      }
      if (def.kind == AttrKind::Bool) {
        EXPECT_TRUE(def.number == 0 || def.number == 1) << op->name << "." << def.name;
      }
    }
    EXPECT_EQ(attrs.indexOf("no such attribute"), -1);
  }
}

TEST(Records, WriteFormulasOverTheirOwnParts) {
  for (const OpDef* op : allOps()) {
    EXPECT_EQ(op->scalar.empty(), op->kind != OpKind::Elementwise) << op->name;
    std::set<int> used;
    for (int i = 0; i < op->scalar.size(); ++i) {
      const Term& term = op->scalar[i];
      if (term.op == Scalar::Arg) {
        EXPECT_LT(term.a, op->in.size()) << op->name;
        used.insert(term.a);
      } else if (term.op == Scalar::Attr) {
        const int index = Attrs(*op).indexOf(term.attr);
        ASSERT_GE(index, 0) << op->name << "." << term.attr;
        const AttrKind kind = op->attrs[index].kind;
        EXPECT_TRUE(kind == AttrKind::Float || kind == AttrKind::Int || kind == AttrKind::Bool) << op->name;
      } else if (term.op != Scalar::Const) {
        EXPECT_TRUE(term.a < i && term.b < i && term.c < i) << op->name;
      }
    }
    // An operand that no term reads would be a mistake of the record.
    if (op->kind == OpKind::Elementwise) {
      EXPECT_EQ(static_cast<int>(used.size()), op->in.size()) << op->name;
    }
  }
}

TEST(Records, WorkInPlaceOnlyWhereTheFirstResultCanBeTheFirstOperand) {
  for (const OpDef* op : allOps()) {
    if (!op->inPlace) continue;
    EXPECT_TRUE(op->kind == OpKind::Elementwise || op->kind == OpKind::Core) << op->name;
    ASSERT_FALSE(op->in.empty()) << op->name;
    ASSERT_FALSE(op->out.empty()) << op->name;
  }
}

// Every elementwise operator runs on every kind that its record allows, without a kernel of its own.
TEST(Records, RunElementwiseOnEveryKind) {
  for (const OpDef* op : allOps()) {
    if (op->kind != OpKind::Elementwise) continue;
    for (int k = 0; k < kElemKinds; ++k) {
      const auto kind = static_cast<ElemKind>(k);
      std::vector<Tensor> in;
      std::vector<const Type*> types;
      for (const OperandDef& operand : op->in)
        in.push_back(
            Tensor::of(Type(operand.kinds == kinds::bools ? ElemKind::Bool : kind, {2}), std::vector<int64_t>{1, 1}));
      for (const Tensor& tensor : in) types.push_back(&tensor.type());
      Attrs attrs(*op);
      if (attrs.indexOf("shape") >= 0) attrs.set("shape", std::vector<int64_t>{2});
      const auto results = inferTypes(attrs, types);
      bool allowed = true;
      for (size_t i = 0; i < in.size(); ++i)
        allowed = allowed && contains(op->in[static_cast<int>(i)].kinds, in[i].type().kind());
      ASSERT_EQ(results.ok(), allowed) << op->name << " on " << elemName(kind);
      if (!allowed) continue;
      std::vector<TensorRef> operands;
      for (const Tensor& tensor : in) operands.push_back(tensor.ref());
      const Tensor y(results->front());
      const std::vector<TensorRef> out{y.ref()};
      EXPECT_TRUE(runReference({.attrs = attrs, .in = operands, .out = out}).ok()) << op->name;
      // Equal operands give equal elements.
      EXPECT_TRUE(y.isSplat()) << op->name << " on " << elemName(kind);
    }
  }
}

TEST(Records, LeaveOnlyTheCoreToKernels) {
  std::set<std::string_view> kernels;
#define AGLOW_ROW(name, function) kernels.insert(#name);
#include "reference/reference_table.inc"
#undef AGLOW_ROW
  for (const OpDef* op : allOps()) {
    const bool run = op->kind == OpKind::Core || op->kind == OpKind::Target;
    EXPECT_EQ(kernels.count(op->name) == 1, run) << op->name;
  }
  for (const OpDef* op : allOps()) {
    const Attrs attrs(*op);
    if (op->kind != OpKind::Storage && op->kind != OpKind::Composite && op->kind != OpKind::Derivative) continue;
    EXPECT_THROW(static_cast<void>(runReference({.attrs = attrs, .in = {}, .out = {}})), InternalError) << op->name;
  }
}

}  // namespace
}  // namespace aglow
