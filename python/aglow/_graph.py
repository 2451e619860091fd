"""Graphs built by programs: functions of operators over shared storage, with every type checked on the way.

    graph = aglow.Graph()
    main = graph.function("main")
    x = main.input("x", "f32", (1, 3, 8, 8))
    y = main.relu(main.conv(x, filters, pads=[1, 1, 1, 1]))
    main.output("y", y)
    model = aglow.compile(graph)
"""
from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Iterator, Optional, Sequence, Union

import numpy as np

from . import _arrays, _core, _draw
from ._builders import OpBuilders
from ._errors import usage
from ._values import Kind, Operand, Value

DType = Union[Kind, "np.dtype[Any]", type]


def kind_named(dtype: DType) -> Kind:
    """The kind of elements that a name, or a type of numpy or ml_dtypes, stands for."""
    if isinstance(dtype, str) and dtype in _arrays.KINDS:
        return dtype
    try:
        return _arrays.kind_of_dtype(np.dtype(dtype))
    except TypeError:
        raise usage("E101", f"there is no kind of elements {dtype!r}", "f32, i64, bool, bf16, np.float32, …") from None


class Builder(OpBuilders):
    """Makes the nodes of one function: a method for each operator, and those that join it to its surroundings.

    Operands are values, arrays (which become constants) and numbers (of the kind that the other operands have).
    As a context manager nothing happens; `with graph.function("main") as main:` reads well.
    """

    def __init__(self, graph: "Graph", core: _core.Builder, name: str):
        self._graph = graph
        self._core = core
        self.name = name
        self._node_name = ""
        self._predicate: Optional[Value] = None

    def __enter__(self) -> "Builder":
        return self

    def __exit__(self, *fault: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"<aglow.Builder of {self.name}>"

    def input(self, name: str, dtype: DType, shape: Sequence[int]) -> Value:
        """What callers give. Functions that name the same input mean the same one."""
        return Value(self._core.input(name, kind_named(dtype), [int(size) for size in shape]), self)

    def output(self, name: str, value: Operand) -> None:
        """What callers get."""
        self._core.output(name, self._operand(value, None)._core)

    def constant(self, value: Any, name: str = "", dtype: Optional[DType] = None) -> Value:
        """An array that is part of the program; it is read where it lies, and must not change afterwards."""
        return Value(self._graph.constant(value, name, dtype)._core, self)

    def save(self, value: Operand, state: Value) -> None:
        """Leaves a value in a state of the graph, for the next run."""
        self._core.save(self._operand(value, state.kind)._core, state._core)

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator["Builder"]:
        """Nodes made meanwhile have this name, with a number where it is taken."""
        before, self._node_name = self._node_name, name
        try:
            yield self
        finally:
            self._node_name = before

    @contextlib.contextmanager
    def when(self, predicate: Value) -> Iterator["Builder"]:
        """Nodes made meanwhile need not be computed where the predicate (one bool, or one a row) is false."""
        before, self._predicate = self._predicate, predicate
        try:
            yield self
        finally:
            self._predicate = before

    def _operand(self, value: Operand, kind: Optional[Kind]) -> Value:
        if isinstance(value, Value):
            return value
        if isinstance(value, (bool, int, float)):
            if kind is None:
                kind = "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f32"
            return self._graph.constant(np.asarray(value, _arrays.dtype_of(kind)), "", kind)
        return self._graph.constant(value, "", None)

    def _make(self, op: str, letters: str, operands: Sequence[Optional[Operand]],
              attrs: dict[str, Any]) -> tuple[Value, ...]:
        kinds: dict[str, Kind] = {}
        letter = letters.ljust(len(operands), letters[-1:] or "-")
        for position, operand in enumerate(operands):
            if isinstance(operand, Value):
                kinds.setdefault(letter[position], operand.kind)
        values = [None if operand is None else self._operand(operand, kinds.get(letter[position]))._core
                  for position, operand in enumerate(operands)]
        made = self._core.make(op, values, attrs, self._node_name, None if self._predicate is None else self._predicate._core)
        return tuple(Value(value, self) for value in made)


class Graph:
    """A module: functions, and the constants and state that they share. `aglow.compile(graph)` makes a model of it."""

    def __init__(self, core: Optional[_core.Graph] = None):
        self._core = _core.Graph() if core is None else core

    @classmethod
    def parse(cls, text: str) -> "Graph":
        """The graph that a text is; `str(graph)` is the way back, but for large constants, which files keep."""
        return cls(_core.Graph.parse(text))

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Graph":
        """The graph of a file (.graph) with the large constants beside it."""
        return cls(_core.Graph.read(os.fspath(path)))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the text, and large constants into a file beside it: whole, or not at all."""
        self._core.write(os.fspath(path))

    def function(self, name: str = "main") -> Builder:
        """A new function, to be filled."""
        return Builder(self, self._core.function(name), name)

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(self._core.functions)

    def constant(self, value: Any, name: str = "", dtype: Optional[DType] = None) -> Value:
        """An array that functions share; it is read where it lies, and must not change afterwards."""
        kind = "any" if dtype is None else kind_named(dtype)
        return Value(self._core.constant(name or "constant", _arrays.to_pair(np.asarray(value), kind)))

    def state(self, name: str, initial: Any, dtype: Optional[DType] = None) -> Value:
        """What functions leave for the next run; it begins with these values."""
        kind = "any" if dtype is None else kind_named(dtype)
        return Value(self._core.state(name, _arrays.to_pair(np.asarray(initial), kind)))

    def verify(self) -> None:
        """Raises an aglow.Error where the graph breaks a rule."""
        self._core.verify()

    def draw(self, *, limit: int = 300) -> _draw.Svg:
        """A picture: operators from top to bottom, with the shapes between them; of large graphs the first nodes."""
        return _draw.graph(self._core.nodes, limit)

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<aglow.Graph with {', '.join(self.functions) or 'no function yet'}>"

    def _repr_svg_(self) -> str:
        return str(self.draw())

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory() as folder:
            self.save(os.path.join(folder, _FILE))
            return _unpickled, ({entry.name: _content(entry.path) for entry in os.scandir(folder)},)


_FILE = "pickled.graph"


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _unpickled(files: dict[str, bytes]) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        # Constants stay mapped when the files are gone.
        return Graph.load(os.path.join(folder, _FILE))
