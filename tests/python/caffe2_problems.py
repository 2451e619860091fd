"""Problems for Caffe2's operators: an operator, its operands, and what numpy says the results are."""
import dataclasses
from typing import Callable

import numpy as np

from operator_oracles import conv, conv_transpose, sigmoid, softmax

random = np.random.default_rng(11)


@dataclasses.dataclass
class Problem:
    type: str
    operands: list
    oracle: Callable
    args: dict
    outputs: int = 1
    fixed: tuple = ()  # operands that the init net gives
    tolerance: float = 1e-5


PROBLEMS = []


def add(type, operands, oracle, args=None, **more):
    PROBLEMS.append(Problem(type, operands, oracle, args or {}, **more))


def f32(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


# ---- elementwise

for name, function in {"Relu": lambda x: np.maximum(x, 0), "Sigmoid": sigmoid, "Tanh": np.tanh, "Exp": np.exp,
                       "Abs": abs, "Negative": lambda x: -x, "Sqr": np.square, "Cube": lambda x: x ** 3,
                       "Sign": np.sign, "Softsign": lambda x: x / (1 + abs(x)), "Cbrt": np.cbrt,
                       "Softplus": lambda x: np.log1p(np.exp(x)), "Swish": lambda x: x * sigmoid(x)}.items():
    add(name, [f32(3, 4)], function)
for name, function in {"Log": np.log, "Sqrt": np.sqrt, "Rsqrt": lambda x: 1 / np.sqrt(x), "Log1p": np.log1p,
                       "Reciprocal": lambda x: 1 / x}.items():
    add(name, [f32(3, 4, low=0.1)], function)
add("Log1p", [np.array([1e-7, -1e-6, -0.5, 0.9, 1e6, 3e38], np.float32)], np.log1p)
add("LeakyRelu", [f32(5)], lambda x: np.where(x < 0, 0.2 * x, x), {"alpha": 0.2})
add("Elu", [f32(5)], lambda x: np.where(x < 0, 2 * np.expm1(x), x), {"alpha": 2.0})
add("PRelu", [f32(2, 3, 4), f32(3)], lambda x, s: np.where(x < 0, s[:, None] * x, x))
add("PRelu", [f32(2, 4, 3), f32(3)], lambda x, s: np.where(x < 0, s * x, x), {"order": "NHWC"})
add("Clip", [f32(9)], lambda x: np.clip(x, -1, 0.5), {"min": -1.0, "max": 0.5})
add("Logit", [f32(6, low=-0.2, high=1.2)], lambda x: (lambda y: np.log(y / (1 - y)))(np.clip(x, 0.1, 0.9)), {"eps": 0.1})
add("Pow", [f32(4, low=0.1), ], lambda x: x ** 1.5, {"exponent": 1.5})
add("Mod", [np.arange(-6, 7, dtype=np.int64)], lambda x: np.mod(x, -4), {"divisor": -4, "sign_follow_divisor": 1})
add("Mod", [np.arange(-6, 7, dtype=np.int32)], lambda x: np.fmod(x, 4), {"divisor": 4})
add("Add", [f32(2, 3, 4), f32(3)], lambda a, b: a + b[:, None], {"broadcast": 1, "axis": 1})
add("Mul", [f32(2, 3, 4), f32(3, 4)], lambda a, b: a * b, {"broadcast": 1})
add("Sub", [f32(2, 3, 4, 5), f32(3)], lambda a, b: a - b[:, None, None], {"broadcast": 1, "axis_str": "C"})
add("Div", [f32(2, 1), f32(1, 3, low=1)], lambda a, b: a / b)
add("EQ", [i32(1, 2, 3), i32(3, 2, 1)], lambda a, b: a == b)
add("GT", [f32(4), f32(4)], lambda a, b: a > b)
add("Mean", [f32(2, 3), f32(2, 3), f32(2, 3)], lambda *x: sum(x) / 3)
add("Max", [f32(2, 3), f32(2, 3)], np.maximum)
add("WeightedSum", [f32(3), f32(1), f32(3), f32(1)], lambda a, v, b, w: a * v + b * w)
add("Conditional", [np.array([True, False]), f32(2, 3), f32(2, 3)], lambda c, a, b: np.where(c[:, None], a, b))
add("Cast", [f32(3, 2, low=0, high=9)], lambda x: x.astype(np.int64), {"to": 10})
add("Cast", [f32(3)], lambda x: x.astype(np.float64), {"to": "double"})
add("ReplaceNaN", [np.array([1, np.nan, 3], np.float32)], lambda x: np.nan_to_num(x, nan=7), {"value": 7.0})
add("ElementwiseLinear", [f32(2, 3), f32(3), f32(3)], lambda x, w, b: x * w + b)
add("BatchBoxCox", [f32(3, 2, low=0.5), np.array([0, 2], np.float32), f32(2, low=0)],
    lambda x, p, s: np.stack([np.log(x[:, 0] + s[0]), ((x[:, 1] + s[1]) ** 2 - 1) / 2], 1))
add("Bucketize", [f32(3, 3)], lambda x: np.searchsorted([-1.0, 0.0, 1.5], x).astype(np.int32),
    {"boundaries": [-1.0, 0.0, 1.5]})

# ---- linear and windows

add("FC", [f32(2, 3, 4), f32(5, 12), f32(5)], lambda x, w, b: x.reshape(2, 12) @ w.T + b)
add("FC", [f32(2, 3, 4), f32(5, 4), f32(5)], lambda x, w, b: x @ w.T + b, {"axis": 2})
add("FCTransposed", [f32(2, 3), f32(3, 5), f32(5)], lambda x, w, b: x @ w + b)
add("MatMul", [f32(2, 3), f32(4, 3)], lambda a, b: a @ b.T, {"trans_b": 1})
add("BatchMatMul", [f32(2, 4, 3), f32(2, 4, 5)], lambda a, b: a.swapaxes(1, 2) @ b, {"trans_a": 1})
add("DotProduct", [f32(3, 4), f32(3, 4)], lambda a, b: (a * b).sum(1))


def nhwc(x):
    return np.moveaxis(x, 1, -1)


def nchw(x):
    return np.moveaxis(x, -1, 1)


add("Conv", [f32(1, 4, 7, 6), f32(6, 2, 3, 2), f32(6)],
    lambda x, w, b: conv(x, w, b, strides=(2, 1), pads=(1, 0, 2, 1), group=2),
    {"kernels": [3, 2], "strides": [2, 1], "pads": [1, 0, 2, 1], "group": 2})
add("ConvRelu", [f32(1, 5, 5, 2), f32(3, 3, 3, 2), f32(3)],
    lambda x, w, b: nhwc(np.maximum(conv(nchw(x), nchw(w), b, pads=(1, 1, 1, 1)), 0)),
    {"kernel": 3, "pad": 1, "order": "NHWC"})
add("ConvTranspose", [f32(1, 2, 3, 4), f32(2, 3, 3, 3), f32(3)],
    lambda x, w, b: conv_transpose(x, w, b, strides=(2, 2), pads=(1, 1, 1, 1), output_padding=(1, 1)),
    {"kernel": 3, "stride": 2, "pad": 1, "adj": 1})


def pool(x, kernel, stride, pads, size, reduce):
    """Windows of one size over both axes; what lies outside of x does not count."""
    y = np.zeros(x.shape[:2] + size, np.float32)
    for i in range(size[0]):
        for j in range(size[1]):
            top, left = i * stride - pads[0], j * stride - pads[1]
            window = x[:, :, max(top, 0):top + kernel, max(left, 0):left + kernel]
            y[:, :, i, j] = reduce(window, axis=(2, 3))
    return y


add("MaxPool", [f32(1, 2, 5, 6)], lambda x: pool(x, 3, 2, (1, 0), (3, 3), np.max),
    {"kernel": 3, "stride": 2, "pad_t": 1, "pad_l": 0, "pad_b": 1, "pad_r": 1})
add("AveragePool", [f32(1, 2, 5, 5)], lambda x: pool(x, 3, 2, (1, 1), (3, 3), np.mean),
    {"kernel": 3, "stride": 2, "pad": 1})
add("MaxPool", [f32(1, 2, 6, 6)], lambda x: pool(x, 3, 2, (0, 0), (3, 3), np.max),
    {"kernel": 3, "stride": 2, "legacy_pad": 3})
add("AveragePool", [f32(1, 2, 7, 7)], lambda x: pool(x, 3, 2, (1, 1), (4, 4), np.mean),
    {"kernel": 3, "stride": 2, "legacy_pad": 2})
add("AveragePool", [f32(2, 4, 5, 3)], lambda x: x.mean((1, 2), keepdims=True), {"global_pooling": 1, "order": "NHWC"})

# ---- shapes and images

add("Concat", [f32(2, 3), f32(2, 1)], lambda a, b: (np.concatenate([a, b], 1), i32(3, 1)), {"axis": 1}, outputs=2)
add("Concat", [f32(2, 3), f32(2, 3)], lambda a, b: np.stack([a, b], 1), {"axis": 1, "add_axis": 1})
add("Split", [f32(2, 5)], lambda x: (x[:, :2], x[:, 2:]), {"axis": 1, "split": [2, 3]}, outputs=2)
add("Reshape", [f32(2, 3, 4)], lambda x: (x.reshape(2, 12), np.array([2, 3, 4])), {"shape": [0, -1]}, outputs=2)
add("Reshape", [f32(2, 6), np.array([3, 4])], lambda x, s: x.reshape(3, 4), fixed=(1,))
add("Flatten", [f32(2, 3, 4)], lambda x: x.reshape(6, 4), {"axis": 2})
add("ExpandDims", [f32(2, 3)], lambda x: x.reshape(1, 2, 1, 3), {"dims": [0, 2]})
add("Squeeze", [f32(1, 2, 1)], lambda x: x.reshape(2), {"dims": [0, 2]})
add("Transpose", [f32(2, 3, 4)], lambda x: x.transpose(2, 0, 1), {"axes": [2, 0, 1]})
add("Transpose", [f32(2, 3, 4)], lambda x: x.transpose())
add("Slice", [f32(4, 5)], lambda x: x[1:4, :-1], {"starts": [1, 0], "ends": [-1, -2]})
add("Tile", [f32(2, 3)], lambda x: np.tile(x, (1, 2)), {"tiles": 2, "axis": 1})
add("NumpyTile", [f32(2, 3), np.array([2, 1, 2], np.int64)], lambda x, n: np.tile(x, n), fixed=(1,))
add("Expand", [f32(3, 1), np.array([2, 1, 4], np.int64)], lambda x, n: np.broadcast_to(x, (2, 3, 4)), fixed=(1,))
add("Where", [np.array([True, False, True]), f32(2, 3), f32(2, 3)], np.where)
add("ChannelShuffle", [f32(1, 6, 2, 2)], lambda x: x.reshape(1, 3, 2, 2, 2).swapaxes(1, 2).reshape(1, 6, 2, 2),
    {"group": 3, "kernel": 1})
add("PadImage", [f32(1, 1, 3, 4)], lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), "reflect"),
    {"mode": "reflect", "pads": [1, 2, 2, 1]})
