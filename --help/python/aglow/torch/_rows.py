"""Operators of torch as operators of the graph: one row each, by the name of the ATen overload.

A row is a function of a Node of the translation and the arguments of the call, and gives a value or several. It raises
Unsupported, with the reason, where it cannot express the call; torch then runs that operator itself.
"""
from __future__ import annotations

from typing import Any, Callable, Literal, Optional, Sequence, TypeVar

import numpy as np

from .._values import Value
from ._node import Node, Unsupported

Row = Callable[..., Any]
Entered = TypeVar("Entered", bound=Row)
ROWS: dict[str, Row] = {}
# Rows that only move or rename elements: alone they are not worth a piece.
MOVES: set[str] = set()


def row(*names: str, moves: bool = False) -> Callable[[Entered], Entered]:
    """Enters a function for these overloads."""
    def enter(function: Entered) -> Entered:
        for name in names:
            ROWS[name] = function
            if moves:
                MOVES.add(name)
        return function
    return enter


# ---- elementwise

_UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh",
    "ceil": "ceil", "cos": "cos", "cosh": "cosh", "erf": "erf", "exp": "exp", "expm1": "expm1", "floor": "floor",
    "hardswish": "hard_swish", "log": "log", "log1p": "log1p", "mish": "mish", "neg": "neg", "reciprocal": "reciprocal",
    "relu": "relu", "round": "round", "sigmoid": "sigmoid", "sign": "sign", "silu": "swish", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}


def _unary(method: str) -> Row:
    return lambda n, x: getattr(n.b, method)(n.operand(x))


for _name, _method in _UNARY.items():
    ROWS[f"aten.{_name}.default"] = _unary(_method)

# Both operands become what the result is of.
_BINARY = {"maximum.default": "max", "minimum.default": "min", "mul.Tensor": "mul", "mul.Scalar": "mul",
           "remainder.Tensor": "mod", "remainder.Scalar": "mod", "fmod.Tensor": "rem", "fmod.Scalar": "rem",
           "pow.Tensor_Tensor": "pow", "pow.Scalar": "pow", "div.Tensor": "div", "div.Scalar": "div",
           "bitwise_left_shift.Tensor": "shift_left", "bitwise_right_shift.Tensor": "shift_right"}


def _binary(method: str) -> Row:
    return lambda n, a, b: getattr(n.b, method)(n.operand(a), n.operand(b))


for _name, _method in _BINARY.items():
    ROWS[f"aten.{_name}"] = _binary(_method)

# method, whether operands change places, whether the result is turned round
_COMPARED = {"eq": ("equal", False, False), "ne": ("equal", False, True), "lt": ("less", False, False),
             "le": ("less_or_equal", False, False), "gt": ("less", True, False), "ge": ("less_or_equal", True, False)}


def _compared(method: str, swapped: bool, negated: bool) -> Row:
    def compare(n: Node, a: Any, b: Any) -> Value:
        kind = n.promoted(a, b)
        left, right = n.operand(a, kind), n.operand(b, kind)
        result: Value = getattr(n.b, method)(*((right, left) if swapped else (left, right)))
        return n.b.logical_not(result) if negated else result
    return compare


for _name, _how in _COMPARED.items():
    ROWS[f"aten.{_name}.Tensor"] = ROWS[f"aten.{_name}.Scalar"] = _compared(*_how)

_LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}
_BITWISE = {"bitwise_and": ("logical_and", "bit_and"), "bitwise_or": ("logical_or", "bit_or"),
            "bitwise_xor": ("logical_xor", "bit_xor")}


def _logical(method: str) -> Row:
    return lambda n, a, b: getattr(n.b, method)(n.operand(a, "bool"), n.operand(b, "bool"))


def _bitwise(of_bools: str, of_integers: str) -> Row:
    return lambda n, a, b: getattr(n.b, of_bools if n.kind == "bool" else of_integers)(n.operand(a), n.operand(b))


for _name, _method in _LOGICAL.items():
    ROWS[f"aten.{_name}.default"] = _logical(_method)
for _name, _methods in _BITWISE.items():
    ROWS[f"aten.{_name}.Tensor"] = ROWS[f"aten.{_name}.Scalar"] = _bitwise(*_methods)


@row("aten.logical_not.default")
def _not(n: Node, x: Any) -> Value:
    return n.b.logical_not(n.operand(x, "bool"))


