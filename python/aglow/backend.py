"""ONNX's backend interface (onnx.backend.base), for its test suite and for tools that speak it.

    import aglow.backend
    outputs = aglow.backend.prepare(model_proto).run([x])

The environment variable AGLOW_BACKEND chooses the backend ("cpu", "interpreter" or "opencl"); options of `aglow.compile` may be
given to `prepare` as well.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.backend import base

from . import _compile, _model


class BackendRep(base.BackendRep):
    """A prepared model."""

    def __init__(self, model: _model.Model):
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Inputs in the model's order (or by name), outputs in the model's order."""
        if isinstance(inputs, (list, tuple)):
            result = self.model(*inputs)
        else:
            result = self.model(inputs)
        return result if len(self.model.outputs) != 1 else (result,)


class Backend(base.Backend):
    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether all operators of the model are known; whether their uses are is known when it is prepared."""
        known = {*_compile.ops(), *(_name(function.domain, function.name) for function in model.functions)}
        return cls.supports_device(device) and all(
            _name(node.domain, node.op_type) in known for node in model.graph.node)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        return BackendRep(_compile.compile(model, **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Optional[Sequence[tuple[np.dtype, tuple[int, ...]]]] = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """Runs one node as a model of its own; inputs that it leaves out ("") are not given.

        `opset_version` may be among the options; the newest is the default.
        """
        names = [name for name in node.input if name]
        values = [np.asarray(value) for value in (inputs.values() if isinstance(inputs, dict) else inputs)]
        opsets = [helper.make_opsetid(node.domain, kwargs.pop("opset_version", None) or _newest(node.domain))]
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                 for name, value in zip(names, values)]
        given = [name for name in node.output if name]
        outputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
                   for name, (dtype, shape) in zip(given, outputs_info or ())]
        outputs += [onnx.ValueInfoProto(name=name) for name in given[len(outputs):]]
        graph = helper.make_graph([node], node.op_type, infos, outputs)
        return cls.run_model(helper.make_model(graph, opset_imports=opsets), dict(zip(names, values)), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


def _name(domain: str, op_type: str) -> str:
    return op_type if domain in ("", "ai.onnx") else f"{domain}::{op_type}"


def _newest(domain: str) -> int:
    """The newest opset of a domain that the onnx package knows."""
    return onnx.defs.onnx_opset_version() if domain in ("", "ai.onnx") else max(
        (schema.since_version for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == domain),
        default=1)


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
