"""Operators of com.microsoft in numpy, written for clarity. Arrays come in the types of the model's inputs."""
import math

import numpy as np

from operator_oracles import erf, sigmoid, softmax


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(0.797885 * x + 0.035677 * x ** 3))


# ---- normalisations

def layer_norm(x, gamma, beta=0.0, epsilon=1e-12):
    x = x.astype(float)
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon) * gamma + beta


def rms_norm(x, gamma=1.0, epsilon=1e-12):
    x = x.astype(float)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * gamma


def skip_layer_norm(x, skip, gamma, beta=None, bias=None, norm=layer_norm, epsilon=1e-12):
    total = x + skip + (0 if bias is None else bias)
    y = norm(total, gamma, epsilon=epsilon) + (0 if beta is None else beta)
    return y, total


def embed_layer_norm(ids, segments, words, positions, kinds, gamma, beta, mask=None, places=None):
    total = words[ids] + positions[np.arange(ids.shape[1]) if places is None else places]
    total = total if segments is None else total + kinds[segments]
    count = np.zeros(len(ids), np.int32) if mask is None else (mask == 1).sum(1).astype(np.int32)
    return layer_norm(total, gamma, beta), count, total


def group_norm(x, gamma, beta, groups, epsilon=1e-5, silu=False, channels_last=True):
    planar = np.moveaxis(x, -1, 1) if channels_last else x
    parts = planar.reshape(len(x), groups, -1).astype(float)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + epsilon)
    one = [1] * (x.ndim - 2)
    y = parts.reshape(planar.shape) * gamma.reshape(-1, *one) + beta.reshape(-1, *one)
    y = y * sigmoid(y) if silu else y
    return np.moveaxis(y, 1, -1) if channels_last else y


# ---- attention