@row("aten.bitwise_not.default")
def _bitwise_not(n: Node, x: Any) -> Value:
    return n.b.logical_not(n.operand(x)) if n.kind == "bool" else n.b.bit_not(n.operand(x))


@row("aten.add.Tensor", "aten.add.Scalar")
def _add(n: Node, a: Any, b: Any, alpha: Any = 1) -> Value:
    if n.kind == "bool":
        return n.b.logical_or(n.operand(a), n.operand(b))
    return n.b.add(n.operand(a), n.times(n.operand(b), alpha))


@row("aten.sub.Tensor", "aten.sub.Scalar")
def _sub(n: Node, a: Any, b: Any, alpha: Any = 1) -> Value:
    return n.b.sub(n.operand(a), n.times(n.operand(b), alpha))


@row("aten.rsub.Scalar", "aten.rsub.Tensor")
def _rsub(n: Node, a: Any, b: Any, alpha: Any = 1) -> Value:
    return n.b.sub(n.operand(b), n.times(n.operand(a), alpha))


@row("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def _div_mode(n: Node, a: Any, b: Any, rounding_mode: Optional[str] = None) -> Value:
    left, right = n.operand(a), n.operand(b)
    if rounding_mode is None:
        return n.b.div(left, right)
    if n.is_float:
        quotient = n.b.div(left, right)
        whole = n.b.floor(quotient)
        if rounding_mode == "floor":
            return whole
        return n.b.where(n.b.less(quotient, 0.0), n.b.ceil(quotient), whole)
    quotient = n.b.div(left, right)
    if rounding_mode == "trunc":
        return quotient
    rest = n.b.mod(left, right)
    return n.b.div(n.b.sub(left, rest), right)


@row("aten.pow.Tensor_Scalar")
def _pow(n: Node, x: Any, exponent: Any) -> Value:
    value = n.operand(x)
    if exponent == 2:
        return n.b.mul(value, value)
    if exponent == 3:
        return n.b.mul(n.b.mul(value, value), value)
    if exponent == 0.5:
        return n.b.sqrt(value)
    return n.b.pow(value, n.operand(exponent))


@row("aten.rsqrt.default")
def _rsqrt(n: Node, x: Any) -> Value:
    return n.b.reciprocal(n.b.sqrt(n.operand(x)))


@row("aten.log2.default")
def _log2(n: Node, x: Any) -> Value:
    return n.b.mul(n.b.log(n.operand(x)), 1 / float(np.log(2)))


@row("aten.exp2.default")
def _exp2(n: Node, x: Any) -> Value:
    return n.b.exp(n.b.mul(n.operand(x), float(np.log(2))))


@row("aten.isnan.default")
def _isnan(n: Node, x: Any) -> Value:
    return n.b.is_nan(n.value(x))


@row("aten.isinf.default")
def _isinf(n: Node, x: Any) -> Value:
    return n.b.is_inf(n.value(x))


@row("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def _where(n: Node, condition: Any, a: Any, b: Any) -> Value:
    return n.b.where(n.operand(condition, "bool"), n.operand(a), n.operand(b))


@row("aten.clamp.default", "aten.clamp.Tensor", "aten.hardtanh.default")
def _clamp(n: Node, x: Any, low: Any = None, high: Any = None) -> Value:
    if n.op == "aten.hardtanh.default":
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
    value = n.operand(x)
    if low is not None:
        value = n.b.max(value, n.operand(low))
    return value if high is None else n.b.min(value, n.operand(high))


@row("aten.clamp_min.default")
def _clamp_min(n: Node, x: Any, low: Any) -> Value:
    return n.b.max(n.operand(x), n.operand(low))


@row("aten.clamp_max.default")
def _clamp_max(n: Node, x: Any, high: Any) -> Value:
    return n.b.min(n.operand(x), n.operand(high))


@row("aten.gelu.default")
def _gelu(n: Node, x: Any, approximate: str = "none") -> Value:
    return n.b.gelu_tanh(n.operand(x)) if approximate == "tanh" else n.b.gelu(n.operand(x))


@row("aten.leaky_relu.default")
def _leaky(n: Node, x: Any, slope: float = 0.01) -> Value:
    return n.b.leaky_relu(n.operand(x), alpha=float(slope))


@row("aten.elu.default")
def _elu(n: Node, x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    if scale != 1 or input_scale != 1:
        raise Unsupported("scaled ELU")
    return n.b.elu(n.operand(x), alpha=float(alpha))


@row("aten.hardsigmoid.default")
def _hardsigmoid(n: Node, x: Any) -> Value:
    return n.b.hard_sigmoid(n.operand(x), alpha=1 / 6, beta=0.5)


@row("aten.softplus.default")
def _softplus(n: Node, x: Any, beta: float = 1, threshold: float = 20) -> Value:
    if beta != 1:
        raise Unsupported("beta other than 1")
    return n.b.softplus(n.operand(x))


# ---- the same elements elsewhere

@row("aten.clone.default", "aten.alias.default", "aten.detach.default", "aten.lift_fresh_copy.default",
     "aten.contiguous.default", "aten._to_copy.default", "aten.copy.default", "aten.lift_fresh.default", moves=True)
def _same(n: Node, x: Any, *rest: Any, **how: Any) -> Value:
    if n.op == "aten.copy.default":
        return n.b.expand(n.operand(rest[0]), shape=n.shape)
    return n.operand(x)


@row("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.unsqueeze.default",
     "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.flatten.using_ints", "aten.view_copy.default",
     moves=True)
def _view(n: Node, x: Any, *how: Any) -> Value:
    return n.b.reshape(n.operand(x), shape=n.shape)


@row("aten.permute.default", moves=True)
def _permute(n: Node, x: Any, dims: Sequence[int]) -> Value:
    return n.b.transpose(n.value(x), perm=[dim % len(dims) for dim in dims])


@row("aten.t.default", moves=True)
def _t(n: Node, x: Any) -> Value:
    value = n.value(x)
    return n.b.transpose(value, perm=[1, 0]) if len(value.shape) == 2 else value


@row("aten.transpose.int", moves=True)
def _transpose(n: Node, x: Any, a: int, b: int) -> Value:
    value = n.value(x)
    perm = list(range(len(value.shape)))
    if perm:
        perm[a], perm[b] = perm[b], perm[a]
    return n.b.transpose(value, perm=perm)


@row("aten.expand.default", "aten.broadcast_to.default", moves=True)
def _expand(n: Node, x: Any, size: Any, implicit: bool = False) -> Value:
    return n.b.expand(n.value(x), shape=n.shape)


@row("aten.slice.Tensor", moves=True)
def _slice(n: Node, x: Any, dim: int = 0, start: Optional[int] = None, end: Optional[int] = None, step: int = 1) -> Value:
    value = n.value(x)
    dim %= len(value.shape)
    first = slice(start, end, step).indices(value.shape[dim])[0]
    return n.cut(value, {dim: (first, n.shape[dim], step)})


@row("aten.select.int", moves=True)
def _select(n: Node, x: Any, dim: int, index: int) -> Value:
    value = n.value(x)
    dim %= len(value.shape)
    return n.b.reshape(n.cut(value, {dim: (index % value.shape[dim], 1, 1)}), shape=n.shape)


@row("aten.split_with_sizes.default", "aten.split_with_sizes_copy.default", moves=True)
def _split(n: Node, x: Any, sizes: Sequence[int], dim: int = 0) -> list[Value]:
    value = n.value(x)
    dim %= len(value.shape)
    starts = np.cumsum([0, *sizes[:-1]])
    return [n.cut(value, {dim: (int(start), int(size), 1)}) for start, size in zip(starts, sizes)]


@row("aten.cat.default")
def _cat(n: Node, tensors: Sequence[Any], dim: int = 0) -> Value:
    values = [n.operand(one) for one in tensors]
    # An empty vector joins anything.
    values = [one for one in values if one.shape != (0,)] if len(n.shape) > 1 else values
    return n.b.concat(values, axis=dim % len(n.shape))


@row("aten.stack.default")
def _stack(n: Node, tensors: Sequence[Any], dim: int = 0) -> Value:
    dim %= len(n.shape)
    one = [*n.shape[:dim], 1, *n.shape[dim + 1:]]
    return n.b.concat([n.b.reshape(n.operand(value), shape=one) for value in tensors], axis=dim)


@row("aten.repeat.default")
def _repeat(n: Node, x: Any, repeats: Sequence[int]) -> Value:
    value = n.value(x)
    shape = [1] * (len(repeats) - len(value.shape)) + list(value.shape)
    spread = [size for times, extent in zip(repeats, shape) for size in (times, extent)]
    lifted = n.b.reshape(value, shape=[size for extent in shape for size in (1, extent)])
    return n.b.reshape(n.b.expand(lifted, shape=spread), shape=n.shape)


@row("aten.flip.default", moves=True)
def _flip(n: Node, x: Any, dims: Sequence[int]) -> Value:
    value = n.value(x)
    extents = value.shape
    return n.cut(value, {dim % len(extents): (extents[dim] - 1, extents[dim], -1) for dim in dims})


@row("aten.constant_pad_nd.default")
def _pad(n: Node, x: Any, pad: Sequence[int], value: Any = 0) -> Value:
    given = n.value(x)
    rank = len(given.shape)
    before, after = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    cuts = {axis: (max(-before[axis], 0), given.shape[axis] + min(before[axis], 0) + min(after[axis], 0), 1)
            for axis in range(rank) if before[axis] < 0 or after[axis] < 0}
    if cuts:
        given = n.cut(given, cuts)
    return n.b.pad(given, n.operand(value, given.kind), before=[max(one, 0) for one in before],
                   after=[max(one, 0) for one in after])


# ---- made of nothing

@row("aten.full.default", "aten.full_like.default", "aten.new_full.default", moves=True)
def _full(n: Node, what: Any, *values: Any, **how: Any) -> Value:
    return n.splat(float(values[-1]))


@row("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default", moves=True)
def _zeros(n: Node, *what: Any, **how: Any) -> Value:
    return n.splat(0.0)


@row("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default", moves=True)
def _ones(n: Node, *what: Any, **how: Any) -> Value:
    return n.splat(1.0)


@row("aten.scalar_tensor.default", moves=True)
def _scalar(n: Node, value: Any, **how: Any) -> Value:
    return n.splat(float(value))


@row("aten.arange.start_step", "aten.arange.start", "aten.arange.default", moves=True)
def _arange(n: Node, *bounds: Any, **how: Any) -> Value:
    start = bounds[0] if len(bounds) > 1 else 0
    step = bounds[2] if len(bounds) > 2 else 1
    return n.constant(start + step * np.arange(n.shape[0]))


# ---- along axes

def _reduce(kind: str) -> Row:
    def reduce(n: Node, x: Any, dims: Any = None, keepdim: bool = False, **how: Any) -> Value:
        if how.get("out") is not None:
            raise Unsupported("an output given")
        return n.reduced(n.operand(x), kind, dims, keepdim)
    return reduce


for _name, _kind in {"sum.dim_IntList": "sum", "sum.default": "sum", "mean.dim": "mean", "mean.default": "mean",
                     "amax.default": "max", "amin.default": "min", "prod.default": "prod", "max.default": "max",
                     "min.default": "min", "any.default": "max", "any.dim": "max", "any.dims": "max",
                     "all.default": "min", "all.dim": "min", "all.dims": "min", "prod.dim_int": "prod"}.items():
    ROWS[f"aten.{_name}"] = _reduce(_kind)


@row("aten.max.dim", "aten.min.dim")
def _extreme(n: Node, x: Any, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    value = n.value(x)
    which: Literal["max", "min"] = "max" if n.op == "aten.max.dim" else "min"
    axis = dim % max(len(value.shape), 1)
    return n.reduced(value, which, [axis], keepdim), n.b.arg_reduce(value, kind=which, axis=axis, keepdims=keepdim)


@row("aten.argmax.default", "aten.argmin.default")
def _arg(n: Node, x: Any, dim: Optional[int] = None, keepdim: bool = False) -> Value:
    value = n.value(x)
    which: Literal["max", "min"] = "max" if n.op == "aten.argmax.default" else "min"
    if dim is None:
        flat = n.b.reshape(value, shape=[int(np.prod(value.shape))])
        return n.b.reshape(n.b.arg_reduce(flat, kind=which, axis=0, keepdims=False), shape=n.shape)
    return n.b.arg_reduce(value, kind=which, axis=dim % len(value.shape), keepdims=keepdim)


@row("aten.var.correction", "aten.var_mean.correction")
def _var(n: Node, x: Any, dims: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    value = n.operand(x)
    axes = n.axes(value, dims)
    count = int(np.prod([value.shape[axis] for axis in axes]))
    mean = n.b.reduce(value, kind="mean", axes=axes)
    off = n.b.sub(value, mean)
    total = n.b.reduce(n.b.mul(off, off), kind="sum", axes=axes, keepdims=keepdim)
    variance = n.b.div(total, float(max(count - (1 if correction is None else correction), 0)))
    if n.op == "aten.var.correction":
        return variance
    return variance, mean if keepdim else n.b.reduce(value, kind="mean", axes=axes, keepdims=False)


@row("aten.cumsum.default", "aten.cumprod.default")
def _cumsum(n: Node, x: Any, dim: int, dtype: Any = None) -> Value:
    kind: Literal["sum", "prod"] = "sum" if n.op == "aten.cumsum.default" else "prod"
    return n.b.scan(n.operand(x), kind=kind, axis=dim % len(n.shape))


@row("aten.topk.default")
def _topk(n: Node, x: Any, k: int, dim: int = -1, largest: bool = True, ordered: bool = True) -> tuple[Value, ...]:
    value = n.value(x)
    return n.b.top_k(value, k=k, axis=dim % len(value.shape), largest=largest)


@row("aten.sort.default")
def _sort(n: Node, x: Any, dim: int = -1, descending: bool = False) -> tuple[Value, ...]:
    value = n.value(x)
    axis = dim % len(value.shape)
    return n.b.top_k(value, k=value.shape[axis], axis=axis, largest=descending)


@row("aten._softmax.default", "aten._safe_softmax.default", "aten.softmax.int")
def _softmax(n: Node, x: Any, dim: int, *how: Any, **more: Any) -> Value:
    return n.b.softmax(n.operand(x), axis=dim % max(len(n.shape), 1))


@row("aten._log_softmax.default", "aten.log_softmax.int")
def _log_softmax(n: Node, x: Any, dim: int, *how: Any, **more: Any) -> Value:
    return n.b.log_softmax(n.operand(x), axis=dim % max(len(n.shape), 1))


# ---- at computed places

@row("aten.embedding.default")
def _embedding(n: Node, weight: Any, indices: Any, *how: Any) -> Value:
    return n.b.gather(n.value(weight), n.value(indices), axis=0)


@row("aten.index_select.default")
def _index_select(n: Node, x: Any, dim: int, index: Any) -> Value:
    value = n.value(x)
    return n.b.gather(value, n.value(index), axis=dim % len(value.shape))


@row("aten.gather.default")
def _gather(n: Node, x: Any, dim: int, index: Any, **how: Any) -> Value:
    value, places = n.value(x), n.value(index)
    dim %= len(value.shape)
    # Only the first rows of the other axes are looked at.
    cuts = {axis: (0, places.shape[axis], 1) for axis in range(len(value.shape))
            if axis != dim and places.shape[axis] < value.shape[axis]}
    return n.b.gather_elements(n.cut(value, cuts) if cuts else value, places, axis=dim)


@row("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _index(n: Node, x: Any, indices: Sequence[Any]) -> Value:
    value = n.value(x)
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    places = [n.value(indices[axis]) for axis in axes]
    if any(place.kind not in ("i64", "i32") for place in places):
        raise Unsupported("a mask decides how many elements there are")
    if len(axes) == 1:
        return n.b.gather(value, places[0], axis=axes[0])
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise Unsupported("indices of axes that are not neighbours")
    shape = np.broadcast_shapes(*(place.shape for place in places))
    # The axes indexed come first, as tuples ask for it.
    rank = len(value.shape)
    order = [*axes, *range(axes[0]), *range(axes[-1] + 1, rank)]
    tuples = n.b.concat([n.b.reshape(n.b.cast(n.b.expand(place, shape=shape), to="i64"), shape=[*shape, 1])
                         for place in places], axis=len(shape))
    found = n.b.gather_nd(n.b.transpose(value, perm=order), tuples)
    lead = len(shape)
    back = [*range(lead, lead + axes[0]), *range(lead), *range(lead + axes[0], len(found.shape))]
    return n.b.transpose(found, perm=back)


@row("aten.scatter.src", "aten.scatter.value", "aten.scatter_add.default")
def _scatter(n: Node, x: Any, dim: int, index: Any, src: Any) -> Value:
    value, places = n.operand(x), n.value(index)
    updates = n.operand(src)
    if updates.shape != places.shape:
        updates = n.cut(updates, {axis: (0, extent, 1) for axis, extent in enumerate(places.shape)}) \
            if updates.shape else n.b.expand(updates, shape=places.shape)
    how: Literal["add", "none"] = "add" if n.op == "aten.scatter_add.default" else "none"
    return n.b.scatter_elements(value, places, updates, axis=dim % len(value.shape), reduction=how)