add("ResizeNearest", [f32(1, 1, 2, 3)], lambda x: x.repeat(2, 2)[..., [0, 0, 1, 2]],
    {"height_scale": 2.0, "width_scale": 1.5})
add("SpaceToBatch", [f32(1, 1, 4, 4)], lambda x: np.concatenate([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]),
    {"block_size": 2})

# ---- reductions and normalisations

add("ReduceSum", [f32(2, 3, 4)], lambda x: x.sum((0, 2), keepdims=True), {"axes": [0, 2]})
add("ReduceL2", [f32(2, 3)], lambda x: np.sqrt((x * x).sum(1)), {"axes": [1], "keepdims": 0})
add("ReduceBackMean", [f32(2, 3, 4)], lambda x: x.mean((1, 2)), {"num_reduce_dim": 2})
add("ReduceFrontSum", [f32(3, 2), i32(1, 3)], lambda x, n: np.array([x[:1, 0].sum(), x[:, 1].sum()], np.float32))
add("LpNorm", [f32(2, 3)], lambda x: np.array([(x * x).sum()]), {"p": 2})
add("ArgMax", [f32(3, 4)], lambda x: x.argmax(1)[:, None])
add("TopK", [f32(3, 5)], lambda x: (lambda at: (np.take_along_axis(x, at, 1), at, at + 5 * np.arange(3)[:, None]))(
    np.argsort(-x, 1)[:, :2]), {"k": 2}, outputs=3)
