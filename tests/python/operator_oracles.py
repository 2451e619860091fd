"""Operators that take more than a line of numpy, written for clarity: one loop for each index of the definition.

Arrays come as float64, int64 or bool, whatever the element kind is; results are rounded to the kind by the caller.
"""
import itertools
import math

import numpy as np


def erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def saturated(kind):
    """Reals as integers: towards zero, NaN as 0, and held in the range of the kind or, below 32 bits, in that of i32."""
    bits, signed = max(int(kind[1:]), 32), kind[0] == "i" or int(kind[1:]) < 32
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def integer(value):
        if math.isnan(value):
            return 0
        return high if value >= high else low if value <= low else int(value)
    return np.vectorize(integer, otypes=[np.int64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def truncated_division(a, b):
    """Integers: towards zero, and zero where the divisor is."""
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, np.sign(a) * np.sign(safe) * (abs(a) // abs(safe)))


# ---- windows

def windows(x, kernel, strides=None, pads=None, dilations=None, fill=0.0):
    """The windows of x [n, c, spatial...] as [n, c, out..., kernel...]."""
    rank = len(kernel)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + rank]) for i in range(rank)], constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    out = [(x.shape[i + 2] - reach[i]) // strides[i] + 1 for i in range(rank)]
    result = np.empty([*x.shape[:2], *out, *kernel], x.dtype)
    for at in itertools.product(*map(range, out)):
        cut = tuple(slice(a * s, a * s + r, d) for a, s, r, d in zip(at, strides, reach, dilations))
        result[(slice(None), slice(None), *at)] = x[(slice(None), slice(None), *cut)]
    return result


def conv(x, filter, bias=None, *, group=1, **window):
    rank = x.ndim - 2
    w = windows(x, filter.shape[2:], **window)
    inside, outside = x.shape[1] // group, filter.shape[0] // group
    parts = [np.tensordot(w[:, g * inside:(g + 1) * inside], filter[g * outside:(g + 1) * outside],
                          ([1, *range(2 + rank, 2 + 2 * rank)], range(1, 2 + rank))) for g in range(group)]
    y = np.moveaxis(np.concatenate(parts, -1), -1, 1)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def conv_transpose(x, filter, bias=None, *, strides, pads, group=1, output_padding=None, dilations=None):
    rank = x.ndim - 2
    kernel, width = filter.shape[2:], filter.shape[1]
    extra, steps = output_padding or [0] * rank, dilations or [1] * rank
    reach = [(kernel[i] - 1) * steps[i] + 1 for i in range(rank)]
    full = [(x.shape[i + 2] - 1) * strides[i] + reach[i] + extra[i] for i in range(rank)]
    y = np.zeros([x.shape[0], width * group, *full], x.dtype)
    inside = x.shape[1] // group
    for c in range(x.shape[1]):
        channels = slice(c // inside * width, (c // inside + 1) * width)
        for at in itertools.product(*map(range, x.shape[2:])):
            cut = tuple(slice(a * s, a * s + r, d) for a, s, r, d in zip(at, strides, reach, steps))
            y[(slice(None), channels, *cut)] += np.multiply.outer(x[(slice(None), c, *at)], filter[c])
    y = y[(slice(None), slice(None), *(slice(pads[i], full[i] - pads[i + rank]) for i in range(rank)))]
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def col2im(x, sizes, kernel, *, strides=None, pads=None):
    rank = len(sizes)
    steps, around = strides or [1] * rank, pads or [0] * 2 * rank
    padded = [sizes[i] + around[i] + around[i + rank] for i in range(rank)]
    windows = [(padded[i] - kernel[i]) // steps[i] + 1 for i in range(rank)]
    taps = x.reshape(x.shape[0], -1, *kernel, *windows)
    y = np.zeros([*taps.shape[:2], *padded], x.dtype)
    for tap in itertools.product(*map(range, kernel)):
        places = tuple(slice(t, t + s * w, s) for t, s, w in zip(tap, steps, windows))
        y[(slice(None), slice(None), *places)] += taps[(slice(None), slice(None), *tap)]
    return y[(slice(None), slice(None), *(slice(around[i], around[i] + sizes[i]) for i in range(rank)))]


def pool(combine, x, kernel, fill=np.nan, **window):
    w = windows(x.astype(float), kernel, fill=fill, **window)
    return combine(w, tuple(range(-len(kernel), 0)))


def max_pool_with_indices(x, kernel, **window):
    places = windows(np.arange(x.size, dtype=float).reshape(x.shape), kernel, fill=-1, **window).astype(int)
    values = np.where(places < 0, -np.inf, x.ravel()[places])
    flat = values.reshape(*values.shape[:-len(kernel)], -1)
    best = flat.argmax(-1)[..., None]
    return np.take_along_axis(flat, best, -1)[..., 0], np.take_along_axis(places.reshape(flat.shape), best, -1)[..., 0]


# ---- places

REDUCTIONS = {"none": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def gather_elements(data, indices, axis):
    inside = tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(indices.shape))
    return np.take_along_axis(data[inside], indices, axis)


def gather_nd(data, indices, batch_dims=0):
    lead = indices.shape[:-1]
    rows = [data[(*at[:batch_dims], *indices[at])] for at in np.ndindex(*lead)]
    return np.reshape(rows, lead + np.shape(rows[0]))


def scatter(data, indices, updates, reduction="none"):
    y = data.copy()
    for i, row in zip(indices, updates):
        y[i] = REDUCTIONS[reduction](y[i], row)
    return y


def scatter_elements(data, indices, updates, axis=0, reduction="none"):
    y = data.copy()
    for at in np.ndindex(*indices.shape):
        to = (*at[:axis], indices[at], *at[axis + 1:])
        y[to] = REDUCTIONS[reduction](y[to], updates[at])
    return y


def scatter_nd(data, indices, updates, reduction="none"):
    y = data.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        to = tuple(indices[at])
        y[to] = REDUCTIONS[reduction](y[to], updates[at])
    return y


def scan(x, combine, axis=0, exclusive=False, reverse=False):
    x = np.moveaxis(x, axis, 0)
    x = x[::-1] if reverse else x
    y = combine.accumulate(x)
    if exclusive:
        y = np.concatenate([np.full_like(y[:1], combine.identity), y[:-1]])
    return np.moveaxis(y[::-1] if reverse else y, 0, axis)


def top_k(x, k, axis, largest=True):
    order = np.argsort(-x if largest else x, axis=axis, kind="stable")
    best = np.take(order, range(k), axis)
    return np.take_along_axis(x, best, axis), best


# ---- what runs tell of values

def observe(counts, channels, x, axis=-1, step_bits=5, lanes=None):
    """`lanes`: x is [batch, channel / lanes, spatial..., lanes]."""
    if lanes is not None:
        x = np.moveaxis(x, -1, 2).reshape(x.shape[0], -1, *x.shape[2:-1])[:, :channels.shape[1]]
    x = x.reshape(1, -1) if axis < 0 else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    counts, channels = counts.copy(), channels.copy()
    steps, side = 1 << step_bits, 64 << step_bits
    finite = np.isfinite(x)
    fraction, exponent = np.frexp(np.abs(x[finite]))  # fraction from 1/2 to 1
    step = (exponent - 1 + 40) * steps + np.floor((2 * fraction - 1) * steps).astype(np.int64)
    step = np.where(np.abs(x[finite]) < 2.0 ** -126 / steps, -1, np.clip(step, 0, side - 1)) + 1
    np.add.at(counts, side + np.where(x[finite] < 0, -step, step), 1)
    counts[-1] += np.count_nonzero(~finite)
    channels[0] = np.minimum(channels[0], np.where(finite, x, np.inf).min(1))
    channels[1] = np.maximum(channels[1], np.where(finite, x, -np.inf).max(1))
    zeroed = np.where(finite, x, 0)
    for row, mean in ((2, zeroed.mean(1)), (3, (zeroed ** 2).mean(1))):
        channels[row] += np.rint(mean * 2.0 ** 30) / 2.0 ** 30
    return counts, channels


# ---- normalisation and attention

def normalized(x, axes, epsilon):
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


def channels(v, rank):
    """A vector along axis 1 of a tensor of that rank."""
    return v.reshape(-1, *[1] * (rank - 2))


def group_norm(x, scale, bias, groups, epsilon=1e-5):
    split = x.reshape(x.shape[0], groups, -1)
    y = normalized(split, 2, epsilon)[0].reshape(x.shape)
    return y * channels(scale, x.ndim) + channels(bias, x.ndim)


def lrn(x, size, alpha, beta, bias):
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        near = slice(max(0, c - (size - 1) // 2), c + size // 2 + 1)
        total[:, c] = (x[:, near] ** 2).sum(1)
    return x / (bias + alpha / size * total) ** beta


def attention(q, k, v, mask=None, *, scale, softcap=0.0, causal=False):
    """The result, and the scores before capping and masking."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = scale * q @ np.swapaxes(k, -1, -2)
    s = softcap * np.tanh(scores / softcap) if softcap else scores
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return softmax(s) @ v, scores


def byte_attention(q, k, v, scale, mask=None, causal=False):
    """Weights in 255ths of the largest one of each query."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = scale * (q @ np.swapaxes(k, -1, -2))
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    weights = np.rint(255 * np.exp(s - s.max(-1, keepdims=True)))
    return weights @ v / weights.sum(-1, keepdims=True)


# ---- recurrent layers

def recurrent(step, states, x, lengths=None, direction="forward"):
    """Runs step(d, x_t, *states) over time for each direction; gives all outputs and the last states."""
    steps, batch, _ = x.shape
    lengths = np.full(batch, steps) if lengths is None else lengths
    count = 2 if direction == "bidirectional" else 1
    hidden = states[0].shape[-1]
    y = np.zeros([steps, count, batch, hidden])
    last = [s.copy() for s in states]
    for d, b in itertools.product(range(count), range(batch)):
        times = range(lengths[b])
        now = [s[d, b] for s in states]
        for t in reversed(times) if direction == "reverse" or d == 1 else times:
            now = step(d, x[t, b], *now)
            y[t, d, b] = now[0]
        for s, value in zip(last, now):
            s[d, b] = value
    return (y, *last)


def biases(b, directions, gates, hidden):
    """Those of the input and of the state, [directions, gates * hidden] each."""
    return np.split(np.zeros([directions, 2 * gates * hidden]) if b is None else b, 2, axis=1)


def start(state, w, r, x):
    return np.zeros([w.shape[0], x.shape[1], r.shape[2]]) if state is None else state


def rnn(x, w, r, b=None, lengths=None, h=None, *, direction="forward", f=np.tanh):
    bw, br = biases(b, w.shape[0], 1, r.shape[2])
    step = lambda d, x_t, h: [f(w[d] @ x_t + r[d] @ h + bw[d] + br[d])]
    return recurrent(step, [start(h, w, r, x)], x, lengths, direction)


def gru(x, w, r, b=None, lengths=None, h=None, *, direction="forward", linear_before_reset=False):
    bw, br = biases(b, w.shape[0], 3, r.shape[2])

    def step(d, x_t, h):
        wz, wr, wh = np.split(w[d] @ x_t + bw[d], 3)
        rz, rr, rh = np.split(r[d], 3)
        bz, bg, bh = np.split(br[d], 3)
        z, gate = sigmoid(wz + rz @ h + bz), sigmoid(wr + rr @ h + bg)
        inner = gate * (rh @ h + bh) if linear_before_reset else rh @ (gate * h) + bh
        return [(1 - z) * np.tanh(wh + inner) + z * h]

    return recurrent(step, [start(h, w, r, x)], x, lengths, direction)


def lstm(x, w, r, b=None, lengths=None, h=None, c=None, p=None, *, direction="forward", input_forget=False):
    bw, br = biases(b, w.shape[0], 4, r.shape[2])
    p = np.zeros([w.shape[0], 3 * r.shape[2]]) if p is None else p

    def step(d, x_t, h, c):
        i, o, f, cell = np.split(w[d] @ x_t + r[d] @ h + bw[d] + br[d], 4)
        pi, po, pf = np.split(p[d], 3)
        i = sigmoid(i + pi * c)
        f = 1 - i if input_forget else sigmoid(f + pf * c)
        c = f * c + i * np.tanh(cell)
        return [sigmoid(o + po * c) * np.tanh(c), c]

    return recurrent(step, [start(h, w, r, x), start(c, w, r, x)], x, lengths, direction)


# ---- resampling

def cubic_weights(t, a):
    near = lambda s: (a + 2) * s ** 3 - (a + 3) * s ** 2 + 1
    far = lambda s: a * s ** 3 - 5 * a * s ** 2 + 8 * a * s - 4 * a
    return [far(1 + t), near(t), near(1 - t), far(2 - t)]


def resize(x, axis, size, mode, place, pick=round, a=-0.75):
    """One axis. place(i) is where element i of the result lies in x; pick rounds it for the nearest element."""
    limit = x.shape[axis] - 1
    rows = []
    for i in range(size):
        at = place(i)
        if mode == "nearest":
            taps = {pick(at): 1.0}
        elif mode == "linear":
            taps = {math.floor(at): 1 - (at - math.floor(at)), math.floor(at) + 1: at - math.floor(at)}
        else:
            weights = cubic_weights(at - math.floor(at), a)
            taps = {math.floor(at) - 1 + j: weight for j, weight in enumerate(weights)}
        rows.append(sum(weight * np.take(x, min(max(j, 0), limit), axis) for j, weight in taps.items()))
    return np.stack(rows, axis)


def momentum(w, g, v, rate, share, alpha=0.9, decay=0.0, nesterov=False):
    g = g + decay * w
    v = alpha * v + share * g
    return w - rate * (g + alpha * v if nesterov else v), v


def adam(w, g, mean, square, rate, epsilon, alpha=0.9, beta=0.999, decay=0.0):
    g = g + decay * w
    mean, square = alpha * mean + (1 - alpha) * g, beta * square + (1 - beta) * g * g
    return w - rate * mean / (np.sqrt(square) + epsilon), mean, square


def rms_prop(w, g, square, rate, beta=0.99, epsilon=1e-8, decay=0.0):
    g = g + decay * w
    square = beta * square + (1 - beta) * g * g
    return w - rate * g / (np.sqrt(square) + epsilon), square


def adagrad(w, g, squares, rate, epsilon=1e-10, decay=0.0):
    g = g + decay * w
    squares = squares + g * g
    return w - rate * g / (np.sqrt(squares) + epsilon), squares
