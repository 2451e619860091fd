"""Problems for the operators of com.microsoft: a node, its operands, and what numpy says the results are."""
import dataclasses
import math
from typing import Callable

import numpy as np

import contrib_oracles as oracles
from operator_oracles import conv, sigmoid, softmax

DOMAIN = "com.microsoft"
random = np.random.default_rng(7)


@dataclasses.dataclass
class Problem:
    name: str
    operands: list  # arrays, or None for one that is left out
    oracle: Callable
    attrs: dict
    outputs: int = 1  # as many of the oracle's results; None and NaN among them are not compared
    fixed: tuple = ()  # operands that are part of the model
    tolerance: float = 1e-5  # of the largest result; integers may differ by `steps`
    steps: int = 0
    runtime: bool = True  # onnxruntime has it for the CPU
    domain: str = DOMAIN


PROBLEMS = []


def add(name, operands, oracle, attrs=None, **more):
    PROBLEMS.append(Problem(name, operands, oracle, attrs or {}, **more))


def f32(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(np.float32)


def u8(*shape, low=0, high=255):
    return random.integers(low, high, shape, endpoint=True).astype(np.uint8)


def i8(*shape):
    return random.integers(-127, 127, shape, endpoint=True).astype(np.int8)


def ints(*shape, high, dtype=np.int32):
    return random.integers(0, high, shape).astype(dtype)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


# ---- fused products and activations

def swapped(x, matrix, batch):
    x = np.moveaxis(x, 0, -2) if batch else x
    return x.swapaxes(-1, -2) if matrix else x


def add_fused():
    for a, b, ta, tb, ba, bb in [((3, 4), (4, 5), 0, 0, 0, 0), ((2, 4, 3), (2, 4, 5), 1, 0, 0, 0),
                                 ((2, 3, 4), (5, 4), 0, 1, 0, 0), ((4, 2, 3), (2, 3, 5), 0, 0, 1, 0),
                                 ((4, 2, 3), (5, 2, 3), 0, 1, 1, 1)]:
        add("FusedMatMul", [f32(*a), f32(*b)],
            lambda x, y, ta=ta, tb=tb, ba=ba, bb=bb: 0.5 * swapped(x, ta, ba) @ swapped(y, tb, bb),
            dict(alpha=0.5, transA=ta, transB=tb, transBatchA=ba, transBatchB=bb))
    add("TransposeMatMul", [f32(4, 3), f32(4, 5)], lambda x, y: x.T @ y, dict(transA=1), runtime=False)
    for name, parameters, function in [("Relu", {}, lambda x: np.maximum(x, 0)), ("Tanh", {}, np.tanh),
                                       ("LeakyRelu", dict(activation_alpha=0.3), lambda x: np.where(x < 0, 0.3 * x, x)),
                                       ("Elu", dict(activation_alpha=0.5),
                                        lambda x: np.where(x < 0, 0.5 * np.expm1(x), x)),
                                       ("HardSigmoid", dict(activation_alpha=0.1, activation_beta=0.4),
                                        lambda x: np.clip(0.1 * x + 0.4, 0, 1))]:
        add("FusedGemm", [f32(3, 4), f32(5, 4), f32(5)], lambda a, b, c, f=function: f(2 * a @ b.T + 0.5 * c),
            dict(alpha=2.0, beta=0.5, transB=1, activation=name, **parameters))
    for name, parameters, function in [("Relu", [], lambda x: np.maximum(x, 0)), ("Sigmoid", [], sigmoid),
                                       ("LeakyRelu", [0.2], lambda x: np.where(x < 0, 0.2 * x, x)),
                                       ("Clip", [-1.0, 0.5], lambda x: np.clip(x, -1, 0.5)),
                                       ("HardSigmoid", [0.1, 0.4], lambda x: np.clip(0.1 * x + 0.4, 0, 1))]:
        add("FusedConv", [f32(2, 4, 7, 6), f32(6, 2, 3, 3), f32(6)],
            lambda x, w, b, f=function: f(conv(x, w, b, group=2, strides=[2, 1], pads=[1, 0, 1, 2])),
            dict(group=2, strides=[2, 1], pads=[1, 0, 1, 2], activation=name,
                 **(dict(activation_params=parameters) if parameters else {})))
    add("FusedConv", [f32(1, 4, 6, 6), f32(8, 4, 1, 1), f32(8), f32(1, 8, 6, 6)],
        lambda x, w, b, z: np.maximum(conv(x, w, b) + z, 0), dict(activation="Relu"))
    last = lambda y: np.moveaxis(y, 1, -1)
    for name in ("NhwcConv", "NhwcFusedConv"):
        add(name, [f32(2, 7, 6, 4), f32(6, 2, 3, 3), f32(6)],
            lambda x, w, b: last(conv(np.moveaxis(x, -1, 1), w, b, group=2, pads=[1, 0, 1, 2])),
            dict(group=2, pads=[1, 0, 1, 2]), runtime=False)
    add("Gelu", [f32(3, 5)], oracles.gelu)
    add("BiasGelu", [f32(2, 3, 5), f32(5)], lambda x, b: oracles.gelu(x + b))
    add("FastGelu", [f32(2, 3, 5)], oracles.fast_gelu)
    add("FastGelu", [f32(2, 3, 5), f32(5)], lambda x, b: oracles.fast_gelu(x + b))
    add("GemmFastGelu", [f32(2, 3, 4), f32(4, 5), f32(5)], lambda x, w, b: oracles.fast_gelu(x @ w + b), runtime=False)
    add("QuickGelu", [f32(3, 5)], lambda x: x * sigmoid(1.702 * x))
    add("QuickGelu", [f32(3, 5)], lambda x: x * sigmoid(0.5 * x), dict(alpha=0.5))
    add("BiasAdd", [f32(2, 3, 4), f32(4), f32(2, 3, 4)], lambda x, b, s: x + b + s, runtime=False)
    add("BiasSplitGelu", [f32(2, 3, 8), f32(8)],
        lambda x, b: (x + b)[..., :4] * oracles.gelu((x + b)[..., 4:]), runtime=False)
    for shape in [(2, 1, 1, 5), (1, 1, 4, 5)]:
        add("BiasSoftmax", [f32(2, 3, 4, 5), f32(*shape)], lambda x, b: softmax(x + b),
            dict(axis=3, is_inner_broadcast=int(shape[0] == 2)), runtime=False)
    add("BiasDropout", [f32(2, 3, 4), f32(4), f32(2, 3, 4)], lambda x, b, r: x + b + r, runtime=False)


# ---- normalisations

def add_norms():
    for skip in [(2, 3, 8), (1, 3, 8), (3, 8)]:
        add("SkipLayerNormalization", [f32(2, 3, 8), f32(*skip), f32(8), f32(8), f32(8)],
            lambda x, s, g, b, c: (lambda y, t: (y, None, None, t))(*oracles.skip_layer_norm(x, s, g, b, c)), outputs=4)
    add("SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)],
        lambda x, s, g: oracles.skip_layer_norm(x, s, g, epsilon=0.01)[0], dict(epsilon=0.01))
    for shape in [(2, 3, 8), (5, 8)]:
        add("SkipSimplifiedLayerNormalization", [f32(*shape), f32(*shape), f32(8), f32(8)],
            lambda x, s, g, c: (lambda y, t: (y, None, None, t))(
                *oracles.skip_layer_norm(x, s, g, bias=c, norm=oracles.rms_norm)), outputs=4)
    add("SimplifiedLayerNormalization", [f32(2, 3, 8), f32(8)], lambda x, g: oracles.rms_norm(x, g, 1e-6),
        dict(axis=-1, epsilon=1e-6, stash_type=1), domain="")
    add("LayerNormalization", [f32(2, 3, 8), f32(8), f32(8)], lambda x, g, b: oracles.layer_norm(x, g, b, 1e-6),
        dict(axis=-1, epsilon=1e-6, stash_type=1), domain="")
    ids, kinds = ints(2, 5, high=9), ints(2, 5, high=2)
    tables = [f32(9, 8), f32(7, 8), f32(2, 8), f32(8), f32(8)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    add("EmbedLayerNormalization", [ids, kinds, *tables, mask], oracles.embed_layer_norm, outputs=3)
    add("EmbedLayerNormalization", [ids, None, *tables[:2], None, *tables[3:], None, ints(2, 5, high=7)],
        oracles.embed_layer_norm, outputs=3)
    for silu in (0, 1):
        add("GroupNorm", [f32(2, 5, 4, 6), f32(6), f32(6)],
            lambda x, g, b, s=silu: oracles.group_norm(x, g, b, 3, silu=s), dict(groups=3, activation=silu),
            runtime=False)
    add("GroupNorm", [f32(2, 6, 5, 4), f32(6), f32(6)],
        lambda x, g, b: oracles.group_norm(x, g, b, 2, channels_last=False),
        dict(groups=2, activation=0, channels_last=0), runtime=False)
    for skip in [(2, 5, 4, 6), (2, 6), (2, 1, 1, 6)]:
        add("SkipGroupNorm", [f32(2, 5, 4, 6), f32(6), f32(6), f32(*skip), f32(6)],
            lambda x, g, b, s, c: (oracles.group_norm(x + s.reshape(2, *s.shape[1:-1] or (1, 1), 6) + c, g, b, 3),
                                   x + s.reshape(2, *s.shape[1:-1] or (1, 1), 6) + c),
            dict(groups=3, activation=0), outputs=2, runtime=False)


# ---- attention

def add_attention():
    x, w, b = f32(2, 4, 6), f32(6, 24, low=-1, high=1), f32(24)
    masks = [None, np.array([3, 4], np.int32), np.array([4, 3, 1, 0], np.int32),
             np.array([[1, 1, 0, 1], [1, 1, 1, 1]], np.int32), ints(2, 4, 4, high=2) | np.eye(4, dtype=np.int32)]
    for causal in (0, 1):
        for mask in masks:
            add("Attention", [x, w, b, mask],
                lambda x, w, b, m=None, c=causal: oracles.attention(x, w, b, m, heads=2, causal=c),
                dict(num_heads=2, unidirectional=causal))
    add("Attention", [x, f32(6, 8 + 8 + 12), f32(28)],
        lambda x, w, b: oracles.attention(x, w, b, heads=4, sizes=[8, 8, 12]),
        dict(num_heads=4, qkv_hidden_sizes=[8, 8, 12]))
    for causal in (0, 1):
        add("Attention", [x, w, b, np.array([[1, 1, 0, 1, 1, 1, 1]] * 2, np.int32), f32(2, 2, 2, 3, 4)],
            lambda x, w, b, m, p, c=causal: oracles.attention(x, w, b, m, p, heads=2, causal=c, scale=0.3),
            dict(num_heads=2, unidirectional=causal, scale=0.3), outputs=2)
        add("Attention", [x, w, b, None, None, f32(1, 2, 4, 4)],
            lambda x, w, b, m, p, a, c=causal: oracles.attention(x, w, b, m, p, a, heads=2, causal=c),
            dict(num_heads=2, unidirectional=causal))
    scale = scalar(0.02)
    add("QAttention", [u8(2, 4, 6), i8(6, 24), b, scale, scalar(0.01), np.array([3, 4], np.int32), scalar(120, np.uint8),
                       scalar(0, np.int8)],
        lambda x, w, b, s, t, m, z, y: oracles.attention(oracles.real(x, s, z), oracles.real(w, t, y), b, m, heads=2),
        dict(num_heads=2))

    q, k, v, bias = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 12), f32(28)
    multi = lambda *given, **more: oracles.multi_head(*given, heads=2, **more)
    for mask in [None, np.array([3, 5], np.int32), np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0]], np.int32),
                 ints(2, 3, 5, high=2) | np.eye(3, 5, dtype=np.int32)]:
        add("MultiHeadAttention", [q, k, v, bias, mask], multi, dict(num_heads=2))
    add("MultiHeadAttention", [q, k, v, None, None, f32(1, 2, 3, 5)], multi, dict(num_heads=2))
    add("MultiHeadAttention", [q, k, v, None, None, f32(1, 2, 3, 5)], multi, dict(num_heads=2), outputs=4,
        runtime=False)  # it cannot infer the type of the scores
    add("MultiHeadAttention", [q, k, v, None, None, f32(2, 1, 3, 5)],
        lambda *given: multi(*given, scale=0.7), dict(num_heads=2, scale=0.7))
    add("MultiHeadAttention", [f32(2, 3, 2, 3, 4), None, None], multi, dict(num_heads=2), runtime=False)
    add("MultiHeadAttention", [q, f32(2, 5, 2, 2, 4), None], multi, dict(num_heads=2), runtime=False)
    add("MultiHeadAttention", [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], multi, dict(num_heads=2))
    same = f32(2, 3, 8), f32(2, 3, 8)
    for causal in (0, 1):
        add("MultiHeadAttention", [q, *same, f32(24), None, None, f32(2, 2, 4, 4), f32(2, 2, 4, 4)],
            lambda *given, c=causal: multi(*given, causal=c), dict(num_heads=2, unidirectional=causal), outputs=3)
    add("DecoderMaskedMultiHeadAttention", [f32(2, 1, 8), f32(2, 1, 8), f32(2, 1, 8), None, None, f32(2, 2, 4, 4),
                                            f32(2, 2, 4, 4)],
        lambda q, k, v, m, a, p, r: multi(q, k, v, past_key=p, past_value=r), dict(num_heads=2), outputs=3,
        runtime=False)
    offsets = np.array([[0, 4, 5, 6], [1, 2, 3, 7]], np.int32)  # one token, then three
    lengths = np.array([0, 1, 4], np.int32)
    tokens = f32(4, 8), f32(4, 8), f32(4, 8)

    def packed(q, k, v, bias, offsets, ends, added=None):
        result = np.zeros([4, 8])
        for row in range(2):
            mine = slice(ends[row], ends[row + 1])
            y = oracles.multi_head(q[None, mine], k[None, mine], v[None, mine], bias, heads=2)[0]
            result[mine] = y[0]
        return result

    add("PackedMultiHeadAttention", [*tokens, f32(24), offsets, lengths], packed, dict(num_heads=2), runtime=False)
    add("RestorePadding", [f32(4, 3), offsets],
        lambda x, o: np.concatenate([x, np.zeros([4, 3])])[np.argsort(o.ravel())].reshape(2, 4, 3), runtime=False)
    add("RemovePadding", [f32(2, 4, 3), np.array([1, 3], np.int32)],
        lambda x, n: (np.concatenate([x[0, :1], x[1, :3]]), offsets, lengths, np.array([3], np.int32)), outputs=4,
        fixed=(1,), runtime=False)


