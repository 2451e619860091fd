// Attention: a composite that backends may fuse into one pass over the keys.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr AttrDef kLeft{
    .name = "left", .kind = AttrKind::Int, .number = -1, .doc = "query i sees keys from i + offset - left on; -1: all"},
    kRight{.name = "right",
           .kind = AttrKind::Int,
           .number = -1,
           .doc = "query i sees keys up to i + offset + right; 0 is causal, -1: all"},
    kKeysBefore{.name = "offset", .kind = AttrKind::Int, .doc = "keys before the first query"};
inline constexpr KindSet kAttended = kindSet(ElemKind::UInt8, ElemKind::Int8);

inline constexpr OpDef kAttention[] = {
    {.name = "Attention",
     .doc =
         "softmax(scale * q * k^T + mask) * v over [batch, heads, length, width]; k and v may have fewer heads, each "
         "of which serves a group of neighbouring heads of q. A query that sees no key gives zeros.",
     .kind = OpKind::Composite,
     .in = {{"q", kinds::floats, 'T'},
            {"k", kinds::floats, 'T'},
            {"v", kinds::floats, 'T'},
            {"mask", kinds::plain, 0, Arity::Optional}},
     .out = {{"y"}, {"weights"}},
     .attrs = {{"scale", AttrKind::Float, 1},
               {.name = "softcap", .kind = AttrKind::Float, .doc = "scores become softcap * tanh(scores / softcap)"},
               kLeft,
               kRight,
               kKeysBefore,
               {.name = "weights",
                .kind = AttrKind::Enum,
                .choices = "scores|capped|masked|softmax",
                .doc = "the stage that the second result shows"},
               {.name = "precision", .kind = AttrKind::Elem, .doc = "element kind that enters the softmax"},
               {.name = "rounded",
                .kind = AttrKind::Bool,
                .doc = "the weights of a query are rounded to 255ths of its largest one, as ByteAttention does it"}},
     .infer = infer::attention,
     .cost = cost::attention,
     .standard = {"Attention", onnx_kinds::floats, "attention"},
     .gradient = GradientBy::Lowering},
    {.name = "ByteAttention",
     .doc = "Attention over bytes less their offsets: exact scores times scale, plus the mask; what exp makes of their "
            "distance to the largest one of a query is rounded to 255ths, and weighs v, times v_scale.",
     .kind = OpKind::Composite,
     .in = {{"q", kAttended}, {"k", kAttended}, {"v", kAttended}, {"mask", kinds::plain, 0, Arity::Optional}},
     .attrs = {{"scale", AttrKind::Float, 1},
               {"v_scale", AttrKind::Float, 1},
               {.name = "q_offset", .kind = AttrKind::Int, .doc = "the byte of q that is zero"},
               {.name = "k_offset", .kind = AttrKind::Int, .doc = "the byte of k that is zero"},
               {.name = "v_offset", .kind = AttrKind::Int, .doc = "the byte of v that is zero"},
               kLeft,
               kRight,
               kKeysBefore},
     .infer = infer::byteAttention,
     .cost = cost::attention},
};

}  // namespace aglow::records
