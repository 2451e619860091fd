"""Graphs of torch (FX, of ATen operators) become graphs of Aglow."""
from __future__ import annotations

import operator
from typing import Any, Mapping, Optional, Sequence

import numpy as np
import torch

from .._errors import Error
from .._graph import Builder, Graph
from .._values import Value
from . import _rows_nn  # noqa: F401  (enters its rows)
from ._node import KINDS, Node, Unsupported, kind_of
from ._rows import MOVES, ROWS

__all__ = ["MOVES", "ROWS", "Unsupported", "array_of", "decompositions", "reason_against", "tensor_of", "translate"]


def decompositions() -> dict[Any, Any]:
    """Torch's own, of all but what has a row here: rows know more than the parts would tell."""
    table = torch.export.default_decompositions()
    return {op: function for op, function in table.items() if str(op) not in ROWS}


def array_of(tensor: Any) -> "np.ndarray[Any, Any]":
    """The memory of a tensor as an array; types that numpy lacks as their bits."""
    tensor = tensor.detach()
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        bits: "np.ndarray[Any, Any]" = tensor.view(torch.int16).numpy().view(np.uint16)
        return bits
    array: "np.ndarray[Any, Any]" = tensor.numpy()
    return array


def tensor_of(array: Any, dtype: Any) -> Any:
    """The memory of an array as a tensor."""
    if dtype == torch.bfloat16:
        return torch.from_numpy(np.asarray(array).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _call(builder: Builder, node: Any, values: Mapping[Any, Any]) -> Any:
    """The values of one node."""
    if node.target is operator.getitem:
        part = values[node.args[0]][node.args[1]]
        if part is None:
            raise Unsupported("a result that only torch gives")
        return part
    row = ROWS.get(str(node.target))
    if row is None:
        raise Unsupported("there is no row for it")
    context = Node(builder, node, values)
    try:
        return row(context, *node.args, **node.kwargs)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as fault:
        if isinstance(fault, Error):
            raise
        raise Unsupported(f"arguments that its row does not know: {fault}") from None


def _check(node: Any, made: Any) -> None:
    """Raises where something else would come out than torch says."""
    expected = node.meta["val"]
    pairs = zip(expected, made) if isinstance(expected, (list, tuple)) else [(expected, made)]
    for said, value in pairs:
        if isinstance(value, Value) and (tuple(said.shape), kind_of(said.dtype)) != (value.shape, value.kind):
            raise Unsupported(f"{value.type} would come out of it, and not {tuple(said.shape)} of {said.dtype}")


def reason_against(node: Any) -> Optional[str]:
    """Why torch has to run a node; None where Aglow can. It is built by itself, to see whether that works."""
    try:
        builder = Graph().function("alone")
        values: dict[Any, Any] = {}
        for operand in node.all_input_nodes:
            said = operand.meta.get("val")
            if node.target is operator.getitem:
                values[operand] = _parts(operand)
            elif isinstance(said, torch.Tensor):
                if said.device.type != "cpu":
                    return f"a tensor on {said.device}"
                values[operand] = builder.input(operand.name, kind_of(said.dtype), [int(size) for size in said.shape])
        _check(node, _call(builder, node, values))
    except Unsupported as reason:
        return str(reason)
    except Error as fault:
        return fault.message
    return None


def _parts(source: Any) -> list[Any]:
    """The results of a node with several: None for those that it does not give."""
    if reason_against(source) is not None:
        raise Unsupported("it is part of what torch runs")
    builder = Graph().function("alone")
    values = {operand: builder.input(operand.name, kind_of(operand.meta["val"].dtype), operand.meta["val"].shape)
              for operand in source.all_input_nodes if isinstance(operand.meta.get("val"), torch.Tensor)}
    return list(_call(builder, source, values))


def translate(module: Any, constants: Mapping[str, Any], input_names: Optional[Mapping[str, str]] = None,
              output_names: Optional[Sequence[str]] = None) -> tuple[Graph, list[str], list[Any]]:
    """A graph module as a graph: the names of its inputs, and the types of its outputs.

    Placeholders named in `constants` are the tensors given there, whose memory the graph looks at. All nodes have to be
    ones that reason_against has nothing against; the first other raises.
    """
    graph = Graph()
    builder = graph.function("main")
    values: dict[Any, Any] = {}
    inputs: list[str] = []
    dtypes: list[Any] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            if node.name in constants:
                tensor = constants[node.name]
                values[node] = builder.constant(array_of(tensor), node.name, KINDS[tensor.dtype])
            elif isinstance(node.meta.get("val"), torch.Tensor):
                name = (input_names or {}).get(node.name, node.name)
                said = node.meta["val"]
                values[node] = builder.input(name, kind_of(said.dtype), [int(size) for size in said.shape])
                inputs.append(name)
        elif node.op == "get_attr":
            tensor = operator.attrgetter(node.target)(module)
            values[node] = builder.constant(array_of(tensor), node.name, KINDS[tensor.dtype])
        elif node.op == "output":
            results = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
            for i, result in enumerate(results):
                builder.output(output_names[i] if output_names else f"output_{i}", values[result])
                dtypes.append(result.meta["val"].dtype)
        else:
            with builder.named(node.name):
                values[node] = _call(builder, node, values)
    return graph, inputs, dtypes
