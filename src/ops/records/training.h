// Training: losses, the request for gradients, and optimizers. Losses are formulas for each element, which a Reduce
// makes one number; optimizers are composites that give a variable and what they remember of it, to be saved.
#pragma once

#include "ops/records/elementwise.h"

namespace aglow::records {

// The loss of each element of a prediction.
consteval OpDef loss(std::string_view name, std::string_view doc, Formula scalar) {
  OpDef def = onnxName("", binary(name, doc, kinds::floats, scalar));
  def.in = {{"x", kinds::floats, 'T'}, {"target", kinds::floats, 'T'}};
  return def;
}

inline constexpr Formula kError = abs(x - y);

inline constexpr OperandDef kVariable{"variable", kinds::floats, 'T'};
inline constexpr OperandDef kGradient{"gradient", kinds::floats, 'T'};
inline constexpr OperandDef kRate{"rate", kinds::floats, 'T'};
inline constexpr AttrDef kDecay{
    .name = "decay", .kind = AttrKind::Float, .doc = "this share of the variable adds to its gradient"};

inline constexpr OpDef kTraining[] = {
    loss("SquaredError", "(x - target)^2.", (x - y) * (x - y)),
    loss("AbsoluteError", "|x - target|.", kError),
    {.name = "HuberError",
     .doc = "Half the squared error up to delta, from there on delta * (error - delta / 2).",
     .kind = OpKind::Elementwise,
     .in = {{"x", kinds::floats, 'T'}, {"target", kinds::floats, 'T'}},
     .attrs = {{"delta", AttrKind::Float, 1}},
     .infer = infer::broadcast,
     .scalar = select(kError < attr("delta"), 0.5 * kError * kError, attr("delta") * (kError - 0.5 * attr("delta"))),
     .inPlace = true},
    loss("SigmoidCrossEntropy",
         "-target * log(sigmoid(x)) - (1 - target) * log(1 - sigmoid(x)), of scores x, without overflow.",
         max(x, 0) - x * y + log1p(exp(-abs(x)))),
    drawnFrom(0.1, 4,
              loss("KLDivergence", "target * (log(target) - x), of logarithms x; 0 where the target is 0.",
                   select(0 < y, y*(log(y) - x), 0))),
    {.name = "Regression",
     .doc = "x itself; its gradient is x - expected, that of half the squared error.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}, {"expected", kinds::floats, 'T'}},
     .infer = infer::regression,
     .gradient = GradientBy::Rule},
    {.name = "Gradient",
     .doc = "The gradient of the sum of all elements of y by x, where x is what y is computed from.",
     .kind = OpKind::Derivative,
     .in = {{"y", kinds::floats}, {"x", kinds::floats}},
     .out = {{"dx"}},
     .infer = infer::gradient},
    {.name = "SGD",
     .doc = "variable - rate * gradient.",
     .kind = OpKind::Composite,
     .in = {kVariable, kGradient, kRate},
     .attrs = {kDecay},
     .infer = infer::optimizer,
     .gradient = GradientBy::Lowering},
    {.name = "Momentum",
     .doc = "velocity' = alpha * velocity + share * gradient; variable - rate * velocity', or with nesterov "
            "variable - rate * (gradient + alpha * velocity').",
     .kind = OpKind::Composite,
     .in = {kVariable, kGradient, {"velocity", kinds::floats, 'T'}, kRate, {"share", kinds::floats, 'T'}},
     .out = {{"y"}, {"new_velocity"}},
     .attrs = {{"alpha", AttrKind::Float, 0.9}, kDecay, {"nesterov", AttrKind::Bool}},
     .infer = infer::optimizer,
     .gradient = GradientBy::Lowering},
    {.name = "Adam",
     .doc = "mean' and square' are running means of the gradient and of its square, with weights alpha and beta for "
            "what was; variable - rate * mean' / (sqrt(square') + epsilon). Rate and epsilon come corrected for the "
            "first steps.",
     .kind = OpKind::Composite,
     .in = {kVariable,
            kGradient,
            {"mean", kinds::floats, 'T'},
            {"square", kinds::floats, 'T'},
            kRate,
            {"epsilon", kinds::floats, 'T'}},
     .out = {{"y"}, {"new_mean"}, {"new_square"}},
     .attrs = {{"alpha", AttrKind::Float, 0.9}, {"beta", AttrKind::Float, 0.999}, kDecay},
     .infer = infer::optimizer,
     .gradient = GradientBy::Lowering},
    {.name = "RMSProp",
     .doc = "square' is the running mean of the gradient's square, with weight beta for what was; variable - rate * "
            "gradient / (sqrt(square') + epsilon).",
     .kind = OpKind::Composite,
     .in = {kVariable, kGradient, {"square", kinds::floats, 'T'}, kRate},
     .out = {{"y"}, {"new_square"}},
     .attrs = {{"beta", AttrKind::Float, 0.99}, {"epsilon", AttrKind::Float, 1e-8}, kDecay},
     .infer = infer::optimizer,
     .gradient = GradientBy::Lowering},
    {.name = "Adagrad",
     .doc = "squares' = squares + gradient^2; variable - rate * gradient / (sqrt(squares') + epsilon).",
     .kind = OpKind::Composite,
     .in = {kVariable, kGradient, {"squares", kinds::floats, 'T'}, kRate},
     .out = {{"y"}, {"new_squares"}},
     .attrs = {{"epsilon", AttrKind::Float, 1e-10}, kDecay},
     .infer = infer::optimizer,
     .gradient = GradientBy::Lowering},
};

}  // namespace aglow::records
