"""Problems of operators: operands, attributes, and what numpy says the result is.

An operand is written as its type, followed by the range it is drawn from or by its very elements:

    "f32[2,3]"    "i64[4] in 0..2"    ("f32[3]", [nan, inf, 0])    "T[2,3]": one problem for each of the kinds    "_"

Oracles compute in float64 and int64; the test rounds or wraps to the element kind, which is that of the first operand
unless `results` names others.
"""
import dataclasses
import math
from typing import Callable

import numpy as np

import operator_oracles as oracles

WIDE = ["f32", "f64"]
REALS = ["f32", "f64", "f16", "bf16"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
NUMBERS = ["f32", "f64", "f16", "i32", "i64", "i8", "u8", "u4"]
PLAIN = [*NUMBERS, "bool", "bf16"]
nan, inf = math.nan, math.inf


@dataclasses.dataclass
class Problem:
    operands: list
    oracle: Callable
    attrs: str = ""
    results: list | None = None
    kinds: list = dataclasses.field(default_factory=lambda: ["f32"])
    tolerance: float = 1.0  # times what the element kind's precision allows


def problem(*operands, is_, attrs="", results=None, kinds=("f32",), tolerance=1.0):
    return Problem(list(operands), is_, attrs, results, list(kinds), tolerance)


def bits(array, dtype):
    return np.ascontiguousarray(array).view(dtype)


# What test_elementwise.py, which derives problems from the records, cannot know: special values, and ranges beyond the one
# that random tests draw from.
ELEMENTWISE = {
    "Div": [problem(("i32[6]", [7, -7, 7, -7, 5, 0]), ("i32[6]", [2, 2, -2, -2, 0, 0]), is_=oracles.truncated_division),
            problem(("f32[3]", [1, -1, 0]), "f32[] in 0..0", is_=lambda a, b: np.array([inf, -inf, nan]))],
    "Mod": [problem(("i32[4]", [7, -7, 7, -7]), ("i32[4]", [3, 3, -3, -3]), is_=np.mod),
            problem(("f32[4]", [5.5, -5.5, 5.5, -5.5]), ("f32[4]", [2, 2, -2, -2]), is_=np.mod)],
    "Rem": [problem(("i8[4]", [7, -7, 7, -7]), ("i8[4]", [3, 3, -3, -3]), is_=np.fmod)],
    "Pow": [problem("i32[2,3] in -3..3", "i32[3] in 0..4", is_=np.power),
            problem("f32[5] in 1..3", "i64[5] in -2..3", is_=lambda a, b: a ** b)],
    "Min": [problem(("f32[3]", [nan, 1, -inf]), ("f32[3]", [1, nan, 0]), is_=np.minimum)],
    "Max": [problem(("f32[3]", [nan, 1, -inf]), ("f32[3]", [1, nan, 0]), is_=np.maximum)],
    "Abs": [problem(("i8[2]", [-128, 127]), is_=np.abs)],
    "Sign": [problem(("f32[3]", [nan, inf, 0]), is_=np.sign)],
    "Round": [problem(("f32[4]", [0.5, 1.5, 2.5, -0.5]), is_=np.rint)],
    "Asin": [problem(("f32[2]", [-1, 1]), is_=np.arcsin)],
    "Acos": [problem(("f32[2]", [-1, 1]), is_=np.arccos)],
    "Sinh": [problem("f32[9] in -0.001..0.001", is_=np.sinh), problem("f32[99] in -89.4..89.4", is_=np.sinh),
             problem("f32[20] in 88.7..89.4", is_=np.sinh), problem("f64[21] in -710.4..-709", is_=np.sinh)],
    "Cosh": [problem("f32[99] in -89.4..89.4", is_=np.cosh), problem("f32[20] in 88.7..89.4", is_=np.cosh),
             problem("f64[21] in -710.4..-709", is_=np.cosh)],
    "Asinh": [problem("f32[9] in -0.001..0.001", is_=np.arcsinh),
              problem("f32[20] in -3.4e38..3.4e38", is_=np.arcsinh)],
    "Acosh": [problem("f32[9] in 1..1.001", is_=np.arccosh),
              problem("f32[20] in 1e38..3.4e38", is_=np.arccosh), problem("f64[9] in 9e307..1.7e308", is_=np.arccosh),
              problem(("f32[4]", [0.5, -1, -1e38, inf]), is_=np.arccosh)],
    "Atanh": [problem("f32[9] in -0.001..0.001", is_=np.arctanh),
              problem("f32[20] in -0.9999999..-0.99999", is_=np.arctanh),
              problem(("f32[4]", [-1, 1, 2, -2]), is_=np.arctanh)],
    "Equal": [problem(("f32[2]", [nan, inf]), ("f32[2]", [nan, inf]), is_=np.equal, results=["bool"])],
    "IsNan": [problem(("T[4]", [nan, inf, -inf, 0]), is_=np.isnan, kinds=REALS, results=["bool"])],
    "IsInf": [problem(("T[4]", [nan, inf, -inf, 0]), is_=np.isinf, kinds=REALS, results=["bool"]),
              problem(("f32[4]", [nan, inf, -inf, 0]), is_=np.isposinf, attrs="detect_negative = false",
                      results=["bool"])],
    "ShiftRight": [problem("T[2,9] in 0..200", "T[9] in 0..7", is_=np.right_shift, kinds=UNSIGNED)],
    "Clip": [problem("T[2,3]", "T[] in -1..0", "T[3] in 1..2", is_=np.clip, kinds=NUMBERS),
             problem("f32[3]", "f32[] in 2..2", "f32[] in 1..1", is_=lambda x, low, high: np.full(3, 1.0))],
    "Expand": [problem("T[3,1]", is_=lambda x: np.broadcast_to(x, (2, 3, 4)), attrs="shape = [2, 3, 4]", kinds=PLAIN)],
    "Softplus": [problem("f32[4] in 80..120", is_=lambda x: x)],
}


# At the ends of integer kinds and beyond.
ODD_NUMBERS = [nan, inf, -inf, 0.9, -0.9, 127.5, -128.9, 255.5, 256, -1.5, 32768, -65536, 2147483520, 2 ** 31, -2 ** 31, 3e9,
               -3e9, 2 ** 32 - 256, 2 ** 32, 2 ** 53, -2 ** 62, 2 ** 63, -2 ** 63, 1e30, -1e30, 42]


def cast(operand, to, is_=lambda x: x, attrs=""):
    return problem(operand, is_=is_, attrs=f"to = {to}{attrs}", results=[to])


MOVES = {
    "Cast": [cast("f32[20] in -300..300", "i8", np.trunc), cast("f64[20] in -9..9", "u4", np.trunc),
             cast(("f32[4]", [3e9, -3e9, inf, nan]), "i32", lambda x: np.array([2 ** 31 - 1, -2 ** 31, 2 ** 31 - 1, 0])),
             *[cast((f"{float_kind}[{4 * len(ODD_NUMBERS)}]", 4 * ODD_NUMBERS), kind, oracles.saturated(kind))
               for float_kind in WIDE for kind in ("i8", "u8", "i16", "u16", "i32", "u32", "i64")],
             cast("i32[20] in -999..999", "u8"), cast("i64[9] in -9..9", "i4"), cast("i8[9]", "f16"),
             cast("f32[20] in -9..9", "bf16"), cast("f32[20] in -9..9", "f8e4m3fn"), cast("f64[20]", "f32"),
             cast("f8e5m2[20]", "f32"), cast("f32[20] in -6..6", "f4e2m1"), cast("f4e2m1[9]", "f64"),
             cast(("f32[3]", [0, -0.5, nan]), "bool", lambda x: x != 0), cast("bool[9]", "f32"),
             cast(("f32[2]", [1000, -1000]), "f8e4m3fn", lambda x: np.sign(x) * 448),
             cast(("f32[2]", [1000, -1000]), "f8e4m3fn", lambda x: x * nan, ", saturate = false"),
             cast(("f32[3]", [1, 3, 5]), "f8e8m0", lambda x: np.array([1, 2, 4]), ", rounding = down")],
    "Bitcast": [problem("f32[4]", is_=lambda x: bits(x.astype("f4"), "i4"), attrs="to = i32", results=["i32"]),
                problem("u16[4] in 0..999", is_=lambda x: bits(x.astype("u2"), "f2"), attrs="to = f16",
                        results=["f16"]),
                problem("i8[4]", is_=lambda x: bits(x.astype("i1"), "u1"), attrs="to = u8", results=["u8"])],
    "Splat": [problem(is_=lambda: np.full((2, 3), 2.5), attrs="value = 2.5, shape = [2, 3]", results=["f32"]),
              problem(is_=lambda: np.full((), 7), attrs="value = 7.0, elem = i64", results=["i64"])],
    "Reshape": [problem("T[2,6]", is_=lambda x: x.reshape(3, 1, 4), attrs="shape = [3, 1, 4]", kinds=PLAIN)],
    "Transpose": [problem("T[2,3,4]", is_=lambda x: x.transpose(1, 2, 0), attrs="perm = [1, 2, 0]", kinds=PLAIN),
                  problem("qi8[2,3]<0.5:1>", is_=np.transpose, attrs="perm = [1, 0]", results=["qi8<0.5:1>"])],
    "Slice": [problem("T[5,6]", is_=lambda x: x[1:4, 0:6:2], attrs="starts = [1, 0], sizes = [3, 3], steps = [1, 2]",
                      kinds=PLAIN),
              problem("f32[5,6]", is_=lambda x: x[::-1, 2:5], attrs="starts = [4, 2], sizes = [5, 3], steps = [-1, 1]")],
    "Concat": [problem("T[2,3]", "T[2,1]", "T[2,0]", is_=lambda *x: np.concatenate(x, 1), attrs="axis = 1", kinds=PLAIN)],
    "Pad": [problem("T[2,3]", "T[] in 1..1", is_=lambda x, v: np.pad(x, [(1, 0), (0, 2)], constant_values=v),
                    attrs="before = [1, 0], after = [0, 2]", kinds=PLAIN)],
}

REDUCTIONS = {
    "Reduce": [problem("T[2,3,4]", is_=lambda x: x.sum((0, 2)), attrs="axes = [0, 2], keepdims = false", kinds=NUMBERS),
               problem("T[2,3,4] in -2..2", is_=lambda x: x.prod(1, keepdims=True), attrs="kind = prod, axes = [1]",
                       kinds=NUMBERS),
               problem("T[2,3,4]", is_=lambda x: x.max(2), attrs="kind = max, axes = [2], keepdims = false", kinds=NUMBERS),
               problem("T[2,3,4]", is_=lambda x: x.min(0), attrs="kind = min, axes = [0], keepdims = false", kinds=NUMBERS),
               problem("T[2,8]", is_=lambda x: x.mean(1), attrs="kind = mean, axes = [1], keepdims = false", kinds=REALS),
               problem("f32[3,200] in 1e38..3e38", is_=lambda x: x.mean(1), attrs="kind = mean, axes = [1], keepdims = false"),
               *[problem("f32[3,9001] in -1..2", is_=lambda x, f=f: f(x.astype(np.float64), 1),
                         attrs=f"kind = {kind}, axes = [1], keepdims = false", tolerance=16)
                 for kind, f in [("sum", np.sum), ("mean", np.mean)]],
               problem("f32[200,3] in 1e38..3e38", is_=lambda x: x.mean(0), attrs="kind = mean, axes = [0], keepdims = false"),
               problem("f32[2,0]", is_=lambda x: np.full(2, -inf), attrs="kind = max, axes = [1], keepdims = false"),
               problem("i8[2,0]", is_=lambda x: np.full(2, 127), attrs="kind = min, axes = [1], keepdims = false")],
    "ArgReduce": [problem("T[3,7] in 0..3", is_=lambda x: x.argmax(1), attrs="axis = 1, keepdims = false",
                          results=["i64"], kinds=["i32", "u4", "i64"]),
                  problem("f32[3,7]", is_=lambda x: x.argmin(0)[None], attrs="kind = min, axis = 0", results=["i64"]),
                  problem("i32[9] in 0..2", is_=lambda x: 8 - x[::-1].argmax(), attrs="last = true, keepdims = false",
                          results=["i64"])],
    "Scan": [problem("T[3,4]", is_=lambda x: oracles.scan(x, np.add, 1), attrs="axis = 1", kinds=NUMBERS, tolerance=4),
             problem("f32[5]", is_=lambda x: oracles.scan(x, np.add, 0, True, True),
                     attrs="exclusive = true, reverse = true", tolerance=4),
             problem("i32[4,3] in -3..3", is_=lambda x: oracles.scan(x, np.multiply, exclusive=True),
                     attrs="kind = prod, exclusive = true")],
    "TopK": [problem("T[2,9] in 0..9", is_=lambda x: oracles.top_k(x, 4, 1), attrs="k = 4, axis = 1",
                     kinds=["f32", "f16", "i32", "u8"], results=["T", "i64"]),
             problem("f32[6,2]", is_=lambda x: oracles.top_k(x, 2, 0, False), attrs="k = 2, largest = false",
                     results=["f32", "i64"])],
}

LINEAR = {
    "MatMul": [problem("T[2,1,3,5]", "T[4,5,2]", is_=np.matmul, kinds=["f32", "f64", "i32", "i64"], tolerance=4),
               problem("T[3,4] in -1..1", "T[4,2] in -1..1", is_=np.matmul, kinds=["f16", "bf16", "i8", "u8"], tolerance=4),
               problem("f32[3,100000] in 0..1", "f32[100000,9] in 0..1", is_=np.matmul, tolerance=0.5)],
    "Conv": [problem("T[2,3,6,5]", "T[4,3,3,2]", "T[4]", kinds=["f32", "f64", "i32"], tolerance=8,
                     is_=lambda x, w, b: oracles.conv(x, w, b, strides=[2, 1], pads=[1, 0, 1, 1]),
                     attrs="strides = [2, 1], pads = [1, 0, 1, 1]"),
             problem("f32[1,4,9]", "f32[6,2,3]", is_=lambda x, w: oracles.conv(x, w, dilations=[2], group=2),
                     attrs="dilations = [2], group = 2", tolerance=8),
             *[problem("f32[2,48,6,9]", f"f32[48,{48 // group},3,2]", "f32[48]", tolerance=64,
                       is_=lambda x, w, b, g=group: oracles.conv(x, w, b, strides=[1, 2], pads=[1, 0, 1, 1], group=g),
                       attrs=f"strides = [1, 2], pads = [1, 0, 1, 1], group = {group}") for group in (3, 6, 12, 24, 48)],
             problem("f32[1,2,3,4,5]", "f32[2,2,2,2,2]", is_=oracles.conv, tolerance=16),
             problem("f16[1,2,5,5] in -1..1", "f16[3,2,3,3] in -1..1", is_=oracles.conv, tolerance=8)],
    "ConvTranspose": [problem("T[1,2,4,3]", "T[2,3,3,3]", "T[3]", kinds=["f32", "f64", "i32"], tolerance=8,
                              is_=lambda x, w, b: oracles.conv_transpose(
                                  x, w, b, strides=[2, 2], pads=[1, 0, 1, 0], output_padding=[1, 0]),
                              attrs="strides = [2, 2], pads = [1, 0, 1, 0], output_padding = [1, 0]"),
                      problem("f32[2,4,5]", "f32[4,3,2]",
                              is_=lambda x, w: oracles.conv_transpose(x, w, strides=[3], pads=[0, 0], group=2),
                              attrs="strides = [3], group = 2", tolerance=8),
                      problem("f32[1,4,5,3]", "f32[4,3,4,6]", "f32[6]", tolerance=16,
                              is_=lambda x, w, b: oracles.conv_transpose(
                                  x, w, b, strides=[2, 3], pads=[1, 2, 1, 0], group=2),
                              attrs="strides = [2, 3], pads = [1, 2, 1, 0], group = 2"),
                      problem("f32[2,3,3,4]", "f32[3,1,9,8]", "f32[3]", tolerance=16,
                              is_=lambda x, w, b: oracles.conv_transpose(
                                  x, w, b, strides=[5, 4], pads=[0, 3, 2, 1], output_padding=[1, 2], group=3),
                              attrs="strides = [5, 4], pads = [0, 3, 2, 1], output_padding = [1, 2], group = 3"),
                      problem("f32[1,2,2,3,2]", "f32[2,3,2,2,3]", tolerance=16,
                              is_=lambda x, w: oracles.conv_transpose(x, w, strides=[2, 2, 2], pads=[0] * 6),
                              attrs="strides = [2, 2, 2]"),
                      *[problem("f32[2,4,5,4]", "f32[4,3,3,2]", "f32[6]", tolerance=16,
                                is_=lambda x, w, b, s=strides, d=dilations, e=extra: oracles.conv_transpose(
                                    x, w, b, strides=s, pads=[1, 0, 2, 1], output_padding=e, dilations=d, group=2),
                                attrs=f"strides = {strides}, dilations = {dilations}, pads = [1, 0, 2, 1], "
                                      f"output_padding = {extra}, group = 2")
                        for strides, dilations, extra in (([2, 2], [2, 2], [1, 0]), ([4, 1], [2, 3], [0, 0]),
                                                          ([6, 3], [4, 3], [3, 2]))],
                      problem("f32[1,2,1,5]", "f32[2,1,3,2]", tolerance=16,
                              is_=lambda x, w: oracles.conv_transpose(x, w, strides=[1000000007, 2], pads=[0] * 4),
                              attrs="strides = [1000000007, 2]")],
    "Col2Im": [problem("T[2,12,6]", kinds=["f32", "f64", "f16", "i32"], attrs="sizes = [3, 4], kernel = [2, 2]",
                       is_=lambda x: oracles.col2im(x, [3, 4], [2, 2]), tolerance=4),
               problem("f32[1,6,20]", attrs="sizes = [38], kernel = [3], strides = [2], pads = [2, 1]", tolerance=4,
                       is_=lambda x: oracles.col2im(x, [38], [3], strides=[2], pads=[2, 1]))],
    "MaxPool": [problem("T[2,3,6,5]", kinds=["f32", "f16", "i32", "i8", "u8"], attrs="kernel = [3, 2], strides = [2, 1], pads = [1, 0, 1, 0]",
                        is_=lambda x: oracles.pool(np.nanmax, x, [3, 2], strides=[2, 1], pads=[1, 0, 1, 0])),
                problem("f32[1,1,9]", is_=lambda x: oracles.pool(np.nanmax, x, [3], dilations=[2]),
                        attrs="kernel = [3], dilations = [2]")],
    "MaxPoolWithIndices": [problem("f32[2,2,5,4]", attrs="kernel = [2, 2], strides = [2, 2], pads = [1, 0, 0, 0]",
                                   is_=lambda x: oracles.max_pool_with_indices(x, [2, 2], strides=[2, 2], pads=[1, 0, 0, 0]),
                                   results=["f32", "i64"])],
    "AvgPool": [problem("T[2,3,6,5]", kinds=REALS, attrs="kernel = [3, 2], strides = [2, 1], pads = [1, 0, 1, 0]",
                        is_=lambda x: oracles.pool(np.nanmean, x, [3, 2], strides=[2, 1], pads=[1, 0, 1, 0])),
                problem("f32[1,2,6]", attrs="kernel = [3], pads = [1, 1], count_include_pad = true",
                        is_=lambda x: oracles.pool(np.mean, x, [3], fill=0.0, pads=[1, 1]))],
}

PLACES = {
    "Gather": [problem("T[5,3]", "i64[2,2] in -5..4", is_=lambda d, i: np.take(d, i, 0), kinds=PLAIN),
               problem("f32[2,4,3]", "i32[3] in 0..3", is_=lambda d, i: np.take(d, i, 1), attrs="axis = 1")],
    "GatherElements": [problem("T[4,3]", "i64[2,3] in -4..3", is_=lambda d, i: np.take_along_axis(d, i, 0), kinds=PLAIN),
                       problem("f32[3,5]", "i32[3,2] in 0..4", is_=lambda d, i: np.take_along_axis(d, i, 1),
                               attrs="axis = 1"),
                       *[problem("T[4,3,5]", "i64[2,3,4] in -3..2", is_=lambda d, i, a=a: oracles.gather_elements(d, i, a),
                                 attrs=f"axis = {a}", kinds=["f64", "f16", "u8"]) for a in (0, 1, 2)],
                       *[problem("f32[3,2,1100]", "i32[3,2,1030] in -2..1", attrs=f"axis = {a}",
                                 is_=lambda d, i, a=a: oracles.gather_elements(d, i, a)) for a in (1, 2)],
                       problem("f32[3,4]", "i64[0,4]", is_=lambda d, i: np.zeros((0, 4), "f4"))],
    "GatherND": [problem("T[3,4,2]", "i64[5,2] in 0..2", is_=oracles.gather_nd, kinds=PLAIN),
                 problem("f32[2,3,4]", "i64[2,1] in -3..2", is_=lambda d, i: oracles.gather_nd(d, i, 1),
                         attrs="batch_dims = 1")],
    "Scatter": [problem("T[5,2]", ("i64[3]", [4, 0, -2]), "T[3,2]", is_=oracles.scatter, kinds=PLAIN),
                *[problem("f32[4,2]", ("i64[3]", [1, 1, 3]), "f32[3,2]", attrs=f"reduction = {r}",
                          is_=lambda d, i, u, r=r: oracles.scatter(d, i, u, r)) for r in ("add", "mul", "max", "min")]],
    "ScatterElements": [problem("T[4,3]", ("i64[2,3]", [0, 1, 2, 3, -1, 0]), "T[2,3]", is_=oracles.scatter_elements,
                                kinds=["f32", "i32", "u8"]),
                        problem("f32[3,4]", "i32[3,5] in 0..3", "f32[3,5]", attrs="axis = 1, reduction = add",
                                is_=lambda d, i, u: oracles.scatter_elements(d, i, u, 1, "add"), tolerance=4)],
    "ScatterND": [problem("T[4,3]", ("i64[2,1]", [3, 1]), "T[2,3]", is_=oracles.scatter_nd, kinds=["f32", "i32", "u8"]),
                  problem("f32[4,3]", "i64[6,2] in 0..2", "f32[6]", attrs="reduction = max",
                          is_=lambda d, i, u: oracles.scatter_nd(d, i, u, "max"))],
}


def layer_norm(x, scale, bias, axis=-1, epsilon=1e-5):
    y, mean, inverse = oracles.normalized(x, tuple(range(axis % x.ndim, x.ndim)), epsilon)
    return y * scale + bias, mean, inverse


LARGE = ["-1.6e38..1.6e38", "1e38..3e38", "1e30..2e30"]  # their squares, and some sums, leave the range of f32
NORMS = {
    "Softmax": [problem("T[3,5]", is_=oracles.softmax, kinds=REALS, tolerance=4),
                problem("f32[3,5] in 90..120", is_=lambda x: oracles.softmax(x, 0), attrs="axis = 0", tolerance=4)],
    "LogSoftmax": [problem("T[3,5]", is_=lambda x: np.log(oracles.softmax(x)), kinds=REALS, tolerance=4)],
    "BatchNorm": [problem("T[2,3,4]", "T[3]", "T[3]", "T[3]", "T[3] in 0.5..2", kinds=REALS, tolerance=8,
                          is_=lambda x, s, b, m, v: (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5) * s[:, None] + b[:, None])],
    "LayerNorm": [problem("T[2,3,4]", "T[4]", "T[4]", is_=layer_norm, kinds=WIDE, results=["T", "T", "T"], tolerance=16),
                  problem("f32[2,3,4]", "f32[3,4]", "f32[3,4]", attrs="axis = 1, epsilon = 0.1",
                          is_=lambda x, s, b: layer_norm(x, s, b, 1, 0.1), results=["f32"] * 3, tolerance=16),
                  *[problem(f"f32[3,50] in {span}", "f32[50]", "f32[50]", is_=layer_norm, results=["f32"] * 3, tolerance=16)
                    for span in LARGE],
                  # Squares that vanish in f32; rows of several blocks, the one with a number that leaves its range.
                  problem("f32[3,50] in 1e-30..2e-30", "f32[50]", "f32[50]", attrs="epsilon = 0.0", results=["f32"] * 3,
                          is_=lambda x, s, b: layer_norm(x, s, b, -1, 0.0), tolerance=16),
                  *[problem(f"f32[2,9001] in {span}", "f32[9001]", "f32[9001]", is_=layer_norm, results=["f32"] * 3,
                            tolerance=16) for span in ["-1..1", LARGE[0]]]],
    "RMSNorm": [problem("T[3,4]", "T[4]", is_=lambda x, s: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * s,
                        kinds=REALS, tolerance=8),
                *[problem(f"f32[3,50] in {span}", "f32[50]", tolerance=8,
                          is_=lambda x, s: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * s) for span in LARGE]],
    "InstanceNorm": [problem("f32[2,3,5]", "f32[3]", "f32[3]", tolerance=16,
                             is_=lambda x, s, b: oracles.normalized(x, 2, 1e-5)[0] * s[:, None] + b[:, None]),
                     problem("f32[2,3,50] in -1e38..1e38", "f32[3]", "f32[3]", tolerance=16,
                             is_=lambda x, s, b: oracles.normalized(x, 2, 1e-5)[0] * s[:, None] + b[:, None])],
    "GroupNorm": [problem("f32[2,6,3,2]", "f32[6]", "f32[6]", is_=lambda x, s, b: oracles.group_norm(x, s, b, 3),
                          attrs="groups = 3", tolerance=16)],
    "LRN": [problem("f32[2,5,3]", is_=lambda x: oracles.lrn(x, 3, 0.5, 0.75, 2),
                    attrs="size = 3, alpha = 0.5, bias = 2.0", tolerance=4),
            problem("f32[1,6,2,2]", is_=lambda x: oracles.lrn(x, 4, 0.1, 0.5, 1),
                    attrs="size = 4, alpha = 0.1, beta = 0.5", tolerance=4)],
    "Attention": [problem("f32[1,2,3,4]", "f32[1,2,5,4]", "f32[1,2,5,6]", attrs="scale = 0.5", results=["f32"] * 2,
                          is_=lambda q, k, v: oracles.attention(q, k, v, scale=0.5), tolerance=16),
                  problem("f32[2,4,3,4]", "f32[2,2,3,4]", "f32[2,2,3,4]", attrs="scale = 0.5, right = 0, softcap = 2.0",
                          is_=lambda q, k, v: oracles.attention(q, k, v, scale=0.5, softcap=2, causal=True),
                          results=["f32"] * 2, tolerance=16),
                  problem("f32[1,1,2,4]", "f32[1,1,3,4]", "f32[1,1,3,4]", ("bool[2,3]", [1, 0, 1, 0, 1, 1]),
                          is_=lambda q, k, v, m: oracles.attention(q, k, v, m, scale=1), results=["f32"] * 2, tolerance=16)],
}

RECURRENT = {
    "RNN": [problem("f32[4,2,3]", "f32[1,5,3] in -1..1", "f32[1,5,5] in -1..1", "f32[1,10]", is_=oracles.rnn,
                    results=["f32"] * 2, tolerance=16),
            problem("f32[4,2,3]", "f32[2,5,3] in -1..1", "f32[2,5,5] in -1..1", "f32[2,10]", ("i32[2]", [4, 2]),
                    "f32[2,2,5]", attrs='direction = bidirectional, activations = "Relu,Relu"', results=["f32"] * 2, tolerance=64,
                    is_=lambda *a: oracles.rnn(*a, direction="bidirectional", f=lambda x: np.maximum(x, 0)))],
    "GRU": [problem("f32[4,2,3]", "f32[1,15,3] in -1..1", "f32[1,15,5] in -1..1", "f32[1,30]", ("i32[2]", [1, 4]),
                    is_=oracles.gru, results=["f32"] * 2, tolerance=16),
            problem("f32[3,2,3]", "f32[1,15,3] in -1..1", "f32[1,15,5] in -1..1", "f32[1,30]", "_", "f32[1,2,5]",
                    attrs="direction = reverse, linear_before_reset = true", results=["f32"] * 2, tolerance=16,
                    is_=lambda x, w, r, b, h: oracles.gru(x, w, r, b, None, h, direction="reverse", linear_before_reset=True))],
    "LSTM": [problem("f32[4,2,3]", "f32[1,20,3] in -1..1", "f32[1,20,5] in -1..1", "f32[1,40]", ("i32[2]", [3, 0]),
                     is_=oracles.lstm, results=["f32"] * 3, tolerance=16),
             problem("f32[3,2,3]", "f32[2,20,3] in -1..1", "f32[2,20,5] in -1..1", "f32[2,40]", "_", "f32[2,2,5]",
                     "f32[2,2,5]", "f32[2,15]", attrs="direction = bidirectional, input_forget = true",
                     results=["f32"] * 3, tolerance=16,
                     is_=lambda x, w, r, b, h, c, p: oracles.lstm(x, w, r, b, None, h, c, p, direction="bidirectional",
                                                                   input_forget=True))],
}

HALF = lambda scale: lambda i: (i + 0.5) / scale - 0.5
RESIZE = {
    "Resize": [problem("T[2,3]", attrs='sizes = [2, 6], scales = [1.0, 2.0], coordinates = asymmetric, nearest_mode = floor',
                       is_=lambda x: np.repeat(x, 2, 1), kinds=PLAIN),
               problem("f32[1,1,4]", attrs="sizes = [1, 1, 10], scales = [1.0, 1.0, 2.5], mode = linear", tolerance=4,
                       is_=lambda x: oracles.resize(x, 2, 10, "linear", HALF(2.5))),
               problem("f32[2,5]", attrs="sizes = [2, 9], scales = [1.0, 1.8], mode = linear, coordinates = align_corners",
                       is_=lambda x: oracles.resize(x, 1, 9, "linear", lambda i: i * 4 / 8), tolerance=4),
               problem("f32[3,6]", attrs="sizes = [3, 9], scales = [1.0, 1.5], mode = cubic, cubic_coeff_a = -0.5", tolerance=8,
                       is_=lambda x: oracles.resize(x, 1, 9, "cubic", HALF(1.5), a=-0.5))],
}

# An operator that asks for a gradient stands for other nodes; by what its value does not depend on, it is zero.
TRAINING = {
    "Gradient": [problem("f32[2,3]", "T[4]", is_=lambda y, x: np.zeros_like(x), results=["T"], kinds=REALS)],
    "Regression": [problem("T[2,3]", "T[2,3]", is_=lambda x, expected: x, kinds=REALS)],
    "SGD": [problem("T[2,3]", "T[2,3]", "T[] in 0..1", is_=lambda w, g, r: w - r * g, kinds=REALS, tolerance=2),
            problem("f32[5]", "f32[5]", "f32[] in 0..1", is_=lambda w, g, r: w - r * (g + 0.1 * w), attrs="decay = 0.1",
                    tolerance=4)],
    "Momentum": [problem("T[5]", "T[5]", "T[5]", "T[] in 0..1", "T[] in 0..1", is_=oracles.momentum, kinds=WIDE,
                         results=["T"] * 2, tolerance=4),
                 problem("f32[5]", "f32[5]", "f32[5]", "f32[] in 0..1", "f32[] in 1..1", results=["f32"] * 2, tolerance=4,
                         is_=lambda *a: oracles.momentum(*a, alpha=0.5, decay=0.1, nesterov=True),
                         attrs="alpha = 0.5, decay = 0.1, nesterov = true")],
    "Adam": [problem("T[5]", "T[5]", "T[5]", "T[5] in 0.1..4", "T[] in 0..1", "T[] in 0.1..1", is_=oracles.adam, kinds=WIDE,
                     results=["T"] * 3, tolerance=4),
             problem("f32[5]", "f32[5]", "f32[5]", "f32[5] in 0.1..4", "f32[] in 0..1", "f32[] in 0.1..1",
                     is_=lambda *a: oracles.adam(*a, alpha=0.5, beta=0.7, decay=0.1), results=["f32"] * 3, tolerance=4,
                     attrs="alpha = 0.5, beta = 0.7, decay = 0.1")],
    "RMSProp": [problem("T[5]", "T[5]", "T[5] in 0.1..4", "T[] in 0..1", is_=oracles.rms_prop, kinds=WIDE,
                        results=["T"] * 2, tolerance=4),
                problem("f32[5]", "f32[5]", "f32[5] in 0.1..4", "f32[] in 0..1", results=["f32"] * 2, tolerance=4,
                        is_=lambda *a: oracles.rms_prop(*a, beta=0.5, epsilon=0.1, decay=0.1),
                        attrs="beta = 0.5, epsilon = 0.1, decay = 0.1")],
    "Adagrad": [problem("T[5]", "T[5]", "T[5] in 0.1..4", "T[] in 0..1", is_=oracles.adagrad, kinds=WIDE,
                        results=["T"] * 2, tolerance=4),
                problem("f32[5]", "f32[5]", "f32[5] in 0.1..4", "f32[] in 0..1", results=["f32"] * 2, tolerance=4,
                        is_=lambda *a: oracles.adagrad(*a, epsilon=0.1, decay=0.1), attrs="epsilon = 0.1, decay = 0.1")],
}

# Any order of all bytes.
TABLE = (np.arange(256) * 37 + 11) % 256


def quantized(low, high, scale, offset):
    return lambda x, *_: np.clip(np.rint(x / scale) + offset, low, high)


QUANT = {
    "Quantize": [problem("T[20] in -40..40", is_=quantized(-128, 127, 0.25, 3), attrs="scales = [0.25], offsets = [3]",
                         results=["qi8<0.25:3>"], kinds=["f32", "f64", "f16"]),
                 problem("f32[2,9]", is_=lambda x: np.clip(np.rint(x / [[0.5], [0.125]]) + [[0], [9]], 0, 255),
                         attrs="to = qu8, scales = [0.5, 0.125], offsets = [0, 9], axis = 0",
                         results=["qu8<axis 0: 0.5:0, 0.125:9>"])],
    "Dequantize": [problem("T[9]<0.5:3>", is_=lambda x: (x - 3) * 0.5, kinds=["qi8", "qu8", "qi16", "qi32"], results=["f32"])],
    "Rescale": [problem("qi8[20]<0.5:3>", is_=lambda x: np.clip(np.rint((x - 3) * 0.5 / 0.25) - 1, -128, 127),
                        attrs="scales = [0.25], offsets = [-1]", results=["qi8<0.25:-1>"])],
    "Lookup": [problem(f"{kind}[5,7,9]", is_=lambda x, low=low, bottom=bottom: TABLE[x.astype(np.int64) - low] + bottom, results=[to],
                       attrs=f"table = [{', '.join(str(entry + bottom) for entry in TABLE)}], to = {to}")
               for kind, low in (("u8", 0), ("i8", -128)) for to, bottom in (("u8", 0), ("i8", -128))],
    "Observe": [problem(f"i64[{(64 << bits) * 2 + 2}] in 0..9", f"f64[4,{channels}]", x, results=["i64", "f64"],
                        attrs=f"axis = {axis}, step_bits = {bits}" + (", blocked = true" if lanes else ""),
                        is_=lambda k, c, x, how=(axis, bits, lanes): oracles.observe(k, c, x, *how))
                for x, axis, channels, bits, lanes in (("f32[2,5,9,11]", 1, 5, 5, None), ("f32[7,40]", 1, 40, 5, None),
                                                       ("f32[2,3,4]", -1, 1, 2, None), ("f32[3,50,40]", 0, 3, 8, None),
                                                       ("f32[40,60,30]", 2, 30, 5, None), ("f32[2,3,5,7,8]", 1, 19, 5, 8),
                                                       (("f32[3,4]", [nan, 1, 2, -3, inf, -inf, 0, 4, 1e-30, -1e30, 1, nan]),
                                                        1, 4, 5, None))],
    # Scores that lie far enough from each other for the weights to be rounded the same way.
    "ByteAttention": [problem("T[1,2,3,4]", "T[1,2,5,4]", "u8[1,2,5,6] in 0..255", kinds=["u8", "i8"], results=["f32"],
                              attrs="scale = 0.0625, v_scale = 0.25, q_offset = 3, k_offset = -2, v_offset = 100",
                              is_=lambda q, k, v: oracles.byte_attention(q - 3, k + 2, v - 100, 0.0625) * 0.25),
                      problem("i8[2,4,3,4]", "u8[2,2,3,4]", "i8[2,2,3,4]", attrs="scale = 0.0625, right = 0", results=["f32"],
                              is_=lambda q, k, v: oracles.byte_attention(q, k, v, 0.0625, causal=True)),
                      problem("u8[1,1,2,4]", "u8[1,1,3,4]", "u8[1,1,3,4]", ("bool[2,3]", [1, 0, 1, 0, 1, 1]),
                              attrs="scale = 0.0625", results=["f32"],
                              is_=lambda q, k, v, m: oracles.byte_attention(q, k, v, 0.0625, m))],
    "QuantizeLinear": [*[problem("f32[20] in -40..40", "f32[] in 0.25..0.25", f"{kind}[] in 3..3", attrs=f"to = {kind}",
                                 results=[kind], is_=quantized(low, high, 0.25, 3))
                         for kind, low, high in [("i8", -128, 127), ("u8", 0, 255), ("i16", -999, 999), ("u4", 0, 15)]],
                       problem("f32[2,4]", ("f32[2,2]", [0.5, 0.25, 1, 2]), attrs="block_size = 2, to = i8", results=["i8"],
                               is_=lambda x, s: np.rint(x / np.repeat(s, 2, 1)))],
    "DequantizeLinear": [problem("T[2,3]", "f32[3] in 0.5..2", "T[3]", kinds=["i8", "u8", "i32", "u4", "i2"], results=["f32"],
                                 is_=lambda x, s, z: (x - z) * s),
                         problem("f8e4m3fn[4]", "f32[] in 0.5..0.5", is_=lambda x, s: x * s, results=["f32"])],
}


PROBLEMS = {**ELEMENTWISE, **MOVES, **REDUCTIONS, **LINEAR, **PLACES, **NORMS, **RECURRENT, **RESIZE, **TRAINING, **QUANT}
