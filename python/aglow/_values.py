"""Values of a graph that is being built: what nodes give, and other nodes take."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _arrays, _core

if TYPE_CHECKING:
    from ._graph import Builder

# A kind of elements: "f32", "f64", "f16", "bf16", "i8" to "i64", "u8" to "u64", "bool" and narrower ones.
Kind = str


class Value:
    """One result of a node, or an input, constant or state. Operators of Python make nodes of the graph.

        y = x @ w + b
    """
    __slots__ = ("_builder", "_core")

    def __init__(self, core: _core.Value, builder: Optional["Builder"] = None):
        self._core = core
        self._builder = builder

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._core.shape

    @property
    def kind(self) -> Kind:
        """The kind of elements, as texts write it: "f32"."""
        return self._core.kind

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of arrays that hold such elements."""
        return _arrays.dtype_of(self.kind)

    @property
    def type(self) -> str:
        """Kind and shape, as texts write them: "f32[1,3]"."""
        return self._core.type

    @property
    def name(self) -> str:
        """The name of the node that gives it."""
        return self._core.name

    def __repr__(self) -> str:
        return f"<aglow.Value {self.name}: {self.type}>"

    def _in(self, other: Any = None) -> "Builder":
        """The function that nodes of this value go to; storage takes that of the other operand."""
        builder = self._builder or (other._builder if isinstance(other, Value) else None)
        if builder is None:
            raise TypeError("constants and state belong to no function: use the methods of one")
        return builder

    def __add__(self, other: "Operand") -> "Value":
        return self._in(other).add(self, other)

    def __radd__(self, other: "Operand") -> "Value":
        return self._in().add(other, self)

    def __sub__(self, other: "Operand") -> "Value":
        return self._in(other).sub(self, other)

    def __rsub__(self, other: "Operand") -> "Value":
        return self._in().sub(other, self)

    def __mul__(self, other: "Operand") -> "Value":
        return self._in(other).mul(self, other)

    def __rmul__(self, other: "Operand") -> "Value":
        return self._in().mul(other, self)

    def __truediv__(self, other: "Operand") -> "Value":
        return self._in(other).div(self, other)

    def __rtruediv__(self, other: "Operand") -> "Value":
        return self._in().div(other, self)

    def __pow__(self, other: "Operand") -> "Value":
        return self._in(other).pow(self, other)

    def __matmul__(self, other: "Operand") -> "Value":
        return self._in(other).mat_mul(self, other)

    def __rmatmul__(self, other: "Operand") -> "Value":
        return self._in().mat_mul(other, self)

    def __neg__(self) -> "Value":
        return self._in().neg(self)

    # Arrays on the left leave the operator to the value.
    __array_ufunc__ = None


# What nodes take: values; arrays, which become constants; and numbers, of the kind that the other operands have.
Operand = Union[Value, float, int, bool, "np.ndarray[Any, Any]"]