add("Softmax", [f32(2, 3, 4)], lambda x: softmax(x.reshape(2, 12), -1).reshape(x.shape))
add("SpatialBN", [f32(2, 3, 4, 4), f32(3), f32(3), f32(3), f32(3, low=0.5)],
    lambda x, s, b, m, v: ((x - m[:, None, None]) / np.sqrt(v + 1e-3)[:, None, None] * s[:, None, None]
                           + b[:, None, None]), {"is_test": 1, "epsilon": 1e-3})
add("LRN", [f32(1, 4, 2, 2)], lambda x: (lambda scale: (x / scale ** 0.75, scale))(2 + 0.3 / 3 * np.stack(
    [sum(x[:, k] ** 2 for k in range(max(c - 1, 0), min(c + 2, 4))) for c in range(4)], 1)),
    {"size": 3, "alpha": 0.3, "beta": 0.75, "bias": 2.0}, outputs=2)


def group_norm(x, scale, bias, groups):
    rows = x.reshape(len(x), groups, -1)
    mean, inverse = rows.mean(2), 1 / np.sqrt(rows.var(2) + 1e-5)
    y = ((rows - mean[..., None]) * inverse[..., None]).reshape(x.shape)
    return y * scale[:, None, None] + bias[:, None, None], mean, inverse