def split_heads(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def join_heads(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def key_mask(mask, batch, queries, keys, hidden=-10000.0):
    """What a mask of com.microsoft adds to scores."""
    if mask is None:
        return 0.0
    if mask.ndim == 1:
        place = np.arange(keys)
        ends = mask[:batch].reshape(-1, 1)
        starts = mask[batch:].reshape(-1, 1) if len(mask) == 2 * batch else 0
        seen = ((place < ends) & (place >= starts))[:, None, None]
    else:
        seen = mask[:, None, None] > 0 if mask.ndim == 2 else mask[:, None] > 0
    return np.where(seen, 0.0, hidden)


def attend(q, k, v, added=0.0, scale=None, causal=False, past=0, window=None, softcap=0.0, sink=None):
    """q [batch, heads, queries, width]; fewer heads of k and v serve several of q. Also the scores before and after the
    softmax."""
    share = q.shape[1] // k.shape[1]
    k, v = k.repeat(share, 1), v.repeat(share, 1)
    scores = q.astype(float) @ k.astype(float).transpose(0, 1, 3, 2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    scores = scores + added
    at, key = np.arange(q.shape[2])[:, None] + past, np.arange(k.shape[2])
    if causal:
        scores = np.where(key <= at, scores, -np.inf)
    if window:
        scores = np.where(key > at - window, scores, -np.inf)
    if sink is None:
        weights = softmax(scores)
    else:
        extra = np.broadcast_to(sink.reshape(1, -1, 1, 1), [*scores.shape[:3], 1])
        weights = softmax(np.concatenate([scores, extra], -1))[..., :-1]
    return weights @ v.astype(float), scores, weights


def attention(x, weights, bias, mask=None, past=None, added=None, *, heads, sizes=None, causal=False, scale=None):
    qkv = x.astype(float) @ weights + (0 if bias is None else bias)
    sizes = sizes or [qkv.shape[-1] // 3] * 3
    q, k, v = (split_heads(part, heads) for part in np.split(qkv, np.cumsum(sizes)[:2], -1))
    length = 0
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
        length = past.shape[3]
    hiding = key_mask(mask, len(x), x.shape[1], k.shape[2]) + (0 if added is None else added)
    y = attend(q, k, v, hiding, scale, causal, length)[0]
    return join_heads(y), np.stack([k, v]) if k.shape == v.shape else None


def multi_head(q, k=None, v=None, bias=None, mask=None, added=None, past_key=None, past_value=None, *, heads, causal=False,
               scale=None):
    if k is None:
        q, k, v = (q[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    else:
        q = split_heads(q, heads)
        if k.ndim == 5:
            k, v = (k[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
        elif k.ndim == 3:
            k, v = split_heads(k, heads), split_heads(v, heads)
    if bias is not None:
        width = q.shape[1] * q.shape[3]
        parts = np.split(bias, [width, 2 * width])
        q, k, v = (x + part.reshape(1, heads, 1, -1) for x, part in zip((q, k, v), parts))
    past = 0
    if past_key is not None:
        past = past_key.shape[2]
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    hiding = key_mask(mask, len(q), q.shape[2], k.shape[2]) + (0 if added is None else added)
    y, scores, _ = attend(q, k, v, hiding, scale, causal, past)
    return join_heads(y), k, v, scores


def rotary(x, positions, cosines, sines, interleaved=False):
    """x [batch, heads, length, width], positions [batch, length]."""
    half = cosines.shape[1]
    cos, sin = cosines[positions][:, None], sines[positions][:, None]
    turned, rest = x[..., :2 * half], x[..., 2 * half:]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :half], turned[..., half:])
    real, imaginary = a * cos - b * sin, a * sin + b * cos
    turned = np.stack([real, imaginary], -1).reshape(turned.shape) if interleaved else np.concatenate(
        [real, imaginary], -1)
    return np.concatenate([turned, rest], -1)


def group_query(q, k, v, past_key, past_value, lengths, total, cosines=None, sines=None, positions=None, added=None,
                sink=None, *, heads, groups, rotate=False, interleaved=False, window=None, softcap=0.0, scale=None,
                norms=None):
    """Row by row, as rows may have caches of different lengths."""
    total = int(np.ravel(total)[0])
    if k is None:
        width = q.shape[2] // (heads + 2 * groups)
        q, k, v = np.split(q, [heads * width, (heads + groups) * width], -1)
    q, k, v = split_heads(q, heads), split_heads(k, groups), split_heads(v, groups)
    if norms:
        q, k = rms_norm(q, norms[0], 1e-6), rms_norm(k, norms[1], 1e-6)
    new = q.shape[2]
    rows = []
    for row in range(len(q)):
        begin = 0 if total == new else int(lengths[row]) + 1 - new
        one = lambda x: x[row:row + 1]
        at = np.arange(new)[None] + begin if positions is None else one(positions)
        turn = (lambda x: rotary(x, at, cosines, sines, interleaved)) if rotate else (lambda x: x)
        fresh = {"k": turn(one(k)), "v": one(v)}
        caches = {}
        for name, past in (("k", past_key), ("v", past_value)):
            size = max(total, 0 if past is None else past.shape[2])
            caches[name] = np.zeros([1, groups, size, fresh[name].shape[3]])
            if past is not None:
                caches[name][:, :, :past.shape[2]] = one(past)
            caches[name][:, :, begin:begin + new] = fresh[name]
            caches[name][:, :, begin + new:] = np.nan  # whatever the buffer holds
        seen = begin + new
        bias = 0 if added is None else one(np.broadcast_to(added, [len(q), *added.shape[1:]]))[..., :seen]
        y, _, _ = attend(turn(one(q)), caches["k"][:, :, :seen], caches["v"][:, :, :seen], bias, scale, True, begin,
                         window, softcap, sink)
        rows.append((join_heads(y), caches["k"], caches["v"]))
    return tuple(np.concatenate(parts) for parts in zip(*rows))


# ---- integers

def real(x, scale, zero=None):
    return (x.astype(float) - (0 if zero is None else zero.astype(float))) * scale.astype(float)


def whole(x, scale, zero=None, dtype=np.uint8):
    dtype = dtype if zero is None else zero.dtype
    info = np.iinfo(dtype)
    return np.clip(np.rint(x / float(scale)) + (0 if zero is None else float(zero)), info.min, info.max).astype(dtype)


def dynamic_quantized(x):
    """What the values of x become between their smallest and largest, with 0 among them."""
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = np.float32((high - low) / 255) if high > low else np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * float(scale)


def unpack_bits(packed, bits):
    shifts = np.arange(0, 8, bits)
    values = packed[..., None] >> shifts & (1 << bits) - 1
    return values.reshape(*packed.shape[:-1], -1)


def block_weights(packed, scales, zeros, *, n, k, block, bits):
    blocks = -(-k // block)
    levels = unpack_bits(packed.reshape(n, blocks, -1), bits).astype(float)
    if zeros is None:
        zeros = np.full([n, blocks], 1 << bits - 1)
    elif zeros.dtype == np.uint8:
        zeros = unpack_bits(zeros.reshape(n, -1), bits)[:, :blocks]
    values = (levels - zeros.reshape(n, blocks, 1)) * scales.reshape(n, blocks, 1)
    return values.reshape(n, -1)[:, :k].T


def relative_position_bias(table, queries, keys, longest, both_ways):
    buckets = len(table)
    distance = np.arange(keys)[None] - np.arange(queries)[:, None]
    first = 0
    if both_ways:
        buckets //= 2
        first = (distance > 0) * buckets
        distance = abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = buckets // 2
    large = exact + (np.log(np.maximum(distance, 1) / exact) / math.log(longest / exact) * (buckets - exact)).astype(int)
    return table[first + np.where(distance < exact, distance, np.minimum(large, buckets - 1))].transpose(2, 0, 1)[None]
