"""One call of an ATen operator on its way into a graph."""
from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import numpy as np
import torch

from .. import _arrays
from .._graph import Builder
from .._values import Kind, Value

KINDS: dict[Any, Kind] = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.bool: "bool",
    torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8",
}
_FLOATS = ("f32", "f64", "f16", "bf16")


class Unsupported(Exception):
    """Why torch has to run an operator itself."""


def kind_of(dtype: Any) -> Kind:
    """The kind of elements that a type of torch has."""
    if dtype not in KINDS:
        raise Unsupported(f"elements of {dtype}")
    return KINDS[dtype]


class Node:
    """What a row works with: the builder, the operands so far, and what torch says of the result."""

    def __init__(self, builder: Builder, node: Any, values: Mapping[Any, Any]):
        self.b = builder
        self.op = str(node.target)
        self._values = values
        result = node.meta.get("val")
        first = result[0] if isinstance(result, (list, tuple)) else result
        if not isinstance(first, torch.Tensor):
            raise Unsupported("no tensor comes out")
        self.kind: Kind = kind_of(first.dtype)
        self.shape: list[int] = [_size(size) for size in first.shape]
        self.is_float = self.kind in _FLOATS

    def value(self, x: Any) -> Value:
        """An operand as it is."""
        if isinstance(x, torch.fx.Node):
            value = self._values.get(x)
            if not isinstance(value, Value):
                raise Unsupported(f"the operand {x.name} is no tensor")
            return value
        raise Unsupported(f"an operand of {type(x).__name__}")

    def operand(self, x: Any, kind: Optional[Kind] = None) -> Value:
        """An operand, a number among them, of a kind: that of the result, where none is named."""
        kind = kind or self.kind
        if isinstance(x, (bool, int, float)):
            return self.b.constant(np.asarray(x).astype(_arrays.dtype_of(kind)), dtype=kind)
        value = self.value(x)
        return value if value.kind == kind else self.b.cast(value, to=kind)

    def promoted(self, *operands: Any) -> Kind:
        """The kind in which torch compares operands."""
        given = [x.meta["val"] if isinstance(x, torch.fx.Node) else x for x in operands]
        return kind_of(torch.result_type(given[0], given[1]))

    def constant(self, values: Any) -> Value:
        """Numbers known now, of the result's kind."""
        return self.b.constant(np.asarray(values).astype(_arrays.dtype_of(self.kind)), dtype=self.kind)

    def splat(self, value: float) -> Value:
        """One number at every element of the result."""
        return self.b.splat(value=value, elem=self.kind, shape=self.shape)

    def times(self, value: Value, factor: Any) -> Value:
        """The product with a number; the value itself for 1."""
        return value if factor == 1 else self.b.mul(value, self.operand(factor, value.kind))

    def cut(self, value: Value, parts: Mapping[int, tuple[int, int, int]]) -> Value:
        """Of some axes only these: start, size and step; the others are whole."""
        starts, sizes, steps = [0] * len(value.shape), list(value.shape), [1] * len(value.shape)
        for axis, (start, size, step) in parts.items():
            starts[axis], sizes[axis], steps[axis] = (start if size else 0), size, step
        return self.b.slice(value, starts=starts, sizes=sizes, steps=steps)

    def axes(self, value: Value, dims: Any) -> list[int]:
        """Axes from the front, all of them where none is named."""
        rank = len(value.shape)
        if dims is None or (isinstance(dims, Sequence) and not dims):
            return list(range(rank))
        named = dims if isinstance(dims, Sequence) else [dims]
        return sorted(int(dim) % max(rank, 1) for dim in named)

    def reduced(self, value: Value, kind: Any, dims: Any, keepdim: bool) -> Value:
        """A reduction; of a scalar itself."""
        return self.b.reduce(value, kind=kind, axes=self.axes(value, dims), keepdims=keepdim) if value.shape else value


def _size(size: Any) -> int:
    if not isinstance(size, int):
        raise Unsupported("a size that is not known")
    return size
