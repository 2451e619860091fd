"""Models of torch, compiled in this process.

    fast = torch.compile(model, backend="aglow")       operators that Aglow lacks stay with torch
    print(aglow.torch.report())                        what runs where, and why
    model = aglow.torch.export(module, (x,))           an aglow.Model, which needs no torch any more

For inference, on the CPU: under torch.no_grad() or torch.inference_mode(). New sizes are compiled when they come.
Weights are read in torch's memory; those of convolutions are packed, and some are folded into others, which is a copy.
"""
from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import torch

from .._compile import compile
from .._errors import Fault, UnsupportedError
from .._model import Model
from ._pieces import Runner
from ._report import GraphReport, Report
from ._translate import decompositions, reason_against, translate

__all__ = ["GraphReport", "Report", "backend", "export", "report", "reset"]

_reports: list[GraphReport] = []


def backend(module: Any, inputs: Sequence[Any], *, options: Optional[Mapping[str, Any]] = None, **how: Any) -> Any:
    """What torch.compile calls for each graph; `torch.compile(m, backend="aglow", options={"threads": 2})` hands options
    of aglow.compile on; `"pack_weights": True` lets matrices be packed, which is faster and a copy of them. Compiled models
    are not kept on disk unless `cache` says so, so that weights are there once."""
    report = GraphReport(f"graph {len(_reports)}")
    _reports.append(report)
    static = [i for i, one in enumerate(inputs) if _is_static(one)]
    return torch._dynamo.disable(Runner(module, static, {"cache": False, **(options or {})}, report))


def _is_static(value: Any) -> bool:
    """Whether an input of a graph is a parameter or a buffer."""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


def report() -> Report:
    """What became of the graphs so far."""
    return Report(_reports)


def reset() -> None:
    """Forgets the report."""
    _reports.clear()


def export(module: Any, args: Sequence[Any], kwargs: Optional[Mapping[str, Any]] = None, **options: Any) -> Model:
    """A module of torch as a model, for inputs of the sizes of these: torch.export's graph, without a file between.

    The options are those of aglow.compile. Raises aglow.UnsupportedError with all operators that cannot be compiled.
    """
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            program = torch.export.export(module, tuple(args), dict(kwargs or {}), strict=False)
            program = program.run_decompositions(decompositions())
    finally:
        module.train(was_training)
    faults = [Fault("E301", 3, f"{node.target}: {reason}", f"node '{node.name}'")
              for node in program.graph.nodes if node.op == "call_function"
              for reason in [reason_against(node)] if reason is not None]
    if faults:
        raise UnsupportedError(faults)
    held = {**program.state_dict, **program.constants}
    signature = program.graph_signature
    constants = {spec.arg.name: held[spec.target] for spec in signature.input_specs if spec.target in held}
    names = [name for name in signature.user_outputs if isinstance(name, str)]
    graph, _, _ = translate(program.graph_module, constants, output_names=_distinct(names))
    made = compile(graph, **options)
    made._name = type(module).__name__
    return made


def _distinct(names: Sequence[str]) -> list[str]:
    """The same value may be given twice; outputs have a name each."""
    return [name if names.index(name) == i else f"{name}_{i}" for i, name in enumerate(names)]


# Where the package is installed its entry point tells torch of the backend; elsewhere this import does.
if "aglow" not in torch._dynamo.list_backends(()):
    torch._dynamo.register_backend(backend, name="aglow")