add("InstanceNorm", [f32(2, 4, 3, 2), f32(4), f32(4)], lambda x, s, b: group_norm(x, s, b, 4), outputs=3)
add("GroupNorm", [f32(2, 4, 3, 2), f32(4), f32(4)], lambda x, s, b: group_norm(x, s, b, 2), {"group": 2}, outputs=3)
add("LayerNorm", [f32(2, 3, 4)], lambda x: (lambda m, d: ((x - m[..., None]) / d[..., None], m, d))(
    x.mean((1, 2)).reshape(2, 1), np.sqrt(x.var((1, 2)) + 1e-5).reshape(2, 1)), outputs=3)
add("Normalize", [f32(2, 3)], lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)))

# ---- segments and embeddings

LENGTHS = i32(2, 0, 3, 1)


def segments(rows, lengths, reduce=lambda x: x.sum(0)):
    ends = np.cumsum(lengths)
    return np.stack([reduce(rows[end - n:end]) if n else np.zeros(rows.shape[1:], rows.dtype)
                     for n, end in zip(lengths, ends)])


add("LengthsSum", [f32(6, 2), LENGTHS], segments)
add("LengthsMean", [f32(6, 2), LENGTHS], lambda x, n: segments(x, n, lambda rows: rows.mean(0)))
add("LengthsMax", [f32(6), LENGTHS], lambda x, n: segments(x, n, lambda rows: rows.max(0)))
add("LengthsWeightedSum", [f32(6, 2), f32(6), LENGTHS], lambda x, w, n: segments(x * w[:, None], n))
add("LengthsToRanges", [LENGTHS], lambda n: np.stack([np.cumsum(n) - n, n], 1).astype(np.int32))
add("LengthsRangeFill", [LENGTHS], lambda n: np.concatenate([np.arange(k, dtype=np.int32) for k in n]))
add("LengthsToSegmentIds", [LENGTHS], lambda n: np.repeat(np.arange(4, dtype=np.int32), n))
add("LengthsTile", [f32(4, 2), LENGTHS], lambda x, n: np.repeat(x, n, 0))
add("SortedSegmentSum", [f32(4, 2), i32(0, 0, 2, 2)], lambda x, ids: np.stack([x[:2].sum(0), 0 * x[0], x[2:].sum(0)]))
add("LengthsTopK", [np.array([3, 1, 2, 5, 4, 9], np.float32), LENGTHS],
    lambda x, n: (np.array([[3, 1], [0, 0], [5, 4], [9, 0]], np.float32), i32([0, 1], [-1, -1], [1, 2], [0, -1])),
    {"k": 2}, outputs=2)
add("ReversePackedSegs", [f32(3, 2, 2), i32(3, 2)],
    lambda x, n: np.stack([x[::-1, 0], np.concatenate([x[1::-1, 1], x[2:, 1]])], 1))
add("PackSegments", [i32(2, 0, 1), f32(3, 2)],
    lambda n, x: np.stack([x[:2], 0 * x[:2], np.stack([x[2], 0 * x[2]])]))
add("UnpackSegments", [i32(2, 0, 1), f32(3, 2, 2)], lambda n, x: np.stack([x[0, 0], x[0, 1], x[2, 0]]))
INDICES = np.array([4, 0, 1, 1, 3, 2], np.int64)
add("SparseLengthsSum", [f32(5, 3), INDICES, LENGTHS], lambda t, i, n: segments(t[i], n))
add("SparseLengthsMean", [f32(5, 3), INDICES.astype(np.int32), LENGTHS],
    lambda t, i, n: segments(t[i], n, lambda rows: rows.mean(0)))
add("SparseLengthsWeightedSum", [f32(5, 3), f32(6), INDICES, LENGTHS], lambda t, w, i, n: segments(t[i] * w[:, None], n))
add("SparseLengthsPositionalWeightedSum", [f32(5, 3), f32(4), INDICES, LENGTHS],
    lambda t, w, i, n: segments(t[i] * np.concatenate([w[:k] for k in n])[:, None], n))


def bytes_table(rows, width):
    return random.integers(0, 256, (rows, width)).astype(np.uint8)


def fused8(rows, width):
    tail = f32(rows, 2, low=0.1).view(np.uint8)
    return np.concatenate([bytes_table(rows, width), tail], 1)


def decode8(table):
    tail = np.ascontiguousarray(table[:, -8:]).view(np.float32)
    return table[:, :-8] * tail[:, :1] + tail[:, 1:]