def angles(length, half):
    grid = np.outer(np.arange(length), 1 / 10 ** (np.arange(half) / half))
    return np.cos(grid).astype(np.float32), np.sin(grid).astype(np.float32)


def add_positions():
    for width, rotated, interleaved in [(8, 8, 0), (8, 8, 1), (8, 4, 0), (8, 4, 1)]:
        tables = angles(9, rotated // 2)
        attrs = dict(interleaved=interleaved)
        if rotated != width:
            attrs.update(num_heads=2, rotary_embedding_dim=rotated)
        turn = lambda x, p, c, s, i=interleaved: oracles.rotary(x, p, c, s, i)
        add("RotaryEmbedding", [f32(2, 2, 3, width), ints(2, 3, high=9, dtype=np.int64), *tables], turn, attrs)
        add("RotaryEmbedding", [f32(2, 3, 2 * width), np.array([4], np.int64), *tables],
            lambda x, p, c, s, t=turn: oracles.join_heads(
                t(oracles.split_heads(x, 2), np.broadcast_to(np.arange(3) + p, (2, 3)), c, s)), attrs)
    for both in (0, 1):
        add("RelativePositionBias", [f32(32, 4), scalar(40, np.int64), scalar(40, np.int64)],
            lambda t, q, k, b=both: oracles.relative_position_bias(t, int(q), int(k), 20, b),
            dict(max_distance=20, is_bidirectional=both), fixed=(1, 2), runtime=False)

    def gated(q, bias, rel, w, c, a):
        heads = oracles.split_heads(q + bias, 2)
        gates = sigmoid((heads @ w + c).reshape(2, 2, 3, 2, 4).sum(-1))
        return (gates[..., :1] * (gates[..., 1:] * a - 1) + 2) * rel

    add("GatedRelativePositionBias", [f32(2, 3, 8), f32(8), f32(1, 2, 3, 3), f32(4, 8), f32(8), f32(1, 2, 1, 1)], gated,
        dict(num_heads=2), runtime=False)


def add_grouped():
    heads, groups, width = 4, 2, 16
    sizes = dict(num_heads=heads, kv_num_heads=groups)
    tables = angles(16, width // 2)

    def case(batch, new, past, lengths, total, more=(), attrs=None, packed=False, **options):
        new_tokens = [f32(batch, new, (heads + 2 * groups) * width), None, None] if packed else [
            f32(batch, new, heads * width), f32(batch, new, groups * width), f32(batch, new, groups * width)]
        old = [None, None] if past is None else [f32(batch, groups, past, width), f32(batch, groups, past, width)]
        operands = [*new_tokens, *old, np.array(lengths, np.int32), scalar(total, np.int32), *more]
        add("GroupQueryAttention", operands,
            lambda *given: oracles.group_query(*given[:12], heads=heads, groups=groups, **options),
            {**sizes, **(attrs or {})}, outputs=3, fixed=(6,))

    for packed in (False, True):
        case(1, 5, None, [4], 5, packed=packed)
        case(1, 5, None, [4], 5, tables, dict(do_rotary=1), packed, rotate=True)
        case(1, 1, 6, [6], 7, tables, dict(do_rotary=1), packed, rotate=True)
    case(1, 5, None, [4], 5, tables, dict(do_rotary=1, rotary_interleaved=1), rotate=True, interleaved=True)
    case(1, 1, 10, [6], 7, tables, dict(do_rotary=1), rotate=True)  # a buffer that is longer than what it holds
    case(1, 3, 6, [8], 9, tables, dict(do_rotary=1), rotate=True)
    case(2, 1, 6, [6, 4], 7, tables, dict(do_rotary=1), rotate=True)  # rows of different lengths
    case(2, 1, 9, [3, 6], 7)
    case(1, 6, None, [5], 6, attrs=dict(local_window_size=3), window=3)
    case(1, 1, 6, [6], 7, attrs=dict(local_window_size=3), window=3)
    case(2, 1, 6, [6, 4], 7, attrs=dict(local_window_size=3), window=3)
    case(1, 5, None, [4], 5, attrs=dict(softcap=1.5, scale=0.7), softcap=1.5, scale=0.7)
    case(1, 5, None, [4], 5, [None, None, None, f32(1, heads, 5, 5)])
    case(1, 5, None, [4], 5, [None, None, None, None, f32(heads)])
    case(2, 1, 6, [6, 4], 7, [None, None, None, None, f32(heads)])


# ---- integers

def add_quantized():
    a, b, c = (scalar(s) for s in (0.02, 0.015, 0.03))
    for kind, zeros in [(u8, [120, 100, 130]), (i8, [3, -7, 0])]:
        dtype = kind(1).dtype
        za, zb, zc = (scalar(z, dtype) for z in zeros)
        x, y = kind(2, 3, 4, 5), kind(4, 1)
        quantized = lambda value: oracles.whole(value, c, zc)
        add("QLinearAdd", [x, a, za, y, b, zb, c, zc],
            lambda *g: oracles.whole(oracles.real(*g[:3]) + oracles.real(*g[3:6]), *g[6:]), steps=1)
        add("QLinearMul", [x, a, za, y, b, zb, c, zc],
            lambda *g: oracles.whole(oracles.real(*g[:3]) * oracles.real(*g[3:6]), *g[6:]), steps=1)
        add("QLinearSigmoid", [x, a, za, scalar(1 / 256), zc],
            lambda *g: oracles.whole(sigmoid(oracles.real(*g[:3])), *g[3:]), steps=1)
        add("QLinearLeakyRelu", [x, a, za, c, zc],
            lambda *g: oracles.whole((lambda r: np.where(r < 0, 0.2 * r, r))(oracles.real(*g[:3])), *g[3:]),
            dict(alpha=0.2), steps=1)
        add("QLinearWhere", [random.random((3, 1, 5)) < 0.5, x, a, za, y, b, zb, c, zc],
            lambda k, *g: oracles.whole(np.where(k, oracles.real(*g[:3]), oracles.real(*g[3:6])), *g[6:]), steps=1)
        add("QLinearConcat", [c, zc, x, a, za, kind(2, 3, 1, 5), b, zb],
            lambda s, z, *g: oracles.whole(np.concatenate([oracles.real(*g[:3]), oracles.real(*g[3:])], 2), s, z),
            dict(axis=2), steps=1)
        add("QLinearSoftmax", [x, a, za, scalar(1 / 256), scalar(np.iinfo(dtype).min, dtype)],
            lambda *g: oracles.whole(softmax(oracles.real(*g[:3])), *g[3:]), dict(axis=-1, opset=13), steps=1)
        add("QLinearSoftmax", [x, a, za, scalar(1 / 256), scalar(np.iinfo(dtype).min, dtype)],
            lambda *g: oracles.whole(softmax(oracles.real(*g[:3]).reshape(6, 20)).reshape(2, 3, 4, 5), *g[3:]),
            dict(axis=2, opset=12), steps=1)
        add("QLinearReduceMean", [x, a, za, c, zc],
            lambda *g: oracles.whole(oracles.real(*g[:3]).mean((1, 3)), *g[3:]), dict(axes=[1, 3], keepdims=0), steps=1,
            runtime=False)
        add("QLinearGlobalAveragePool", [x, a, za, c, zc],
            lambda *g: oracles.whole(oracles.real(*g[:3]).mean((2, 3), keepdims=True), *g[3:]), steps=1)
        add("QLinearGlobalAveragePool", [x, a, za, c, zc],
            lambda *g: oracles.whole(oracles.real(*g[:3]).mean((1, 2), keepdims=True), *g[3:]), dict(channels_last=1),
            steps=1)
        pool = lambda r: (r[:, :, :-1, :-1] + r[:, :, 1:, :-1] + r[:, :, :-1, 1:] + r[:, :, 1:, 1:]) / 4
        add("QLinearAveragePool", [x, a, za, c, zc], lambda *g: oracles.whole(pool(oracles.real(*g[:3])), *g[3:]),
            dict(kernel_shape=[2, 2]), steps=1)
        add("NhwcMaxPool", [kind(2, 4, 5, 3)],
            lambda x: np.max([x[:, i:3 + i, j:4 + j] for i in range(2) for j in range(2)], 0),
            dict(kernel_shape=[2, 2]))
        add("MulInteger", [x, za, y, zb],
            lambda x, p, y, q: (x.astype(int) - int(p)) * (y.astype(int) - int(q)), runtime=False)
        add("ReduceSumInteger", [x], lambda x: x.astype(int).sum((1, 2), keepdims=True), dict(axes=[1, 2], keepdims=1),
            runtime=False)
        add("DequantizeLinear", [x, a, za], oracles.real)
        add("QuantizeLinear", [f32(3, 4), c, zc], oracles.whole)
    add("QLinearConv", [u8(2, 7, 6, 4), a, scalar(110, np.uint8), i8(6, 2, 3, 3), f32(6, low=0.01, high=0.02),
                        np.zeros(6, np.int8), c, scalar(100, np.uint8), ints(6, high=99)],
        lambda x, s, z, w, t, y, r, q, b: oracles.whole(np.moveaxis(conv(
            np.moveaxis(oracles.real(x, s, z), -1, 1), w.astype(float) * t.astype(float).reshape(-1, 1, 1, 1),
            b * float(s) * t, group=2, pads=[1, 1, 1, 1]), 1, -1), r, q),
        dict(channels_last=1, group=2, pads=[1, 1, 1, 1]), steps=1)
    w, columns = i8(6, 5), f32(5, low=0.01, high=0.02)
    zero = scalar(0, np.int8)
    add("MatMulIntegerToFloat", [u8(2, 3, 6), w, a, columns, scalar(110, np.uint8), ints(5, high=9, dtype=np.int8), f32(5)],
        lambda x, w, s, t, z, y, b: oracles.real(x, s, z) @ oracles.real(w, t, y) + b)
    add("MatMulIntegerToFloat", [u8(3, 6), u8(6, 5), a, b], lambda x, w, s, t: oracles.real(x, s) @ oracles.real(w, t))
    add("DynamicQuantizeMatMul", [f32(2, 3, 6), w, columns, ints(5, high=9, dtype=np.int8), f32(5)],
        lambda x, w, t, y, b: oracles.dynamic_quantized(x) @ oracles.real(w, t, y) + b, tolerance=1e-4)
    add("MatMulInteger16", [ints(3, 4, high=99, dtype=np.int16), ints(4, 5, high=99, dtype=np.int16)],
        lambda x, y: x.astype(int) @ y.astype(int))
    for extra in ([], [c, scalar(90, np.uint8)]):
        add("QGemm", [u8(6, 3), a, scalar(110, np.uint8), i8(5, 6), columns, np.zeros(5, np.int8), ints(5, high=999), *extra],
            lambda x, s, z, w, t, y, k, *q: (lambda r: oracles.whole(r, *q) if q else r)(
                0.5 * ((x.T.astype(int) - int(z)) @ w.T.astype(int) + k) * float(s) * t),
            dict(transA=1, transB=1, alpha=0.5), steps=1)


def add_blocks():
    for bits, block, n, k in [(4, 16, 5, 48), (4, 32, 3, 40), (8, 16, 5, 32), (2, 16, 3, 48)]:
        blocks, blob = -(-k // block), block * bits // 8
        zeros = u8(n, -(-blocks * bits // 8))
        for given in ([], [zeros], [f32(n, blocks, low=3, high=9)], [None, None, f32(n)]):
            real_zeros = bool(given) and given[0] is not None and given[0].dtype == np.float32
            if bits != 4 and real_zeros:
                continue
            add("MatMulNBits", [f32(2, 3, k), u8(n, blocks, blob), f32(n, blocks), *given],
                lambda x, w, s, z=None, g=None, b=0.0, o=dict(n=n, k=k, block=block, bits=bits):
                    x @ oracles.block_weights(w, s, z, **o) + b,
                dict(N=n, K=k, block_size=block, bits=bits), fixed=(1, 2, 3), tolerance=1e-4)
    nf4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                    0.7229568362236023, 1.0])
    fp4 = np.array([0, 5.208333333e-03, 2 / 3, 1, 1 / 3, 0.5, 1 / 6, 0.25])
    for kind, table in enumerate([np.concatenate([fp4, -fp4]), nf4]):
        def product(x, w, scale, t=table):
            codes = np.stack([w >> 4, w & 15], -1).ravel()
            return x @ (t[codes].reshape(-1, 16) * scale[:, None]).reshape(5, 32).T
        add("MatMulBnb4", [f32(2, 3, 32), u8(80), f32(10)], product,
            dict(N=5, K=32, block_size=16, quant_type=kind), fixed=(1, 2), tolerance=1e-4)

    def rows(data, indices, scales, zeros=None, bits=4):
        levels = oracles.unpack_bits(data, bits).astype(float)
        shift = 1 << bits - 1 if zeros is None else oracles.unpack_bits(zeros, bits)[:, :scales.shape[1]].repeat(16, 1)
        return ((levels - shift) * scales.repeat(16, 1))[indices]

    for bits in (4, 8):
        packed = 32 * bits // 8
        for zeros in ([], [u8(7, 2 * bits // 8)]):
            add("GatherBlockQuantized", [u8(7, packed), ints(2, 3, high=7), f32(7, 2), *zeros],
                lambda *given, b=bits: rows(*given, bits=b),
                dict(bits=bits, block_size=16, gather_axis=0, quantize_axis=1), fixed=(0, 2, 3))


def add_others():
    add("ExpandDims", [f32(2, 3), scalar(-2, np.int32)], lambda x, a: x[:, None], fixed=(1,))
    add("Trilu", [f32(2, 4, 5), scalar(1, np.int64)], lambda x, k: np.triu(x, 1), dict(upper=1), fixed=(1,))
    add("GatherND", [f32(3, 4), ints(2, 5, 2, high=3)], lambda x, i: x[i[..., 0], i[..., 1]])
    add("Pad", [f32(2, 3), np.array([1, 0, 2, 1], np.int64), scalar(7.0).reshape(1)],
        lambda x, p, v: np.pad(x, [(1, 2), (0, 1)], constant_values=7), fixed=(1,))
    add("Range", [scalar(1.0), scalar(3.0), scalar(0.5)], lambda *r: np.arange(1, 3, 0.5), fixed=(0, 1, 2))
    add("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)],
        lambda x: (np.array([2, 1, 3, 4.0]), np.array([0, 1, 1, 2, 3, 2]), np.array([1, 2, 2, 1])), outputs=3,
        fixed=(0,))
    for metric in ("sqeuclidean", "euclidean"):
        add("CDist", [f32(4, 3), f32(5, 3)],
            lambda a, b, m=metric: (lambda s: s if m[0] == "s" else np.sqrt(s))(((a[:, None] - b[None]) ** 2).sum(-1)),
            dict(metric=metric), tolerance=1e-4)
    add("Inverse", [f32(2, 3, 5, 5)], np.linalg.inv, tolerance=1e-3)
    add("Inverse", [np.array([[0, 1], [2, 0]], np.float32)], np.linalg.inv)
    add("MurmurHash3", [np.array([3, 4, -5], np.int32)], lambda x: MURMUR_32)
    add("MurmurHash3", [np.array([3, 2 ** 40 + 7], np.int64)], lambda x: MURMUR_64, dict(positive=0, seed=42))
    add("IsAllFinite", [f32(3), np.array([1, np.inf], np.float32)], lambda a, b: np.array(False), runtime=False)
    add("IsAllFinite", [f32(3), np.array([1, np.inf], np.float32)], lambda a, b: np.array(True), dict(isnan_only=1),
        runtime=False)
    pairs = lambda x: x[..., 0] + 1j * x[..., 1]
    parts = lambda z: np.stack([z.real, z.imag], -1)
    add("ComplexMul", [f32(3, 2), f32(4, 3, 2)], lambda a, b: parts(pairs(a) * pairs(b)), runtime=False)
    add("ComplexMulConj", [f32(3, 2), f32(4, 3, 2)], lambda a, b: parts(pairs(a) * pairs(b).conj()), runtime=False)
    add("Rfft", [f32(3, 8)], lambda x: parts(np.fft.rfft(x)), runtime=False)
    add("UnfoldTensor", [f32(2, 7, 3)],
        lambda x: np.stack([x[:, i:i + 3].transpose(0, 2, 1) for i in (0, 2, 4)], 1), dict(dim=1, size=3, step=2))
    add("TorchEmbedding", [f32(5, 3), ints(2, 2, high=5, dtype=np.int64)], lambda t, i: t[i], runtime=False)
    add("NGramRepeatBlock", [np.array([[1, 2, 3, 1, 2], [4, 4, 4, 0, 4]], np.int64), f32(2, 6)],
        lambda i, s: np.where([[0, 0, 0, 1, 0, 0], [0] * 6], -math.inf, s), dict(ngram_size=3))
    add("SampleOp", [f32(3)], lambda x: x)


def experts(x, router, w1, b1, w2, b2, w3=None, k=2, normalize=False, f=lambda h: np.maximum(h, 0)):
    result = np.zeros(x.shape)
    likely = softmax(router.astype(float))
    for token, scores in enumerate(likely):
        best = np.argsort(-scores)[:k]
        share = scores[best] / (scores[best].sum() if normalize else 1)
        for weight, e in zip(share, best):
            hidden = f(x[token] @ w1[e].T + b1[e]) * (1 if w3 is None else x[token] @ w3[e].T)
            result[token] += weight * (hidden @ w2[e].T + b2[e])
    return result


def interleaved_swiglu(h, alpha=1.5, beta=0.5, limit=1.0):
    gate, linear = np.minimum(h[..., ::2], limit), np.clip(h[..., 1::2], -limit, limit)
    return gate * sigmoid(alpha * gate) * (linear + beta)


def crops(x, regions, images, size, mode, outside):
    count = int(size[0]), int(size[1])
    result = np.full([len(regions), x.shape[1], *count], outside, float)
    for r, (y1, x1, y2, x2) in enumerate(regions):
        for i, j in np.ndindex(*count):
            at = [(a * (n - 1) + t * (b - a) * (n - 1) / (c - 1)) if c > 1 else (a + b) / 2 * (n - 1)
                  for a, b, n, t, c in ((y1, y2, x.shape[2], i, count[0]), (x1, x2, x.shape[3], j, count[1]))]
            if not (0 <= at[0] <= x.shape[2] - 1 and 0 <= at[1] <= x.shape[3] - 1):
                continue
            image = x[images[r]]
            if mode == "nearest":
                result[r, :, i, j] = image[:, int(at[0] + 0.5), int(at[1] + 0.5)]
                continue
            top, left = math.floor(at[0]), math.floor(at[1])
            bottom, right = math.ceil(at[0]), math.ceil(at[1])
            v, u = at[0] - top, at[1] - left
            upper = image[:, top, left] * (1 - u) + image[:, top, right] * u
            lower = image[:, bottom, left] * (1 - u) + image[:, bottom, right] * u
            result[r, :, i, j] = upper * (1 - v) + lower * v
    return result


def add_models():
    moe = [f32(3, 8), f32(3, 4), f32(4, 8, 8), f32(4, 8), f32(4, 8, 8), f32(4, 8)]
    for normalize in (0, 1):
        for name, function in [("relu", lambda h: np.maximum(h, 0)), ("gelu", oracles.fast_gelu),
                               ("silu", lambda h: h * sigmoid(h)), ("identity", lambda h: h)]:
            add("MoE", moe, lambda *g, f=function, n=normalize: experts(*g, f=f, normalize=n),
                dict(k=2, activation_type=name, normalize_routing_weights=normalize), tolerance=1e-4)
    add("MoE", [*moe[:2], f32(4, 16, 8), f32(4, 16), *moe[4:]], lambda *g: experts(*g, f=interleaved_swiglu),
        dict(k=2, activation_type="swiglu", swiglu_fusion=1, swiglu_limit=1.0, activation_alpha=1.5,
             activation_beta=0.5), tolerance=1e-4)
    add("MoE", [*moe, f32(4, 8, 8)], lambda *g: experts(*g, f=lambda h: h * sigmoid(h)),
        dict(k=2, activation_type="silu"), runtime=False)
    regions = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [-0.3, 0, 0.5, 1.2]], np.float32)
    for mode in ("bilinear", "nearest"):
        for size in ((3, 4), (1, 2)):
            add("CropAndResize", [f32(2, 3, 5, 6), regions, np.array([0, 1, 0], np.int32), np.array(size, np.int32)],
                lambda *g, m=mode: crops(*g, m, 9.0), dict(mode=mode, extrapolation_value=9.0), fixed=(3,))
    tables = angles(9, 4)
    places = ints(3, 2, 5, high=9, dtype=np.int64)

    def multimodal(x, p, c, s, stream):
        mixed = [np.concatenate([t[p[stream[i]]][..., i:i + 1] for i in range(4)], -1)[:, None] for t in (c, s)]
        a, b = x[..., :4], x[..., 4:]
        return np.concatenate([a * mixed[0] - b * mixed[1], a * mixed[1] + b * mixed[0]], -1)

    for layout, stream in [(0, [0, 0, 1, 2]), (1, [0, 1, 2, 0])]:
        add("MRotaryEmbedding", [f32(2, 2, 5, 8), places, *tables],
            lambda *g, s=stream: multimodal(*g, s), dict(mrope_section=[2, 1, 1], mrope_layout=layout))


MURMUR_32 = np.array([847579505, 1889779975, 1637461840], np.uint32)
MURMUR_64 = np.array([519220707, 995648648], np.int32)

for group in (add_fused, add_norms, add_attention, add_positions, add_grouped, add_quantized, add_blocks, add_others,
              add_models):
    group()
