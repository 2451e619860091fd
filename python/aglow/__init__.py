"""Aglow compiles trained neural networks and runs them on numpy arrays.

    model = aglow.compile("model.onnx")
    y = model(x)
"""
from typing import TYPE_CHECKING, Any

from ._arrays import dlpack
from ._core import version as __version__
from ._draw import Svg
from ._errors import (BadModelError, DeviceError, Error, Fault, FileError, InternalError, MismatchError, ModelWarning,
                      ResourceError, UnsupportedError, UsageError)
from ._compile import backends, compile, explain, load, ops, parse
from ._function import Function, State, TensorSpec
from ._graph import Builder, Graph
from ._model import Model
from ._reports import Buffer, Difference, Inspection, Memory, RunProfile, Step, Verification
from ._values import Value

if TYPE_CHECKING:
    from ._host import Host, Network
    from ._images import images
    from ._profile import Profile, QuantReport, profile, quant_report
    from ._trainer import Evaluation, History, Report, Trainer

__all__ = ["BadModelError", "Buffer", "Builder", "DeviceError", "Difference", "Error", "Evaluation", "Fault",
           "FileError", "Function", "Graph", "History", "Host", "Inspection", "InternalError", "Memory",
           "MismatchError", "Model", "ModelWarning", "Network", "Profile", "QuantReport", "Report", "ResourceError",
           "RunProfile", "State", "Step", "Svg", "TensorSpec", "Trainer", "UnsupportedError", "UsageError",
           "Value", "Verification", "__version__", "backends", "compile", "dlpack", "explain", "images", "load", "ops",
           "parse", "profile", "quant_report"]

# Imported when they are first asked for, since most programs only run models.
_LATER = {name: module for module, names in {
    "_host": ("Host", "Network"), "_images": ("images",), "_profile": ("Profile", "QuantReport", "profile", "quant_report"),
    "_trainer": ("Evaluation", "History", "Report", "Trainer")}.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'aglow' has no attribute '{name}'")
    import importlib
    value = globals()[name] = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