def fused_narrow(rows, width):
    return np.concatenate([bytes_table(rows, width), f32(rows, 2, low=0.1).astype(np.float16).view(np.uint8)], 1)


def decode_narrow(table, bits):
    tail = np.ascontiguousarray(table[:, -4:]).view(np.float16).astype(np.float32)
    parts = [table[:, :-4] >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, 2).reshape(len(table), -1) * tail[:, :1] + tail[:, 1:]


add("SparseLengthsSum8BitsRowwise", [bytes_table(5, 3), INDICES, LENGTHS, f32(5, 2)],
    lambda t, i, n, s: segments((t * s[:, :1] + s[:, 1:])[i], n))
add("SparseLengthsSumFused8BitRowwise", [fused8(5, 3), INDICES, LENGTHS], lambda t, i, n: segments(decode8(t)[i], n),
    fixed=(0,))
add("SparseLengthsWeightedSumFused8BitRowwise", [fused8(5, 4), f32(6), INDICES, LENGTHS],
    lambda t, w, i, n: segments(decode8(t)[i] * w[:, None], n), fixed=(0,))
add("SparseLengthsSumFused4BitRowwise", [fused_narrow(5, 3), INDICES, LENGTHS],
    lambda t, i, n: segments(decode_narrow(t, 4)[i], n), fixed=(0,))
add("SparseLengthsMeanFused2BitRowwise", [fused_narrow(5, 2), INDICES, LENGTHS],
    lambda t, i, n: segments(decode_narrow(t, 2)[i], n, lambda rows: rows.mean(0)))

# ---- sparse data

add("Gather", [f32(5, 3), np.array([[4, 0], [1, 1]], np.int32)], lambda x, i: x[i])
add("BatchGather", [f32(2, 5, 3), i32(4, 0, 0)], lambda x, i: x[:, i])
add("SparseToDense", [i32(2, 0, 2), f32(3, 2), f32(4)],
    lambda i, v, like: np.stack([v[1], 0 * v[0], v[0] + v[2], 0 * v[0]]))
add("SparseToDenseMask", [np.array([7, 3, 9, 3], np.int64), f32(4, 2), f32(2), i32(3, 1)],
    lambda ids, v, d, n: (np.stack([[v[1], v[0]], [v[3], d]]), np.array([[True, True], [True, False]])),
    {"mask": [3, 7], "return_presence_mask": 1}, outputs=2)
add("BatchSparseToDense", [np.array([2, 0, 1], np.int64), np.array([1, 3, 0], np.int64), f32(3)],
    lambda n, i, v: np.array([[0.5, v[0], 0.5, v[1]], [0.5] * 4, [v[2], 0.5, 0.5, 0.5]], np.float32),
    {"dense_last_dim": 4, "default_value": 0.5})
add("GatherRanges", [f32(6), np.array([[[0, 2], [4, 1]], [[3, 0], [2, 3]]], np.int32)],
    lambda x, r: (x[[0, 1, 4, 2, 3, 4]], i32(3, 3)), outputs=2)
add("FillExamplesWithIndicator", [f32(2, 3), np.array([True, False, True])],
    lambda x, flags: np.stack([x[0], 0 * x[0], x[1]]))
add("OneHot", [np.array([2, 0], np.int64), np.array([4], np.int64)], lambda i, n: np.eye(4, dtype=bool)[i], fixed=(1,))
add("ScatterAssign", [f32(4, 2), np.array([3, 0], np.int64), f32(2, 2)],
    lambda x, i, v: np.stack([v[1], x[1], x[2], v[0]]))
add("ConstantFill", [f32(2, 3)], lambda x: np.full((2, 3, 4), 7, np.int32), {"dtype": 2, "value": 7, "extra_shape": [4]})

# ---- recurrent cells


def lstm(h, c, gates, lengths, step):
    i, f, o, g = np.split(gates, 4, -1)
    cell = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
    hidden, running = sigmoid(o) * np.tanh(cell), (step[0] < lengths)[:, None]
    return np.where(running, hidden, h).astype(np.float32), np.where(running, cell, c).astype(np.float32)


add("LSTMUnit", [f32(1, 3, 2), f32(1, 3, 2), f32(1, 3, 8), i32(1, 2, 3), i32(1)], lstm, {"forget_bias": 1.0}, outputs=2)
add("GRUUnit", [f32(1, 3, 2), f32(1, 3, 6), i32(1)],
    lambda h, gates, t: (lambda u, o: h * u + o * (1 - u))(sigmoid(gates[..., 2:4]), np.tanh(gates[..., 4:])),
    {"sequence_lengths": 0})
