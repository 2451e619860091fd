// Recurrent layers over [steps, batch, width]: w [directions, gates * hidden, width], r [directions, gates * hidden,
// hidden], b [directions, 2 * gates * hidden] with the biases of w before those of r. The second direction runs from
// the last step to the first. Rows with fewer steps than lengths says keep their state and give zeros.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr OperandDef kSequence{"x", kinds::floats, 'T'};
inline constexpr OperandDef kInputWeights{"w", kinds::floats, 'T'};
inline constexpr OperandDef kStateWeights{"r", kinds::floats, 'T'};
inline constexpr OperandDef kGateBias{"b", kinds::floats, 'T', Arity::Optional};
inline constexpr OperandDef kLengths{"lengths", kinds::indices, 0, Arity::Optional};
inline constexpr OperandDef kInitialH{"initial_h", kinds::floats, 'T', Arity::Optional};

inline constexpr AttrDef kDirection{
    .name = "direction", .kind = AttrKind::Enum, .choices = "forward|reverse|bidirectional"};
consteval AttrDef activations(std::string_view ofOneDirection) {
  return {.name = "activations",
          .kind = AttrKind::Word,
          .doc = "for each gate of one direction, then of the other",
          .whenEmpty = ofOneDirection};
}
inline constexpr AttrDef kAlpha{
    .name = "alpha", .kind = AttrKind::Floats, .doc = "one for each activation; their defaults if empty"};
inline constexpr AttrDef kBeta{
    .name = "beta", .kind = AttrKind::Floats, .doc = "one for each activation; their defaults if empty"};
inline constexpr AttrDef kClip{
    .name = "clip", .kind = AttrKind::Float, .doc = "gates are held in [-clip, clip] before their activation; 0: not"};

inline constexpr OpDef kRecurrent[] = {
    {.name = "RNN",
     .doc = "h = f(x * w^T + h * r^T + b) step by step; all h, and the last one.",
     .kind = OpKind::Composite,
     .in = {kSequence, kInputWeights, kStateWeights, kGateBias, kLengths, kInitialH},
     .out = {{"y"}, {"y_h"}},
     .attrs = {kDirection, activations("Tanh"), kAlpha, kBeta, kClip},
     .infer = infer::rnn,
     .cost = cost::recurrent,
     .standard = {"RNN", onnx_kinds::floats, "recurrent"},
     .gradient = GradientBy::Lowering},
    {.name = "GRU",
     .doc = "Gates z, r, h: h = (1 - z) * h' + z * h, where h' sees the state through the gate r.",
     .kind = OpKind::Composite,
     .in = {kSequence, kInputWeights, kStateWeights, kGateBias, kLengths, kInitialH},
     .out = {{"y"}, {"y_h"}},
     .attrs = {kDirection, activations("Sigmoid,Tanh"), kAlpha, kBeta, kClip, {"linear_before_reset", AttrKind::Bool}},
     .infer = infer::gru,
     .cost = cost::recurrent,
     .standard = {"GRU", onnx_kinds::floats, "recurrent"},
     .gradient = GradientBy::Lowering},
    {.name = "LSTM",
     .doc =
         "Gates i, o, f, c: c = f * c + i * c', h = o * tanh(c). Peepholes p [directions, 3 * hidden] let i, o and f "
         "see c.",
     .kind = OpKind::Composite,
     .in = {kSequence,
            kInputWeights,
            kStateWeights,
            kGateBias,
            kLengths,
            kInitialH,
            {"initial_c", kinds::floats, 'T', Arity::Optional},
            {"p", kinds::floats, 'T', Arity::Optional}},
     .out = {{"y"}, {"y_h"}, {"y_c"}},
     .attrs = {kDirection,
               activations("Sigmoid,Tanh,Tanh"),
               kAlpha,
               kBeta,
               kClip,
               {.name = "input_forget", .kind = AttrKind::Bool, .doc = "f is 1 - i"}},
     .infer = infer::lstm,
     .cost = cost::recurrent,
     .standard = {"LSTM", onnx_kinds::floats, "recurrent"},
     .gradient = GradientBy::Lowering},
};

}  // namespace aglow::records
