"""Aglow compiles trained neural networks and runs them on numpy arrays.

    model = aglow.compile("model.onnx")
    y = model(x)
"""
from ._core import version as __version__
from ._errors import (BadModelError, DeviceError, Error, Fault, FileError, InternalError, MismatchError, ModelWarning,
                      ResourceError, UnsupportedError, UsageError)
from ._images import images
from ._model import Function, Model, State, TensorSpec, backends, compile, explain, load, ops
from ._profile import Profile, QuantReport, profile, quant_report
from ._trainer import Evaluation, History, Report, Trainer

__all__ = ["BadModelError", "DeviceError", "Error", "Evaluation", "Fault", "FileError", "Function", "History",
           "InternalError", "MismatchError", "Model", "ModelWarning", "Profile", "QuantReport", "Report",
           "ResourceError", "State", "TensorSpec", "Trainer", "UnsupportedError", "UsageError", "__version__",
           "backends", "compile", "explain", "images", "load", "ops", "profile", "quant_report"]
