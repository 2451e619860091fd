// Activation functions: elementwise, most of them with parameters.
#pragma once

#include "ops/records/elementwise.h"

namespace aglow::records {

consteval OpDef activation(std::string_view name, std::string_view doc, Formula scalar,
                           FixedList<AttrDef, 14> attrs = {}) {
  OpDef def = unary(name, doc, kinds::floats, scalar);
  def.attrs = attrs;
  return def;
}

inline constexpr Formula kSoftplus = max(x, 0) + log1p(exp(-abs(x)));
inline constexpr Formula kHalf = 0.5 * x;

inline constexpr OpDef kActivation[] = {
    standard({"Relu", onnx_kinds::floats | onnx_kinds::signedInts},
             unary("Relu", "max(x, 0).", kinds::numbers, max(x, 0))),
    activation("LeakyRelu", "x, or alpha * x where x is negative.", select(x < 0, attr("alpha") * x, x),
               {{"alpha", AttrKind::Float, 0.01}}),
    {.name = "PRelu",
     .doc = "x, or slope * x where x is negative.",
     .kind = OpKind::Elementwise,
     .in = {{"x", kinds::numbers, 'T'}, {"slope", kinds::numbers, 'T'}},
     .infer = infer::broadcast,
     .scalar = select(x < 0, y* x, x),
     .standard = {"PRelu", onnx_kinds::floats | onnx_kinds::words, "pRelu"},
     .inPlace = true},
    activation("ThresholdedRelu", "x where it exceeds alpha, 0 elsewhere.", select(attr("alpha") < x, x, 0),
               {{"alpha", AttrKind::Float, 1}}),
    activation("Elu", "x, or alpha * (exp(x) - 1) where x is negative.", select(x < 0, attr("alpha") * expm1(x), x),
               {{"alpha", AttrKind::Float, 1}}),
    standard({"Celu", kindSet(ElemKind::Float32)},
             activation("Celu", "max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).",
                        max(0, x) + min(0, attr("alpha") * expm1(x / attr("alpha"))), {{"alpha", AttrKind::Float, 1}})),
    activation(
        "Selu", "gamma * x, or gamma * alpha * (exp(x) - 1) where x is not positive.",
        attr("gamma") * select(0 < x, x, attr("alpha") * expm1(x)),
        {{"alpha", AttrKind::Float, 1.67326319217681884765625}, {"gamma", AttrKind::Float, 1.05070102214813232421875}}),
    activation("Sigmoid", "1 / (1 + exp(-x)).", 1 / (1 + exp(-x))),
    activation("HardSigmoid", "alpha * x + beta, held between 0 and 1.",
               max(0, min(1, attr("alpha") * x + attr("beta"))),
               {{"alpha", AttrKind::Float, 0.2}, {"beta", AttrKind::Float, 0.5}}),
    activation("HardSwish", "x * (x / 6 + 0.5 held between 0 and 1).", x* max(0, min(1, x / 6 + 0.5))),
    activation("Swish", "x * sigmoid(alpha * x); SiLU at alpha = 1.", x / (1 + exp(-(attr("alpha") * x))),
               {{"alpha", AttrKind::Float, 1}}),
    activation("Softplus", "log(1 + exp(x)).", kSoftplus),
    activation("Softsign", "x / (1 + |x|).", x / (1 + abs(x))),
    activation("Mish", "x * tanh(softplus(x)).", x* tanh(kSoftplus)),
    standard({"Shrink", onnx_kinds::floats & ~kindSet(ElemKind::BFloat16)},
             activation("Shrink", "x moved towards 0 by bias, or 0 where |x| <= lambd.",
                        select(x < -attr("lambd"), x + attr("bias"), select(attr("lambd") < x, x - attr("bias"), 0)),
                        {{"bias", AttrKind::Float, 0}, {"lambd", AttrKind::Float, 0.5}})),
    onnxName("", standard({"Gelu", onnx_kinds::floats},
                          activation("Gelu", "x times the normal distribution's cumulative function.",
                                     kHalf * (1 + erf(x * 0.70710678118654752440))))),
    onnxName("", standard({"Gelu", onnx_kinds::floats, "geluTanh"},
                          activation("GeluTanh",
                                     "The approximation of Gelu through tanh, as 1 + tanh(u) = 2 / (1 + exp(-2 u)).",
                                     x / (1 + exp(-(1.59576912160573071176 * (x + 0.044715 * x * x * x))))))),
};

}  // namespace aglow::records
