"""What torch.compile is given back: the parts of a graph that Aglow compiled, and around them what torch runs."""
from __future__ import annotations

import operator
import time
from typing import Any, Mapping, Sequence

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .._compile import compile
from ._report import GraphReport
from ._translate import MOVES, array_of, decompositions, reason_against, tensor_of, translate


# The right side of products: its place among the arguments.
_RIGHT = {"aten.mm.default": 1, "aten.addmm.default": 2}
_LARGE = 1 << 14  # elements of a matrix


def _is_right_side(value: Any) -> bool:
    """Whether all that read a value are products by it."""
    return all(user.args[_RIGHT[name]] is value if (name := str(user.target)) in _RIGHT else False for user in value.users)


def _is_read_in_place(node: Any, tensor: Any) -> bool:
    """Whether weights are those of products alone, as they are or transposed, as torch.nn.Linear has them. As inputs they
    are read where they lie; as constants the model would pack a copy of them."""
    if tensor.dtype != torch.float32 or tensor.dim() != 2 or tensor.numel() < _LARGE or not tensor.is_contiguous():
        return False
    turns = [user for user in node.users if str(user.target) == "aten.t.default"]
    return all(_is_right_side(turn) for turn in turns) if len(turns) == len(node.users) else _is_right_side(node)


class Piece(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    """A part that Aglow runs. Tensors are looked at where they lie, in and out."""

    def __init__(self, module: Any, constants: Mapping[str, Any], pack_weights: bool, options: Mapping[str, Any]):
        super().__init__()
        places = [node for node in module.graph.nodes if node.op == "placeholder"]
        handed = {place.name: array_of(constants[place.name]) for place in places
                  if not pack_weights and place.name in constants and _is_read_in_place(place, constants[place.name])}
        graph, _, self.dtypes = translate(module, {name: constants[name] for name in constants if name not in handed})
        self.model = compile(graph, **options)
        self.handed_bytes = sum(array.nbytes for array in handed.values())
        # The model takes what it needs, in an order of its own. Weights among it stay the same.
        names = [place.name for place in places]
        order = [spec.name for spec in self.model.inputs]
        self.given = [handed.get(name) for name in order]
        self.order = [(i, names.index(name)) for i, name in enumerate(order) if name not in handed]
        self.single = len(self.dtypes) == 1
        self.outputs = [spec.name for spec in self.model.outputs]

    def forward(self, *tensors: Any) -> Any:
        """Runs on the tensors of the whole part, constants included."""
        given = self.given.copy()
        for i, position in self.order:
            given[i] = array_of(tensors[position])
        made = self.model(*given)
        if self.single:
            return tensor_of(made, self.dtypes[0])
        by_name = dict(zip(self.outputs, made))
        return tuple(tensor_of(by_name[f"output_{i}"], dtype) for i, dtype in enumerate(self.dtypes))


class _Support(OperatorSupportBase):  # type: ignore[misc]
    """What Aglow can run, with the reasons for the rest."""

    def __init__(self, graph: Any):
        self.reasons: dict[Any, str] = {}
        self.able: set[Any] = set()
        for node in graph.nodes:
            if node.op != "call_function":
                continue
            reason = reason_against(node)
            if reason is None:
                self.able.add(node)
            else:
                self.reasons[node] = reason
        # A node is whole or not at all: whoever reads a part that only torch gives has torch run it.
        for node, reason in list(self.reasons.items()):
            if node.target is operator.getitem and node.args[0] in self.able:
                self._give_up(node.args[0], reason)

    def _give_up(self, node: Any, reason: str) -> None:
        self.able.discard(node)
        self.reasons[node] = reason
        for user in node.users:
            if user.target is operator.getitem and user in self.able:
                self.able.discard(user)
                self.reasons[user] = reason

    def is_node_supported(self, submodules: Mapping[str, Any], node: Any) -> bool:
        """Asked by torch's partitioner."""
        return node in self.able


def _traced(module: Any, tensors: Sequence[Any]) -> Any:
    """The graph in ATen's core operators, for exactly these sizes, without mutations inside."""
    with torch.no_grad():
        made = make_fx(torch.func.functionalize(module), decomposition_table=decompositions(), tracing_mode="fake",
                       _allow_non_fake_inputs=True)(*tensors)
    made.graph.eliminate_dead_code()
    made.recompile()
    return made


class Specialised:
    """A graph for one set of sizes and weights."""

    def __init__(self, module: Any, tensors: Sequence[Any], static: Sequence[int], options: Mapping[str, Any],
                 report: GraphReport):
        began = time.perf_counter()
        options = dict(options)
        pack_weights = options.pop("pack_weights", False)
        made = _traced(module, tensors)
        support = _Support(made.graph)
        total = len(support.able) + len(support.reasons)
        names = [node.name for node in made.graph.nodes if node.op == "placeholder"]
        constants = {names[i]: tensors[i] for i in static}
        written = {node.args[0].name for node in made.graph.nodes
                   if node.op == "call_function" and str(node.target).startswith("aten.copy_.")
                   and isinstance(node.args[0], torch.fx.Node)}
        constants = {name: tensor for name, tensor in constants.items() if name not in written}
        partitioner = CapabilityBasedPartitioner(made, support, allows_single_node_partition=True)
        parts = [part for part in partitioner.propose_partitions()
                 if any(str(node.target) not in MOVES and node.target is not operator.getitem for node in part.nodes)]
        inside = {node for part in parts for node in part.nodes}
        self.graph = partitioner.fuse_partitions(parts)
        pieces: list[Piece] = []
        for node in list(self.graph.graph.nodes):
            if node.op != "call_module":
                continue
            inner = self.graph.get_submodule(node.target)
            held = {place.name: constants[given.name] for place, given in
                    zip((one for one in inner.graph.nodes if one.op == "placeholder"), node.args)
                    if isinstance(given, torch.fx.Node) and given.name in constants}
            pieces.append(Piece(inner, held, pack_weights, options))
            self.graph.delete_submodule(node.target)
            self.graph.add_submodule(node.target, pieces[-1])
        self.graph.recompile()
        report.add(total, len(inside), support.reasons, pieces, time.perf_counter() - began)

    def __call__(self, *tensors: Any) -> Any:
        return self.graph(*tensors)


class Runner:
    """What dynamo calls instead of a graph: specialises it for the sizes and weights that come, and keeps that."""

    def __init__(self, module: Any, static: Sequence[int], options: Mapping[str, Any], report: GraphReport):
        self.module = module
        self.static = tuple(static)
        self.options = options
        self.report = report
        self.kept: dict[Any, Specialised] = {}
        self.weights: tuple[Any, ...] = ()
        self.versions: tuple[int, ...] = ()

    def __call__(self, *tensors: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in tensors):
            self.report.eager("gradients are asked for: use torch.no_grad() or torch.inference_mode()")
            return self.module(*tensors)
        given = tuple(tensors[i] for i in self.static)
        # Tensors that inference mode made have no versions.
        versions = tuple(0 if one.is_inference() else one._version for one in given)
        if len(given) != len(self.weights) or any(map(operator.is_not, given, self.weights)) or \
                versions != self.versions:
            # Other weights, or the same after a change: what was made of them is of no use any more.
            self.kept.clear()
            self.weights, self.versions = given, versions
        fixed = set(self.static)
        key = tuple((one.shape, one.dtype) if isinstance(one, torch.Tensor) else one
                    for i, one in enumerate(tensors) if i not in fixed)
        found = self.kept.get(key)
        if found is None:
            found = self.kept[key] = Specialised(self.module, tensors, self.static, self.options, self.report)
        return found(*tensors)
