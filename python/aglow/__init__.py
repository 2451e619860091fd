"""Aglow compiles trained neural networks and runs them on numpy arrays.

    model = aglow.compile("model.onnx")
    y = model(x)
"""
from ._arrays import dlpack
from ._core import version as __version__
from ._draw import Svg
from ._errors import (BadModelError, DeviceError, Error, Fault, FileError, InternalError, MismatchError, ModelWarning,
                      ResourceError, UnsupportedError, UsageError)
from ._host import Host, Network
from ._images import images
from ._compile import backends, compile, explain, load, ops, parse
from ._function import Function, State, TensorSpec
from ._graph import Builder, Graph
from ._model import Model
from ._profile import Profile, QuantReport, profile, quant_report
from ._reports import Buffer, Difference, Inspection, Memory, RunProfile, Step, Verification
from ._trainer import Evaluation, History, Report, Trainer
from ._values import Value

__all__ = ["BadModelError", "Buffer", "Builder", "DeviceError", "Difference", "Error", "Evaluation", "Fault",
           "FileError", "Function", "Graph", "History", "Host", "Inspection", "InternalError", "Memory",
           "MismatchError", "Model", "ModelWarning", "Network", "Profile", "QuantReport", "Report", "ResourceError",
           "RunProfile", "State", "Step", "Svg", "TensorSpec", "Trainer", "UnsupportedError", "UsageError",
           "Value", "Verification", "__version__", "backends", "compile", "dlpack", "explain", "images", "load", "ops",
           "parse", "profile", "quant_report"]
